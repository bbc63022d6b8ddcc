"""Shows on the page of an evaluation what groups of cases score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from flare.challenge.metrics import SCORES, is_score
from flare.common.text import count, listing, printable, safe
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.distributions import score_axis, spread_rows
from flare.reports.pages.intervals import FEWEST_CASES, METHOD, mean_interval
from flare.reports.pages.parts import (
    NO_RESULT,
    Cell,
    Figure,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
)
from flare.results.groups_csv import Grouping

FEWEST_SHOWN = 5
"""Participants are told nothing of groups if one of them has fewer cases."""

NOTE = (
    "Each interval is about one group alone: of many groups, some lie apart by chance."
    f" A group of fewer than {FEWEST_CASES} cases has no interval. {METHOD}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPanel:
    """What a page shows of the groups of a column."""

    title: str
    note: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMean:
    """The mean of a metric in a group."""

    cases: int
    missing: int
    mean: float | None
    """Of the cases with a result."""
    interval: tuple[float, float] | None
    """Of scores alone, and not of few cases."""


def group_mean(
    metric: str, values: Sequence[float | None], numbers: Sequence[int]
) -> GroupMean:
    """The mean of the values of some cases."""
    own = [values[number] for number in numbers]
    known = [value for value in own if value is not None]
    return GroupMean(
        cases=len(own),
        missing=len(own) - len(known),
        mean=fmean(known) if known else None,
        interval=mean_interval(known) if is_score(metric) else None,
    )


def group_title(name: str, cases: int) -> str:
    """A group, and how many cases it has.

    Examples
    --------
    >>> group_title("Asia", 12)
    'Asia (12 cases)'
    """
    return f"{printable(name)} ({count(cases, 'case')})"


def too_small(grouping: Grouping) -> tuple[str, ...]:
    """The groups that are too small for participants."""
    return tuple(n for n, cases in grouping.groups if len(cases) < FEWEST_SHOWN)


def silence(grouping: Grouping, small: Sequence[str]) -> str:
    """Why participants are told nothing of the groups of a column."""
    return (
        f"Nothing is told by {safe(grouping.column)}, as a group has fewer than"
        f" {FEWEST_SHOWN} cases: {listing(small)}. What is missing could be found from"
        " the other groups."
    )


# --- One evaluation ---------------------------------------------------------------


def part_of(scores: CaseScores, numbers: Sequence[int]) -> CaseScores:
    """The scores of some cases."""
    return replace(
        scores,
        cases=tuple(scores.cases[number] for number in numbers),
        values={
            metric: tuple(own[number] for number in numbers)
            for metric, own in scores.values.items()
        },
        means={},
    )


def score_panels(
    scores: CaseScores, groupings: Sequence[Grouping]
) -> tuple[GroupPanel, ...]:
    """DSC and NSD in each group of each column.

    Where scores may not be exact, there are only means, as a dot would tell the group
    of its case; and nothing is shown of a column with a small group.
    """
    return tuple(_score_panel(scores, grouping) for grouping in groupings)


def _score_panel(scores: CaseScores, grouping: Grouping) -> GroupPanel:
    """DSC and NSD in each group."""
    title = f"By {safe(grouping.column)}"
    small = too_small(grouping)
    if scores.exact:
        figures = tuple(_score_figure(scores, grouping, score) for score in SCORES)
        return GroupPanel(title=title, note=NOTE, figures=figures)
    if small:
        return GroupPanel(title=title, note=silence(grouping, small))
    tables = tuple(_score_table(scores, grouping, score) for score in SCORES)
    return GroupPanel(title=title, note=NOTE, tables=tables)


def _score_figure(scores: CaseScores, grouping: Grouping, score: str) -> Figure:
    """A dot for each case in the row of its group."""
    parts = [part_of(scores, numbers) for _, numbers in grouping.groups]
    rows = [part.present(score) for part in parts]
    scale, ticks = score_axis([value for values in rows for value in values])
    names = [group_title(name, len(cases)) for name, cases in grouping.groups]
    summary = "; ".join(
        f"{name} mean {NO_RESULT if mean is None else format(mean, '.3f')}"
        for name, mean in zip(names, (p.mean(score) for p in parts), strict=True)
    )
    return Figure(
        title=f"{score.upper()} of each case by {safe(grouping.column)}",
        note="" if ticks[0][1] == "0.0" else "The axis begins at 0.5.",
        summary=summary,
        labels=tuple(names),
        drawing=spread_rows(rows, scale, ticks, has_boxes=True),
        key=(("dot", "a case"), ("boxed", "middle half"), ("line", "median")),
        table=_score_table(scores, grouping, score),
        top=True,
    )


def _score_table(scores: CaseScores, grouping: Grouping, score: str) -> Table:
    """A row for each group and organ."""
    rows = []
    for name, numbers in grouping.groups:
        for end, title in scores.rows:
            own = scores.values[score + end]
            found = group_mean(score, own, numbers)
            rows.append(
                Row(
                    cells=(
                        name_cell(name),
                        Cell(text=str(found.cases)),
                        Cell(text=title),
                        number_cell(found.mean, exact=scores.exact),
                        Cell(text=interval_words(found)),
                    )
                )
            )
    return Table(
        caption=f"{score.upper()} by {safe(grouping.column)} and organ",
        heads=heads(
            *("group", "cases", "organ", "mean", "95 % interval"),
            words=("group", "organ"),
        ),
        rows=tuple(rows),
    )


def interval_words(found: GroupMean) -> str:
    """An interval, or why there is none."""
    if found.interval is None:
        return "too few cases"
    return f"{found.interval[0]:.3f} to {found.interval[1]:.3f}"
