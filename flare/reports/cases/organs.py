"""Says what is wrong with each organ: in tables, in words, and slice by slice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from flare.challenge.metrics import metrics_in
from flare.common.text import count, listing
from flare.reports.cases.findings import CaseFinding, OrganFinding
from flare.reports.cases.planes import TILTED_DEGREES
from flare.reports.cases.surfaces import Component
from flare.reports.model import (
    Cell,
    Chart,
    Table,
    number_cell,
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
from flare.reports.scores import metric_cell

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""

WEAK_LOSS = 0.1
"""An organ that loses less of its DSC has no line, unless none loses more."""

MARKED = 0.02
"""Where more than this share of an organ's largest area is wrong, a slice is marked."""

ROW = 44
"""Height of the row of an organ, in pixels; also in the style sheet."""

TICKS = 6
"""So many slices are numbered at most."""


def scores_text(scores: Mapping[str, float]) -> str:
    """Scores by metric.

    Examples
    --------
    >>> scores_text({"dsc": 0.9, "nsd": 1.0})
    'DSC 0.900, NSD 1.000'
    """
    return ", ".join(
        f"{own.title} {own.text(scores[own.name])} {own.unit}".rstrip()
        for own in metrics_in(scores)
    )


def means_words(found: CaseFinding) -> str:
    """The means of a case, and what in them is of organs that are nowhere."""
    counted = [organ for organ in found.organs if organ.in_mean]
    absent = [organ for organ in counted if organ.surfaces is None]
    whole = f"Mean of {count(len(counted), 'organ')}: {scores_text(found.scores)}."
    if not absent:
        return whole
    return (
        f"{whole} In neither label map, and so {scores_text(absent[0].scores)} in the"
        f" mean: {listing(organ.title for organ in absent)}."
    )


def organ_table(found: CaseFinding) -> Table:
    """What each organ of the challenge scores, how far surfaces lie, and volumes."""
    metrics = metrics_in(found.scores)
    rows: list[list[Cell | str]] = [
        [
            organ.title,
            *(metric_cell(own, organ.scores[own.name], exact=True) for own in metrics),
            f"{organ.tolerance_mm:g}",
            _farthest(organ),
            *(_ml(voxels * found.voxel_ml) for voxels in organ.voxels),
        ]
        for organ in found.organs
    ]
    means = (metric_cell(own, found.scores[own.name], exact=True) for own in metrics)
    rows.append(["mean of organs", *means, *[""] * 6])
    names = ("reference", "prediction", "missed", "added")
    return table(
        f"Scores, distances and volumes; a voxel has {found.voxel_ml * 1000:.3g} mm3",
        (
            *("organ", *(metric.title_with_unit for metric in metrics)),
            *("tolerance (mm)", "farthest (mm)", *(f"{name} (ml)" for name in names)),
        ),
        rows,
        words=("organ",),
        quiet=[n for n, organ in enumerate(found.organs) if organ.surfaces is None],
        is_whole=True,
    )


def _ml(volume: float) -> Cell:
    """A volume, of which small ones have digits, too."""
    return Cell(
        f"{volume:.0f}" if volume >= 100 else f"{volume:.3g}", exact=repr(volume)
    )


def _farthest(organ: OrganFinding) -> Cell:
    """How far one surface is from the other at most, where both are."""
    farthest = organ.surfaces.farthest if organ.surfaces else math.inf
    if farthest is None:
        return Cell("within", css="none")
    if farthest == math.inf:
        return Cell("none", css="none")
    return number_cell(farthest, decimals=1, exact=True)


def faults(found: CaseFinding) -> list[str]:
    """What is wrong with a case, a line each, the worst first."""
    lines, way = [], found.mirrored
    if way:
        words = f"The prediction looks mirrored {way.axes}: DSC {way.dsc:.2f} if it is"
        lines.append((2.0, words))
    apart = (o.title for o in found.organs if _is_elsewhere(o) and not o.instead)
    if names := listing(apart):
        lines.append((1.0, f"{names}: no voxel in common with the reference"))
    organs = {own.name: own for own in found.organs}
    for organ in found.organs:
        lines += _faults(organ, organs)
    lines.sort(key=lambda line: -line[0])
    most = [line for weight, line in lines if weight >= WEAK_LOSS]
    equal = "No voxel is wrong"
    if any(own.surfaces and own.scores["dsc"] < 1 - ROUNDED for own in found.organs):
        equal += ": a rule of the challenge has lowered the scores"
    return most or [line for _, line in lines[:1]] or [equal]


def _is_elsewhere(organ: OrganFinding) -> bool:
    """Whether both label maps have an organ, but no voxel in common."""
    reference, prediction, missed, _ = organ.voxels
    return prediction > 0 and reference == missed > 0


def _faults(
    organ: OrganFinding, organs: Mapping[str, OrganFinding]
) -> Iterator[tuple[float, str]]:
    """What is wrong with an organ, and how much that weighs."""
    name, loss, own = organ.title, 1 - organ.scores["dsc"], organ.surfaces
    reference, prediction, missed, added = organ.voxels
    if organ.instead:
        other, dsc = organs[organ.instead[0]], organ.instead[1]
        if not other.instead or other.instead[0] != organ.name:
            words = f"{name} is predicted as {other.title}"
            yield 1.2, f"{words}: DSC {dsc:.2f} if renamed"
        elif organ.name < other.name:
            words = f"{name} and {other.title} look swapped: DSC {dsc:.2f} and"
            yield 1.5, f"{words} {other.instead[1]:.2f} if exchanged"
    elif not reference and prediction:
        what = count(prediction, "voxel")
        yield loss, f"{name}: {what} predicted, of an organ that the reference has not"
    elif reference and not prediction:
        yield loss, f"{name}: all {count(reference, 'voxel')} missed"
    elif own and missed < reference and (missed or added):
        shares = f"{missed / reference:.1%} missed, {added / reference:.1%} added"
        yield loss, f"{name}: DSC {organ.scores['dsc']:.3f}, {shares}"
        lost = f"{name} that was not found"
        for what, pieces, map_ in (
            (name, own.false_positives, "reference"),
            (lost, own.false_negatives, "prediction"),
        ):
            if pieces:
                yield WEAK_LOSS, _pieces(what, pieces, map_)


def notes(found: CaseFinding) -> list[str]:
    """What has to be known of a case to read its numbers, a line each."""
    lines = []
    for organ in found.organs:
        name, told = organ.title, organ.scores["nsd"]
        own = organ.surfaces.nsd if organ.surfaces else None
        if own is not None and abs(own - told) >= ROUNDED:
            words = f"{name}: its NSD is {told:.3f} by a rule of the challenge"
            lines.append(f"{words}; the surfaces alone give {own:.3f}")
        if organ.scored:
            first, last = organ.scored[0] + 1, organ.scored[1]
            words = f"{name}: scored in slices {first} to {last} alone, by the rules"
            lines.append(words)
    tilt = found.orientation.tilt
    if tilt > TILTED_DEGREES:
        lines.append(
            f"The slices of the file are tilted by up to {tilt:.0f} degrees:"
            " pictures are along its axes, and directions are the nearest."
        )
    return lines


def _pieces(what: str, pieces: Sequence[Component], other: str) -> str:
    """Pieces that lie far from the other map: the largest, and how many more."""
    first, *rest = pieces
    voxels = count(first.voxels, "voxel")
    words = f"{voxels} of {what}, {first.distance:.0f} mm from any of the {other}"
    if rest:
        voxels = count(sum(piece.voxels for piece in rest), "voxel")
        words += f", and {count(len(rest), 'more piece')} of {voxels} together"
    return words


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers that follow each other: the first, and the last, of each run.

    Examples
    --------
    >>> runs([3, 4, 5, 9])
    [(3, 5), (9, 9)]
    """
    firsts = [n for n in numbers if n - 1 not in numbers]
    return list(zip(firsts, (n for n in numbers if n + 1 not in numbers), strict=True))


def _marks(organ: OrganFinding) -> list[list[tuple[int, int]]]:
    """The slices in which more than a little of an organ is missed, and added."""
    *both, shared = organ.counts
    bound = MARKED * organ.counts.max()
    return [runs(np.flatnonzero(own - shared > bound).tolist()) for own in both]


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
    names, axis = (organ.title for organ in organs), _ticks(size)
    return Chart(
        title="Area in each axial slice, from the feet to the head",
        note=f"The upright line is slice {found.worst[0] + 1}, which is shown above.",
        summary="where each organ is missed and added; the table has the slices",
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
    base, (missed, added) = top + ROW - 11, _marks(organ)
    heights = organ.counts * (ROW - 14) / max(organ.counts.max(), 1)
    area = f"{_steps(heights[0], base, size)}V{decimal(base)}z"
    line = _steps(heights[1], base, size)
    paths = [(area, "curve-area"), (line, "curve-line")]
    for spans, below, css in ((missed, 4, "mark-missed"), (added, 8, "mark-added")):
        ends = (
            f"M{decimal(WIDE * first / size)} {decimal(base + below)}"
            f"H{decimal(WIDE * (last + 1) / size)}"
            for first, last in spans
        )
        paths.append(("".join(ends), css))
    return [element("path", d=path, class_=css) for path, css in paths if path]


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


def _table(organs: list[OrganFinding], found: CaseFinding) -> Table:
    """The same in numbers: slices are counted from the feet, from 1."""
    pixel = found.spacing[1] * found.spacing[2] / 100
    rows = []
    for organ in organs:
        cells: list[Cell | str] = [organ.title]
        for own in organ.counts[:2]:
            there = np.flatnonzero(own).tolist()
            cells.append(f"{there[0] + 1}-{there[-1] + 1}" if there else "none")
            cells.append(f"{int(own.max()) * pixel:.1f}")
        for spans in _marks(organ):
            texts = (f"{a + 1}-{b + 1}" if a < b else f"{a + 1}" for a, b in spans)
            cells.append(Cell(", ".join(texts) or "none", css="wrap"))
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
