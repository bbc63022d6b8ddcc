"""Finds where the two label maps of a case differ, how far, and how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import metrics_in
from flare.challenge.rules import Challenge, Organ
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.finder import (
    Labels,
    Mask,
    ReusedMemory,
    Spacing,
)
from flare.evaluation.metrics.surfels import Surface, locate_surfels
from flare.evaluation.scoring.case import (
    MIRRORED_GAIN,
    Mirrored,
    mirrored,
    scored_slices,
)
from flare.reports.cases.planes import FieldOfView, Orientation, orientation_of
from flare.reports.cases.surfaces import (
    Component,
    Nearest,
    OrganSurfaces,
    Weights,
    add_weights,
    far_components,
)

MARGIN_MM = 12.0
"""Of what surrounds the organs, so much is seen."""


LOW_DSC = 0.5
"""Below, it is asked whether a prediction is mirrored, and labels are swapped."""

Box = tuple[slice, slice, slice]

SLACK = 1e-9
"""Slices whose weights differ by a smaller share weigh the same: the first is taken."""


@dataclass(frozen=True, slots=True)
class SliceCounts:
    """How many voxels of an organ each slice has, from the feet to the head."""

    reference: npt.NDArray[np.int64]
    prediction: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganFinding:
    """What was found of one organ."""

    name: str
    label: int
    tolerance_mm: float
    in_mean: bool
    scores: Mapping[str, float]
    """By metric, as metrics.json has them."""
    counts: SliceCounts
    """In the whole of both label maps."""
    surfaces: OrganSurfaces | None = None
    """None if neither label map has the organ."""
    false_positives: tuple[Component, ...] = ()
    """Pieces of the prediction that lie far from the reference."""
    false_negatives: tuple[Component, ...] = ()
    """Pieces of the reference that lie far from the prediction."""
    scored: tuple[int, int] | None = None
    """The first slice that was scored, and the one after the last, from the feet; None
    if all were."""
    instead: tuple[str, float] | None = None
    """The organ that the prediction has in its place, and the DSC of both."""

    @property
    def voxels(self) -> tuple[int, int, int]:
        """Of the reference, of the prediction, and those that they share."""
        counts = self.counts
        return (
            int(counts.reference.sum()),
            int(counts.prediction.sum()),
            int(counts.shared.sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinding:
    """What was found of one case; arrays are turned, as `Orientation` says."""

    case: str
    scores: Mapping[str, float]
    """The mean of each metric over the organs that count, as metrics.json has it."""
    mirrored: Mirrored | None
    """How the prediction would have to be mirrored to be far better, if that helps."""
    orientation: Orientation
    spacing: Spacing
    """In mm, turned."""
    reference: Labels
    prediction: Labels
    box: tuple[slice, slice, slice]
    """Where either label map has an organ; empty if none has."""
    worst: tuple[int, int, int]
    """The slice of each plane in which errors weigh the most."""
    organs: tuple[OrganFinding, ...]
    file_shape: tuple[int, int, int]
    """Of the arrays before they were turned."""

    @property
    def is_blank(self) -> bool:
        """Whether neither label map has any organ."""
        return any(part.start >= part.stop for part in self.box)

    @property
    def voxel_ml(self) -> float:
        """Volume of a voxel."""
        return float(np.prod(self.spacing)) / 1000


def look_at(
    case: str,
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
    scores: Mapping[str, float],
) -> CaseFinding:
    """Find out all that the page of a case shows.

    Parameters
    ----------
    case : str
        Its name.
    reference, prediction : LabelMap
        On the same grid.
    challenge : Challenge
        By whose rules it was scored.
    scores : mapping
        By metric, such as ``dsc_liver``; of the whole case such as ``dsc``.
    """
    grid, metrics = reference.grid, [metric.name for metric in metrics_in(scores)]
    there = {*reference.present, *prediction.present}
    dsc = [scores[f"dsc_{o.name}"] for o in challenge.organs if o.label in there]
    is_low = sum(dsc) < LOW_DSC * len(dsc)  # organs that are nowhere score 1
    way = mirrored(reference, prediction, challenge) if is_low else None
    orientation = orientation_of(grid)
    memory, weights = ReusedMemory(), tuple(np.zeros(size) for size in grid.shape)
    held: dict[str, npt.NDArray[np.int64]] = {}
    organs, boxes = [], []
    for organ in challenge.organs:
        occupied = reference.occupied[organ.label] | prediction.occupied[organ.label]
        box = (occupied.span_z, *occupied.span_yx(slice(None)))
        masks = (
            reference.labels[box] == organ.label,
            prediction.labels[box] == organ.label,
        )
        finding = OrganFinding(
            name=organ.name,
            label=organ.label,
            tolerance_mm=organ.tolerance_mm,
            in_mean=organ.in_mean,
            scores={name: scores[f"{name}_{organ.name}"] for name in metrics},
            counts=_counts(masks, box, orientation, grid.shape),
        )
        if box[0].stop:
            boxes.append(box)
            zs = _scored(organ, reference, challenge)
            maps = reference.labels[zs], prediction.labels[zs]
            within = occupied.within(zs)
            surfels = locate_surfels(
                *maps, grid.spacing, organ.tolerance_mm, within, memory
            )
            for surface in surfels:
                surface.corners[:, 0] += zs.start or 0
            # Else pieces may lie where there are no surfels.
            has_all = zs == slice(None)
            finding = _compared(
                finding, masks, box, surfels, weights, grid.spacing, has_all=has_all
            )
            if not has_all and orientation.axes[0] == 0:  # else they are not axial
                ends = orientation.span(0, zs.start, zs.stop, grid.shape[0])
                finding = replace(finding, scored=ends)
            found = prediction.labels[box][masks[0]]
            if finding.scores["dsc"] < LOW_DSC and not way and found.size:
                held[organ.name] = np.bincount(found, minlength=256)
        organs.append(finding)
    box = _around(boxes)
    return CaseFinding(
        case=case,
        scores={name: scores[name] for name in metrics},
        mirrored=way,
        orientation=orientation,
        spacing=orientation.lengths(grid.spacing),
        reference=orientation.volume(reference.labels),
        prediction=orientation.volume(prediction.labels),
        box=_turned_box(box, orientation, grid.shape),
        worst=_worst(reference, weights, orientation, box),
        organs=tuple(_instead(organs, held)),
        file_shape=grid.shape,
    )


def _instead(
    organs: Sequence[OrganFinding], held: Mapping[str, npt.NDArray[np.int64]]
) -> Iterator[OrganFinding]:
    """Organs, and which other ones were predicted in the place of some.

    Parameters
    ----------
    organs : sequence of OrganFinding
        All of them.
    held : mapping
        By organ, of the voxels of its reference: how many have each predicted label.
    """
    for organ in organs:
        volume = organ.voxels[0]
        others = [
            (2 * int(held[organ.name][o.label]) / (volume + o.voxels[1]), o.name)
            for o in organs
            if organ.name in held and o is not organ
        ]
        dsc, name = max(others, default=(0.0, ""))
        is_other = dsc >= organ.scores["dsc"] + MIRRORED_GAIN and dsc >= LOW_DSC
        yield replace(organ, instead=(name, dsc)) if is_other else organ


def _compared(
    finding: OrganFinding,
    masks: tuple[Mask, Mask],
    box: Box,
    surfels: tuple[Surface, Surface],
    weights: Sequence[Weights],
    spacing: Spacing,
    *,
    has_all: bool,
) -> OrganFinding:
    """The finding of an organ, with its surfaces, and pieces far away if it has all."""
    before = (box[0].start, box[1].start, box[2].start)
    reference, prediction = surfels
    nearest = tuple(Nearest(surface, spacing) for surface in surfels)
    to_reference = nearest[0].distances(prediction.corners[prediction.is_beyond])
    to_prediction = nearest[1].distances(reference.corners[reference.is_beyond])
    add_weights(weights, masks, before, nearest, spacing)
    surfaces = OrganSurfaces(
        reference=reference,
        prediction=prediction,
        to_prediction=to_prediction,
        to_reference=to_reference,
    )
    if not has_all:
        return replace(finding, surfaces=surfaces)
    first, second = masks
    return replace(
        finding,
        surfaces=surfaces,
        false_positives=far_components(second, first, before, prediction, to_reference),
        false_negatives=far_components(first, second, before, reference, to_prediction),
    )


def _counts(
    masks: tuple[Mask, Mask],
    box: Box,
    orientation: Orientation,
    shape: tuple[int, int, int],
) -> SliceCounts:
    """The voxels of each slice of masks that were cut, from the feet to the head."""
    axis = orientation.axes[0]
    counts = np.zeros((3, shape[axis]), dtype=np.int64)
    for own, mask in zip(counts, (*masks, masks[0] & masks[1]), strict=True):
        for number, plane in enumerate(np.moveaxis(mask, axis, 0), box[axis].start):
            own[number] = np.count_nonzero(plane)
    return SliceCounts(*(counts[:, ::-1] if orientation.flips[0] else counts))


def _scored(organ: Organ, reference: LabelMap, challenge: Challenge) -> slice:
    """The slices of the file in which an organ was scored."""
    slices = reference.occupied[organ.label].span_z
    if organ.name not in challenge.z_range.organs or slices.start == slices.stop:
        return slice(None)
    return scored_slices(slices, challenge.z_range.top_slice)


def _around(boxes: list[Box]) -> Box:
    """The box around some boxes; empty if there are none."""
    if not boxes:
        return (slice(0, 0),) * 3
    z, y, x = (
        slice(min(part.start for part in parts), max(part.stop for part in parts))
        for parts in zip(*boxes, strict=True)
    )
    return z, y, x


def _turned_box(box: Box, orientation: Orientation, shape: tuple[int, int, int]) -> Box:
    """A box on the turned axes."""
    z, y, x = (
        slice(*orientation.span(way, box[axis].start, box[axis].stop, shape[axis]))
        for way, axis in enumerate(orientation.axes)
    )
    return z, y, x


def _worst(
    reference: LabelMap,
    weights: Sequence[Weights],
    orientation: Orientation,
    box: Box,
) -> tuple[int, int, int]:
    """The slice of each plane in which errors weigh the most, or else the fullest."""
    found = []
    for way, axis in enumerate(orientation.axes):
        along = weights[axis]
        if not along.any() and box[0].stop:
            along = np.zeros(along.size)
            for number in range(box[axis].start, box[axis].stop):
                plane = (slice(None),) * axis + (number,)
                along[number] = np.count_nonzero(reference.labels[plane])
        along = along[::-1] if orientation.flips[way] else along
        heaviest = along >= along.max() * (1 - SLACK)
        found.append(int(heaviest.argmax()))
    z, y, x = found
    return z, y, x


def field_of_view(found: CaseFinding) -> FieldOfView:
    """What surrounds the organs of a case, and a margin."""
    parts = []
    for axis, part in enumerate(found.box):
        margin = math.ceil(MARGIN_MM / found.spacing[axis])
        size = found.reference.shape[axis]
        parts.append(slice(max(part.start - margin, 0), min(part.stop + margin, size)))
    z, y, x = parts
    return FieldOfView(box=(z, y, x), spacing=found.spacing)
