"""Makes the values of ranked metrics of answers, of all cases or of those drawn."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.answers.agreement import Rows
from flare.answers.values import answer_values, case_numbers, metric_value
from flare.challenge.answers import AnswerRules
from flare.challenge.reading import recorded_answers
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import safe
from flare.results.answers_csv import ANSWERS_CSV, AnswerRow, read_answers
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import EvaluationFile

EQUAL = 1e-9
"""How far the value that answers.csv gives may lie from that of metrics.json."""

_REMEDY = "Score the team anew, so that both files are of the same answers."

AnswersByName = Mapping[str, Sequence[AnswerRow]]
"""The rows of an answers.csv, by the name of the answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerColumn:
    """A metric of answers, and what each case of each team gives to it.

    For organisers alone: numbers of cases tell the references. No file of a ranking
    has them.
    """

    metric: str
    rules: AnswerRules
    cases: tuple[str, ...]
    """The cases of the answers, in their order."""
    numbers: Mapping[str, Rows]
    """The numbers of all cases, by team."""

    def value(self, team: str, places: npt.NDArray[np.int64] | None = None) -> float:
        """The value of a team on all cases, or on those at some places, as drawn.

        It is NaN where these cases leave it undefined.
        """
        rows = self.numbers[team]
        if places is not None:
            rows = rows[places]
        return metric_value(self.metric, self.rules, rows) if len(rows) else np.nan

    def drawn_values(
        self, teams: Sequence[str], draws: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """The values of teams on the cases of each draw, of shape (teams, draws)."""
        values = np.empty((len(teams), len(draws)))
        for number, team in enumerate(teams):
            values[number] = [self.value(team, places) for places in draws]
        return values

    def select(
        self, names: Mapping[str, str], withdrawn: Collection[str]
    ) -> AnswerColumn:
        """The column of some teams, by the names they are shown by, on fewer cases."""
        is_left = np.array([case not in withdrawn for case in self.cases], dtype=bool)
        return replace(
            self,
            cases=tuple(case for case in self.cases if case not in withdrawn),
            numbers={names[team]: self.numbers[team][is_left] for team in names},
        )


def read_answer_columns(
    answers: Mapping[Path, AnswersByName],
    challenge: Challenge,
    metrics: Sequence[RankedMetric],
) -> dict[str, AnswerColumn]:
    """The ranked metrics of answers, from the answers of each team's folder.

    A RankingError is raised if the answers of a team cannot be scored, or are not to
    the references of the other teams.
    """
    names = {rule.metric for rule in metrics}
    columns = {}
    for rules in challenge.answers:
        for metric, column in zip(rules.metrics, rules.columns, strict=True):
            if column in names:
                columns[column] = _column(answers, rules, metric)
    return columns


def _column(
    answers: Mapping[Path, AnswersByName], rules: AnswerRules, metric: str
) -> AnswerColumn:
    first, *_ = answers
    references: dict[str, str] = {}
    numbers = {}
    for folder, rows_by_name in answers.items():
        file = str(folder / ANSWERS_CSV)
        rows = sorted(rows_by_name.get(rules.name, ()), key=attrgetter("case"))
        if not rows:
            raise RankingError(file, f"it has no answer to {rules.name}", _REMEDY)
        team_references = {row.case: row.reference for row in rows}
        references = references or team_references
        if team_references != references:
            problem = f"its references of {rules.name} are not those of"
            raise RankingError(file, f"{problem} {safe(first.name)}", _REMEDY)
        try:
            numbers[folder.name] = case_numbers(metric, rules, rows)
        except (ValueError, TypeError, IndexError, RecursionError) as error:
            problem = f"an answer to {rules.name} is {safe(str(error))}"
            raise RankingError(file, problem, _REMEDY) from error
    return AnswerColumn(
        metric=metric, rules=rules, cases=tuple(references), numbers=numbers
    )


def check_values(
    columns: Mapping[str, AnswerColumn], scores: EvaluationFile, folder: Path
) -> None:
    """Raise a RankingError if answers.csv gives other values than a metrics.json."""
    decimals = str(scores.evaluation.options.get("decimals", ""))
    tolerance = EQUAL
    if decimals.isdecimal():
        tolerance += 0.5 / 10 ** int(decimals)
    for name, column in columns.items():
        if name not in scores.answers:
            problem = f"it has no {name}, which is ranked"
            raise RankingError(str(folder / METRICS_JSON), problem, _REMEDY)
        recorded, value = scores.answers[name], column.value(folder.name)
        if not abs(value - recorded) <= tolerance:
            problem = f"it gives {name} {value:.10g}, {METRICS_JSON} has"
            file = str(folder / ANSWERS_CSV)
            raise RankingError(file, f"{problem} {recorded:.10g}", _REMEDY)


def read_team_answers(folder: Path) -> AnswersByName:
    """The answers of a team; a RankingError is raised if it has no such file."""
    file = folder / ANSWERS_CSV
    if not file.exists():
        problem = "it is not there, and values of answers are ranked by it"
        remedy = f"Score the team with {ANSWERS_CSV}: flare score has it, flare rescore"
        remedy += " (of what was uploaded to a platform, unpacked as predictions), and"
        remedy += f" flare evaluate --answers {ANSWERS_CSV}."
        raise RankingError(str(file), problem, remedy)
    return read_answers(file)


# --- Of one evaluation ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSheet:
    """The answers to one ``[[answers]]``, for organisers."""

    rules: AnswerRules
    rows: Sequence[AnswerRow]

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases in the order of the rows."""
        return tuple(row.case for row in self.rows)

    @property
    def title(self) -> str:
        """The name of the answers in print."""
        return self.rules.name.replace("_", " ")


def read_sheets(source: Path, file: EvaluationFile) -> tuple[AnswerSheet, ...]:
    """Read answers.csv beside a metrics.json; nothing where it is not there.

    A MetricsFileError is raised if it cannot be read, or is not of this metrics.json.
    """
    answers_file = source.with_name(ANSWERS_CSV)
    if not file.answers or not answers_file.is_file():
        return ()
    try:
        rows_by_name = read_answers(answers_file)
        sheets = tuple(
            AnswerSheet(rules=rules, rows=rows_by_name.get(rules.name, ()))
            for rules in recorded_answers(file.evaluation.rules or {})
        )
        values: dict[str, float] = {}
        for sheet in sheets:
            values |= answer_values(sheet.rules, sheet.rows)
    except (RankingError, ValueError) as error:
        problem = "it is no table of answers that this evaluation has written"
        raise MetricsFileError(str(answers_file), problem) from error
    for column, value in file.answers.items():
        if not math.isclose(values.get(column, math.nan), value, abs_tol=EQUAL):
            problem = f"its {column} is not that of {source.name}"
            raise MetricsFileError(str(answers_file), problem)
    return sheets
