"""Applies the rules of a challenge to the two label maps of a case."""

from __future__ import annotations

import math
import threading
from functools import partial

import numpy as np

from flare.challenge.rules import (
    Challenge,
    Organ,
    TopSlice,
    UnknownLabels,
)
from flare.evaluation.file_errors import DamagedFileError
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import ReusedMemory
from flare.evaluation.metrics.dsc_nsd import Agreement, compare_labels
from flare.evaluation.scoring.free_cases import free_of_case, free_organs, left_empty
from flare.evaluation.scoring.reading import Pair, read_prediction, read_reference
from flare.evaluation.submission.folder import LabelMapFile
from flare.results.scores import CaseScore, OrganScore

_of_thread = threading.local()


def score_labels(
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
    memory: ReusedMemory | None = None,
) -> tuple[OrganScore, ...]:
    """Score every organ of a challenge.

    Parameters
    ----------
    reference, prediction : LabelMap
        Of equal shape. The spacing of the reference counts.
    challenge : Challenge
        Whose rules are applied, in this order: unknown labels that make a case 0,
        the z-range, absent organs, the smallest DSC for NSD, rounding.
    memory : ReusedMemory, optional
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
    z_range = partial(scored_slices, top_slice=challenge.z_range.top_slice)
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
        occupied=(reference.occupied, prediction.occupied),
        memory=memory,
        smallest_dsc=challenge.smallest_dsc_for_nsd,
    )
    return tuple(
        _organ_score(organ, agreements[organ.label], challenge)
        for organ in challenge.organs
    )


def scored_slices(slices: slice, top_slice: TopSlice) -> slice:
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


def score_case(pair: Pair, challenge: Challenge) -> CaseScore:
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
    prediction = read_prediction(pair.prediction, challenge, memory)
    if reference.grid.shape != prediction.grid.shape:
        raise DamagedFileError(
            pair.prediction.name, "it changed while it was evaluated"
        )
    organs = score_labels(reference, prediction, challenge, memory)
    free_of = free_organs(reference, challenge)
    counted = [
        score
        for score, organ in zip(organs, challenge.organs, strict=True)
        if organ.in_mean
    ]
    return CaseScore(
        case=pair.case,
        reference_file=pair.reference.file_name,
        prediction_file=pair.prediction.file_name,
        is_empty=not prediction.has_organs,
        unknown_labels=prediction.unknown,
        organs=organs,
        dsc=math.fsum(score.dsc for score in counted) / len(counted),
        nsd=math.fsum(score.nsd for score in counted) / len(counted),
        free_of=free_of,
        left_empty=left_empty(free_of, prediction, challenge),
    )


def worst_score(
    reference: LabelMapFile, challenge: Challenge, failure: str
) -> CaseScore:
    """The score of a case that cannot be scored: 0 for everything, and the reason.

    Raises
    ------
    GroundTruthError
        If its reference has to be read, and is at fault.
    """
    return CaseScore(
        case=reference.case,
        reference_file=reference.file_name,
        prediction_file="",
        organs=tuple(
            OrganScore(organ=organ.name, dsc=0.0, nsd=0.0) for organ in challenge.organs
        ),
        dsc=0.0,
        nsd=0.0,
        failure=failure,
        free_of=free_of_case(reference, challenge),
    )


def _thread_memory() -> ReusedMemory:
    """Memory of this thread, which scores one case after the other."""
    if not hasattr(_of_thread, "memory"):
        _of_thread.memory = ReusedMemory()
    memory: ReusedMemory = _of_thread.memory
    return memory
