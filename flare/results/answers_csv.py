"""Keeps the answers of a team beside their references in answers.csv.

The file is for organisers: it tells the references. All values of answers are made from
it, when they are scored and when teams are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.common.files import write_whole
from flare.common.schema import Text
from flare.results.csv_rows import rows_text

ANSWERS_CSV = "answers.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """An answer and its reference. For organisers alone: it tells the reference."""

    answers: Text
    """Name of the `[[answers]]` of the challenge file."""
    case: Text
    """Name of the case, or of the question."""
    reference: str
    """The right answer as the references have it; of several columns, a list in
    JSON."""
    prediction: str
    """The answer as it was submitted, in the same form; empty if it cannot be used."""
    problem: str = ""
    """Why it counts as the worst answer; empty if it could be used."""


def answers_text(rows: Sequence[AnswerRow]) -> str:
    """The content of answers.csv."""
    return rows_text(AnswerRow, rows)


def write_answers(file: Path, rows: Sequence[AnswerRow]) -> None:
    """Write answers.csv, whole or not at all.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    write_whole(file, answers_text(rows))
