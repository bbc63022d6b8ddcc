"""Rank several metrics.json as the platform would."""

from __future__ import annotations

from dataclasses import dataclass

from flare.cli.command import takes
from flare.cli.console import say
from flare.common.text import safe
from flare.platforms.grandchallenge.leaderboard import phase_of, rank_results
from flare.platforms.grandchallenge.phase_settings import PhaseOptions
from flare.platforms.leaderboard import (
    BoardOptions,
    leaderboard_table,
    read_result,
    write_leaderboard,
)

PLACE = ("For organisers", 5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request(BoardOptions):
    """What is ranked, and by which settings."""

    settings: PhaseOptions


@takes(Request)
def command(request: Request) -> None:
    results = [read_result(file) for file in request.files]
    phase = phase_of(results, request.settings)
    rows, left_out = rank_results(results, phase)
    if request.output:
        write_leaderboard(rows, phase, request.output)
    say(leaderboard_table(rows, phase))
    for name, why in left_out:
        say(f"A result of {safe(name)} is left out: {why}.")
