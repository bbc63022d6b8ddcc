"""Says what travels to a process that scores, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from flare.challenge.rules import Challenge
from flare.common.allocator import reuse_freed_memory
from flare.common.errors import WorkerError
from flare.evaluation.scoring.pool import Attempt, score_cases
from flare.evaluation.submission.matching import CasePair

BATCH_VOXELS = 400_000_000
"""A batch is full with so many voxels: of cases of 512 x 512 x 100, that are fifteen,
which take about a second. So sending it costs little, and losing it costs little."""

BATCH_CASES = 64
"""A batch is also full with so many cases, however small they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Cases of a team that one process scores, one after the other."""

    team: str
    pairs: tuple[CasePair, ...]
    challenge: Challenge
    check_only: bool

    def single(self) -> Iterator[Batch]:
        """A batch for each of its cases."""
        for pair in self.pairs:
            yield Batch(
                team=self.team,
                pairs=(pair,),
                challenge=self.challenge,
                check_only=self.check_only,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What came of a batch."""

    batch: Batch
    attempts: tuple[Attempt, ...] = ()
    """Of all of its cases, unless it could not be scored."""
    error: WorkerError | None = None
    """Why it could not: whoever scored its only case was killed, again and again."""


class Engine(Protocol):
    """Whatever scores batches: this process, or many, here or elsewhere."""

    def run(self, batches: Iterator[Batch]) -> Iterator[Finished]:
        """Score batches, in any order; no more are asked for than are needed next.

        Raises
        ------
        OrganiserError
            If a reference is damaged.
        HostError
            If a file cannot be read.
        """


class OneProcess:
    """Scores all batches in this process."""

    def run(self, batches: Iterator[Batch]) -> Iterator[Finished]:
        """Score batches, one after the other."""
        for batch in batches:
            try:
                yield Finished(batch=batch, attempts=score_batch(batch))
            except WorkerError as error:
                if len(batch.pairs) == 1:
                    yield Finished(batch=batch, error=error)
                else:
                    yield from self.run(batch.single())


def score_batch(batch: Batch) -> tuple[Attempt, ...]:
    """Score the cases of a batch in this process."""
    reuse_freed_memory()
    return tuple(
        score_cases(
            batch.pairs, batch.challenge, workers=1, check_only=batch.check_only
        )
    )


def split(
    pairs: Sequence[CasePair], voxels: Sequence[int]
) -> Iterator[tuple[CasePair, ...]]:
    """Divide cases into batches of about the same work.

    Parameters
    ----------
    pairs : sequence of CasePair
        The cases.
    voxels : sequence of int
        How many each of them has.
    """
    batch: list[CasePair] = []
    size = 0
    for pair, count in zip(pairs, voxels, strict=True):
        if batch and (size + count > BATCH_VOXELS or len(batch) == BATCH_CASES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(pair)
        size += count
    if batch:
        yield tuple(batch)
