"""Says what is wrong with each organ: in tables, in words, and slice by slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from flare.common.text import count, printable
from flare.reports.cases.drawing import organ_class
from flare.reports.cases.findings import CaseFinding, OrganFinding
from flare.reports.cases.planes import TILTED_DEGREES
from flare.reports.cases.surfaces import Component
from flare.reports.model import (
    Cell,
    Chart,
    Table,
    name_cell,
    number_cell,
    score_cell,
    table,
)
from flare.reports.render.svg import (
    TOP,
    WIDE,
    decimal,
    drawing,
    element,
    percent,
    stretched,
)

FEW = 3
"""So many pieces of an organ are told one by one."""

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""

MARKED = 0.02
"""Where more than this share of an organ's largest area is wrong, a slice is marked."""

ROW = 44
"""Height of the row of an organ, in pixels; also in the style sheet."""

TICKS = 12
"""So many slices are numbered at most."""


def organ_key(found: CaseFinding) -> list[tuple[str, str]]:
    """The classes of the organs that are there, and their names."""
    return [
        (organ_class(number), title(organ.name))
        for number, organ in enumerate(found.organs)
        if organ.surfaces
    ]


def organ_table(found: CaseFinding) -> Table:
    """What each organ of the challenge scores, and how its surfaces lie."""
    rows = (
        (
            name_cell(title(organ.name)),
            score_cell(organ.dsc, exact=True),
            score_cell(organ.nsd, exact=True),
            f"{organ.tolerance_mm:g}",
            *_surface_cells(organ),
        )
        for organ in found.organs
    )
    heads = (
        *("organ", "DSC", "NSD", "tolerance, mm"),
        *("surface, mm2", "beyond tolerance, mm2", "farthest, mm"),
    )
    return table("Scores, and both surfaces together", heads, rows, words=("organ",))


def _surface_cells(organ: OrganFinding) -> tuple[Cell, ...]:
    """How large both surfaces are, what of them is beyond, and how far."""
    none = Cell("none", css="none")
    found = organ.surfaces
    if found is None:
        return none, none, none
    farthest = found.farthest
    if farthest is None:
        distance = Cell("within", css="none")
    elif farthest == math.inf:
        distance = none
    else:
        distance = number_cell(farthest, decimals=1, exact=True)
    return (
        number_cell(found.area, decimals=0, exact=True),
        number_cell(found.area_beyond, decimals=0, exact=True),
        distance,
    )


def volume_table(found: CaseFinding) -> Table:
    """How large each organ is, and how much of it is missed and added."""
    rows = []
    for organ in found.organs:
        reference, prediction, shared = organ.voxels
        voxels = (reference, prediction, reference - shared, prediction - shared)
        ml = (number * found.voxel_ml for number in voxels)
        cells = (
            name_cell(title(organ.name)),
            *map(str, voxels),
            *(number_cell(volume, decimals=1, exact=True) for volume in ml),
        )
        rows.append(cells)
    names = ("reference", "prediction", "missed", "added")
    heads = (
        *("organ", *(f"{name}, voxels" for name in names)),
        *(f"{name}, ml" for name in names),
    )
    caption = f"Voxels, each of {found.voxel_ml * 1000:.3g} mm3, and volumes"
    return table(caption, heads, rows, words=("organ",))


def title(organ: str) -> str:
    """The name of an organ for people."""
    return printable(organ.replace("_", " "))


def remarks(found: CaseFinding) -> list[str]:
    """What is to be said of a case, a line each."""
    lines = [line for organ in found.organs for line in organ_remarks(organ)]
    tilt = found.orientation.tilt
    if tilt > TILTED_DEGREES:
        lines.append(
            f"The slices of the file are tilted by up to {tilt:.0f} degrees:"
            " pictures are along its axes, and directions are the nearest."
        )
    return lines


def organ_remarks(organ: OrganFinding) -> list[str]:
    """What is to be said of an organ."""
    name = title(organ.name)
    reference, prediction, shared = organ.voxels
    lines = []
    if not reference and prediction:
        what = count(prediction, "voxel")
        lines.append(
            f"{name}: {what} predicted, of an organ that the reference has not"
        )
    if reference and not prediction:
        lines.append(f"{name}: all {count(reference, 'voxel')} missed")
    if reference and prediction and not shared:
        lines.append(f"{name}: reference and prediction have no voxel in common")
    for pieces, whose in (
        (organ.false_positives, ""),
        (organ.false_negatives, " that was not found"),
    ):
        lines += _pieces(name, pieces, whose)
    lines += _by_rule(organ)
    if organ.scored:
        first, last = organ.scored[0] + 1, organ.scored[1]
        lines.append(f"{name}: scored in slices {first} to {last} alone, by the rules")
    return lines


def _by_rule(organ: OrganFinding) -> list[str]:
    """That a rule of the challenge has replaced the NSD of the surfaces."""
    own = organ.surfaces.nsd if organ.surfaces else None
    if own is None or abs(own - organ.nsd) < ROUNDED:
        return []
    return [
        f"{title(organ.name)}: its NSD is {organ.nsd:.3f} by a rule of the challenge;"
        f" the surfaces alone give {own:.3f}"
    ]


def _pieces(name: str, pieces: Sequence[Component], whose: str) -> list[str]:
    """Pieces that lie far away; the largest, and how many others there are."""
    where = "of the prediction" if whose else "of the reference"
    lines = [
        f"{count(piece.voxels, 'voxel')} of {name}{whose},"
        f" {piece.distance:.0f} mm from any {where}"
        for piece in pieces[:FEW]
    ]
    rest = pieces[FEW:]
    if rest:
        voxels = count(sum(piece.voxels for piece in rest), "voxel")
        lines.append(
            f"{count(len(rest), 'more piece')} of {name}{whose}, of {voxels} together"
        )
    return lines


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers that follow each other: the first, and the last, of each run.

    Examples
    --------
    >>> runs([3, 4, 5, 9])
    [(3, 5), (9, 9)]
    """
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def runs_text(numbers: Sequence[int]) -> str:
    """Numbers of slices, from 0, as people count them.

    Examples
    --------
    >>> runs_text([2, 3, 4, 8]), runs_text([])
    ('3-5, 9', 'none')
    """
    texts = [
        f"{first + 1}" if first == last else f"{first + 1}-{last + 1}"
        for first, last in runs(numbers)
    ]
    return ", ".join(texts) or "none"


def marks_of(organ: OrganFinding) -> tuple[list[int], list[int]]:
    """The slices in which more than a little of an organ is missed, and added."""
    counts = organ.counts
    largest = max(int(counts.reference.max()), int(counts.prediction.max()))
    missed, added = (
        np.flatnonzero(own - counts.shared > MARKED * largest).tolist()
        for own in (counts.reference, counts.prediction)
    )
    return missed, added


def slices_figure(found: CaseFinding) -> Chart | None:
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
    names, axis = (title(organ.name) for organ in organs), _ticks(size)
    return Chart(
        title="Area in each axial slice, from the feet to the head",
        note=f"The upright line is slice {found.worst[0] + 1}, which is shown above.",
        summary=_summary(organs),
        labels=tuple(names),
        axis=axis,
        drawing=drawing(axis, end, stretched(*parts, height=end), line),
        key=(
            ("curve-area", "area in the reference"),
            ("curve-line", "in the prediction"),
            ("mark-missed", f"more than {MARKED:.0%} of the largest area missed"),
            ("mark-added", "as much added"),
        ),
        table=_table(organs, found),
    )


def _row(organ: OrganFinding, top: float, size: int) -> list[Markup]:
    """The two curves of an organ, and its marks."""
    counts, (missed, added) = organ.counts, marks_of(organ)
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
    for numbers, below, css in ((missed, 4, "mark-missed"), (added, 8, "mark-added")):
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
    marks = [(title(organ.name), *map(runs_text, marks_of(organ))) for organ in organs]
    return "; ".join(
        f"{name} missed in slices {missed}, added in {added}"
        for name, missed, added in marks
    )


def _table(organs: list[OrganFinding], found: CaseFinding) -> Table:
    """The same in numbers: slices are counted from the feet, from 1."""
    pixel = found.spacing[1] * found.spacing[2] / 100
    rows = []
    for organ in organs:
        counts = organ.counts
        cells: list[Cell | str] = [name_cell(title(organ.name))]
        for own in (counts.reference, counts.prediction):
            there = np.flatnonzero(own).tolist()
            cells.append(f"{there[0] + 1}-{there[-1] + 1}" if there else "none")
            cells.append(f"{int(own.max()) * pixel:.1f}")
        cells += (Cell(runs_text(n), css="wrap") for n in marks_of(organ))
        rows.append(cells)
    heads = (
        *("organ", "slices in the reference", "largest area, cm2"),
        *("slices in the prediction", "largest area, cm2 "),
        *("missed in slices", "added in slices"),
    )
    return table(
        "Slices of each organ, counted from the feet",
        heads,
        rows,
        words=("organ", "missed in slices", "added in slices"),
        sortable=False,
    )
