"""Make a page of results, for a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import click

from flare.cli.command import takes
from flare.cli.console import Progress, say
from flare.common.text import safe
from flare.ranking.rules import RankingOptions
from flare.reports.cases.options import CaseOptions
from flare.reports.render import check_library
from flare.reports.report import Kind, Report, is_page, kind_of

PLACE = ("For everybody", 1)

_RANKING_OPTIONS = [row.name for row in fields(RankingOptions)]
_CASE_OPTIONS = [row.name for row in fields(CaseOptions)]

_KINDS_BY_OPTION = {
    **dict.fromkeys(_RANKING_OPTIONS, (Kind.RANKING,)),
    "means": (Kind.RANKING, Kind.WRITTEN),  # unlike the other options of rankings
    **dict.fromkeys(_CASE_OPTIONS, (Kind.EVALUATION,)),
    "page": (Kind.EVALUATION,),
    "figures": (Kind.EVALUATION, Kind.RANKING),
    "groups": (Kind.EVALUATION, Kind.RANKING),
}
"""The kinds of sources to which an option applies; one that is not here suits all."""

_LABEL_MAPS = ("ground_truth", "predictions")


@takes(Report)
def command(request: Report) -> None:
    context = click.get_current_context()
    problem = next(_problems(request, context), None)
    if problem:
        raise click.UsageError(f"argument {problem}", context)
    # Before the work.
    check_library(request.output, "jinja2")
    if request.figures:
        check_library(request.figures, "matplotlib")
    progress = Progress()

    def on_drawn(number: int, total: int, case: str) -> None:
        progress(number, total, f"{safe(case)} drawn")

    page = replace(request, on_drawn=on_drawn).write()
    if request.figures:
        say(f"Wrote figures into {safe(request.figures)}")
    say(f"Wrote {safe(page)}: open it in a browser")


def _problems(request: Report, context: click.Context) -> Iterator[str]:
    """Name the options that do not go together, or mean nothing for such sources."""
    command_line = click.core.ParameterSource.COMMANDLINE
    source_of = context.get_parameter_source
    names = [name for name in _KINDS_BY_OPTION if source_of(name) is command_line]
    yield from _problems_of_kinds(request, names)
    if request.figures and not request.is_organiser:
        yield "--figures: only with --audience organiser"
    if "page" in names and request.is_organiser:
        yield "--page: only with --audience participant"
    case_names = [name for name in _CASE_OPTIONS if name in names]
    if case_names:
        yield from _problems_of_cases(request, case_names)


def _problems_of_kinds(request: Report, names: Sequence[str]) -> Iterator[str]:
    """Name the options that do not apply to sources of this kind."""
    kinds_by_option = dict(_KINDS_BY_OPTION)
    if "case" in names:
        kinds_by_option |= dict.fromkeys(
            ("case", *_LABEL_MAPS, "images"), (Kind.RANKING,)
        )
    for name in names:
        kinds = kinds_by_option[name]
        if kind_of(request.sources) not in kinds:
            kinds_text = " or ".join(kind.value for kind in kinds)
            way = ""
            if name in _LABEL_MAPS and kind_of(request.sources) is Kind.RANKING:
                way = "; add --case NAME for a page of one case by all teams"
            yield f"{_flag(name)}: only for {kinds_text}{way}"


def _problems_of_cases(request: Report, names: Sequence[str]) -> Iterator[str]:
    """Say what is missing that pages of cases need; --case comes first among them."""
    flag, is_by_all_teams = _flag(names[0]), names[0] == "case"
    for needed in ("ground_truth",) if is_by_all_teams else _LABEL_MAPS:
        if needed not in names:
            yield f"{flag}: only together with {_flag(needed)}"
    if not request.is_organiser:
        yield f"{flag}: only with --audience organiser"
    if is_page(request.output) and not is_by_all_teams:
        yield f"{flag}: only where --output is a folder"
    if is_page(request.output) and len(request.cases.case) > 1:
        yield f"{flag}: only once where --output is a page"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
