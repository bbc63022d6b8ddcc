"""Keeps the answers of a team beside their references in answers.csv.

The file is for organisers: it tells the references. All values of answers are made from
it, when they are scored and when teams are ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.common.files import write_whole
from flare.common.schema import Text
from flare.common.text import safe
from flare.results.csv_rows import read_table, rows_text
from flare.results.errors import RankingError

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


def write_answers(file: Path, rows: Sequence[AnswerRow]) -> None:
    """Write answers.csv, whole or not at all; an OutputError says why it cannot be."""
    write_whole(file, rows_text(AnswerRow, rows))


def read_answers(file: Path) -> Mapping[str, Sequence[AnswerRow]]:
    """The rows of each `[[answers]]`, by its name, in the order of the file.

    A RankingError is raised if it cannot be read, or has two answers for a case.
    """
    rows: dict[str, dict[str, AnswerRow]] = {}
    for row in read_table(file, AnswerRow):
        by_case = rows.setdefault(row.answers, {})
        if row.case in by_case:
            problem = f"it has two answers to {safe(row.answers)} for {safe(row.case)}"
            raise RankingError(str(file), problem)
        by_case[row.case] = row
    return {name: tuple(by_case.values()) for name, by_case in rows.items()}
