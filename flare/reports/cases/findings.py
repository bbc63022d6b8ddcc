"""Finds where the two label maps of a case differ, how far, and how much."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import metrics_in
from flare.challenge.rules import Challenge, Organ
from flare.common.text import printable
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
from flare.reports.cases.planes import FieldOfView, Orientation, orientation_of
from flare.reports.cases.surfaces import OrganSurfaces, compare_surfaces

MARGIN_MM = 12.0
"""Of what surrounds the organs, so much is seen."""


LOW_DSC = 0.5
"""Below, it is asked whether a prediction is mirrored, and labels are swapped."""

Box = tuple[slice, slice, slice]

SLACK = 1e-9
"""Slices whose weights differ by a smaller share weigh the same: the first is taken."""


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
    spacing: Spacing
    """In mm, turned."""
    reference: Labels
    prediction: Labels
    box: tuple[slice, slice, slice]
    """Where either label map has an organ; empty if none has."""
    worst: tuple[int, int, int]
    """The slice of each plane in which errors weigh the most."""
    organs: tuple[OrganFinding, ...]

    @property
    def is_blank(self) -> bool:
        """Whether neither label map has any organ."""
        return any(part.start >= part.stop for part in self.box)

    @property
    def voxel_ml(self) -> float:
        """Volume of a voxel."""
        return float(np.prod(self.spacing)) / 1000


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
        spacing=spacing,
        reference=first,
        prediction=second,
        box=_around(boxes),
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


def _around(boxes: list[Box]) -> Box:
    """The box around some boxes; empty if there are none."""
    z, y, x = (
        slice(min(part.start for part in parts), max(part.stop for part in parts))
        for parts in zip(*boxes or [(slice(0, 0),) * 3], strict=True)
    )
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
