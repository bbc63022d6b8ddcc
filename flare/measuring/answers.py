"""Keeps the answers that each run writes, and joins those of all cases of a team.

A run may write a file of answers beside its label map, such as results.csv of FLARE
2026's AutoMSC: see ``[[answers]]`` of a challenge file. The joined file, in the folder
of predictions, has the columns that count, as `flare evaluate` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from flare.answers.tables import (
    TableRow,
    case_of_row,
    is_counted,
    read_table,
    table_text,
)
from flare.challenge.answers import AnswerRules
from flare.challenge.formats import CHANNEL
from flare.challenge.rules import Challenge
from flare.common.files import write_whole
from flare.common.text import safe
from flare.evaluation.submission.find import answer_files_in
from flare.measuring.exchange import MOST_ANSWER_BYTES, WrongOutputError
from flare.results.errors import MeasurementError
from flare.results.team_folder import PREDICTIONS

Cells = Mapping[str, str]
"""The texts of a row by column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswers:
    """The rows of a file of answers that a run has written for its case."""

    file: str
    rows: tuple[Cells, ...]


def read_case_answers(
    folder: Path, challenge: Challenge, case: str
) -> tuple[CaseAnswers, ...]:
    """Read what a run has written of answers, whose files and values were checked.

    A WrongOutputError is raised if a row is of another case, or the rows are too long
    to be joined.
    """
    answers = []
    files = answer_files_in(folder, challenge, is_reference=False)
    for name, rules_of_file in _rules_by_file(challenge).items():
        (file,) = files[name]
        rows: list[Cells] = []
        for row in read_table(file, is_real=True):
            row_rules = [rules for rules in rules_of_file if is_counted(rules, row)]
            if row_rules:
                rows.append(_cells_of_case(row, row_rules, rules_of_file, case))
        if len(table_text(rows, file.suffix).encode()) > MOST_ANSWER_BYTES:
            problem = f"its answers take more than {MOST_ANSWER_BYTES} bytes"
            raise WrongOutputError(f"{name}: {problem}")
        answers.append(CaseAnswers(file=name, rows=tuple(rows)))
    return tuple(answers)


def _rules_by_file(challenge: Challenge) -> dict[str, list[AnswerRules]]:
    rules_by_file: dict[str, list[AnswerRules]] = {}
    for rules in challenge.answers:
        rules_by_file.setdefault(rules.file, []).append(rules)
    return rules_by_file


def _cells_of_case(
    row: TableRow,
    row_rules: Sequence[AnswerRules],
    rules_of_file: Sequence[AnswerRules],
    case: str,
) -> Cells:
    """The cells by which one row counts as it did, for all ``[[answers]]`` together."""
    cells: dict[str, str] = {}
    for rules in row_rules:
        # The first column has the name of the case, any further ones of a question.
        name = case_of_row(replace(rules, case=rules.case[:1]), row)
        if name not in (case, f"{case}{CHANNEL}"):
            problem = f"{row.place} is of case {safe(name)}, expected {safe(case)}"
            raise WrongOutputError(f"{rules.file}: {problem}")
        for column in (*rules.case, *rules.prediction):
            cells[column] = row.cells[column]
    for rules in row_rules:
        cells[rules.case[0]] = case
    return {**cells, **_choosing_cells(row, row_rules, rules_of_file)}


def _choosing_cells(
    row: TableRow,
    row_rules: Sequence[AnswerRules],
    rules_of_file: Sequence[AnswerRules],
) -> Cells:
    """The cells by which ``only`` chooses the rows that count."""
    cells: dict[str, str] = {}
    for column in dict.fromkeys(chain.from_iterable(r.only for r in rules_of_file)):
        values = {rules.only[column] for rules in row_rules if column in rules.only}
        if column in row.cells:
            cells[column] = row.cells[column]
        elif len(values) == 1:  # a file without the column has such rows alone
            cells[column] = values.pop()
    return cells


def keep_answers(
    folder: Path, challenge: Challenge, case: str, answers: Sequence[CaseAnswers]
) -> None:
    """Put the rows of a case among those of the others, where nothing older stays.

    The folder is the team's. A run that has failed has no `answers`.

    A MeasurementError is raised if the rows of other cases cannot be read any more.
    """
    rows_by_file = {file.file: file.rows for file in answers}
    for name, rules_of_file in _rules_by_file(challenge).items():
        file = folder / PREDICTIONS / name
        columns = {rules.case[0] for rules in rules_of_file}
        rows = [row for row in _joined_rows(file) if case not in map(row.get, columns)]
        rows += rows_by_file.get(name, ())
        if rows:
            write_whole(file, table_text(rows, file.suffix))
        else:
            file.unlink(missing_ok=True)


def _joined_rows(file: Path) -> list[Cells]:
    if not file.exists():
        return []
    try:
        return [row.cells for row in read_table(file)]
    except ValueError as error:
        remedy = "Restore it, or measure the team anew with another --output."
        raise MeasurementError(str(file), str(error), remedy) from error
