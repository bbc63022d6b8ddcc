"""Scores cases in batches, each once: the outcome is kept in RESULTS/scores.sqlite."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

import numpy as np

from flare.challenge.rules import Challenge
from flare.common.environment import __version__, reuse_freed_memory, source_commit
from flare.common.errors import (
    FileError,
    FlareError,
    InputError,
    OrganiserError,
    OutputError,
    as_flare_error,
)
from flare.common.executor import Done
from flare.common.files import open_regular
from flare.common.schema import build
from flare.common.text import safe, why
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.evaluate import worker_error
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.plan import library_versions
from flare.evaluation.scoring.case import Attempt, Explanation, attempt_case
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore

BATCH_VOXELS = 400_000_000
"""A batch with this number of voxels is full: fifteen cases of 512 x 512 x 100 voxels,
which take about a second. Sending it costs little, and losing it costs little."""

BATCH_CASES = 64
"""A batch with this number of cases is full, too, however small they are."""

IN_MEMORY_BYTES = 2**28
"""Predictions up to this size are read once as a whole, so that what is scored has the
digest that is kept. No compressed label map is larger, and such a one is not kept."""

EXPLAINED_BELOW = 0.5
"""Of a case with a lower DSC it is asked what was done to it as a whole."""

SCORES_SQLITE = "scores.sqlite"
"""In RESULTS."""

_TABLE = "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, content TEXT)"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCase:
    """A case of a team that is to be scored."""

    team: str
    pair: CasePair
    check_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Cases that one process scores, sorted by case."""

    cases: tuple[TeamCase, ...]
    challenge: Challenge


def score_batch(batch: Batch) -> tuple[Attempt, ...]:
    """Score the cases of a batch in this process."""
    reuse_freed_memory()
    attempts: list[Attempt] = []
    for file, cases in groupby(batch.cases, lambda case: case.pair.reference):
        with read_once(file) as (reference, sha256):
            shared = SharedReference.of(reference, sha256)
            attempts += _scored_cases(cases, shared, batch.challenge)
    return tuple(attempts)


def _scored_cases(
    cases: Iterable[TeamCase], reference: SharedReference, challenge: Challenge
) -> Iterator[Attempt]:
    """Score all teams' predictions of a reference; of equal files, the first one."""
    attempts: dict[tuple[str, str, bool], Attempt] = {}
    for case in cases:
        pair = case.pair
        try:
            with read_once(pair.prediction, IN_MEMORY_BYTES) as (prediction, sha256):
                # Messages have the name of the file.
                key = sha256, prediction.name, case.check_only
                if not sha256 or key not in attempts:
                    files = replace(pair, reference=reference, prediction=prediction)
                    attempts[key] = _scored(files, challenge, case.check_only)
        except (OrganiserError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  it is this team's alone
            yield _faulty(pair, as_flare_error(error))
        else:
            digests = reference.sha256, sha256
            yield replace(attempts[key], pair=pair, digests=digests)


def _scored(files: CasePair, challenge: Challenge, check_only: bool) -> Attempt:
    """Score a case, and find what was done to a prediction with a low score."""
    attempt = attempt_case(files, challenge=challenge, check_only=check_only)
    if not attempt.score or not attempt.score.is_below(EXPLAINED_BELOW):
        return attempt
    # Not at the top: most teams have no such case.
    from flare.evaluation.doctor.report import explain_file

    return replace(attempt, explanation=explain_file(files, challenge))


def _faulty(pair: CasePair, fault: FlareError) -> Attempt:
    """The outcome of a case that could not be scored, whatever its files hold."""
    return Attempt(pair=pair, score=None, problem=None, seconds=0.0, fault=fault)


def attempts_of(done: Done[Batch, tuple[Attempt, ...]]) -> tuple[Attempt, ...]:
    """The outcomes of a batch, in the order of its cases; if it was lost, why."""
    if not done.is_lost:
        return done.result or ()
    pairs = (case.pair for case in done.item.cases)
    return tuple(_faulty(pair, worker_error(pair, done.error)) for pair in pairs)


class References:
    """The references that were used last, as many as have room, which is in bytes.

    Teams that are scored later find them by the digests of their files. Threads of a
    worker of a cluster share them.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._label_maps: dict[object, LabelMap] = {}
        self._lock = Lock()

    def read(self, file: SharedReference, known_labels: Sequence[int]) -> LabelMap:
        """Read a reference, if it is not here."""
        key = file.sha256, file.npz, *known_labels
        with self._lock:
            label_map = self._label_maps.pop(key, None)
        if label_map is None:
            label_map = LabelMapFile.read_labels(file, known_labels)
        with self._lock:
            self._label_maps[key] = label_map  # behind those that were used before
            while sum(map(_bytes_of, self._label_maps.values())) > self._room:
                del self._label_maps[next(iter(self._label_maps))]
        return replace(label_map)  # which unpacks its labels only for whoever asks

    def clear(self) -> None:
        """Let all go."""
        self._label_maps.clear()


REFERENCES = References(room=2**28)
"""Those of this process: packed ones of 512 x 512 x 100 voxels take a million bytes."""


def _bytes_of(label_map: LabelMap) -> int:
    """The bytes of a label map, packed or not: those of its arrays."""
    arrays = vars(label_map.voxels).values()
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedReference(LabelMapFile):
    """A reference whose voxels are read once for all teams."""

    sha256: str

    @classmethod
    def of(cls, file: LabelMapFile, sha256: str) -> SharedReference:
        """The same file."""
        values = {field.name: getattr(file, field.name) for field in fields(file)}
        return cls(**values, sha256=sha256)

    def read_labels(self, known_labels: Sequence[int]) -> LabelMap:
        """Its labels."""
        return REFERENCES.read(self, known_labels)


@contextmanager
def read_once(
    file: LabelMapFile, most_bytes: int | None = None
) -> Iterator[tuple[LabelMapFile, str]]:
    """Open a file: its content in memory, whatever happens to it meanwhile.

    Yields the same file, to be read from there, and the SHA-256 of what is read. A
    prediction of more than `most_bytes` is read without a digest, so that it need not
    be in memory; one that a link leads to by now is refused. An InputError is raised if
    it is a prediction that cannot be read. A GroundTruthError is raised if it is a
    reference.
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

    An InputError is raised if it cannot be read any more.
    """
    with read_once(pair.prediction, IN_MEMORY_BYTES) as (_, digest):
        return digest


def split(groups: Iterable[Sequence[TeamCase]]) -> Iterator[tuple[TeamCase, ...]]:
    """Divide cases into batches of limited size; no group of cases is divided."""
    batch: list[TeamCase] = []
    size = 0
    for cases in groups:
        voxels = sum(case.pair.voxels for case in cases)
        number = len(batch) + len(cases)
        if batch and (size + voxels > BATCH_VOXELS or number > BATCH_CASES):
            yield tuple(batch)
            batch, size = [], 0
        batch += cases
        size += voxels
    if batch:
        yield tuple(batch)


# --- Outcomes that are kept ---------------------------------------------------------


def rules_key(rules: Challenge, *, check_only: bool) -> str:
    """SHA-256 of what all scores of a run depend on besides the files.

    The rules have the options of the run; `check_only` is as in `score_cases`.
    """
    parts = {
        "challenge": rules.checksum,
        "grid": rules.grid.compare.value,
        "unknown labels": rules.unknown_labels.prediction.value,
        "check only": check_only,
        "version": __version__,
        "commit": source_commit(),
        "libraries": list(library_versions().values()),
    }
    return _json_sha256(parts)


def outcome_key(key_of_rules: str, pair: CasePair, digests: tuple[str, str]) -> str:
    """The key under which the outcome of a case is kept: its digests are a part of it.

    So are the names of its files, as messages about the case have them.
    """
    names = [pair.case, pair.reference.name, pair.prediction.name]
    return _json_sha256([key_of_rules, *digests, names])


def _json_sha256(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class KeptScores(AbstractContextManager["KeptScores"]):
    """The outcomes of cases, which survive whatever ends the program.

    A transaction is on the disk as a whole or not at all. One process writes: that
    which has locked RESULTS. The file is made if need be, with its folder. An
    OutputError is raised if it cannot be read or written; also by every method.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._explained():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(file)
            try:
                self._database.execute(_TABLE)
            except sqlite3.Error:
                self._database.close()
                raise

    def has_any(self) -> bool:
        """Whether any outcome is kept."""
        with self._explained():
            query = "SELECT EXISTS (SELECT 1 FROM scores)"
            return bool(self._database.execute(query).fetchone()[0])

    def find(self, pair: CasePair, key: str, *, check_only: bool) -> Attempt | None:
        """The outcome of a case; None if it is not known."""
        with self._explained():
            query = "SELECT content FROM scores WHERE key = ?"
            row = self._database.execute(query, (key,)).fetchone()
            attempt = _attempt(pair, json.loads(row[0])) if row else None
            if attempt and not (check_only or attempt.score or attempt.problem):
                raise ValueError("a case has neither a score nor a problem")
            return attempt

    def keep(self, outcomes: Iterable[tuple[str, Attempt]]) -> None:
        """Keep the outcomes of cases, by their keys."""
        with self._explained(), self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?)",
                ((key, _content(attempt)) for key, attempt in outcomes),
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what to do where the file cannot be used."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(
                f"{safe(self._file)}: it cannot be used ({safe(str(error))})",
                "Make room and try again; or remove it, to score all cases anew.",
            ) from error

    def __exit__(self, *_: object) -> None:
        """Let the file go."""
        self._database.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """The outcome of a case, as SCORES_SQLITE has it: a problem, or the others."""

    score: CaseScore | None = None
    explanation: Explanation | None = None
    problem: tuple[str, ...] = ()
    """The name of the error's class, and its arguments."""


def _content(attempt: Attempt) -> str:
    problem = attempt.problem
    outcome = _Outcome(
        score=attempt.score,
        explanation=attempt.explanation,
        problem=(type(problem).__name__, *problem.args) if problem else (),
    )
    return json.dumps(asdict(outcome), allow_nan=False)


def _attempt(pair: CasePair, content: object) -> Attempt:
    outcome = build(_Outcome, content)
    problem = None
    if outcome.problem:
        name, *arguments = outcome.problem
        error_classes = {kind.__name__: kind for kind in FileError.__subclasses__()}
        problem = error_classes[name](*arguments)
    return Attempt(
        pair=pair,
        score=outcome.score,
        problem=problem,
        explanation=outcome.explanation,
        seconds=0.0,
    )
