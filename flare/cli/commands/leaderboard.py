"""Rank several metrics.json as the platform would."""

from __future__ import annotations

from flare.cli.command import takes
from flare.cli.console import say
from flare.common.text import safe
from flare.platforms.grandchallenge.leaderboard import (
    BoardOptions,
    leaderboard_table,
    rank_results,
    read_result,
    write_leaderboard,
)

PLACE = ("For organisers", 5)


@takes(BoardOptions)
def command(request: BoardOptions) -> None:
    results = [read_result(file) for file in request.files]
    phase = request.phase(results)
    rows, left_out = rank_results(results, phase)
    if request.output:
        write_leaderboard(rows, phase, request.output)
    say(leaderboard_table(rows, phase))
    for name, why in left_out:
        say(f"A result of {safe(name)} is left out: {why}.")
