"""Make a page of results, for a browser."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import click

from flare.cli.command import takes
from flare.cli.console import Progress
from flare.common.text import safe
from flare.ranking.rules import RankingOptions
from flare.reports.cases.options import CaseOptions
from flare.reports.report import Kind, Report, is_page, kind_of

PLACE = ("For everybody", 1)

_log = logging.getLogger(__name__)

_ONLY_FOR = {
    **{row.name: (Kind.RANKING,) for row in fields(RankingOptions)},
    "means": (Kind.RANKING, Kind.WRITTEN),
    **{row.name: (Kind.EVALUATION,) for row in fields(CaseOptions)},
    **dict.fromkeys(("figures", "groups"), (Kind.EVALUATION, Kind.RANKING)),
}
"""Options, as parameters, that mean something for some kinds of sources alone."""


@takes(Report)
def command(request: Report) -> None:
    """Make pages of results."""
    context = click.get_current_context()
    for problem in _problems(request, context):
        raise click.UsageError(f"argument {problem}", context)
    # Here, as help should not wait for it.
    from flare.reports.render import check_library

    check_library(request.output, "jinja2")
    if request.figures:
        check_library(request.figures, "matplotlib")
    progress = Progress()
    page = replace(
        request,
        on_drawn=lambda n, total, case: progress(n, total, f"{safe(case)} drawn"),
    ).write()
    if request.figures:
        _log.info("Wrote figures into %s", safe(request.figures))
    _log.info("Wrote %s: open it in a browser", safe(page))


def _problems(request: Report, context: click.Context) -> Iterator[str]:
    """Name the options that do not go together, or mean nothing for such sources."""
    typed = click.core.ParameterSource.COMMANDLINE
    names = [name for name in _ONLY_FOR if context.get_parameter_source(name) is typed]
    for name in names:
        kinds = _ONLY_FOR[name]
        if kind_of(request.sources) not in kinds:
            yield f"{_flag(name)}: only for {' or '.join(kind.value for kind in kinds)}"
    if request.figures and not request.is_organiser:
        yield "--figures: only with --audience organiser"
    case_names = [row.name for row in fields(CaseOptions) if row.name in names]
    if case_names:
        yield from _problems_of_cases(request, case_names)


def _problems_of_cases(request: Report, names: Sequence[str]) -> Iterator[str]:
    """Say what the options of case pages need that is not there."""
    flag = _flag(names[0])
    for needed in ("ground_truth", "predictions"):
        if needed not in names:
            yield f"{flag}: only together with {_flag(needed)}"
    if not request.is_organiser:
        yield f"{flag}: only with --audience organiser"
    if is_page(request.output):
        yield f"{flag}: only where --output is a folder"


def _flag(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"
