"""Draws the running time of each case, by team."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from flare.common.text import count, safe
from flare.reports.pages.curves import curve_rows
from flare.reports.pages.parts import (
    MANY_ROWS,
    Figure,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
)
from flare.reports.pages.ranking import MetricValues
from flare.results.traces_csv import Point

STEPS = 1000
"""The height of a team's slowest run."""


def times_figure(
    found: MetricValues, teams: Sequence[str], cases: Sequence[str]
) -> Figure | None:
    """A row for each team, cases from the quickest to the slowest.

    None without any time, and of many teams, as the page would become too large.
    """
    if len(teams) > MANY_ROWS or not any(any(row) for row in found.values):
        return None
    order = quickest_first(found.values)
    return Figure(
        title=f"{found.title} of each case",
        note="From the case that most teams are quick on, in steps, to the slowest; a"
        " row is as high as its own slowest case, and a gap is a run without a time.",
        summary=f"{count(len(cases), 'case')} of {count(len(teams), 'team')}; the table"
        " has the times",
        labels=tuple(map(safe, teams)),
        drawing=curve_rows([_heights(row, order) for row in found.values]),
        table=_table(found, teams, cases, order),
        top=True,
    )


def _heights(row: Sequence[float | None], order: Sequence[int]) -> tuple[Point, ...]:
    """A step for each case; nothing for a team without a time."""
    slowest = max((own for own in row if own is not None), default=0.0)
    if not slowest:
        return ()
    steps = [round(STEPS * (row[n] or 0.0) / slowest) for n in order]
    return tuple((100 * n, own) for n, own in enumerate([*steps, steps[-1]]))


def quickest_first(values: Sequence[Sequence[float | None]]) -> list[int]:
    """The numbers of the cases by their median over the teams; without a time last."""

    def middle(case: int) -> tuple[float, int]:
        known = [own for row in values if (own := row[case]) is not None]
        return (median(known) if known else math.inf), case

    return sorted(range(len(values[0])), key=middle)


def _table(
    found: MetricValues,
    teams: Sequence[str],
    cases: Sequence[str],
    order: Sequence[int],
) -> Table:
    """A row for each case, and a column for each team."""
    return Table(
        caption=f"{found.title} of each case and team, the quickest cases first",
        heads=heads("case", *map(safe, teams), words=("case",)),
        rows=tuple(
            Row(
                cells=(
                    name_cell(cases[n]),
                    *(number_cell(row[n], decimals=1) for row in found.values),
                )
            )
            for n in order
        ),
    )
