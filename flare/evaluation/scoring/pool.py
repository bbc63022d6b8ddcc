"""Scores all cases in worker processes, and outlives every one of them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from flare.challenge.rules import Challenge
from flare.common.errors import SubmissionError, WorkerError
from flare.common.processes import end_with
from flare.common.text import safe
from flare.evaluation.scoring.case import score_case
from flare.evaluation.scoring.reading import read_prediction
from flare.evaluation.submission.matching import CasePair
from flare.results.scores import CaseScore

if TYPE_CHECKING:
    import multiprocessing.context
    from concurrent.futures import ProcessPoolExecutor

    from flare.evaluation.ct_values import CaseValues

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one case."""

    pair: CasePair
    score: CaseScore | None
    problem: SubmissionError | None
    seconds: float
    organs: tuple[str, ...] = ()
    """Of a prediction that was only checked: the organs that it has."""
    unknown_labels: tuple[int, ...] = ()
    """Of one that was only checked: its labels that are no organs."""
    ct_values: CaseValues | None = None
    """Of one that was checked with its CT: what the CT shows there."""


def score_cases(
    pairs: Sequence[CasePair],
    challenge: Challenge,
    *,
    workers: int,
    check_only: bool = False,
    are_cts_read: bool = False,
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
    are_cts_read : bool
        The references are CTs: where only problems are looked for, look at their
        voxels as well.

    Yields
    ------
    Attempt
        For each pair, in the order of `pairs`; a refused prediction does not end it.

    Raises
    ------
    GroundTruthError
        If a reference is damaged or breaks the rules of the challenge.
    WorkerError
        If a case is too much for a process that has this computer to itself.
    """
    attempt = partial(
        _attempt,
        challenge=challenge,
        check_only=check_only,
        are_cts_read=are_cts_read,
    )
    workers = min(workers, len(pairs))
    if workers <= 1:
        for pair in pairs:
            yield _here(attempt, pair)
        return
    # Not at the top: with one worker, an evaluation starts sooner without it.
    from concurrent.futures.process import BrokenProcessPool

    left = list(pairs)
    try:
        with _pool(workers) as pool:
            with _sigterm_waits():
                results = pool.map(attempt, pairs)
            for result in results:
                left.pop(0)
                yield result
    except (BrokenProcessPool, MemoryError) as error:
        # Whichever case it was: together with others, it was too much.
        _log.info("A worker process ended early (%r); going on with one.", error)
    for pair in left:
        yield _alone(attempt, pair)


def _here(attempt: Callable[[CasePair], Attempt], pair: CasePair) -> Attempt:
    """Score one case in this process."""
    try:
        return attempt(pair)
    except MemoryError as error:
        raise _worker_error(pair, error) from error


def _alone(attempt: Callable[[CasePair], Attempt], pair: CasePair) -> Attempt:
    """Score one case in a process of its own, so that its end is not ours."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        with _pool(1) as pool:
            with _sigterm_waits():
                result = pool.submit(attempt, pair)
            return result.result()
    except (BrokenProcessPool, MemoryError) as error:
        raise _worker_error(pair, error) from error


def _worker_error(pair: CasePair, error: Exception) -> WorkerError:
    """Say which case was too much, and how it ended."""
    how = "ran out of memory" if isinstance(error, MemoryError) else "was killed"
    name = safe(pair.prediction.name)
    return WorkerError(f"{name}: the process that scored it {how}")


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that end with us, whatever ends us."""
    from concurrent.futures import ProcessPoolExecutor

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


@contextmanager
def _sigterm_waits() -> Iterator[None]:
    """Fork workers so that none misses a SIGTERM, which waits until they have begun.

    Python forgets a signal that comes while a child is set up. When a worker dies, the
    pool ends the others by SIGTERM, and waits for them: for ever, if one has missed it.
    """
    if sys.platform != "linux":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(parent: int) -> None:
    """Leave signals to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    end_with(parent)


def _attempt(
    pair: CasePair, *, challenge: Challenge, check_only: bool, are_cts_read: bool
) -> Attempt:
    """Score one case; a problem of the submission is a result like another."""
    start = time.perf_counter()
    score, problem = None, None
    organs: tuple[str, ...] = ()
    unknown: tuple[int, ...] = ()
    ct_values = None
    try:
        if check_only:
            prediction = read_prediction(pair.prediction, challenge)
            present, unknown = prediction.present, prediction.unknown
            organs = tuple(o.name for o in challenge.organs if o.label in present)
            if are_cts_read:
                # Not at the top: an evaluation starts sooner without it.
                from flare.evaluation.ct_values import measure_case

                ct = pair.reference.path
                ct_values = measure_case(pair.case, prediction, ct, challenge)
        else:
            score = score_case(pair, challenge)
    except SubmissionError as error:
        problem = error
    return Attempt(
        pair=pair,
        score=score,
        problem=problem,
        organs=organs,
        unknown_labels=unknown,
        ct_values=ct_values,
        seconds=time.perf_counter() - start,
    )


def _context() -> multiprocessing.context.BaseContext:
    """How workers begin: forked on Linux, where that costs no second start-up.

    Forked workers need no helper process, which could write to stderr after us. The
    command line forks before it has any thread of Python's.
    """
    import multiprocessing

    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
