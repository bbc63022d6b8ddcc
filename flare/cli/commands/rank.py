"""Rank teams by FLARE's rule, on each case and metric."""

from __future__ import annotations

import logging

from flare.cli.command import takes
from flare.common.environment import without_searches
from flare.ranking.rules import RankingRequest

PLACE = ("For organisers", 11)

_log = logging.getLogger(__name__)


@takes(RankingRequest)
def command(request: RankingRequest) -> None:
    """Rank teams by FLARE's rule."""
    # Here, as the help should not wait for pandas.
    from flare.challenge.reading import read_challenge
    from flare.ranking.rank import rank_results
    from flare.reports.paper.files import organs_text
    from flare.reports.rank import Ranking

    challenge = read_challenge(request.options.challenge)
    with without_searches():
        ranking = Ranking(rank_results(request.results, challenge, request.options))
        ranking.write(request.output)
    _log.info("%s", ranking)
    if request.by_organ:
        _log.info("\n%s", organs_text(ranking.analysis))
