"""Says what travels to a worker that scores, and what it does with it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from typing import BinaryIO

from flare.challenge.rules import Challenge
from flare.common.environment import reuse_freed_memory
from flare.common.errors import InputError, OrganiserError, as_flare_error
from flare.common.files import open_regular
from flare.common.text import safe, why
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.scoring.case import (
    MIRRORED_BELOW,
    Attempt,
    attempt_case,
    find_mirrored,
)
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair

BATCH_VOXELS = 400_000_000
"""A batch is full with so many voxels: of cases of 512 x 512 x 100, that are fifteen,
which take about a second. So sending it costs little, and losing it costs little."""

BATCH_CASES = 64
"""A batch is also full with so many cases, however small they are."""

IN_MEMORY_BYTES = 2**28
"""Predictions up to this size are read once as a whole, so that what is scored is what
the digest is of. Nothing is kept of larger ones, which no compressed label map is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Cases of a team that one process scores, one after the other."""

    team: str
    pairs: tuple[CasePair, ...]
    challenge: Challenge
    check_only: bool

    def single(self) -> Iterator[Batch]:
        """A batch for each of its cases."""
        return (replace(self, pairs=(pair,)) for pair in self.pairs)


def score_batch(batch: Batch) -> tuple[Attempt, ...]:
    """Score the cases of a batch in this process."""
    reuse_freed_memory()
    return tuple(_scored(pair, batch) for pair in batch.pairs)


def _scored(pair: CasePair, batch: Batch) -> Attempt:
    """Score a case; what nobody expected of it is its team's, and ends no other's."""
    mirrored = None
    try:
        with (
            read_once(pair.reference) as (reference, reference_sha256),
            read_once(pair.prediction, IN_MEMORY_BYTES) as (prediction, sha256),
        ):
            files = replace(pair, reference=reference, prediction=prediction)
            attempt = attempt_case(
                files, challenge=batch.challenge, check_only=batch.check_only
            )
            if attempt.score and attempt.score.dsc < MIRRORED_BELOW:
                mirrored = find_mirrored(files, batch.challenge)
    except (OrganiserError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  it is this team's alone
        fault = as_flare_error(error)
        return Attempt(pair=pair, score=None, problem=None, seconds=0.0, fault=fault)
    digests = reference_sha256, sha256
    return replace(attempt, pair=pair, digests=digests, mirrored=mirrored)


@contextmanager
def read_once(
    file: LabelMapFile, most_bytes: int | None = None
) -> Iterator[tuple[LabelMapFile, str]]:
    """Open a file: its content in memory, whatever happens to it meanwhile.

    Parameters
    ----------
    file : LabelMapFile
        A reference, or a prediction.
    most_bytes : int, optional
        Of a prediction. A larger one is read without a digest, so that it need not be
        in memory; one that a link leads to by now is refused.

    Yields
    ------
    tuple of LabelMapFile and str
        The same file, to be read from there; and the SHA-256 of what is read.

    Raises
    ------
    InputError
        If it is a prediction that cannot be read.
    GroundTruthError
        If it is a reference.
    """
    content = None
    try:
        stream: BinaryIO = open_regular(file.path, is_real=most_bytes is not None)
        if most_bytes is None or os.fstat(stream.fileno()).st_size <= most_bytes:
            with stream:
                content = stream.read()
            stream = BytesIO(content)
    except OSError as error:
        kind = GroundTruthError if most_bytes is None else InputError
        raise kind(f"{safe(file.name)}: it cannot be read ({why(error)})") from error
    with stream:
        digest = "" if content is None else hashlib.sha256(content).hexdigest()
        yield replace(file, stream=stream), digest


def digest_of(pair: CasePair) -> str:
    """SHA-256 of the prediction of a case; empty if nothing is kept of it.

    Raises
    ------
    InputError
        If it cannot be read any more.
    """
    with read_once(pair.prediction, IN_MEMORY_BYTES) as (_, digest):
        return digest


def split(pairs: Iterable[CasePair]) -> Iterator[tuple[CasePair, ...]]:
    """Divide cases into batches of equal work."""
    batch: list[CasePair] = []
    size = 0
    for pair in pairs:
        if batch and (size + pair.voxels > BATCH_VOXELS or len(batch) == BATCH_CASES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(pair)
        size += pair.voxels
    if batch:
        yield tuple(batch)
