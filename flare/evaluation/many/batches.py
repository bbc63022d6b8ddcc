"""Says what travels to a worker that scores, and what it does with it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from flare.challenge.rules import Challenge
from flare.common.bulkhead import as_flare_error
from flare.common.errors import InputError, OrganiserError
from flare.common.files import open_regular
from flare.common.machine import reuse_freed_memory
from flare.common.text import safe, why
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.plan import file_checksum
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
    reference = Digested(pair.reference.path)
    prediction = Digested(pair.prediction.path, IN_MEMORY_BYTES)
    files = replace(
        pair,
        reference=_reading(pair.reference, reference),
        prediction=_reading(pair.prediction, prediction),
    )
    mirrored = None
    try:
        attempt = attempt_case(
            files, challenge=batch.challenge, check_only=batch.check_only
        )
        digests = reference.sha256, prediction.sha256
        if attempt.score and attempt.score.dsc < MIRRORED_BELOW:
            mirrored = find_mirrored(files, batch.challenge)
    except (OrganiserError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  it is this team's alone
        fault = as_flare_error(error)
        return Attempt(pair=pair, score=None, problem=None, seconds=0.0, fault=fault)
    return replace(attempt, pair=pair, digests=digests, mirrored=mirrored)


def _reading(file: LabelMapFile, digested: Digested) -> LabelMapFile:
    """The same file, whose digest is taken as it is read."""
    return replace(file, path=digested)  # type: ignore[arg-type]


class Digested:
    """What a label map needs of a path, and the SHA-256 of what was read of it.

    Parameters
    ----------
    path : Path
        The file.
    most_bytes : int, optional
        Of a prediction. A larger one is read without a digest, so that it need not be
        in memory; one that a link leads to by now is refused.
    """

    def __init__(self, path: Path, most_bytes: int | None = None) -> None:
        self._path, self._most_bytes = path, most_bytes
        self.sha256 = ""
        """Empty if nothing was read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._path, name)

    def __fspath__(self) -> str:
        return os.fspath(self._path)

    def open(self, _: str = "rb") -> BinaryIO:
        """Open the file: its content in memory, whatever happens to it meanwhile.

        Raises
        ------
        OSError
            If it is a prediction that cannot be read.
        GroundTruthError
            If it is a reference.
        """
        try:
            file = open_regular(self._path, is_real=self._most_bytes is not None)
            size = os.fstat(file.fileno()).st_size
            if self._most_bytes is not None and size > self._most_bytes:
                return file
            with file:
                content = file.read(size)
        except OSError as error:
            if self._most_bytes is not None:
                raise
            raise GroundTruthError(
                f"{safe(self._path.name)}: it cannot be read ({why(error)})"
            ) from error
        self.sha256 = hashlib.sha256(content).hexdigest()
        return BytesIO(content)


def digest_of(pair: CasePair) -> str:
    """SHA-256 of the prediction of a case; empty if nothing is kept of it.

    Raises
    ------
    InputError
        If it cannot be read any more.
    """
    prediction = Digested(pair.prediction.path, IN_MEMORY_BYTES)
    try:
        prediction.open().close()
    except OSError as error:
        raise InputError(
            f"{safe(pair.prediction.name)}: it cannot be read ({why(error)})"
        ) from error
    return prediction.sha256


def reference_digest(file: Path) -> str:
    """SHA-256 of a reference.

    Raises
    ------
    GroundTruthError
        If it cannot be read.
    """
    try:
        return file_checksum(file)
    except OSError as error:
        raise GroundTruthError(
            f"{safe(file.name)}: it cannot be read ({why(error)})"
        ) from error


def split(todo: Iterable[tuple[CasePair, int]]) -> Iterator[tuple[CasePair, ...]]:
    """Divide cases, each with how many voxels it has, into batches of equal work."""
    batch: list[CasePair] = []
    size = 0
    for pair, voxels in todo:
        if batch and (size + voxels > BATCH_VOXELS or len(batch) == BATCH_CASES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(pair)
        size += voxels
    if batch:
        yield tuple(batch)
