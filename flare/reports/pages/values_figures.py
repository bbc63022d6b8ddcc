"""Draws how values of cases are spread, by team."""

from __future__ import annotations

from collections.abc import Sequence

from flare.common.text import count, safe
from flare.reports.pages.distributions import (
    Scale,
    linear_axis,
    log_axis,
    score_axis,
    spread_rows,
)
from flare.reports.pages.parts import Figure, Table
from flare.reports.pages.tips import dot_tips

Axis = tuple[Scale, tuple[tuple[float, str], ...]]


def value_axis(
    values: Sequence[float], *, is_score: bool, is_time: bool
) -> tuple[Axis, str]:
    """The axis that fits some values, and a note about it."""
    if is_score:
        axis = score_axis(values)
        return axis, "" if axis[1][0][1] == "0.0" else "The axis begins at 0.5."
    if is_time and values:
        return log_axis(values), "On a logarithmic axis."
    return linear_axis(values), ""


def values_figure(
    title: str,
    rows: Sequence[tuple[str, Sequence[float | None]]],
    cases: Sequence[str],
    *,
    is_score: bool,
    is_time: bool = False,
    has_boxes: bool = False,
    decimals: int = 1,
    table: Table | None = None,
) -> Figure:
    """A row of dots for each of some named sequences of values.

    Where there is no table behind it, all values have to be in one of the page.
    """
    known = [[value for value in row if value is not None] for _, row in rows]
    every = [value for row in known for value in row]
    axis, note = value_axis(every, is_score=is_score, is_time=is_time)
    boxed = (("boxed", "middle half"), ("line", "median"))
    return Figure(
        title=title,
        note=note,
        summary=f"{len(every)} values of {count(len(cases), 'case')}, as in the tables",
        labels=tuple(safe(name) for name, _ in rows),
        drawing=spread_rows(known, *axis, has_boxes=has_boxes),
        key=(("dot", "a case"), *(boxed if has_boxes else ())),
        table=table,
        top=True,
        tips=dot_tips(cases, [row for _, row in rows], 3 if is_score else decimals),
    )
