"""Keeps the outcomes of cases in RESULTS/scores.sqlite: each is scored once."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flare.challenge.rules import Challenge
from flare.common.environment import __version__, library_version, source_commit
from flare.common.errors import FileError, OutputError
from flare.common.text import safe
from flare.evaluation.plan import LIBRARIES
from flare.evaluation.scoring.case import Attempt, Mirrored
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore, OrganScore

SCORES_SQLITE = "scores.sqlite"
"""In RESULTS."""

_TABLE = "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, content TEXT)"


def rules_key(rules: Challenge, *, check_only: bool) -> str:
    """SHA-256 of what all scores of a run depend on besides the files.

    Parameters
    ----------
    rules : Challenge
        With the options of the run.
    check_only : bool
        Whether predictions are only searched for problems.
    """
    parts = {
        "challenge": rules.checksum,
        "grid": rules.grid.compare.value,
        "unknown labels": rules.unknown_labels.prediction.value,
        "check only": check_only,
        "version": __version__,
        "commit": source_commit(),
        "libraries": [library_version(name) for name in LIBRARIES],
    }
    return _sha256(parts)


def key_of(pair: CasePair, rules: str, reference: str, prediction: str) -> str:
    """What the outcome of a case is kept under.

    Parameters
    ----------
    pair : CasePair
        The case. The names of its files are in the messages, and so in the key.
    rules : str
        `rules_key`.
    reference, prediction : str
        SHA-256 of their files.
    """
    names = [pair.case, pair.reference.name, pair.prediction.name]
    return _sha256([rules, reference, prediction, names])


def _sha256(content: Any) -> str:
    """SHA-256 of what JSON can hold."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class KeptScores(AbstractContextManager["KeptScores"]):
    """The outcomes of cases, which survive whatever ends the program.

    A transaction is on the disk as a whole or not at all. One process writes: that
    which has locked RESULTS.

    Parameters
    ----------
    file : Path
        Made if need be, with its folder.

    Raises
    ------
    OutputError
        If it cannot be read or written; also by every method.
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

    def find(self, pair: CasePair, key: str) -> Attempt | None:
        """The outcome of a case; None if it is not known."""
        with self._explained():
            query = "SELECT content FROM scores WHERE key = ?"
            row = self._database.execute(query, (key,)).fetchone()
            return _attempt(pair, json.loads(row[0])) if row else None

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


def _content(attempt: Attempt) -> str:
    """An outcome as text."""
    kept = {name: getattr(attempt, name) for name in ("score", "mirrored")}
    content: dict[str, Any] = {
        k: asdict(own) if own else None for k, own in kept.items()
    }
    if problem := attempt.problem:
        content = {"problem": [type(problem).__name__, *problem.args]}
    return json.dumps(content, allow_nan=False)


def _attempt(pair: CasePair, content: dict[str, Any]) -> Attempt:
    """An outcome that was kept."""
    score, problem, mirrored = None, None, None
    if "problem" in content:
        name, *arguments = content["problem"]
        kinds = {kind.__name__: kind for kind in FileError.__subclasses__()}
        problem = kinds[name](*arguments)
    elif fields := content["score"]:
        organs = tuple(OrganScore(**organ) for organ in fields.pop("organs"))
        for name in ("unknown_labels", "free_of", "left_empty"):
            fields[name] = tuple(fields[name])
        score = CaseScore(organs=organs, **fields)
        mirrored = content["mirrored"] and Mirrored(**content["mirrored"])
    return Attempt(
        pair=pair, score=score, problem=problem, mirrored=mirrored, seconds=0.0
    )
