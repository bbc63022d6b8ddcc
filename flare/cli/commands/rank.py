"""Rank teams by FLARE's rule, on each case and metric."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from flare.cli.command import Command
from flare.cli.options import PATH
from flare.cli.ranking_options import given, ranking_options

PLACE = ("For organisers", 11)

_log = logging.getLogger(__name__)


@click.command("rank", cls=Command)
@click.argument(
    "results",
    type=PATH,
    metavar="RESULTS",
    help="A folder with a folder for each team, or a table with the columns"
    " team,case,metric,value.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Write ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,"
    " ranking.tex, report.txt, methods.txt and sheets/TEAM.md into this folder.",
)
@ranking_options
def command(*, results: Path, output: Path, **options: Any) -> None:
    """Rank teams by FLARE's rule."""
    # Here, as neither help nor a shell that completes a word has to wait for pandas.
    from flare.reports.ranking.ranking import rank

    ranking = rank(results, **given(options))
    ranking.write(output)
    _log.info("%s", ranking)
