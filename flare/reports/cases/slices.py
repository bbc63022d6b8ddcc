"""Draws how much of each organ every axial slice has, and where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from flare.reports.cases.findings import CaseFinding, OrganFinding
from flare.reports.cases.words import runs, runs_text, title
from flare.reports.pages.distributions import TOP, drawing
from flare.reports.pages.parts import Cell, Figure, Row, Table, heads, name_cell
from flare.reports.pages.svg import WIDE, decimal, element, percent, stretched

MARKED = 0.02
"""Where more than this share of an organ's largest area is wrong, a slice is marked."""

ROW = 44
"""Height of the row of an organ, in pixels; also in the style sheet."""

TICKS = 12
"""So many slices are numbered at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The slices of an organ that are marked, numbered from 0."""

    missed: list[int]
    added: list[int]


def marks_of(organ: OrganFinding) -> Marks:
    """The slices in which more than a little of an organ is wrong."""
    counts = organ.counts
    largest = max(int(counts.reference.max()), int(counts.prediction.max()))
    missed, added = (
        np.flatnonzero(own - counts.shared > MARKED * largest).tolist()
        for own in (counts.reference, counts.prediction)
    )
    return Marks(missed=missed, added=added)


def slices_figure(found: CaseFinding) -> Figure | None:
    """A row for each organ: its area in both label maps, and marks below."""
    organs = [organ for organ in found.organs if organ.surfaces]
    if not organs:
        return None
    size = found.reference.shape[0]
    parts: list[Markup] = []
    for number, organ in enumerate(organs):
        parts += _row(organ, TOP + ROW * number, size)
    worst = percent((found.worst[0] + 0.5) / size)
    end = TOP + ROW * len(organs)
    line = element("line", x1=worst, x2=worst, y1=TOP, y2=end, class_="here")
    names = (title(organ.name) for organ in organs)
    return Figure(
        title="Area in each axial slice, from the feet to the head",
        note=f"The upright line is slice {found.worst[0] + 1}, which is shown above.",
        summary=_summary(organs),
        labels=tuple(names),
        drawing=drawing(
            ROW * len(organs),
            _ticks(size),
            stretched(*parts, height=end),
            line,
        ),
        key=(
            ("curve-area", "area in the reference"),
            ("curve-line", "in the prediction"),
            ("mark-missed", f"more than {MARKED:.0%} of the largest area missed"),
            ("mark-added", "as much added"),
        ),
        table=_table(organs, found),
        top=True,
    )


def _row(organ: OrganFinding, top: float, size: int) -> list[Markup]:
    """The two curves of an organ, and its marks."""
    counts, marks = organ.counts, marks_of(organ)
    largest = max(int(counts.reference.max()), int(counts.prediction.max()), 1)
    scale = (ROW - 14) / largest
    base = top + ROW - 11
    area = _steps(counts.reference * scale, base, size)
    parts = [
        element("path", d=f"{area}V{decimal(base)}z", class_="curve-area"),
        element(
            "path", d=_steps(counts.prediction * scale, base, size), class_="curve-line"
        ),
    ]
    for numbers, below, css in (
        (marks.missed, 4, "mark-missed"),
        (marks.added, 8, "mark-added"),
    ):
        path = "".join(
            f"M{decimal(WIDE * first / size)} {decimal(base + below)}"
            f"H{decimal(WIDE * (last + 1) / size)}"
            for first, last in runs(numbers)
        )
        if path:
            parts.append(element("path", d=path, class_=css))
    return parts


def _steps(heights: npt.NDArray[np.floating], base: float, size: int) -> str:
    """The upper edge of columns; equal ones are one."""
    words = [f"M0 {decimal(base)}"]
    changes = np.flatnonzero(np.diff(heights, prepend=0.0, append=0.0))
    for place in changes.tolist():
        level = heights[place] if place < heights.size else 0.0
        words.append(f"H{decimal(WIDE * place / size)}V{decimal(base - level)}")
    words.append(f"H{WIDE}")
    return "".join(words)


def _ticks(size: int) -> tuple[tuple[float, str], ...]:
    """Numbers of slices, counted from 1."""
    step = next(
        s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if size / s <= TICKS
    )
    numbers = [1, *range(step, size + 1, step)] if step > 1 else range(1, size + 1)
    return tuple(((number - 0.5) / size, str(number)) for number in numbers)


def _summary(organs: list[OrganFinding]) -> str:
    """Where the organs are wrong, in words."""
    return "; ".join(
        f"{title(organ.name)} missed in slices {runs_text(marks_of(organ).missed)},"
        f" added in {runs_text(marks_of(organ).added)}"
        for organ in organs
    )


def _table(organs: list[OrganFinding], found: CaseFinding) -> Table:
    """The same in numbers: slices are counted from the feet, from 1."""
    pixel = found.spacing[1] * found.spacing[2] / 100
    rows = []
    for organ in organs:
        counts, marks = organ.counts, marks_of(organ)
        cells = [name_cell(title(organ.name))]
        for own in (counts.reference, counts.prediction):
            there = np.flatnonzero(own).tolist()
            cells.append(
                Cell(text=f"{there[0] + 1}-{there[-1] + 1}" if there else "none")
            )
            cells.append(Cell(text=f"{int(own.max()) * pixel:.1f}"))
        cells += (
            Cell(text=runs_text(numbers), css="wrap")
            for numbers in (marks.missed, marks.added)
        )
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption="Slices of each organ, counted from the feet",
        heads=heads(
            *("organ", "slices in the reference", "largest area, cm2"),
            *("slices in the prediction", "largest area, cm2 "),
            *("missed in slices", "added in slices"),
            words=("organ", "missed in slices", "added in slices"),
        ),
        rows=tuple(rows),
        sortable=False,
    )
