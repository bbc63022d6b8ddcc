"""Make a page of results, for a browser."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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
def command(asked: Report) -> None:
    """Make pages of results."""
    context = click.get_current_context()
    for problem in _problems(asked, context):
        raise click.UsageError(f"argument {problem}", context)
    # Here, as help should not wait for it.
    from flare.reports.render import check_library

    check_library(asked.output, "jinja2")
    if asked.figures:
        check_library(asked.figures, "matplotlib")
    told = Progress()
    page = replace(
        asked, on_drawn=lambda n, total, case: told(n, total, f"{safe(case)} drawn")
    ).write()
    if asked.figures:
        _log.info("Wrote figures into %s", safe(asked.figures))
    _log.info("Wrote %s: open it in a browser", safe(page))


def _problems(asked: Report, context: click.Context) -> Iterator[str]:
    """Options that do not go together, or mean nothing for such sources."""
    kind, typed = kind_of(asked.sources), click.core.ParameterSource.COMMANDLINE
    given = [name for name in _ONLY_FOR if context.get_parameter_source(name) is typed]
    for name in given:
        if kind not in (kinds := _ONLY_FOR[name]):
            yield f"{_flag(name)}: only for {' or '.join(k.value for k in kinds)}"
    if asked.figures and not asked.is_organiser:
        yield "--figures: only with --audience organiser"
    cases = [row.name for row in fields(CaseOptions) if row.name in given]
    for needed in ("ground_truth", "predictions"):
        if cases and needed not in cases:
            yield f"{_flag(cases[0])}: only together with {_flag(needed)}"
    if cases and not asked.is_organiser:
        yield f"{_flag(cases[0])}: only with --audience organiser"
    if cases and is_page(asked.output):
        yield f"{_flag(cases[0])}: only where --output is a folder"


def _flag(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"
