"""Reads the answers of a submission, matches them with references, and scores them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from flare.answers.tables import TableRow, case_of_row, read_table, rows_that_count
from flare.answers.values import (
    answer_values,
    cells_text,
    prediction_value,
    reference_value,
)
from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.formats import CHANNEL
from flare.challenge.metrics import metric_named
from flare.challenge.rules import Challenge
from flare.common.errors import SubmissionError
from flare.common.text import count, listing, nearest, safe
from flare.evaluation.errors import (
    AnswerCasesError,
    AnswerFileError,
    AnswerValueError,
    DemonstrationSetError,
    GroundTruthError,
)
from flare.evaluation.submission.find import (
    JOBS_FILE_NAME,
    answer_files_in,
    is_demonstration_set,
    walk,
)
from flare.evaluation.submission.jobs import INPUTS_FILE_NAME, submitted_answer_files
from flare.results.answers_csv import AnswerRow
from flare.results.scores import AnswerScore, LowScores

MISSING = "no answer was submitted"

ReadTable = Callable[..., Sequence[TableRow]]
"""`read_table`, which reads a file once for all answers in it."""


def _reader(*, is_real: bool) -> ReadTable:
    """A reader that looks at each file once, also at one that it refuses."""

    @cache
    def outcome(file: Path, suffix: str) -> Sequence[TableRow] | str:
        try:
            return read_table(file, is_real=is_real, suffix=suffix)
        except ValueError as error:
            return str(error)

    def read(file: Path, suffix: str = "") -> Sequence[TableRow]:
        rows = outcome(file, suffix)
        if isinstance(rows, str):
            raise ValueError(rows)
        return rows

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The answers to one ``[[answers]]`` of a challenge, beside their references."""

    rules: AnswerRules
    file: Path
    """The file of the references."""
    rows: tuple[AnswerRow, ...]
    """A row for each reference, in the order of the cases."""
    problems: tuple[SubmissionError, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases of the references, in their order."""
        return tuple(row.case for row in self.rows)

    @property
    def text(self) -> str:
        """A line that says how many answers there are."""
        return _answers_line(self.rules, sum(not row.problem for row in self.rows))


def _answers_line(rules: AnswerRules, number: int) -> str:
    about = KINDS[rules.kind].about
    return f"{rules.file}: {count(number, 'answer')} to {rules.name}, each {about}."


@dataclass(slots=True, kw_only=True)
class _Answers:
    """The answers in a file, as they are read row by row."""

    texts: dict[str, str] = field(default_factory=dict)
    """The text of an answer by its case."""
    places: dict[str, str] = field(default_factory=dict)
    """The place of the first row of a case."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a case has no usable answer."""
    duplicates: dict[str, str] = field(default_factory=dict)
    """The places of a case that has two answers, or more."""
    strangers: list[str] = field(default_factory=list)
    """Names that no case has."""
    problems: list[SubmissionError] = field(default_factory=list)


def read_sheets(
    predictions: Path | None, ground_truth: Path, challenge: Challenge
) -> tuple[Sheet, ...]:
    """Read all answers of a submission, and their references.

    Without a folder of predictions, the references are read alone, as if each answer to
    them were missing. A GroundTruthError is raised if they are at fault, a
    DemonstrationSetError if there are none but the demonstration set, which has no
    answers, and a FolderError if the submission holds too many files.
    """
    read, read_submitted = _reader(is_real=False), _reader(is_real=True)
    references = answer_files_in(ground_truth, challenge, is_reference=True)
    if not any(references.values()) and is_demonstration_set(ground_truth):
        raise DemonstrationSetError
    files: Mapping[str, Sequence[Path]] = {}
    unasked_tables: Sequence[str] = ()
    if predictions:
        files = submitted_answer_files(predictions, challenge)
        unasked_tables = _other_tables(predictions, challenge, files)
    sheets = []
    for rules in challenge.answers:
        file = _reference_file(rules, references[rules.references])
        texts = _reference_texts(rules, file, read)
        answers = _Answers(reasons=dict.fromkeys(texts, MISSING))
        if predictions:
            answers = _submitted_answers(
                rules, files[rules.file], texts, read_submitted, unasked_tables
            )
        sheets.append(_sheet(rules, file, texts, answers))
    return tuple(sheets)


def _sheet(
    rules: AnswerRules, file: Path, references: Mapping[str, str], answers: _Answers
) -> Sheet:
    rows = [
        AnswerRow(
            answers=rules.name,
            case=case,
            reference=reference,
            prediction="" if case in answers.reasons else answers.texts[case],
            problem=answers.reasons.get(case, ""),
        )
        for case, reference in references.items()
    ]
    return Sheet(
        rules=rules, file=file, rows=tuple(rows), problems=tuple(answers.problems)
    )


def answer_reference_files(
    ground_truth: Path, challenge: Challenge
) -> list[tuple[str, Path]]:
    """The name of each answers of a challenge, with the file of its references.

    A GroundTruthError is raised if a file is not there, or is there twice.
    """
    if not challenge.answers:
        return []
    files = answer_files_in(ground_truth, challenge, is_reference=True)
    return [
        (rules.name, _reference_file(rules, files[rules.references]))
        for rules in challenge.answers
    ]


# --- References ---------------------------------------------------------------------


def _reference_file(rules: AnswerRules, files: Sequence[Path]) -> Path:
    if len(files) != 1:
        problem = f"{len(files)} files are called so" if files else "it is not there"
        raise GroundTruthError(f"{safe(rules.references)}: {problem}")
    return files[0]


def _reference_texts(rules: AnswerRules, file: Path, read: ReadTable) -> dict[str, str]:
    """The text of each reference, in the order of the cases.

    A GroundTruthError is raised if one cannot be read, or a case has two.
    """
    texts: dict[str, str] = {}
    try:
        for row in rows_that_count(rules, rules.reference, read(file)):
            case = case_of_row(rules, row)
            if case in texts:
                raise ValueError(f"{row.place}: a second answer for case {safe(case)}")
            text = cells_text([row.cells[column] for column in rules.reference])
            try:
                reference_value(text, rules)
            except ValueError as error:
                raise ValueError(f"{_place(row, case, text)}: {error}") from error
            texts[case] = text
    except ValueError as error:
        raise GroundTruthError(f"{safe(file.name)}: {error}") from error
    return dict(sorted(texts.items()))


def check_sheet(sheet: Sheet) -> None:
    """Raise a GroundTruthError if the references leave a metric undefined.

    AUROC is, where all cases are of one class.
    """
    rules = sheet.rules
    if rules.worst is None:
        rules = replace(rules, worst=0.0)
    for column, value in answer_values(rules, sheet.rows).items():
        if math.isnan(value):
            title = metric_named(column).title
            problem = f"{title} of {rules.name} is undefined for these references"
            raise GroundTruthError(f"{safe(sheet.file.name)}: {problem}")


def check_cases(sheets: Sequence[Sheet], cases: Collection[str]) -> None:
    """Raise a GroundTruthError if an answer is of a case without a label map.

    Without any label map, answers are scored alone.
    """
    for sheet in sheets if cases else ():
        strangers = [case for case in sheet.cases if case not in cases]
        if strangers and len(sheet.rules.case) == 1:
            problem = f"no label map is called {listing(strangers)}"
            raise GroundTruthError(f"{safe(sheet.file.name)}: {problem}")


def _place(row: TableRow, case: str, text: str) -> str:
    return f"{row.place} ({safe(case)}: {safe(text) or 'nothing'})"


# --- The submission -----------------------------------------------------------------


def _submitted_answers(
    rules: AnswerRules,
    files: Sequence[Path],
    cases: Collection[str] | None,
    read: ReadTable,
    unasked_tables: Sequence[str],
) -> _Answers:
    """The answers in the file of a submission; `cases` are those that are known."""
    answers = _Answers()
    try:
        # The platform calls JSON that was submitted by itself predictions.csv.
        suffix = Path(rules.file).suffix
        rows = read(_submitted_file(rules, files, unasked_tables), suffix=suffix)
        problems_by_reason: dict[str, list[str]] = {}
        for row in rows_that_count(rules, rules.prediction, rows):
            reason = _add_row(answers, row, rules, cases)
            if reason:
                place = _place(row, row.cells[rules.case[0]], _text(row, rules))
                problems_by_reason.setdefault(reason, []).append(place)
    except ValueError as error:
        columns = [*rules.case, *rules.prediction]
        answers.problems.append(AnswerFileError(rules.file, str(error), columns))
        answers.reasons = dict.fromkeys(cases or (), str(error))
        return answers
    answers.problems += _case_problems(answers, rules, cases)
    for reason, places in problems_by_reason.items():
        problem = f"{listing(places)}: {reason}"
        answers.problems.append(
            AnswerValueError(rules.file, problem, rules.name, rules.kind)
        )
    return answers


def _other_tables(
    predictions: Path, challenge: Challenge, files: Mapping[str, Sequence[Path]]
) -> list[str]:
    """Names of files that nobody asked for, if one that was asked for is missing."""
    if all(files[rules.file] for rules in challenge.answers):
        return []
    names = [path.name for path in walk(predictions, follow_links=False)]
    expected = {*challenge.answer_files, INPUTS_FILE_NAME, JOBS_FILE_NAME}
    return [name for name in names if name not in expected and name[0] != "."]


def _submitted_file(
    rules: AnswerRules, files: Sequence[Path], unasked_tables: Sequence[str]
) -> Path:
    if len(files) > 1:
        folders = listing(f"{path.parent.name}/" for path in files)
        raise ValueError(f"{len(files)} files are called so, in {folders}")
    if not files:
        endings = (Path(rules.file).suffix, ".xlsx", ".xls", ".txt")
        tables = [name for name in unasked_tables if name.lower().endswith(endings)]
        hint = f"; found {listing(tables)}: save it as {rules.file}" if tables else ""
        raise ValueError(f"it is missing{hint}")
    return files[0]


def _text(row: TableRow, rules: AnswerRules) -> str:
    return cells_text([row.cells[column] for column in rules.prediction])


def _add_row(
    answers: _Answers,
    row: TableRow,
    rules: AnswerRules,
    cases: Collection[str] | None,
) -> str:
    """Add the answer of a row; return why it is not one that the kind allows."""
    case = case_of_row(rules, row)
    if cases is not None and case not in cases:
        case = case.removesuffix(CHANNEL)
    if cases is not None and case not in cases:
        answers.strangers.append(case)
        return ""
    if case in answers.places:
        answers.duplicates[case] = f"{answers.places[case]} and {row.place}"
        answers.reasons[case] = "two answers for one case"
        return ""
    answers.places[case] = row.place
    answers.texts[case] = _text(row, rules)
    try:
        prediction_value(answers.texts[case], rules)
    except ValueError as error:
        answers.reasons[case] = str(error)
        return str(error)
    return ""


def _case_problems(
    answers: _Answers, rules: AnswerRules, cases: Collection[str] | None
) -> Iterator[SubmissionError]:
    """The cases with two answers, names that no case has, and cases without answer."""
    if answers.duplicates:
        places = answers.duplicates.items()
        duplicates = listing(f"{case} ({place})" for case, place in places)
        problem = f"two answers to {rules.name} for case {duplicates}"
        yield AnswerCasesError(rules.file, problem)
    missing = [case for case in cases or () if case not in answers.places]
    answers.reasons.update(dict.fromkeys(missing, MISSING))
    if answers.strangers:
        yield AnswerCasesError(rules.file, _strangers_text(answers.strangers, missing))
    if missing:
        share = f"{len(missing)} of {count(len(cases or ()), 'answer')}"
        verb = "is" if len(missing) == 1 else "are"
        problem = f"{share} to {rules.name} {verb} missing: {listing(missing)}"
        yield AnswerCasesError(rules.file, problem)


def _strangers_text(strangers: Sequence[str], missing: Sequence[str]) -> str:
    """Names that no case has; of a single one, the missing case that may be meant."""
    text = f"no case has this name: {listing(strangers)}"
    if len(strangers) == 1 and missing:
        text += nearest(strangers[0], missing)
    return text


def distinct_problems(
    problems: Iterable[SubmissionError],
) -> tuple[SubmissionError, ...]:
    """The problems of all answers; one of a file of several answers is told once."""
    by_text: dict[str, SubmissionError] = {}
    for problem in problems:
        by_text.setdefault(str(problem), problem)
    return tuple(by_text.values())


def check_answers(
    predictions: Path, challenge: Challenge, cases: Collection[str] | None
) -> tuple[tuple[SubmissionError, ...], list[str]]:
    """Look at answers whose references are not at hand; images may tell the cases.

    Returned are all problems, and a line for each ``[[answers]]`` that says how many
    answers there are.
    """
    read = _reader(is_real=True)
    files = submitted_answer_files(predictions, challenge)
    unasked_tables = _other_tables(predictions, challenge, files)
    problems: list[SubmissionError] = []
    lines = []
    for rules in challenge.answers:
        # Questions have names of several columns, which images do not tell.
        known_cases = cases if len(rules.case) == 1 else None
        answers = _submitted_answers(
            rules, files[rules.file], known_cases, read, unasked_tables
        )
        problems += answers.problems
        lines.append(_answers_line(rules, len(answers.texts)))
    return distinct_problems(problems), lines


# --- Scores -------------------------------------------------------------------------


def score_sheet(sheet: Sheet) -> AnswerScore:
    """The values of the metrics of one ``[[answers]]``.

    A GroundTruthError is raised if the references leave a metric undefined, and a
    SubmissionError if a missing answer has no worst value to count as.
    """
    has_missing = any(row.problem for row in sheet.rows)
    if has_missing and KINDS[sheet.rules.kind].needs_worst:
        if sheet.rules.worst is None:
            raise sheet.problems[0]
    values = answer_values(sheet.rules, sheet.rows)
    if any(map(math.isnan, values.values())):
        check_sheet(sheet)
    return AnswerScore(name=sheet.rules.name, by_metric=values, rows=sheet.rows)


def low_answers(sheets: Sequence[Sheet], absent: Collection[str]) -> list[LowScores]:
    """The answers that count as the worst ones, by the reason.

    Cases in `absent` are known to have none.
    """
    low_scores = []
    for sheet in sheets:
        cases_by_reason: dict[str, list[str]] = {}
        for row in sheet.rows:
            if row.problem and row.case not in absent:
                cases_by_reason.setdefault(row.problem, []).append(row.case)
        for reason, cases in cases_by_reason.items():
            share = f"{len(cases)} of {count(len(sheet.rows), 'answer')}"
            verb = "counts" if len(cases) == 1 else "count"
            line = f"{share} to {sheet.rules.name} {verb} as wrong: {reason}"
            line = f"{line} ({listing(cases)})"
            low_scores.append(LowScores(reason=line, cases=tuple(cases)))
    return low_scores
