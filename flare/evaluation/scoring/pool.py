"""Scores all cases in worker processes, and outlives every one of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from flare.challenge.rules import Challenge
from flare.common.errors import FlareError, SubmissionError, WorkerError
from flare.common.executor import Done, LocalPool, completed
from flare.common.text import safe
from flare.evaluation.scoring.case import score_case
from flare.evaluation.scoring.reading import read_prediction
from flare.evaluation.submission.matching import CasePair
from flare.results.scores import CaseScore

if TYPE_CHECKING:
    from flare.evaluation.ct_values import CaseValues


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
    digests: tuple[str, str] = ("", "")
    """SHA-256 of the reference and of the prediction that were read, if asked for."""
    fault: FlareError | None = None
    """What has kept it from being scored, and is no problem of its content."""


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
        attempt_case,
        challenge=challenge,
        check_only=check_only,
        are_cts_read=are_cts_read,
    )
    pool = LocalPool(max(1, min(workers, len(pairs))))
    found: dict[str, Done[CasePair, Attempt]] = {}
    order = deque(pair.case for pair in pairs)
    for some in completed(pool, attempt, pairs):
        found[some.item.case] = some
        while order and order[0] in found:
            done = found.pop(order.popleft())
            if done.is_lost:
                raise worker_error(done.item, done.error) from done.error
            if done.error:
                raise done.error
            yield cast("Attempt", done.result)


def worker_error(pair: CasePair, error: BaseException | None) -> WorkerError:
    """Say which case was too much, and how it ended."""
    how = "ran out of memory" if isinstance(error, MemoryError) else "was killed"
    name = safe(pair.prediction.name)
    return WorkerError(f"{name}: the process that scored it {how}")


def attempt_case(
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
