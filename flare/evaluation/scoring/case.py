"""Applies the rules of a challenge to the two label maps of a case."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import (
    Challenge,
    GridComparison,
    Organ,
    TopSlice,
    UnknownLabels,
)
from flare.common.errors import FileError
from flare.common.text import listing, safe
from flare.evaluation.errors import (
    DamagedFileError,
    FileFormatError,
    GridPositionError,
    GridSizeError,
    GroundTruthError,
    LabelError,
)
from flare.evaluation.labelmaps.narrowing import UNKNOWN_LABELS_LIMIT
from flare.evaluation.labelmaps.placement import (
    Misplacement,
    compare_positions,
    compare_sizes,
)
from flare.evaluation.labelmaps.reading import LabelMap, read_grid, read_label_map
from flare.evaluation.metrics.agreement import Agreement, compare_labels
from flare.evaluation.metrics.arrays import Memory
from flare.evaluation.submission.folder import LabelMapFile
from flare.evaluation.submission.matching import CasePair
from flare.results.scores import CaseScore, OrganScore

_log = logging.getLogger(__name__)

LOWEST_LABEL = -100
"""Lower values are not labels that were mixed up, but those of an image."""

FEW_LABELS = 16
"""A label map under the header of a CT has fewer values, and a CT has more."""

_of_thread = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedHeaders:
    """What the headers of a pair say, if they go together."""

    voxels: int
    """Number of voxels in each of both."""
    warning: str | None
    """A difference that the challenge lets pass."""


def score_labels(
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
    memory: Memory | None = None,
) -> tuple[OrganScore, ...]:
    """Score every organ of a challenge.

    Parameters
    ----------
    reference, prediction : LabelMap
        Of equal shape. The spacing of the reference counts.
    challenge : Challenge
        Whose rules are applied, in this order: unknown labels that make a case 0,
        the z-range, absent organs, the smallest DSC for NSD, rounding.
    memory : Memory, optional
        To be used again, when many cases are scored.

    Returns
    -------
    tuple of OrganScore
        In the order of the challenge's organs.

    Notes
    -----
    The rules are those of FLARE's official scripts (FLARE21 to FLARE24/Evaluation in
    https://github.com/JunMa11/FLARE2021 at aad2cc2); challenge files say which apply.
    """
    rules = challenge.unknown_labels
    if (reference.unknown and rules.reference is UnknownLabels.ZERO) or (
        prediction.unknown and rules.prediction is UnknownLabels.ZERO
    ):
        return tuple(
            OrganScore(organ=organ.name, dsc=0.0, nsd=0.0) for organ in challenge.organs
        )
    z_range = partial(_z_range, top_slice=challenge.z_range.top_slice)
    agreements = compare_labels(
        reference.labels,
        prediction.labels,
        reference.grid.spacing,
        {organ.label: organ.tolerance_mm for organ in challenge.organs},
        crops={
            organ.label: z_range
            for organ in challenge.organs
            if organ.name in challenge.z_range.organs
        },
        places=(reference.places, prediction.places),
        memory=memory,
    )
    return tuple(
        _organ_score(organ, agreements[organ.label], challenge)
        for organ in challenge.organs
    )


def _z_range(slices: slice, top_slice: TopSlice) -> slice:
    """Slices in which an organ is scored, given those that hold it in the reference.

    The official scripts drop the top slice by mistake, and crash when it is the only
    one; here a single slice is kept.
    """
    is_dropped = top_slice is TopSlice.DROPPED and slices.stop - slices.start > 1
    return slice(slices.start, slices.stop - (1 if is_dropped else 0))


def _organ_score(
    organ: Organ, agreement: Agreement, challenge: Challenge
) -> OrganScore:
    """Apply the rules for one organ to what was measured."""
    dsc, nsd = agreement.dsc, agreement.nsd
    absent = challenge.absent_organs
    if not agreement.reference_voxels:
        dsc = nsd = (
            absent.in_reference if agreement.prediction_voxels else absent.in_both
        )
    elif not agreement.prediction_voxels:
        dsc = nsd = absent.in_prediction
    if dsc < challenge.smallest_dsc_for_nsd:
        nsd = 0.0
    if challenge.decimals is not None:
        # The official scripts round NumPy's floats, whose ties differ from Python's.
        dsc, nsd = (float(np.round(value, challenge.decimals)) for value in (dsc, nsd))
    return OrganScore(organ=organ.name, dsc=dsc, nsd=nsd)


def check_headers(pair: CasePair, challenge: Challenge) -> CheckedHeaders:
    """Compare the grids of a pair, without reading any voxel.

    Raises
    ------
    FileError
        If the header of the prediction cannot be read, or its grid is another one.
    GroundTruthError
        If the header of the reference cannot be read or has no spacing.
    """
    file, name = pair.reference, pair.prediction.name
    try:
        expected = read_grid(file.path, file.name)
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    if min(expected.spacing) <= 0:
        text = f"{safe(file.name)}: its header has a voxel size of 0"
        raise GroundTruthError(text)
    try:
        found = read_grid(pair.prediction.path, name)
    except FileFormatError as error:
        if not file.is_hidden:
            raise
        _log.info("%s", error.finding)
        text, _, _ = error.problem.partition(" (")  # of sizes, in brackets
        raise FileFormatError(name, text, error.remedy) from error
    wrong = compare_sizes(found, expected)
    if wrong:
        raise GridSizeError(name, _grid_text(file, wrong), wrong.remedy)
    voxels = math.prod(found.shape)
    wrong = compare_positions(found, expected, challenge.grid.tolerance_mm)
    if not wrong:
        return CheckedHeaders(voxels=voxels, warning=None)
    problem = GridPositionError(name, _grid_text(file, wrong), wrong.remedy)
    if challenge.grid.compare is GridComparison.SIZE:
        return CheckedHeaders(voxels=voxels, warning=problem.finding)
    raise problem


def _grid_text(reference: LabelMapFile, wrong: Misplacement) -> str:
    """How a grid differs; of a secret image, only the log gets the numbers."""
    if not reference.is_hidden:
        return wrong.text
    _log.info("%s: %s", safe(reference.name), wrong.text)
    return wrong.hidden_text


def score_case(pair: CasePair, challenge: Challenge) -> CaseScore:
    """Read and score one case whose headers have been checked.

    Raises
    ------
    FileError
        If the prediction is damaged, or holds what the challenge does not allow.
    GroundTruthError
        If that is so for the reference.
    """
    memory = _thread_memory()
    reference = read_reference(pair.reference, challenge, memory)
    prediction = check_prediction(pair, challenge, memory)
    if reference.grid.shape != prediction.grid.shape:
        text = "it changed while it was evaluated"
        raise DamagedFileError(pair.prediction.name, text)
    organs = score_labels(reference, prediction, challenge, memory)
    counted = [
        score
        for score, organ in zip(organs, challenge.organs, strict=True)
        if organ.in_mean
    ]
    return CaseScore(
        case=pair.case,
        reference_file=pair.reference.path.name,
        prediction_file=pair.prediction.path.name,
        is_empty=not prediction.has_organs,
        unknown_labels=prediction.unknown,
        organs=organs,
        dsc=math.fsum(score.dsc for score in counted) / len(counted),
        nsd=math.fsum(score.nsd for score in counted) / len(counted),
    )


def worst_score(
    reference: LabelMapFile, challenge: Challenge, failure: str
) -> CaseScore:
    """The score of a case that cannot be scored: 0 for everything, and the reason."""
    return CaseScore(
        case=reference.case,
        reference_file=reference.path.name,
        prediction_file="",
        organs=tuple(
            OrganScore(organ=organ.name, dsc=0.0, nsd=0.0) for organ in challenge.organs
        ),
        dsc=0.0,
        nsd=0.0,
        failure=failure,
    )


def _thread_memory() -> Memory:
    """Memory of this thread, which scores one case after the other."""
    if not hasattr(_of_thread, "memory"):
        _of_thread.memory = Memory()
    memory: Memory = _of_thread.memory
    return memory


def check_prediction(
    pair: CasePair, challenge: Challenge, memory: Memory | None = None
) -> LabelMap:
    """Read the prediction of a case, and refuse what the challenge does not allow.

    Raises
    ------
    FileError
        If it is damaged, or holds fractions or labels that are not allowed.
    """
    file = pair.prediction
    prediction = _read(file, "prediction", challenge, memory)
    if (
        prediction.unknown
        and challenge.unknown_labels.prediction is UnknownLabels.REFUSE
    ):
        text = _unknown_text(prediction) + _other_edition(prediction, challenge)
        raise LabelError(file.name, text, challenge.labels_text)
    return prediction


def read_reference(
    file: LabelMapFile, challenge: Challenge, memory: Memory | None = None
) -> LabelMap:
    """Read the reference of a case; what is wrong with it is the organisers'.

    Raises
    ------
    GroundTruthError
        If it is damaged, or holds fractions or labels that are not allowed.
    """
    try:
        reference = _read(file, "reference", challenge, memory)
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    if reference.unknown and challenge.unknown_labels.reference is UnknownLabels.REFUSE:
        _log.info("Reference %s has %s", safe(file.name), _unknown_text(reference))
        problem = f"{safe(file.name)}: it has labels that the challenge does not know"
        raise GroundTruthError(problem)
    return reference


def _read(
    file: LabelMapFile, place: str, challenge: Challenge, memory: Memory | None
) -> LabelMap:
    """Read a label map of a challenge."""
    known = [organ.label for organ in challenge.organs]
    allocate = partial((memory or Memory()).take, place)
    return read_label_map(file.path, file.name, known, allocate)


def _other_edition(labels: LabelMap, challenge: Challenge) -> str:
    """A hint, if unknown labels are those of another challenge, or of an image."""
    if labels.unknown and labels.unknown[0] < LOWEST_LABEL:
        if labels.intercept and len(labels.unknown) < FEW_LABELS:
            return (
                f": scl_inter {labels.intercept:.6g} of its header is added to each"
                " voxel, as in the header of a CT; set it to 0"
            )
        return ": it looks like a CT instead of a label map"
    if len(labels.unknown) > 1:
        for name in challenge_names():
            other = read_challenge(name)
            known = {organ.label for organ in other.organs}
            if other.key != challenge.key and known.issuperset(labels.unknown):
                return f", as in {other.name}"
    return ""


def ignored_labels_text(files: Sequence[tuple[int, ...]], challenge: Challenge) -> str:
    """What became of labels that are no organs; empty if there are none.

    `files` are the unknown labels of each prediction.
    """
    having = [labels for labels in files if labels]
    if not having:
        return ""
    found = sorted(set().union(*having))
    effect = "count as background"
    if challenge.unknown_labels.prediction is UnknownLabels.ZERO:
        effect = "make their case score 0"
    where = f"in {len(having)} of {len(files)} files"
    if len(found) >= UNKNOWN_LABELS_LIMIT:
        count = f"{len(found)} or more labels, such as {found[0]},"
        return f"{count} are no organs and {effect}, {where}"
    if len(found) == 1:
        effect = effect.replace("count ", "counts ").replace("make their", "makes its")
        return f"label {found[0]} is no organ and {effect}, {where}"
    names = listing(map(str, found), last=" and ")
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        names = f"{found[0]} to {found[-1]}"
    return f"labels {names} are no organs and {effect}, {where}"


def _unknown_text(labels: LabelMap) -> str:
    """Name the unknown labels of a label map."""
    if len(labels.unknown) >= UNKNOWN_LABELS_LIMIT:
        return (
            f"{len(labels.unknown)} or more unknown labels, such as {labels.unknown[0]}"
        )
    word = "label" if len(labels.unknown) == 1 else "labels"
    return f"unknown {word} {listing(map(str, labels.unknown), last=' and ')}"
