"""Reads metrics.json, whichever program has written it, with reasons."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flare.challenge.formats import CASE, case_of
from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.metrics import LEFT_OUT, lesions_in, metric_named, scored
from flare.challenge.organs import RESERVED_ENDINGS
from flare.common.files import csv_text, json_at, read_regular, write_whole
from flare.common.schema import build
from flare.common.text import listing, safe, why
from flare.results.csv_rows import COLUMNS
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_json import METRICS_JSON, find_free_cases
from flare.results.scores import FreeCases, LowScores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRecord:
    """How scores were made, as far as a metrics.json tells it; empty where not."""

    challenge: str = ""
    challenge_name: str = ""
    challenge_sha256: str = ""
    references_sha256: str = ""
    rules_sha256: str = ""
    rules_note: str = ""
    version: str = ""
    rules: Mapping[str, Any] | None = None
    """All that the scores depend on; None in files of versions that did not tell."""
    options: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)


_TABLES = ("rules", "options", "names")
"""The fields that are tables; all others are texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFile:
    """The content of a metrics.json."""

    content: Mapping[str, Any]
    """All of it, as JSON has it."""
    cases: tuple[str, ...]
    """All cases in the order of their names; none where only answers are scored."""
    answers: Mapping[str, float]
    """The values of answers by metric, such as ``auroc_diagnosis``."""
    values: Mapping[tuple[str, str], float | None]
    """Scores by case and metric: those of label maps, and the metrics of the call. None
    is a value that a rule of the challenge leaves out."""
    failed: Mapping[str, str]
    """Why a case was not scored."""
    evaluation: ScoringRecord
    aggregates: Mapping[str, float]
    """The means and the like, such as ``dsc_mean``, as the evaluation wrote them."""
    free_cases: tuple[FreeCases, ...]
    """The counts of each organ whose absence is reported."""
    prediction_files: Mapping[str, str]
    """The names by case; a case without a prediction has none."""
    low_scores: tuple[LowScores, ...]
    """Why cases score little or nothing, as the evaluation has said it."""
    warnings: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]
    """What is said of how the scores were made, in the order of the file, without the
    rules one by one: their digest is there."""

    @property
    def lesions(self) -> dict[str, str]:
        """The definition of each organ with lesions."""
        return lesions_in(self.evaluation.rules or {}, self.content["case"])

    def scores_of(self, case: str) -> dict[str, float | None]:
        """The scores of a case by metric; None is one that is left out."""
        return {m: value for (name, m), value in self.values.items() if name == case}


def read_evaluation(
    file: Path,
    metrics: Iterable[str] = (),
    refusal: type[MetricsFileError | RankingError] = MetricsFileError,
) -> EvaluationFile:
    """Read the metrics.json of an evaluation.

    Scores are read, and of the `metrics` those that are there; errors are of the kind
    `refusal`. A MetricsFileError or RankingError is raised if it is not a
    metrics.json, or a value cannot be one of a metric.
    """
    try:
        return _evaluation_file(_object(file, float), file, metrics)
    except (MetricsFileError, RankingError) as error:
        raise refusal(str(file), error.problem) from error
    except (ValueError, OverflowError, RecursionError) as error:
        problem = "it is no metrics.json that an evaluation has written"
        raise refusal(str(file), problem) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _MetricsKeys:
    """The keys of a metrics.json that are read here; a file may have further ones."""

    case: Mapping[str, Mapping[str, Any]]
    evaluation: Mapping[str, Any]
    failed: Mapping[str, Any] = field(default_factory=dict)
    aggregates: Mapping[str, Any] = field(default_factory=dict)
    low_scores: tuple[LowScores, ...] = ()
    warnings: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """How the files of a case are called, as far as cases get their names by it."""

    reference: str = CASE


@dataclass(frozen=True, slots=True, kw_only=True)
class _EvaluationKeys:
    """The key of `evaluation` without which no case has a name."""

    names: _Names = _Names()


def _evaluation_file(
    content: dict[str, Any], file: Path, metrics: Iterable[str]
) -> EvaluationFile:
    """Look at everything that is read of a metrics.json."""
    keys = build(_MetricsKeys, content, is_lenient=True)
    answers = _answer_values(file, keys.aggregates)
    names: Mapping[str, str] = {}
    cases: tuple[str, ...] = ()
    if keys.case or not answers:
        names = _names(keys)
        cases = _cases(file, names)
    evaluation = _evaluation(keys.evaluation)
    failed = {case_of(case): str(reason) for case, reason in keys.failed.items()}
    check_known_cases(file, failed, cases)
    prediction_files = keys.case.get("alg_fname", {})
    return EvaluationFile(
        content=content,
        cases=cases,
        answers=answers,
        values=_values(file, keys, names, metrics, evaluation),
        failed=failed,
        evaluation=evaluation,
        aggregates=_finite(keys.aggregates),
        free_cases=find_free_cases(keys.aggregates),
        prediction_files={
            names[number]: str(name)
            for number, name in prediction_files.items()
            if name and number in names
        },
        low_scores=keys.low_scores,
        warnings=tuple(map(str, keys.warnings)),
        provenance=tuple(
            (str(key).replace("_", " "), _text(value))
            for key, value in keys.evaluation.items()
            if key != "rules"
        ),
    )


def _finite(aggregates: Mapping[str, Any]) -> dict[str, float]:
    """The means and the like, without those that are null or no number."""
    return {
        str(name): float(value)
        for name, value in aggregates.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def _values(
    file: Path,
    keys: _MetricsKeys,
    names: Mapping[str, str],
    metrics: Iterable[str],
    evaluation: ScoringRecord,
) -> dict[tuple[str, str], float | None]:
    """All scores by case and metric.

    Null is one that a rule of the challenge leaves out, or of a metric of lesions. Any
    other null is a missing result: another program may have written it.
    """
    has_rule = LEFT_OUT in map(str, (evaluation.rules or {}).values())
    values: dict[tuple[str, str], float | None] = {}
    scores = (metric.name for metric in scored(keys.case))
    for metric in (*metrics, *scores):
        for number, value in keys.case.get(metric, {}).items():
            if number not in names:
                raise ValueError(f"{metric} has a case {number}, which has no name")
            case = names[number]
            if value is not None:
                values[case, metric] = _score(value, metric, file, case)
            elif has_rule or isinstance(metric_named(metric), LesionMetric):
                values[case, metric] = None
    return values


def _answer_values(file: Path, aggregates: Mapping[str, Any]) -> dict[str, float]:
    """The values of answers, each of which its metric can have.

    Statistics of other programs, such as ``f1_mean``, and counts are left out.
    """
    endings = tuple(f"_{ending}" for ending in RESERVED_ENDINGS)
    values = {}
    for metric in scored(aggregates):
        name = metric.name
        if not (metric.is_of_each_case or name.endswith(endings)):
            values[name] = _score(aggregates[name], name, file, name)
    return values


def _cases(file: Path, names: Mapping[str, str]) -> tuple[str, ...]:
    """Sort the cases by name; refuse a file without any, or with one of them twice."""
    if not names:
        raise RankingError(str(file), "this team has no case")
    cases = sorted(names.values())
    duplicates = [case for case, number in Counter(cases).items() if number > 1]
    if duplicates:
        raise RankingError(str(file), f"{listing(duplicates)}: there twice")
    return tuple(cases)


def _evaluation(content: Mapping[str, Any]) -> ScoringRecord:
    """How scores were made; what is not a table counts as not told."""
    values: dict[str, object] = {}
    for key, value in content.items():
        if key not in _TABLES:
            values[key] = "" if value is None else str(value)
        elif isinstance(value, dict):
            values[key] = value
    return build(ScoringRecord, values, is_lenient=True)


def case_names(content: Mapping[str, Any]) -> dict[str, str]:
    """The names of the cases of a metrics.json, by their numbers."""
    return _names(build(_MetricsKeys, content, is_lenient=True))


def _names(keys: _MetricsKeys) -> dict[str, str]:
    evaluation = build(_EvaluationKeys, keys.evaluation, is_lenient=True)
    if "gt_fname" not in keys.case:
        raise ValueError("case.gt_fname is missing")
    return {
        number: case_of(str(name), evaluation.names.reference)
        for number, name in keys.case["gt_fname"].items()
    }


def check_known_cases(
    file: Path, cases: Iterable[str], scored_cases: Iterable[str]
) -> None:
    """Raise a RankingError for cases of a file that metrics.json does not have."""
    unknown = sorted(set(cases) - set(scored_cases))
    if unknown:
        problem = f"{listing(unknown)}: metrics.json has no such case"
        raise RankingError(str(file), problem)


def _score(value: object, metric: str, file: Path, case: str) -> float:
    """The score as a number, unless no metric can have it."""
    # In Python, true is the number 1.
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = f"{safe(case)}: {metric} is {safe(json.dumps(value))}, no number"
        raise RankingError(str(file), problem)
    score = float(value)
    problem = metric_named(metric).problem(score)
    if problem:
        raise RankingError(str(file), f"{safe(case)}: {problem}")
    return score


def read_means(file: Path, names: Sequence[str]) -> dict[str, float | None]:
    """The means of scores, and values of answers, that a metrics.json has.

    None, whatever is wrong with it.
    """
    means: dict[str, float | None] = dict.fromkeys(names)
    for name in names:
        key = f"{name}_mean" if metric_named(name).is_of_each_case else name
        with suppress(TypeError, ValueError, OverflowError):
            means[name] = float(json_at(file, "aggregates", key))
    return means


def read_object(file: Path) -> dict[str, Any]:
    """Everything that a metrics.json holds, as the platform reads it.

    A MetricsFileError is raised if the platform would not accept it.
    """
    return _object(file, lambda _: None)  # the platform takes NaN for null


def _object(file: Path, constant: Callable[[str], Any]) -> dict[str, Any]:
    """The object that a file holds; NaN and infinities become what `constant` says."""
    try:
        content = json.loads(read_regular(file), parse_constant=constant)
    except OSError as error:
        problem = f"it cannot be read ({why(error)})"
        raise MetricsFileError(str(file), problem) from error
    except (ValueError, RecursionError) as error:
        raise MetricsFileError(str(file), "it is not JSON in UTF-8") from error
    if not isinstance(content, dict):
        raise MetricsFileError(str(file), "it is not a JSON object")
    return content


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{key} {_text(entry)}" for key, entry in value.items()]
        return ", ".join(pairs) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def read_metrics(file: str | Path) -> pd.DataFrame:
    """The scores of a metrics.json, as `flare.Results.to_frame` gives them.

    By case: a column for each metric, and ``failure``, which says why a case was not
    scored, and got the worst value instead; it is empty for all others. A RankingError
    is raised if the file cannot be read.
    """
    import pandas as pd

    scores = read_evaluation(Path(file), refusal=RankingError)
    columns: dict[str, dict[str, object]] = {}
    for (case, metric), value in scores.values.items():  # noqa: PD011  no table yet
        columns.setdefault(metric, {})[case] = math.nan if value is None else value
    columns["failure"] = {case: scores.failed.get(case, "") for case in scores.cases}
    return pd.DataFrame(columns, index=pd.Index(scores.cases, name="case"))


def write_scores(file: Path, teams: Iterable[Path]) -> None:
    """Write a row for each team, case and metric.

    A case that got the worst value, because it was missing or could not be used, has an
    empty value: it is ranked as a missing result, as from metrics.json; one that the
    challenge leaves out has a word of its own, whoever lacks it. Teams are
    folders, each with a metrics.json, in the order of the rows; the file is written
    whole or not at all. An OutputError is raised if it cannot be written. A
    RankingError is raised if a metrics.json cannot be read.
    """
    rows: list[tuple[str, str, str, object]] = []
    for folder in teams:
        scores = read_evaluation(folder / METRICS_JSON, refusal=RankingError)
        team = folder.resolve().name
        for (case, metric), value in scores.values.items():  # noqa: PD011  no table
            cell = "" if case in scores.failed else value
            rows.append((team, case, metric, LEFT_OUT if value is None else cell))
    write_whole(file, csv_text(COLUMNS, rows))
