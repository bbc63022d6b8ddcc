"""Rank several metrics.json as the platform would."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.cli.command import Command
from flare.cli.options import PATH
from flare.cli.phases import default_phase, phase_options
from flare.platforms.grandchallenge.leaderboard import (
    find_differences,
    leaderboard_table,
    rank_results,
    read_result,
    write_leaderboard,
)
from flare.platforms.grandchallenge.phase import read_phase

PLACE = ("For organisers", 5)

_log = logging.getLogger(__name__)


@click.command("leaderboard", cls=Command)
@click.argument(
    "files",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="METRICS_JSON...",
    help="RESULTS/TEAM/metrics.json; of one team, the last is the most recent.",
)
@click.option(
    "--output",
    type=PATH,
    metavar="FILE.csv",
    help="Write the leaderboard as a table, too.",
)
@phase_options
def command(
    *,
    files: tuple[Path, ...],
    output: Path | None,
    phase: str,
    phase_settings: Path | None,
) -> None:
    """Rank several results as the platform would."""
    settings = (
        read_phase(phase_settings, phase) if phase_settings else default_phase(phase)
    )
    results = [read_result(file) for file in files]
    difference = find_differences(results)
    if difference:
        _log.info("%s", difference)
    board = rank_results(results, settings)
    if output:
        write_leaderboard(board, output)
    _log.info("%s", leaderboard_table(board, settings))
