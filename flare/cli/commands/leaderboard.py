"""Rank several metrics.json as the platform would."""

from __future__ import annotations

from dataclasses import dataclass, field

from flare.cli.command import takes
from flare.cli.console import say
from flare.common.text import safe
from flare.platforms.codabench.competition import Leaderboard, read_competition
from flare.platforms.codabench.leaderboard import order_results
from flare.platforms.grandchallenge.leaderboard import phase_of, rank_results
from flare.platforms.grandchallenge.phase import Phase
from flare.platforms.grandchallenge.phase_settings import PhaseOptions
from flare.platforms.leaderboard import (
    BoardOptions,
    leaderboard_table,
    read_result,
    write_leaderboard,
)
from flare.platforms.options import PlatformOptions

PLACE = ("For organisers", 5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request(BoardOptions):
    """What is ranked, and by which settings."""

    platform: PlatformOptions = field(default_factory=PlatformOptions)
    settings: PhaseOptions


@takes(Request, exclusive=("bundle", "phase"))
def command(request: Request) -> None:
    results = [read_result(file) for file in request.files]
    board: Leaderboard | Phase
    if bundle := request.platform.bundle:
        board = read_competition(bundle).leaderboards[0]
        rows, left_out = order_results(results, board)
    else:
        board = phase_of(results, request.settings)
        rows, left_out = rank_results(results, board)
    if request.output:
        write_leaderboard(rows, board, request.output)
    say(leaderboard_table(rows, board))
    for name, why in left_out:
        say(f"A result of {safe(name)} is left out: {why}.")
