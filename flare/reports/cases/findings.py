"""Finds where the two label maps of a case differ, how far, and how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from flare.challenge.rules import Challenge, Organ
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import (
    Labels,
    Mask,
    ReusedMemory,
    Spacing,
)
from flare.evaluation.metrics.surfel_places import locate_surfels
from flare.evaluation.scoring.case import scored_slices
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
    dsc: float
    """As metrics.json has it."""
    nsd: float
    """As metrics.json has it."""
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
    dsc: float
    nsd: float
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


Box = tuple[slice, slice, slice]

SLACK = 1e-9
"""Slices whose weights differ by a smaller share weigh the same: the first is taken."""


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
        By metric, such as ``dsc_liver``; of the whole case ``dsc`` and ``nsd``.
    """
    grid = reference.grid
    orientation = orientation_of(grid)
    memory, weights = ReusedMemory(), tuple(np.zeros(size) for size in grid.shape)
    organs, boxes = [], []
    for organ in challenge.organs:
        occupied = reference.occupied[organ.label] | prediction.occupied[organ.label]
        box = (occupied.span_z, *occupied.span_yx(slice(None)))
        first, second = (m.labels[box] == organ.label for m in (reference, prediction))
        finding = OrganFinding(
            name=organ.name,
            label=organ.label,
            tolerance_mm=organ.tolerance_mm,
            dsc=scores[f"dsc_{organ.name}"],
            nsd=scores[f"nsd_{organ.name}"],
            counts=SliceCounts(
                *(
                    _count(mask, box, orientation, grid.shape)
                    for mask in (first, second, first & second)
                )
            ),
        )
        if not box[0].stop:
            organs.append(finding)
            continue
        boxes.append(box)
        before = (box[0].start, box[1].start, box[2].start)
        zs = _scored(organ, reference, challenge)
        surfaces = locate_surfels(
            reference.labels[zs],
            prediction.labels[zs],
            grid.spacing,
            organ.tolerance_mm,
            occupied.within(zs),
            memory,
        )
        for surface in surfaces:
            surface.corners[:, 0] += zs.start or 0
        nearest = tuple(Nearest(surface, grid.spacing) for surface in surfaces)
        to_reference, to_prediction = (
            near.distances(surface.corners[surface.is_beyond])
            for near, surface in zip(nearest, reversed(surfaces), strict=True)
        )
        add_weights(weights, (first, second), before, nearest, grid.spacing)
        finding = replace(
            finding,
            surfaces=OrganSurfaces(
                reference=surfaces[0],
                prediction=surfaces[1],
                to_prediction=to_prediction,
                to_reference=to_reference,
            ),
        )
        if zs == slice(None):  # else pieces may lie where there are no surfels
            finding = replace(
                finding,
                false_positives=far_components(
                    second, first, before, surfaces[1], to_reference
                ),
                false_negatives=far_components(
                    first, second, before, surfaces[0], to_prediction
                ),
            )
        elif orientation.axes[0] == 0:  # else they are not axial
            ends = orientation.span(0, zs.start, zs.stop, grid.shape[0])
            finding = replace(finding, scored=ends)
        organs.append(finding)
    box = _around(boxes)
    return CaseFinding(
        case=case,
        dsc=scores["dsc"],
        nsd=scores["nsd"],
        orientation=orientation,
        spacing=orientation.lengths(grid.spacing),
        reference=orientation.volume(reference.labels),
        prediction=orientation.volume(prediction.labels),
        box=_turned_box(box, orientation, grid.shape),
        worst=_worst(reference, weights, orientation, box),
        organs=tuple(organs),
        file_shape=grid.shape,
    )


def _count(
    mask: Mask, box: Box, orientation: Orientation, shape: tuple[int, int, int]
) -> npt.NDArray[np.int64]:
    """The voxels of each slice of a mask that was cut, from the feet to the head."""
    axis = orientation.axes[0]
    found = np.zeros(shape[axis], dtype=np.int64)
    for number, plane in enumerate(np.moveaxis(mask, axis, 0), box[axis].start):
        found[number] = np.count_nonzero(plane)
    return found[::-1] if orientation.flips[0] else found


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
