"""Make a page of results, for a browser."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

import click

from flare.cli.command import Command, takes
from flare.cli.console import Progress
from flare.common.options import argument, option
from flare.common.text import safe
from flare.ranking.options import RankingOptions
from flare.reports.cases.options import CaseOptions
from flare.reports.report import Kind, is_page, kind_of, write_report

PLACE = ("For everybody", 1)

_log = logging.getLogger(__name__)

_OTHER_FILES = (".csv", ".json", ".md", ".pdf", ".png", ".svg", ".txt", ".zip")


def page_or_folder(text: str) -> Path:
    """A file whose name says that it is a page, or a folder for several."""
    if Path(text).suffix.lower() in _OTHER_FILES:
        raise ValueError(
            f"{text!r} is neither a page, such as report.html, nor a folder"
        )
    return Path(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Of what there are pages, and for whom."""

    sources: tuple[Path, ...] = argument(
        "The metrics.json of an evaluation; several of them, which are compared case by"
        " case with the first; the folder of a measured team; the results of all teams,"
        " as flare rank takes them, which are ranked; or the folder that flare rank has"
        " written.",
        metavar="SOURCE...",
    )
    output: Path = option(
        "Write the pages into this folder, beginning with index.html; or one page,"
        " which needs no other file, into this file.",
        parse=page_or_folder,
        metavar="FOLDER|FILE.html",
    )
    audience: Literal["organiser", "participant"] = option(
        "Show what these people may know: participants get scores of three decimals,"
        " or ranks (default: participant). Whoever gets scores of several submissions"
        " can work out volumes of the references even from three decimals.",
        default="participant",
    )
    figures: Path | None = option(
        "Also write figures for a paper into this folder, as SVG and PDF with their"
        " numbers, the table in LaTeX and the Methods; needs --audience organiser and"
        " matplotlib.",
        default=None,
        metavar="FOLDER",
    )
    groups: Path | None = option(
        "Also show each group of cases: this file has a column case, and others such as"
        " centre, scanner or phase, by each of which the cases are grouped.",
        default=None,
        metavar="FILE.csv",
    )
    cases: CaseOptions = field(default_factory=CaseOptions)
    ranking: RankingOptions = field(default_factory=RankingOptions)


_ONLY_FOR = {
    **{row.name: (Kind.RANKING,) for row in fields(RankingOptions)},
    "means": (Kind.RANKING, Kind.WRITTEN),
    **{row.name: (Kind.EVALUATION,) for row in fields(CaseOptions)},
    **dict.fromkeys(("figures", "groups"), (Kind.EVALUATION, Kind.RANKING)),
}
"""Options, as parameters, that mean something for some kinds of sources alone."""


@click.command("report", cls=Command)
@takes(Asked)
def command(asked: Asked) -> None:
    """Make pages of results."""
    context = click.get_current_context()
    for problem in _problems(asked, context):
        raise click.UsageError(f"argument {problem}", context)
    # Here, as help and completion should not wait for it.
    from flare.reports.render.html import check_pages

    check_pages(asked.output)
    if asked.figures:
        from flare.reports.render.paper import check_figures

        check_figures(asked.figures)
    progress = Progress(logs_time=False)
    page = write_report(
        asked.sources,
        asked.output,
        is_organiser=asked.audience == "organiser",
        cases=asked.cases if asked.cases.ground_truth else None,
        on_drawn=lambda number, total, case: progress(
            number, total, f"{safe(case)} drawn"
        ),
        figures=asked.figures,
        groups=asked.groups,
        ranking=asked.ranking,
    )
    if asked.figures:
        _log.info("Wrote figures into %s", safe(asked.figures))
    _log.info("Wrote %s: open it in a browser", safe(page))


def _problems(asked: Asked, context: click.Context) -> Iterator[str]:
    """Options that do not go together, or mean nothing for such sources."""
    kind, typed = kind_of(asked.sources), click.core.ParameterSource.COMMANDLINE
    given = [name for name in _ONLY_FOR if context.get_parameter_source(name) is typed]
    for name in given:
        if kind not in (kinds := _ONLY_FOR[name]):
            yield f"{_flag(name)}: only for {' or '.join(k.value for k in kinds)}"
    is_organiser = asked.audience == "organiser"
    if asked.figures and not is_organiser:
        yield "--figures: only with --audience organiser"
    cases = [row.name for row in fields(CaseOptions) if row.name in given]
    for needed in ("ground_truth", "predictions"):
        if cases and needed not in cases:
            yield f"{_flag(cases[0])}: only together with {_flag(needed)}"
    if cases and not is_organiser:
        yield f"{_flag(cases[0])}: only with --audience organiser"
    if cases and is_page(asked.output):
        yield f"{_flag(cases[0])}: only where --output is a folder"


def _flag(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"
