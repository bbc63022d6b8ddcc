"""Draws memory over time: a row with a curve for each case, or each team."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from flare.common.text import count, safe
from flare.reports.pages.distributions import TOP, drawing, linear_axis
from flare.reports.pages.parts import (
    MANY_ROWS,
    NO_RESULT,
    Cell,
    Figure,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
    row_height,
)
from flare.reports.pages.svg import WIDE, decimal, element, stretched
from flare.results.traces_csv import MemoryCurve, Point

KINDS = (("gpu", "GPU memory"), ("host", "Memory of the container"))
"""What a trace has, and what it is called."""


def memory_figures(
    curves: Sequence[tuple[str, MemoryCurve]], what: str, title: str
) -> list[Figure]:
    """Figures of GPU memory and of the container's; of none that was not sampled.

    Of many rows, one is enough.

    Parameters
    ----------
    curves : sequence of str and MemoryCurve
        With the name of each row.
    what : str
        What a row is: a case, or a team.
    title : str
        Behind the name of the memory.
    """
    found: list[Figure] = []
    for kind, name in KINDS:
        rows: list[tuple[Point, ...]] = [getattr(own, kind) for _, own in curves]
        if any(rows) and (kind == "gpu" or len(rows) <= MANY_ROWS or not found):
            found.append(_figure(curves, rows, what, f"{name} {title}"))
    return found


def _figure(
    curves: Sequence[tuple[str, MemoryCurve]],
    rows: Sequence[tuple[Point, ...]],
    what: str,
    title: str,
) -> Figure:
    """A row for each curve, on one scale."""
    highest = max((mb for row in rows for _, mb in row), default=0)
    return Figure(
        title=title,
        note=f"In seconds; every row is as high as {highest} MB, the most of any."
        if highest
        else "In seconds; none was used.",
        summary=f"{count(len(rows), 'curve')}; the most is {highest} MB",
        labels=tuple(safe(name) for name, _ in curves),
        drawing=curve_rows(rows),
        table=_table(curves, rows, what, title),
        top=True,
    )


def _table(
    curves: Sequence[tuple[str, MemoryCurve]],
    rows: Sequence[tuple[Point, ...]],
    what: str,
    title: str,
) -> Table:
    """What the curves are like."""
    found = []
    for (name, own), row in zip(curves, rows, strict=True):
        peak = max(row, key=lambda point: point[1], default=None)
        found.append(
            Row(
                cells=(
                    name_cell(name),
                    number_cell(row[-1][0] / 100 if row else None, decimals=1),
                    Cell(text=str(peak[1]) if peak else NO_RESULT),
                    number_cell(peak[0] / 100 if peak else None, decimals=1),
                    Cell(text=str(own.samples)),
                )
            )
        )
    return Table(
        caption=title,
        heads=heads(
            *(what, "last sample (s)", "highest (MB)", "first at (s)", "samples"),
            words=(what,),
        ),
        rows=tuple(found),
    )


def curve_rows(rows: Sequence[Sequence[Point]]) -> Markup:
    """An area for each sequence of points, all on the same two scales."""
    height = row_height(len(rows))
    ends = [point[0] / 100 for row in rows for point in row]
    scale, ticks = linear_axis(ends)
    highest = max((mb for row in rows for _, mb in row), default=0) or 1
    areas: list[Markup] = []
    words: list[Markup] = []
    for number, row in enumerate(rows):
        bottom = TOP + height * (number + 1) - 1
        if not row:
            words.append(
                element("text", NO_RESULT, x="1%", y=bottom - 5, font_style="italic")
            )
            continue
        corners = [
            (WIDE * scale(time / 100), bottom - (height - 4) * mb / highest)
            for time, mb in row
        ]
        areas.append(element("path", d=_steps(corners, bottom), class_="curve"))
    total = height * len(rows)
    layer = stretched(*areas, height=TOP + total) if areas else Markup("")
    return drawing(total, ticks, layer, *words)


def _steps(corners: Sequence[tuple[float, float]], bottom: float) -> str:
    """A path that keeps each height until the next corner, closed along the bottom."""
    x, y = corners[0]
    path = [f"M{decimal(x)} {decimal(bottom)}V{decimal(y)}"]
    for (_, before), (x, y) in pairwise(corners):
        step = f"H{decimal(x)}"
        path.append(step if y == before else f"{step}V{decimal(y)}")
    return "".join([*path, f"V{decimal(bottom)}z"])
