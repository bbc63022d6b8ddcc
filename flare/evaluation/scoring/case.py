"""Applies the rules of a challenge to the two label maps of a case."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np

from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metrics import LEFT_OUT, METRICS
from flare.challenge.organs import Organ, TopSlice
from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.errors import FileError, FlareError
from flare.evaluation.errors import DamagedFileError
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import WHOLE
from flare.evaluation.metrics.comparison import Agreement, compare_organ
from flare.evaluation.metrics.kernel import kernel_problem
from flare.evaluation.metrics.pairs import MapPair
from flare.evaluation.metrics.tally import LabelPair
from flare.evaluation.scoring.reading import read_prediction, read_reference
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore, FreeCases, OrganScore, mean

PACKED_BYTES = 2
"""Memory for each voxel of a case, where its maps are packed: hardly any, but a map of
noise takes a byte, and as much again while it is read."""

PLAIN_BYTES = 5
"""The same where NumPy counts: a byte in each map, and the masks of an organ's box."""

DISTANCE_BYTES = 230 * 2**20
"""Memory for distances of surfaces of any file, in addition to two bytes per voxel."""


LESION_BYTES = 18
"""Memory for lesions by voxel: hardly any, but a map of noise has many runs."""


def case_bytes(voxels: int, challenge: Challenge) -> int:
    """The memory that a worker needs to score a case of so many voxels."""
    needed = map_bytes(voxels)
    if _has_distances(challenge) or any(m.needs_hd95 for m in challenge.lesion_metrics):
        needed += DISTANCE_BYTES + 2 * voxels
    if challenge.lesions:
        needed += LESION_BYTES * voxels
    return needed


def map_bytes(voxels: int) -> int:
    """The memory for two label maps of so many voxels, and for comparing them."""
    return voxels * (PLAIN_BYTES if kernel_problem() else PACKED_BYTES)


def _has_distances(challenge: Challenge) -> bool:
    return any(METRICS[name].needs_distances for name in challenge.metrics)


def score_labels(
    reference: LabelMap, prediction: LabelMap, challenge: Challenge
) -> tuple[OrganScore, ...]:
    """Score every organ of a challenge, in its order.

    Label maps are of equal shape; the spacing of the reference counts. The rules are
    applied in this order: unknown labels that make a case 0, the z-range, absent
    organs, the smallest DSC for NSD, rounding; of an organ whose labels are each a
    structure, to each of these, of which it has the means.

    Notes
    -----
    The rules are those of FLARE's official scripts (FLARE21/Evaluation,
    FLARE22/Evaluation, FLARE23 and FLARE24 in
    https://github.com/JunMa11/FLARE2021 at aad2cc2); challenge files say which apply.
    """
    unknown_rules = challenge.unknown_labels
    if (reference.unknown and unknown_rules.reference is UnknownLabels.ZERO) or (
        prediction.unknown and unknown_rules.prediction is UnknownLabels.ZERO
    ):
        return _worst_organs(challenge, reference)
    pair = MapPair(reference.voxels, prediction.voxels, reference.grid.spacing)
    present = (*reference.present, *prediction.present)
    tolerances, scores = organ_tolerances(challenge), []
    has_distances = _has_distances(challenge)
    for organ in challenge.organs:
        values = []
        for labels in organ.structures(present):
            slices = scored_slices(organ, labels, reference, challenge)
            cut = pair.cut(labels, slices)
            agreement = compare_organ(
                cut,
                tolerances[organ.name],
                challenge.smallest_dsc_for_nsd,
                has_distances=has_distances,
            )
            lesions = lesion_values(cut, organ, challenge)
            structure = _structure_values(agreement, lesions, reference.grid, challenge)
            values.append(structure)
        names = filter(organ.has, challenge.metrics)
        by_metric = {name: mean([part[name] for part in values]) for name in names}
        scores.append(OrganScore(organ=organ.name, by_metric=by_metric))
    return tuple(scores)


def _structure_values(
    agreement: Agreement,
    lesions: Mapping[str, float | None],
    grid: Grid,
    challenge: Challenge,
) -> Mapping[str, float | None]:
    """The value of each metric, to which the rules have been applied."""
    values: dict[str, float | None] = {
        "dsc": agreement.voxels.dsc,
        "nsd": agreement.nsd,
    }
    voxels = agreement.voxels
    absent_value = challenge.absent_organs.of(voxels.reference, voxels.prediction)
    if absent_value == LEFT_OUT:
        return _values_left_out(lesions, challenge)
    values |= lesions
    for name in challenge.metrics:
        if name in values or not METRICS[name].function:
            continue
        value: float | None = METRICS[name].best
        if any(voxels):
            value = _metric_function(name)(agreement)
        if value is None:
            value = _worst(name, grid, challenge)
        values[name] = value
    if absent_value is not None:
        values["dsc"] = values["nsd"] = float(absent_value)
    _apply_rules(values, challenge)
    return values


def _values_left_out(
    lesions: Mapping[str, float | None], challenge: Challenge
) -> Mapping[str, float | None]:
    """The values of an organ that is left out: of false lesions, if of any metric."""
    values: dict[str, float | None] = dict.fromkeys(challenge.metrics)
    for metric in challenge.lesion_metrics:
        if not metric.needs_reference:
            values[metric.name] = lesions.get(metric.name)
    return values


def organ_tolerances(challenge: Challenge) -> dict[str, float]:
    """The tolerance of NSD in mm for each organ, by which scores and pages are made.

    A rule that changes a tolerance is applied here, and nowhere else. It is 0, which
    takes the least time, where no NSD is computed.
    """
    return {organ.name: organ.tolerance_mm or 0.0 for organ in challenge.organs}


def scored_slices(
    organ: Organ, labels: Collection[int], reference: LabelMap, challenge: Challenge
) -> slice:
    """Slices in which labels of an organ are scored: all, or those of its z-range.

    The official scripts drop the top slice by mistake, and crash when it is the only
    one; here a single slice is kept.
    """
    if organ.name not in challenge.z_range.organs:
        return WHOLE
    span = reference.box(labels)[0]
    if span.start == span.stop:
        return WHOLE
    is_dropped = challenge.z_range.top_slice is TopSlice.DROPPED
    if is_dropped and span.stop - span.start > 1:
        return slice(span.start, span.stop - 1)
    return span


def _apply_rules(values: dict[str, float | None], challenge: Challenge) -> None:
    """Apply further rules for one organ to its `values`, which are changed."""
    if (values["dsc"] or 0.0) < challenge.smallest_dsc_for_nsd:
        values["nsd"] = 0.0
    if challenge.decimals is not None:
        # The official scripts round NumPy's floats, whose ties differ from Python's.
        present = {name: value for name, value in values.items() if value is not None}
        rounded = np.round([*present.values()], challenge.decimals).tolist()
        values.update(zip(present, rounded, strict=True))


def lesion_values(
    pair: LabelPair, organ: Organ, challenge: Challenge
) -> dict[str, float | None]:
    """The value of each metric of lesions, if the organ has a definition for them."""
    if not (organ.lesions and challenge.lesion_metrics):
        return {}
    metrics = challenge.lesion_metrics
    # Not at the top: an evaluation without lesions starts sooner.
    from flare.evaluation.lesions.case import Surfaces, lesions_of

    surfaces = None
    has_distances = any(metric.needs_hd95 for metric in metrics)
    if has_distances or any(metric.needs_tolerance for metric in metrics):
        tolerance = organ_tolerances(challenge)[organ.name]
        surfaces = Surfaces(tolerance=tolerance, has_distances=has_distances)
    lesions = lesions_of(pair, DEFINITIONS[organ.lesions], surfaces)
    return {metric.name: metric.of_lesions(lesions) for metric in metrics}


@cache
def _metric_function(name: str) -> Callable[[Agreement], float | None]:
    """The function that computes a metric from what was counted and measured."""
    module_name, _, function = METRICS[name].function.partition(":")
    module = import_module(f"flare.evaluation.metrics.{module_name}")
    return getattr(module, function)  # type: ignore[no-any-return]


def _worst(name: str, grid: Grid | None, challenge: Challenge) -> float:
    """The worst value of a metric; of a distance, by default the grid's diagonal."""
    worst = _worst_of_any(name, challenge)
    if worst is None:
        assert grid is not None
        worst = METRICS[name].worst_of(grid.shape, grid.spacing)
    return worst


def _worst_of_any(name: str, challenge: Challenge) -> float | None:
    """The worst value on any grid; None if it depends on the grid."""
    metric = METRICS[name]
    is_distance = metric.worst is None and metric.unit == "mm"
    return challenge.worst_distance_mm if is_distance else metric.worst


def _worst_organs(
    challenge: Challenge, reference: LabelMap | None
) -> tuple[OrganScore, ...]:
    """The worst values of a case; an organ is left out where no prediction has any."""
    grid, scores = reference.grid if reference else None, []
    decides = challenge.absent_organs.reference_decides
    for organ in challenge.organs:
        values: dict[str, float | None] = {}
        is_absent = reference and not {*organ.region}.intersection(reference.present)
        for name in filter(organ.has, challenge.metrics):
            metric = METRICS[name]
            has_none = metric.needs_lesions or (metric.needs_reference and decides)
            is_left_out = is_absent and has_none
            values[name] = None if is_left_out else _worst(name, grid, challenge)
        scores.append(OrganScore(organ=organ.name, by_metric=values))
    return tuple(scores)


def _means(
    organs: Sequence[OrganScore], challenge: Challenge
) -> dict[str, float | None]:
    """The mean of each metric over the organs that count in it, and have a value."""
    counted = [
        score
        for score, organ in zip(organs, challenge.organs, strict=True)
        if organ.in_mean
    ]
    means = {}
    for name in challenge.metrics:
        values = [s.by_metric[name] for s in counted if name in s.by_metric]
        means[name] = mean(values)
    return means


def score_case(pair: CasePair, challenge: Challenge) -> CaseScore:
    """Read and score one case whose headers have been checked.

    A FileError is raised if the prediction is damaged, or holds what the challenge does
    not allow. A GroundTruthError is raised if the reference is.
    """
    reference = read_reference(pair.reference, challenge)
    prediction = read_prediction(pair.prediction, challenge)
    if reference.grid.shape != prediction.grid.shape:
        raise DamagedFileError(
            pair.prediction.name, "it changed while it was evaluated"
        )
    return score_maps(pair, reference, prediction, challenge)


def score_maps(
    pair: CasePair, reference: LabelMap, prediction: LabelMap, challenge: Challenge
) -> CaseScore:
    """Score one case whose label maps, of equal shape, have been read."""
    organs = score_labels(reference, prediction, challenge)
    free_of = _free_organs(reference, challenge)
    is_zero = challenge.unknown_labels.prediction is UnknownLabels.ZERO
    left_empty = []
    # A prediction that scores 0 because of another label has left nothing empty.
    if not (prediction.unknown and is_zero):
        absent = _free_organs(prediction, challenge)
        left_empty = [name for name in free_of if name in absent]
    return CaseScore(
        case=pair.case,
        reference_file=pair.reference.file_name,
        prediction_file=pair.prediction.file_name,
        is_empty=not prediction.present,
        unknown_labels=prediction.unknown,
        organs=organs,
        by_metric=_means(organs, challenge),
        free_of=free_of,
        left_empty=tuple(left_empty),
    )


def worst_score(
    reference: LabelMapFile, challenge: Challenge, failure: str
) -> CaseScore:
    """The score of a case that cannot be scored: the worst values, and the reason.

    A GroundTruthError is raised if its reference has to be read, and is at fault.
    """
    reports_absence = any(organ.free_cases for organ in challenge.organs)
    worst_values = [_worst_of_any(name, challenge) for name in challenge.metrics]
    needs_grid = None in worst_values
    needs_organs = reports_absence or challenge.absent_organs.reference_decides
    labels: LabelMap | None = None
    free_of: tuple[str, ...] = ()
    if needs_organs or needs_grid:
        labels = read_reference(reference, challenge)
        free_of = _free_organs(labels, challenge)
    organs = _worst_organs(challenge, labels)
    return CaseScore(
        case=reference.case,
        reference_file=reference.file_name,
        prediction_file="",
        organs=organs,
        by_metric=_means(organs, challenge),
        failure=failure,
        free_of=free_of,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What was done to a prediction as a whole, which explains a low score."""

    text: str
    """Such as ``mirrored left to right``."""
    submitted_dsc: float
    dsc: float
    """About the DSC that it would have without that, of the organs that are there."""


def _free_organs(label_map: LabelMap, challenge: Challenge) -> tuple[str, ...]:
    """Organs that a label map does not have, of those whose absence is reported."""
    reported = [organ for organ in challenge.organs if organ.free_cases]
    present = {*label_map.present}
    return tuple(o.name for o in reported if present.isdisjoint(o.region))


def count_free_cases(
    cases: Sequence[CaseScore], challenge: Challenge
) -> tuple[FreeCases, ...]:
    """The counts of each organ whose absence is reported, over all cases."""
    return tuple(
        FreeCases(
            organ=organ.name,
            cases=sum(organ.name in score.free_of for score in cases),
            left_empty=sum(organ.name in score.left_empty for score in cases),
        )
        for organ in challenge.organs
        if organ.free_cases
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The outcome of one case."""

    pair: CasePair
    score: CaseScore | None
    problem: FileError | None
    seconds: float
    organs: tuple[str, ...] = ()
    """The organs of a prediction that was only checked."""
    unknown_labels: tuple[int, ...] = ()
    """The labels of such a prediction that are no organs."""
    digests: tuple[str, str] = ("", "")
    """SHA-256 of the reference and of the prediction that were read, if asked for."""
    explanation: Explanation | None = None
    """Why its DSC is low, if that is known; asked for, and only of a low one."""
    fault: FlareError | None = None
    """An error that has kept it from being scored, and is no problem of its content."""


def attempt_case(pair: CasePair, *, challenge: Challenge, check_only: bool) -> Attempt:
    """Score one case; a problem of the submission is a result like another."""
    start = time.perf_counter()
    score, problem = None, None
    organs: tuple[str, ...] = ()
    unknown: tuple[int, ...] = ()
    try:
        if check_only:
            prediction = read_prediction(pair.prediction, challenge)
            present, unknown = {*prediction.present}, prediction.unknown
            organs = tuple(
                organ.name
                for organ in challenge.organs
                if not present.isdisjoint(organ.region)
            )
        else:
            score = score_case(pair, challenge)
    except FileError as error:
        problem = error
    return Attempt(
        pair=pair,
        score=score,
        problem=problem,
        organs=organs,
        unknown_labels=unknown,
        seconds=time.perf_counter() - start,
    )
