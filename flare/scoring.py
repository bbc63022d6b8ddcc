"""Applies the rules of a challenge to a case's two label maps, and to all cases."""

from __future__ import annotations

import ctypes
import logging
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

import numpy as np

from flare.challenge import (
    Challenge,
    GridComparison,
    Organ,
    TopSlice,
    UnknownLabels,
    challenge_names,
    read_challenge,
)
from flare.errors import (
    DamagedFileError,
    FileError,
    GridPositionError,
    GridSizeError,
    GroundTruthError,
    LabelError,
    SubmissionError,
    WorkerError,
    listing,
    safe,
)
from flare.labelmaps import (
    UNKNOWN_LABELS_LIMIT,
    LabelMap,
    read_grid,
    read_label_map,
)
from flare.metrics import Agreement, compare_labels
from flare.placement import compare_positions, compare_sizes
from flare.submission import CasePair, LabelMapFile

_PR_SET_PDEATHSIG = 1
"""Linux's prctl option: the signal to get when the parent ends."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganScore:
    """DSC and NSD of one organ in one case, after all rules of the challenge."""

    organ: str
    dsc: float
    nsd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """What one case scores."""

    case: str
    reference_file: str
    """Name without folders."""
    prediction_file: str
    """Name without folders."""
    organs: tuple[OrganScore, ...]
    """In the order of the challenge."""
    dsc: float
    """Mean over the organs that count in it."""
    nsd: float
    """Mean over the organs that count in it."""
    is_empty: bool = False
    """Whether the prediction has no organ at all."""
    failure: str = ""
    """Why the case was not scored, and got the worst value instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedHeaders:
    """What the headers of a pair say, if they go together."""

    voxels: int
    """Number of voxels in each of both."""
    warning: str | None
    """A difference that the challenge lets pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one case."""

    pair: CasePair
    score: CaseScore | None
    problem: SubmissionError | None
    seconds: float


def score_labels(
    reference: LabelMap, prediction: LabelMap, challenge: Challenge
) -> tuple[OrganScore, ...]:
    """Score every organ of a challenge.

    Parameters
    ----------
    reference, prediction : LabelMap
        Of equal shape. The spacing of the reference counts.
    challenge : Challenge
        Whose rules are applied, in this order: unknown labels that make a case 0,
        the z-range, absent organs, the smallest DSC for NSD, rounding.

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
    agreements: dict[int, Agreement] = {}
    everywhere = [o for o in challenge.organs if o.name not in challenge.z_range.organs]
    for organs, zs in (
        (everywhere, slice(None)),
        *(
            ([organ], _z_range(reference, organ.label, challenge.z_range.top_slice))
            for organ in challenge.organs
            if organ not in everywhere
        ),
    ):
        agreements |= compare_labels(
            reference.labels[zs],
            prediction.labels[zs],
            reference.grid.spacing,
            {organ.label: organ.tolerance_mm for organ in organs},
        )
    return tuple(
        _organ_score(organ, agreements[organ.label], challenge)
        for organ in challenge.organs
    )


def _z_range(reference: LabelMap, label: int, top_slice: TopSlice) -> slice:
    """Slices in which an organ is scored; all of them if the reference lacks it.

    The official scripts drop the top slice by mistake, and crash when it is the only
    one; here a single slice is kept.
    """
    slices = [z for z, plane in enumerate(reference.labels) if (plane == label).any()]
    if not slices:
        return slice(None)
    dropped = 1 if top_slice is TopSlice.DROPPED and slices[-1] > slices[0] else 0
    return slice(slices[0], slices[-1] + 1 - dropped)


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
    found = read_grid(pair.prediction.path, name)
    wrong = compare_sizes(found, expected)
    if wrong:
        raise GridSizeError(name, wrong.text, wrong.remedy)
    voxels = math.prod(found.shape)
    wrong = compare_positions(found, expected, challenge.grid.tolerance_mm)
    if not wrong:
        return CheckedHeaders(voxels=voxels, warning=None)
    problem = GridPositionError(name, wrong.text, wrong.remedy)
    if challenge.grid.compare is GridComparison.SIZE:
        return CheckedHeaders(voxels=voxels, warning=problem.finding)
    raise problem


def score_case(pair: CasePair, challenge: Challenge) -> CaseScore:
    """Read and score one case whose headers have been checked.

    Raises
    ------
    FileError
        If the prediction is damaged, or holds what the challenge does not allow.
    GroundTruthError
        If that is so for the reference.
    """
    reference = read_reference(pair.reference, challenge)
    prediction = check_prediction(pair, challenge)
    if reference.grid.shape != prediction.grid.shape:
        text = "it changed while it was evaluated"
        raise DamagedFileError(pair.prediction.name, text)
    organs = score_labels(reference, prediction, challenge)
    counted = [
        score
        for score, organ in zip(organs, challenge.organs, strict=True)
        if organ.in_mean
    ]
    return CaseScore(
        case=pair.case,
        reference_file=PurePath(pair.reference.name).name,
        prediction_file=PurePath(pair.prediction.name).name,
        is_empty=not prediction.has_organs,
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
        reference_file=PurePath(reference.name).name,
        prediction_file="",
        organs=tuple(
            OrganScore(organ=organ.name, dsc=0.0, nsd=0.0) for organ in challenge.organs
        ),
        dsc=0.0,
        nsd=0.0,
        failure=failure,
    )


def check_prediction(pair: CasePair, challenge: Challenge) -> LabelMap:
    """Read the prediction of a case, and refuse what the challenge does not allow.

    Raises
    ------
    FileError
        If it is damaged, or holds fractions or labels that are not allowed.
    """
    file = pair.prediction
    prediction = _read(file, challenge)
    if (
        prediction.unknown
        and challenge.unknown_labels.prediction is UnknownLabels.REFUSE
    ):
        text = _unknown_text(prediction) + _other_edition(prediction, challenge)
        raise LabelError(file.name, text, challenge.labels_text)
    return prediction


def read_reference(file: LabelMapFile, challenge: Challenge) -> LabelMap:
    """Read the reference of a case; what is wrong with it is the organisers'.

    Raises
    ------
    GroundTruthError
        If it is damaged, or holds fractions or labels that are not allowed.
    """
    try:
        reference = _read(file, challenge)
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    if reference.unknown and challenge.unknown_labels.reference is UnknownLabels.REFUSE:
        _log.info("Reference %s has %s", safe(file.name), _unknown_text(reference))
        problem = f"{safe(file.name)}: it has labels that the challenge does not know"
        raise GroundTruthError(problem)
    return reference


def _read(file: LabelMapFile, challenge: Challenge) -> LabelMap:
    """Read a label map of a challenge."""
    known = [organ.label for organ in challenge.organs]
    return read_label_map(file.path, file.name, known)


def _other_edition(labels: LabelMap, challenge: Challenge) -> str:
    """A hint, if unknown labels are those of another challenge that comes with us."""
    if len(labels.unknown) > 1:
        for name in challenge_names():
            other = read_challenge(name)
            known = {organ.label for organ in other.organs}
            if other.key != challenge.key and known.issuperset(labels.unknown):
                return f", as in {other.name}"
    return ""


def _unknown_text(labels: LabelMap) -> str:
    """Name the unknown labels of a label map."""
    if len(labels.unknown) >= UNKNOWN_LABELS_LIMIT:
        return (
            f"{len(labels.unknown)} or more unknown labels, such as {labels.unknown[0]}"
        )
    word = "label" if len(labels.unknown) == 1 else "labels"
    return f"unknown {word} {listing(map(str, labels.unknown), last=' and ')}"


# --- All cases --------------------------------------------------------------------


def score_cases(
    pairs: Sequence[CasePair],
    challenge: Challenge,
    *,
    workers: int,
    check_only: bool = False,
) -> Iterator[Attempt]:
    """Score cases whose headers have been checked, in worker processes.

    Parameters
    ----------
    pairs : sequence of CasePair
        The cases.
    challenge : Challenge
        Whose rules apply.
    workers : int
        Number of processes; with one, this process does the work itself.
    check_only : bool
        Only look for problems of the predictions: for a submission that is refused
        anyway, so that its author learns of everything at once.

    Yields
    ------
    Attempt
        For each pair, in the order of `pairs`; a refused prediction does not end it.

    Raises
    ------
    GroundTruthError
        If a reference is damaged or breaks the rules of the challenge.
    WorkerError
        If a case cannot be scored in a process that has this computer to itself.
    """
    attempt = partial(_attempt, challenge=challenge, check_only=check_only)
    workers = min(workers, len(pairs))
    if workers <= 1:
        yield from map(attempt, pairs)
        return
    left = list(pairs)
    try:
        with _pool(workers) as pool:
            for result in pool.map(attempt, pairs):
                left.pop(0)
                yield result
    except (BrokenProcessPool, MemoryError) as error:
        # Whichever case it was: together with others, it was too much.
        _log.info("A worker process ended early (%r); going on with one.", error)
    for pair in left:
        yield _alone(attempt, pair)


def _alone(attempt: Callable[[CasePair], Attempt], pair: CasePair) -> Attempt:
    """Score one case in a process of its own, so that its end is not ours."""
    try:
        with _pool(1) as pool:
            return pool.submit(attempt, pair).result()
    except (BrokenProcessPool, MemoryError) as error:
        how = "ran out of memory" if isinstance(error, MemoryError) else "was killed"
        problem = f"{safe(pair.prediction.name)}: the process that scored it {how}"
        raise WorkerError(problem) from error


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that end with us, whatever ends us."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=_context(),
        initializer=_begin_worker,
        initargs=(os.getpid(),),
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker(parent: int) -> None:
    """Leave signals to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before we asked
            os._exit(1)


def _attempt(pair: CasePair, *, challenge: Challenge, check_only: bool) -> Attempt:
    """Score one case; a problem of the submission is a result like another."""
    start = time.perf_counter()
    score, problem = None, None
    try:
        if check_only:
            check_prediction(pair, challenge)
        else:
            score = score_case(pair, challenge)
    except SubmissionError as error:
        problem = error
    return Attempt(
        pair=pair, score=score, problem=problem, seconds=time.perf_counter() - start
    )


def _context() -> multiprocessing.context.BaseContext:
    """How workers begin: forked on Linux, where that costs no second start-up.

    Forked workers need no helper process, which could write to stderr after us. The
    command line forks before it has any thread of Python's.
    """
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
