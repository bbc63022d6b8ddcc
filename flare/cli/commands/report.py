"""Make a page of results, for a browser."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from flare.cli.case_options import (
    CASE_OPTIONS,
    case_options,
    case_pages_of,
    check_case_options,
)
from flare.cli.command import Command, refuse
from flare.cli.options import PATH, OneOf, PageOrFolder
from flare.cli.ranking_options import RANKING_OPTIONS, given, ranking_options
from flare.common.text import safe
from flare.reports.pages.sources import Kind, kind_of

PLACE = ("For everybody", 1)

_log = logging.getLogger(__name__)


_ONLY_FOR = {
    **dict.fromkeys(RANKING_OPTIONS, (Kind.RANKING,)),
    **dict.fromkeys(CASE_OPTIONS, (Kind.EVALUATION,)),
    **dict.fromkeys(("figures", "groups"), (Kind.EVALUATION, Kind.RANKING)),
}
"""Options, as parameters, that mean something for some kinds of sources alone."""


class _Report(Command):
    """Refuses options that mean nothing for what the report is about."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words, and hold options against the kind of the sources."""
        rest = super().parse_args(ctx, args)
        sources = ctx.params.get("sources")
        if sources and not ctx.resilient_parsing:
            kind = kind_of(sources)
            typed = click.core.ParameterSource.COMMANDLINE
            for name, kinds in _ONLY_FOR.items():
                if kind not in kinds and ctx.get_parameter_source(name) is typed:
                    option = f"--{name.replace('_', '-')}"
                    words = " or ".join(kind.value for kind in kinds)
                    refuse(ctx, f"argument {option}: only for {words}")
        if ctx.params.get("figures") and ctx.params.get("audience") != "organiser":
            refuse(ctx, "argument --figures: only with --audience organiser")
        if sources and not ctx.resilient_parsing:
            check_case_options(ctx)
        return rest


@click.command("report", cls=_Report)
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    type=PATH,
    metavar="SOURCE...",
    help="The metrics.json of an evaluation; several of them, which are compared case"
    " by case with the first; the folder of a measured team; the results of all teams,"
    " as flare rank takes them, which are ranked; or the folder that flare rank has"
    " written.",
)
@click.option(
    "--output",
    type=PageOrFolder(path_type=Path, readable=False),
    required=True,
    metavar="FOLDER|FILE.html",
    help="Write the pages into this folder, beginning with index.html; or one page,"
    " which needs no other file, into this file.",
)
@click.option(
    "--audience",
    type=OneOf(["organiser", "participant"]),
    default="participant",
    help="Show what these people may know: participants get scores of three decimals,"
    " or ranks (default: participant). Whoever gets scores of several submissions can"
    " work out volumes of the references even from three decimals.",
)
@click.option(
    "--figures",
    type=PATH,
    metavar="FOLDER",
    help="Also write figures for a paper into this folder, as SVG and PDF with their"
    " numbers, the table in LaTeX and the Methods; needs --audience organiser and"
    " matplotlib.",
)
@click.option(
    "--groups",
    type=PATH,
    metavar="FILE.csv",
    help="Also show each group of cases: this file has a column case, and others such"
    " as centre, scanner or phase, by each of which the cases are grouped.",
)
@case_options
@ranking_options
def command(
    *,
    sources: tuple[Path, ...],
    output: Path,
    audience: str,
    figures: Path | None,
    groups: Path | None,
    **options: Any,
) -> None:
    """Make pages of results."""
    # Here, as help and completion should not wait for it.
    from flare.reports.pages.page import check_pages

    check_pages(output)
    if figures:
        from flare.reports.figures.plates import check_figures

        check_figures(figures)
    from flare.reports.pages.report import write_report

    is_organiser = audience == "organiser"
    cases = case_pages_of(options)
    extras: dict[str, Any] = {"figures": figures, "groups": groups, "cases": cases}
    page = write_report(
        sources, output, is_organiser=is_organiser, **extras, **given(options)
    )
    if figures:
        _log.info("Wrote figures into %s", safe(figures))
    _log.info("Wrote %s: open it in a browser", safe(page))
