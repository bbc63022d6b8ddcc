"""Rank teams by FLARE's rule, or as the challenge file says."""

from __future__ import annotations

from flare.cli.command import takes
from flare.cli.console import say
from flare.common.environment import without_searches
from flare.ranking.rules import RankingRequest

PLACE = ("For organisers", 11)


@takes(RankingRequest)
def command(request: RankingRequest) -> None:
    # Here, as the help should not wait for pandas.
    from flare.challenge.reading import read_challenge
    from flare.ranking.rank import rank_results
    from flare.reports.paper.files import organs_text
    from flare.reports.rank import Ranking
    from flare.results.errors import RankingError

    challenge = read_challenge(request.options.challenge)
    if request.groups and not challenge.scheme.group:
        problem = "its [scheme] has no group, and --groups tells groups"
        remedy = "Pages have means by group: flare report --groups."
        raise RankingError(challenge.key, problem, remedy)
    with without_searches():
        ranking = Ranking(
            rank_results(request.results, challenge, request.options, request.groups)
        )
        ranking.write(request.output)
    say(ranking)
    if request.by_organ:
        say(f"\n{organs_text(ranking.analysis)}")
