"""Rank several metrics.json as the platform would."""

from __future__ import annotations

import logging

from flare.cli.command import takes
from flare.common.text import safe
from flare.platforms.grandchallenge.leaderboard import (
    BoardOptions,
    leaderboard_table,
    rank_results,
    read_result,
    write_leaderboard,
)

PLACE = ("For organisers", 5)

_log = logging.getLogger(__name__)


@takes(BoardOptions)
def command(request: BoardOptions) -> None:
    """Rank several results as the platform would."""
    results = [read_result(file) for file in request.files]
    phase = request.phase(results)
    rows, left_out = rank_results(results, phase)
    if request.output:
        write_leaderboard(rows, phase, request.output)
    _log.info("%s", leaderboard_table(rows, phase))
    for name, why in left_out:
        _log.info("A result of %s is left out: %s.", safe(name), why)
