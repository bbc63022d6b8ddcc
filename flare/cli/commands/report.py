"""``flare report``: a page of results, for a browser."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from flare.cli.command import Command, refuse
from flare.cli.options import PATH, HtmlFile, OneOf
from flare.cli.ranking_options import RANKING_OPTIONS, given, ranking_options
from flare.common.text import safe
from flare.results.evaluation_file import is_evaluation

_log = logging.getLogger(__name__)


class _Report(Command):
    """Ranks what can be ranked: elsewhere, options of a ranking have no meaning."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; refuse options of a ranking beside a metrics.json."""
        rest = super().parse_args(ctx, args)
        source = ctx.params.get("source")
        if source and is_evaluation(source) and not ctx.resilient_parsing:
            typed = click.core.ParameterSource.COMMANDLINE
            for name in RANKING_OPTIONS:
                if ctx.get_parameter_source(name) is typed:
                    message = f"argument --{name}: only for the results of all teams"
                    refuse(ctx, message)
        return rest


@click.command("report", cls=_Report)
@click.argument(
    "source",
    type=PATH,
    metavar="SOURCE",
    help="The metrics.json of an evaluation; or the results of all teams, as flare rank"
    " takes them, which are ranked.",
)
@click.option(
    "--output",
    type=HtmlFile(path_type=Path, dir_okay=False, readable=False),
    required=True,
    metavar="FILE.html",
    help="Write the page, which needs no other file, into this one.",
)
@click.option(
    "--audience",
    type=OneOf(["organiser", "participant"]),
    default="participant",
    help="Show what these people may know: participants get scores of three decimals,"
    " or ranks, from which nothing can be found out about the references (default:"
    " participant).",
)
@ranking_options
def command(*, source: Path, output: Path, audience: str, **options: Any) -> None:
    """Make a page of results."""
    # Here, as help and completion should not wait for it.
    from flare.reports.pages.page import check_pages

    check_pages(output)
    from flare.reports.pages.report import write_report

    is_organiser = audience == "organiser"
    write_report(source, output, is_organiser=is_organiser, **given(options))
    _log.info("Wrote %s: open it in a browser", safe(output))
