"""Finds where the two label maps of a case differ, how far, and how much."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, attrgetter
from typing import Any, NamedTuple, TypeVar

import nibabel as nib
import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import metrics_in, shares_of_masks
from flare.challenge.organs import Organ
from flare.challenge.rules import Challenge
from flare.common.text import printable
from flare.evaluation.doctor.diagnose import diagnose_case, read_whole
from flare.evaluation.doctor.words import CauseText, cause_texts
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import (
    EMPTY,
    WHOLE,
    Box,
    Labels,
    Mask,
    Spacing,
    mask_of,
)
from flare.evaluation.metrics.pairs import MapPair, map_of
from flare.evaluation.metrics.tally import Surfels, Voxels
from flare.evaluation.scoring.case import organ_tolerances, scored_slices
from flare.evaluation.submission.match import CasePair
from flare.reports.cases.drawing import FieldOfView
from flare.reports.cases.surfaces import (
    OrganSurfaces,
    Place,
    Weights,
    compare_surfaces,
    heaviest_slices,
    slice_sizes,
)
from flare.results.scores import statistics

MARGIN_MM = 12.0
"""How much of what surrounds the organs is seen."""

TILTED_DEGREES = 1.0
"""Slices that are tilted by more have a note."""

LOW_DSC = 0.5
"""Without an organ below this score, nothing is looked for."""

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


class Slices(NamedTuple):
    """Some slices along a turned axis."""

    axis: int
    slices: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """How the axes of a file have to be turned.

    A turned array runs from the feet to the head, from front to back, and from the
    patient's right to the left: its slices are seen as doctors see them.
    """

    ways: npt.NDArray[np.float64]
    """The axis of LPS of each axis x, y, z of the file, as nibabel has it, and -1 where
    it has to be turned around."""
    tilt: float
    """The largest angle between an axis and the nearest direction of the patient, in
    degrees; pictures are along the axes."""

    def volume(self, array: _Array) -> _Array:
        """A turned view of an array (z, y, x)."""
        return nib.orientations.apply_orientation(array.T, self.ways).T  # type: ignore[no-any-return]

    def lengths(self, spacing: Spacing) -> Spacing:
        """Spacings along z, y, x in the order of the turned axes."""
        order = np.argsort(self.ways[:, 0])
        x, y, z = (spacing[2 - axis] for axis in order)
        return z, y, x

    def slices(self, part: slice, shape: tuple[int, ...], axis: int = 2) -> Slices:
        """A part of an axis x, y, z of the file, turned; the shape is, too."""
        turned, sign = 2 - int(self.ways[axis, 0]), self.ways[axis, 1]
        if sign < 0:
            part = slice(shape[turned] - part.stop, shape[turned] - part.start)
        return Slices(turned, part)


def orientation_of(grid: Grid) -> Orientation:
    """How a grid has to be turned."""
    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    directions = nib.orientations.io_orientation(affine)
    # An axis without a direction gets the one that no other axis has.
    is_missing = np.isnan(directions[:, 0])
    directions[is_missing, 0] = sorted({0, 1, 2} - {*directions[~is_missing, 0]})
    directions[is_missing, 1] = 1
    lps = nib.orientations.axcodes2ornt("LPS")
    ways = nib.orientations.ornt_transform(directions, lps)
    return Orientation(ways=ways, tilt=_tilt(affine[:3, :3]))


def _tilt(steps: npt.NDArray[np.float64]) -> float:
    lengths = np.linalg.norm(steps, axis=0)
    if not lengths.all():
        return 0.0
    nearest = (np.abs(steps) / lengths).max(axis=0)
    return math.degrees(math.acos(min(1.0, float(nearest.min()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganFinding:
    """How the two label maps of a case differ in one organ."""

    name: str
    labels: tuple[int, ...]
    """Its labels that either label map has."""
    is_each: bool
    """Whether each of them is a structure by itself."""
    tolerance_mm: float
    """0 where no score is made with one."""
    in_mean: bool
    scores: Mapping[str, float | None]
    """The scores by metric that it has, as metrics.json has them."""
    voxels: tuple[int, int, int, int]
    """Numbers of the reference, of the prediction, of those missed and added."""
    surfaces: OrganSurfaces | None = None
    """None if neither label map has the organ."""
    worst: Place | None = None
    """The slices in which its errors weigh the most; None without any."""
    scored: tuple[int, int] | None = None
    """The first slice that was scored, and the one after the last, from the feet; None
    if all were."""

    @property
    def dsc(self) -> float:
        """Its DSC as it was scored; if it was not, that of all its voxels."""
        dsc = self.scores.get("dsc")
        if dsc is None:
            reference, prediction, missed, _ = self.voxels
            dsc = Voxels(reference, prediction, reference - missed).dsc
        return dsc

    @property
    def is_left_out(self) -> bool:
        """Whether a rule of the challenge leaves it out of all means."""
        return all(score is None for score in self.scores.values())

    @property
    def title(self) -> str:
        """Its name for people."""
        return printable(self.name.replace("_", " "))

    def masks(self, reference: Labels, prediction: Labels) -> tuple[Mask, Mask, Mask]:
        """Its voxels in a part of both label maps, and those that they agree on."""
        return _organ_masks((reference, prediction), self.labels, is_each=self.is_each)


def _organ_masks(
    maps: tuple[Labels, Labels], labels: Collection[int], *, is_each: bool
) -> tuple[Mask, Mask, Mask]:
    reference, prediction = maps
    in_reference, in_prediction = (mask_of(voxels, labels) for voxels in maps)
    is_shared = in_reference & in_prediction
    if is_each:
        is_shared &= reference == prediction
    return in_reference, in_prediction, is_shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """The causes that `flare doctor` finds, and the prediction without them."""

    causes: tuple[CauseText, ...]
    scores: Mapping[str, float | None]
    """The exact mean of each metric, mended."""
    labels: Labels
    """The mended labels of the organs, on the grid of the reference."""

    @property
    def text(self) -> str:
        """All causes, such as ``mirrored left to right``."""
        return "; ".join(cause.text for cause in self.causes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinding:
    """How the two label maps of a case differ, on turned axes as `Orientation` says."""

    scores: Mapping[str, float | None]
    """The mean of each metric over the organs that count, as metrics.json has it."""
    mending: Mending | None
    """What was done to the prediction as a whole; its labels are turned, too."""
    orientation: Orientation
    reference: Labels
    prediction: Labels
    field: FieldOfView
    """The part in which either label map has an organ, and a margin."""
    worst: Place
    """The slice of each plane in which errors weigh the most."""
    weights: tuple[Weights, Weights, Weights]
    """The weights of errors in each slice, along z, y, x."""
    organs: tuple[OrganFinding, ...]

    @property
    def is_blank(self) -> bool:
        """Whether neither label map has any organ."""
        return all(organ.surfaces is None for organ in self.organs)

    @property
    def has_tolerance(self) -> bool:
        """Whether surfaces of any organ are compared with a tolerance."""
        return any(map(attrgetter("tolerance_mm"), self.organs))

    @property
    def voxel_ml(self) -> float:
        """Volume of a voxel."""
        return float(np.prod(self.field.spacing)) / 1000

    def place_of(self, box: Box, mask: Mask) -> Place:
        """The slices that hold most of a mask, which is of a box of the file."""
        place = heaviest_slices(slice_sizes(self.orientation.volume(mask)))
        starts = [0, 0, 0]
        for axis in range(3):
            shape = self.reference.shape
            turned = self.orientation.slices(box[2 - axis], shape, axis)
            starts[turned.axis] = turned.slices.start
        z, y, x = map(add, starts, place)
        return z, y, x


def _pair_of(reference: Labels, prediction: Labels, spacing: Spacing) -> MapPair:
    return MapPair(map_of(reference), map_of(prediction), spacing)


class _TurnedCase:
    """The label maps of a case, turned: nothing else has to know the file's axes."""

    def __init__(
        self, reference: LabelMap, prediction: LabelMap, challenge: Challenge
    ) -> None:
        self.orientation = orientation_of(reference.grid)
        turn = self.orientation.volume
        self.reference: Labels = np.ascontiguousarray(turn(reference.labels))
        self.prediction: Labels = np.ascontiguousarray(turn(prediction.labels))
        self.spacing = self.orientation.lengths(reference.grid.spacing)
        pair = _pair_of(self.reference, self.prediction, self.spacing)
        present = {*reference.present, *prediction.present}
        self.pairs = {
            organ.name: pair.cut([*filter(present.__contains__, organ.region)])
            for organ in challenge.organs
        }
        # The slices of each organ that was not scored in all of them.
        self.scored_parts: dict[str, Slices] = {}
        for organ in challenge.organs:
            slices = scored_slices(organ, organ.region, reference, challenge)
            if slices != WHOLE:
                turned = self.orientation.slices(slices, self.reference.shape)
                self.scored_parts[organ.name] = turned
        self.tolerances = organ_tolerances(challenge)  # in mm, by organ


def look_at(
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
    scores: Mapping[str, float | None],
    mending: Mending | None = None,
) -> CaseFinding:
    """Find out all that the page of a case shows, of label maps on the same grid.

    Scores are by metric, such as ``dsc_liver``; of the whole case such as ``dsc``.
    """
    metrics = [metric.name for metric in metrics_in(scores)]
    case = _TurnedCase(reference, prediction, challenge)
    if mending:
        mending = replace(mending, labels=case.orientation.volume(mending.labels))
    depth, height, width = case.reference.shape
    weights = np.zeros(depth), np.zeros(height), np.zeros(width)
    organs = []
    for organ in challenge.organs:
        organ_scores = {
            name: scores[f"{name}_{organ.name}"] for name in filter(organ.has, metrics)
        }
        organs.append(_look_at_organ(case, organ, organ_scores, weights))
    return CaseFinding(
        scores={name: scores[name] for name in metrics},
        mending=mending,
        orientation=case.orientation,
        reference=case.reference,
        prediction=case.prediction,
        field=_field_of_view(case),
        worst=worst_slices(weights, case.reference),
        weights=weights,
        organs=tuple(organs),
    )


def _look_at_organ(
    case: _TurnedCase,
    organ: Organ,
    scores: Mapping[str, float | None],
    weights: Sequence[Weights],
) -> OrganFinding:
    """Find out how an organ differs, and add what its errors weigh in each slice."""
    labels, box = case.pairs[organ.name].labels, case.pairs[organ.name].box
    maps, is_each = (case.reference[box], case.prediction[box]), organ.labels == "each"
    in_reference, in_prediction, is_shared = _organ_masks(maps, labels, is_each=is_each)
    volume = int(np.count_nonzero(in_reference))
    predicted_volume = int(np.count_nonzero(in_prediction))
    shared_volume = int(np.count_nonzero(is_shared))
    part, surfaces, scored = case.scored_parts.get(organ.name), None, None
    organ_weights = tuple(map(np.zeros_like, weights))
    if volume or predicted_volume:
        surfaces = compare_surfaces(
            _locate_surfels(case, organ, part),
            (in_reference, in_prediction),
            box,
            case.spacing,
            organ_weights,
            has_pieces=part is None,
        )
        if part and part.axis == 0:
            scored = part.slices.start, part.slices.stop
    for sums, along_axis in zip(weights, organ_weights, strict=True):
        sums += along_axis
    return OrganFinding(
        name=organ.name,
        labels=labels,
        is_each=is_each,
        tolerance_mm=case.tolerances[organ.name],
        in_mean=organ.in_mean,
        scores=scores,
        voxels=(
            volume,
            predicted_volume,
            volume - shared_volume,
            predicted_volume - shared_volume,
        ),
        surfaces=surfaces,
        worst=heaviest_slices(organ_weights) if organ_weights[0].any() else None,
        scored=scored,
    )


def _locate_surfels(
    case: _TurnedCase, organ: Organ, part: Slices | None
) -> tuple[Surfels, Surfels]:
    """The surfels of an organ in both label maps, in the slices that were scored."""
    pair = case.pairs[organ.name]
    if part:
        index = (slice(None),) * part.axis + (part.slices,)
        maps = case.reference[index], case.prediction[index]
        pair = _pair_of(*maps, case.spacing).cut(pair.labels)
    surfaces = pair.surfels(case.tolerances[organ.name])
    if part:
        for surface in surfaces:
            surface.corners[:, part.axis] += part.slices.start
    return surfaces


def worst_slices(weights: Sequence[Weights], reference: Labels) -> Place:
    """The slice of each axis in which errors weigh most; without any, the fullest."""
    if not any(along_axis.any() for along_axis in weights):
        weights = slice_sizes(reference)
    return heaviest_slices(weights)


def _field_of_view(case: _TurnedCase) -> FieldOfView:
    boxes = [pair.box for pair in case.pairs.values() if pair.box != EMPTY]
    parts = []
    for axis, size in enumerate(case.reference.shape):
        margin = math.ceil(MARGIN_MM / case.spacing[axis])
        first = min((box[axis].start for box in boxes), default=0) - margin
        end = max((box[axis].stop for box in boxes), default=0) + margin
        parts.append(slice(max(first, 0), min(end, size)))
    z, y, x = parts
    return FieldOfView(box=(z, y, x), spacing=case.spacing)


# --- What was done to a prediction as a whole ---------------------------------------


def find_mending(
    pair: CasePair, challenge: Challenge, scores: Mapping[str, float | None]
) -> Mending | None:
    """Diagnose a case as `flare doctor` does, if it scores low; None if it is sound."""
    shares = shares_of_masks(challenge.metrics)
    columns = [f"{shares[0]}_{organ.name}" for organ in challenge.organs if shares]
    lowest = statistics([scores[column] for column in columns])["min"]
    if lowest is None or lowest >= LOW_DSC:
        return None
    finding = diagnose_case(pair, challenge=challenge)
    if finding.repair is None or finding.after is None:
        return None
    submitted, _ = read_whole(pair.prediction)
    labels = finding.repair.apply(submitted, finding.sample.grid.shape)
    return Mending(
        causes=cause_texts(finding, challenge),
        scores=finding.after.by_metric,
        labels=labels * mask_of(labels, challenge.labels),
    )
