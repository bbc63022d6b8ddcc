"""Says what is wrong with each organ, in tables and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from flare.challenge.metrics import metrics_in
from flare.common.text import count, listing
from flare.reports.cases.findings import CaseFinding, OrganFinding
from flare.reports.cases.planes import TILTED_DEGREES
from flare.reports.cases.surfaces import Component
from flare.reports.model import (
    Cell,
    Table,
    number_cell,
    table,
)
from flare.reports.scores import metric_cell

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""

WEAK_LOSS = 0.1
"""An organ that loses less of its DSC has no line, unless none loses more."""


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
