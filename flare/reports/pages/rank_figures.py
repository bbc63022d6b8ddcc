"""Draws a ranking: how sure ranks are, who is better, and which cases are hard."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from flare.reports.pages.distributions import TOP, drawing
from flare.reports.pages.mosaic import ABSENT, mosaic
from flare.reports.pages.parts import (
    MANY_ROWS,
    Cell,
    Figure,
    Row,
    Table,
    heads,
    row_height,
    shade,
)
from flare.reports.pages.ranking import Draws, MetricValues
from flare.reports.pages.svg import element, percent, stretched

EFFECTS = (0.25, 0.5, 0.75)
"""An effect above a bound has a darker shade than one up to it."""

EFFECT_KEY = (
    ("e0", "effect up to 0.25"),
    ("e1", "up to 0.50"),
    ("e2", "up to 0.75"),
    ("e3", "above"),
)


def own_draws_figure(own: Draws, teams: int, note: str) -> Figure:
    """How sure the rank of a single team is."""
    often = ", ".join(
        f"{rank} in {part:.1%}" for rank, part in enumerate(own.frequencies, 1) if part
    )
    row = [f"{100 * part:.1f}" if part else "" for part in own.frequencies]
    return Figure(
        title="Ranks when other cases are drawn",
        note=note,
        summary=f"95 % of the draws from {own.lowest} to {own.highest}: {often}",
        labels=("rank",),
        drawing=blobs([own], teams),
        key=(("dot", "larger: more draws"), ("boxed", "95 % of the draws")),
        table=Table(
            caption=f"Percent of the draws with each rank; 95 % of them from"
            f" {own.lowest} to {own.highest}",
            heads=heads("rank", *map(str, range(1, teams + 1)), words=("rank",)),
            rows=(Row(cells=(Cell(text="percent"), *(Cell(text=t) for t in row))),),
            sortable=False,
        ),
        top=True,
    )


def blobs(draws: Sequence[Draws], teams: int) -> Markup:
    """For each team, a blob at each rank, as large as the rank is frequent."""
    height = row_height(len(draws))
    inner: list[Markup] = []
    for number, own in enumerate(draws):
        y = TOP + height * (number + 0.5)
        ends = [percent(_place(rank, teams)) for rank in (own.lowest, own.highest)]
        inner.append(element("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_="span"))
        for rank, part in enumerate(own.frequencies, start=1):
            if part > 0:
                title = element("title", f"rank {rank} in {part:.1%} of the draws")
                inner.append(
                    element(
                        "circle",
                        title,
                        cx=percent(_place(rank, teams)),
                        cy=y,
                        r=max(1, (height / 2 - 2) * math.sqrt(part)),
                        class_="blob",
                    )
                )
    return drawing(height * len(draws), _numbers(teams), *inner)


def _place(number: int, count: int) -> float:
    """The middle of one of so many columns."""
    return (number - 0.5) / count


def _numbers(count: int) -> list[tuple[float, str]]:
    """The ticks of columns 1, 2, ...; of many, the first, and every fifth."""
    step = 1 if count <= MANY_ROWS else 5
    shown = [n for n in range(1, count + 1) if n == 1 or n % step == 0]
    return [(_place(n, count), str(n)) for n in shown]


def significance_map(found: MetricValues) -> Markup:
    """A square for each team that is significantly better than another one."""
    teams = len(found.values)
    height = row_height(teams)
    rows = []
    for team in range(teams):
        row: list[str] = []
        for other in range(teams):
            effect, is_sure = found.better.get((team, other), (0.0, False))
            row.append(effect_shade(effect) if is_sure else "")
        rows.append(row)
    squares = mosaic(rows, height, TOP)
    layer = stretched(*squares, height=TOP + height * teams)
    return drawing(height * teams, _numbers(teams), layer)


def effect_shade(effect: float) -> str:
    """The class of an effect's shade.

    Examples
    --------
    >>> effect_shade(0.1), effect_shade(1.0)
    ('e0', 'e3')
    """
    return f"e{sum(effect > bound for bound in EFFECTS)}"


def case_map(values: Sequence[Sequence[float | None]], order: Sequence[int]) -> Markup:
    """A field for each team and case, shaded by the score."""
    height = row_height(len(values))
    rows = [
        [ABSENT if row[n] is None else shade(row[n] or 0.0) for n in order]
        for row in values
    ]
    total = height * len(values)
    layer = stretched(*mosaic(rows, height, 0), height=total)
    return element("svg", layer, width="100%", height=total, aria_hidden="true")
