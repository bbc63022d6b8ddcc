"""Finds where the two label maps of a case differ, how far, and how much."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import nibabel as nib
import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import metrics_in
from flare.challenge.rules import Challenge, Organ
from flare.common.text import printable
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.finder import (
    Labels,
    ReusedMemory,
    Spacing,
    find_labels,
)
from flare.evaluation.metrics.surfels import locate_surfels
from flare.evaluation.scoring.case import (
    MIRRORED_GAIN,
    Mirrored,
    mirrored,
    scored_slices,
)
from flare.reports.cases.drawing import Box, FieldOfView
from flare.reports.cases.surfaces import OrganSurfaces, compare_surfaces

MARGIN_MM = 12.0
"""Of what surrounds the organs, so much is seen."""


LOW_DSC = 0.5
"""Below, it is asked whether a prediction is mirrored, and labels are swapped."""

TILTED_DEGREES = 1.0
"""Slices that are tilted by more are said to be."""

SLACK = 1e-9
"""Slices whose weights differ by a smaller share weigh the same: the first is taken."""


_Array = TypeVar("_Array", bound=npt.NDArray[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """How the axes of a file have to be turned.

    A turned array runs from the feet to the head, from front to back, and from the
    patient's right to the left: its slices are seen as doctors see them.
    """

    ways: npt.NDArray[np.float64]
    """For the file's axes x, y and z, as nibabel has it: the axis of LPS, and -1 where
    it has to be turned around."""
    tilt: float
    """By how many degrees the nearest directions of the patient differ from the axes
    at most; pictures are along the axes."""

    def volume(self, array: _Array) -> _Array:
        """A turned view of an array (z, y, x)."""
        return nib.orientations.apply_orientation(array.T, self.ways).T  # type: ignore[no-any-return]

    def lengths(self, spacing: Spacing) -> Spacing:
        """Spacings along z, y, x in the order of the turned axes."""
        order = np.argsort(self.ways[:, 0])
        x, y, z = (spacing[2 - own] for own in order)
        return z, y, x

    def slices(self, part: slice, size: int) -> tuple[int, slice]:
        """The turned axis of the file's slices, and where some of so many are on it."""
        way, sign = self.ways[2]
        if sign < 0:
            part = slice(size - part.stop, size - part.start)
        return 2 - int(way), part


def orientation_of(grid: Grid) -> Orientation:
    """How a grid has to be turned."""
    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    found = nib.orientations.io_orientation(affine)
    nowhere = np.isnan(found[:, 0])  # an axis gets the direction that is left
    found[nowhere, 0] = sorted({0, 1, 2} - {*found[~nowhere, 0]})
    found[nowhere, 1] = 1
    lps = nib.orientations.axcodes2ornt("LPS")
    ways = nib.orientations.ornt_transform(found, lps)
    return Orientation(ways=ways, tilt=_tilt(affine[:3, :3]))


def _tilt(steps: npt.NDArray[np.float64]) -> float:
    """The largest angle between an axis and the nearest direction of the patient."""
    lengths = np.linalg.norm(steps, axis=0)
    if not lengths.all():
        return 0.0
    nearest = (np.abs(steps) / lengths).max(axis=0)
    return math.degrees(math.acos(min(1.0, float(nearest.min()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganFinding:
    """What was found of one organ."""

    name: str
    label: int
    tolerance_mm: float
    in_mean: bool
    scores: Mapping[str, float]
    """By metric, as metrics.json has them."""
    voxels: tuple[int, int, int, int]
    """Of the reference, of the prediction, missed and added."""
    surfaces: OrganSurfaces | None = None
    """None if neither label map has the organ."""
    scored: tuple[int, int] | None = None
    """The first slice that was scored, and the one after the last, from the feet; None
    if all were."""
    instead: tuple[str, float] | None = None
    """The organ that the prediction has in its place, and the DSC of both."""

    @property
    def title(self) -> str:
        """Its name for people."""
        return printable(self.name.replace("_", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinding:
    """What was found of one case: on turned axes, as `Orientation` says."""

    scores: Mapping[str, float]
    """The mean of each metric over the organs that count, as metrics.json has it."""
    mirrored: Mirrored | None
    """How the prediction would have to be mirrored to be far better, if that helps."""
    orientation: Orientation
    reference: Labels
    prediction: Labels
    field: FieldOfView
    """Where either label map has an organ, and a margin."""
    worst: tuple[int, int, int]
    """The slice of each plane in which errors weigh the most."""
    organs: tuple[OrganFinding, ...]

    @property
    def is_blank(self) -> bool:
        """Whether neither label map has any organ."""
        return all(organ.surfaces is None for organ in self.organs)

    @property
    def voxel_ml(self) -> float:
        """Volume of a voxel."""
        return float(np.prod(self.field.spacing)) / 1000


def look_at(
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
    scores: Mapping[str, float],
) -> CaseFinding:
    """Find out all that the page of a case shows.

    Parameters
    ----------
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
    # Turned here, so that nothing below has to know how the file's axes run.
    first, second = (
        np.ascontiguousarray(orientation.volume(own.labels))
        for own in (reference, prediction)
    )
    labels = [organ.label for organ in challenge.organs]
    places, others = find_labels(first, labels), find_labels(second, labels)
    spacing, memory = orientation.lengths(grid.spacing), ReusedMemory()
    weights = tuple(np.zeros(size) for size in first.shape)
    held: dict[str, npt.NDArray[np.int64]] = {}
    organs, boxes = [], []
    for organ in challenge.organs:
        occupied = places[organ.label] | others[organ.label]
        box = (occupied.span_z, *occupied.span_yx(slice(None)))
        masks = first[box] == organ.label, second[box] == organ.label
        both = (*masks, masks[0] & masks[1])
        truth, told, shared = (int(np.count_nonzero(mask)) for mask in both)
        own = {name: scores[f"{name}_{organ.name}"] for name in metrics}
        surfaces, part = None, None
        if box[0].stop:
            boxes.append(box)
            axis, part = _scored(organ, reference, challenge, orientation)
            maps = first, second
            if part:
                where = (slice(None),) * axis + (part,)
                maps = (
                    np.ascontiguousarray(first[where]),
                    np.ascontiguousarray(second[where]),
                )
                within = (find_labels(m, [organ.label])[organ.label] for m in maps)
                occupied = operator.or_(*within)
            surfels = locate_surfels(
                *maps, spacing, organ.tolerance_mm, occupied, memory
            )
            for surface in surfels:
                surface.corners[:, axis] += part.start if part else 0
            surfaces = compare_surfaces(
                surfels, masks, box, spacing, weights, has_pieces=part is None
            )
            found = second[box][masks[0]]
            if own["dsc"] < LOW_DSC and not way and found.size:
                held[organ.name] = np.bincount(found, minlength=256)
        finding = OrganFinding(
            name=organ.name,
            label=organ.label,
            tolerance_mm=organ.tolerance_mm,
            in_mean=organ.in_mean,
            scores=own,
            voxels=(truth, told, truth - shared, told - shared),
            surfaces=surfaces,
            scored=(part.start, part.stop) if part and axis == 0 else None,
        )
        organs.append(finding)
    if not any(along.any() for along in weights):
        for axis, along in enumerate(weights):
            rest = tuple(other for other in range(3) if other != axis)
            along += np.count_nonzero(first, axis=rest)  # the fullest slice, then
    z, y, x = (int((w >= w.max() * (1 - SLACK)).argmax()) for w in weights)
    return CaseFinding(
        scores={name: scores[name] for name in metrics},
        mirrored=way,
        orientation=orientation,
        reference=first,
        prediction=second,
        field=_field_of_view(boxes, first.shape, spacing),
        worst=(z, y, x),
        organs=tuple(_instead(organs, held)),
    )


def _instead(
    organs: Sequence[OrganFinding], held: Mapping[str, npt.NDArray[np.int64]]
) -> Iterator[OrganFinding]:
    """Organs, and which other ones were predicted in the place of some.

    `held` has by organ, of the voxels of its reference, how many have each label.
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


def _scored(
    organ: Organ, reference: LabelMap, challenge: Challenge, orientation: Orientation
) -> tuple[int, slice | None]:
    """The turned axis of the file's slices, and those that were scored; None if all."""
    slices = reference.occupied[organ.label].span_z
    if organ.name not in challenge.z_range.organs or slices.start == slices.stop:
        return 0, None
    found = scored_slices(slices, challenge.z_range.top_slice)
    return orientation.slices(found, reference.labels.shape[0])


def _field_of_view(
    boxes: Sequence[Box], shape: Sequence[int], spacing: Spacing
) -> FieldOfView:
    """What surrounds the boxes of organs, and a margin."""
    parts = []
    for axis, size in enumerate(shape):
        margin = math.ceil(MARGIN_MM / spacing[axis])
        first = min((box[axis].start for box in boxes), default=0) - margin
        end = max((box[axis].stop for box in boxes), default=0) + margin
        parts.append(slice(max(first, 0), min(end, size)))
    z, y, x = parts
    return FieldOfView(box=(z, y, x), spacing=spacing)
