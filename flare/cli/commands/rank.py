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

    challenge = read_challenge(request.options.challenge)
    with without_searches():
        ranking = Ranking(
            rank_results(request.results, challenge, request.options, request.groups)
        )
        ranking.write(request.output)
    say(ranking)
    if request.by_organ:
        say(f"\n{organs_text(ranking.analysis)}")
