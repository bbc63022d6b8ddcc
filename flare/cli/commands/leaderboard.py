"""Rank several metrics.json as the platform would."""

from __future__ import annotations

import logging

from flare.cli.command import takes
from flare.platforms.grandchallenge.leaderboard import (
    Options,
    find_differences,
    leaderboard_table,
    rank_results,
    read_result,
    write_leaderboard,
)

PLACE = ("For organisers", 5)

_log = logging.getLogger(__name__)


@takes(Options)
def command(asked: Options) -> None:
    """Rank several results as the platform would."""
    phase = asked.settings.read()
    results = [read_result(file) for file in asked.files]
    difference = find_differences(results)
    if difference:
        _log.info("%s", difference)
    board = rank_results(results, phase)
    if asked.output:
        write_leaderboard(board, asked.output)
    _log.info("%s", leaderboard_table(board))
