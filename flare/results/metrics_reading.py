"""Reads metrics.json, whichever program has written it, with reasons."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flare.challenge.formats import CASE, case_of
from flare.challenge.metrics import SCORES, metric_of
from flare.common.files import csv_text, json_at, read_regular, write_whole
from flare.common.text import listing, safe, why
from flare.results.csv_rows import COLUMNS, value_problem
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_json import METRICS_JSON, find_free_cases
from flare.results.scores import FreeCases, LowScores

if TYPE_CHECKING:
    import pandas as pd


_BAD = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFile:
    """What a metrics.json holds."""

    content: Mapping[str, Any]
    """All of it, as JSON has it."""
    cases: tuple[str, ...]
    """In the order of their names."""
    values: Mapping[tuple[str, str], float]
    """By case and metric; all DSC and NSD, and those metrics that were asked for."""
    failed: Mapping[str, str]
    """Why a case was not scored."""
    evaluation: Evaluation
    aggregates: Mapping[str, float]
    """Such as ``dsc_mean``, as the evaluation has written them."""
    free_cases: tuple[FreeCases, ...]
    """Of each organ whose absence is reported."""
    prediction_files: Mapping[str, str]
    """By case; one without a prediction is not there."""
    low_scores: tuple[LowScores, ...]
    """Why cases score little or nothing, as the evaluation has said it."""
    warnings: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]
    """What is said of how the scores were made, in the order of the file, without the
    rules one by one: their digest is there."""


def read_evaluation(
    file: Path,
    metrics: Iterable[str] = (),
    refusal: type[MetricsFileError | RankingError] = MetricsFileError,
) -> EvaluationFile:
    """Read the metrics.json of an evaluation.

    Parameters
    ----------
    file : Path
        A metrics.json.
    metrics : iterable of str
        Those that are read besides DSC and NSD, if they are there.
    refusal : type
        The error that is raised.

    Raises
    ------
    MetricsFileError or RankingError
        If it is not a metrics.json, or a value cannot be one of a metric.
    """
    try:
        return _evaluation_file(_object(file, float), file, metrics)
    except (MetricsFileError, RankingError) as error:
        raise refusal(str(file), error.problem) from error
    except _BAD as error:
        problem = "it is no metrics.json that an evaluation has written"
        raise refusal(str(file), problem) from error


def _evaluation_file(
    content: dict[str, Any], file: Path, metrics: Iterable[str]
) -> EvaluationFile:
    """What a metrics.json holds, as its content says."""
    by_case, names = content["case"], case_names(content)
    values = {
        (names[n], metric): _score(value, metric, file, names[n])
        for metric in (*metrics, *filter(metric_of, by_case))
        for n, value in by_case.get(metric, {}).items()
        if value is not None
    }
    if not names:
        raise RankingError(str(file), "this team has no case")
    cases = sorted(names.values())
    twice = [case for case, number in Counter(cases).items() if number > 1]
    if twice:
        raise RankingError(str(file), f"{listing(twice)}: there twice")
    failed = {case_of(c): str(why) for c, why in content.get("failed", {}).items()}
    check_known_cases(file, failed, cases)
    aggregates = content.get("aggregates", {})
    return EvaluationFile(
        content=content,
        cases=tuple(cases),
        values=values,
        failed=failed,
        evaluation=_evaluation(content["evaluation"]),
        aggregates={
            str(name): float(value)
            for name, value in aggregates.items()
            if isinstance(value, int | float) and math.isfinite(value)
        },
        free_cases=find_free_cases(aggregates),
        prediction_files={
            names[n]: str(name)
            for n, name in by_case.get("alg_fname", {}).items()
            if name and n in names
        },
        low_scores=tuple(
            LowScores(reason=str(low["reason"]), cases=tuple(map(str, low["cases"])))
            for low in content.get("low_scores", ())
        ),
        warnings=tuple(map(str, content.get("warnings", ()))),
        provenance=tuple(
            (str(key).replace("_", " "), _text(value))
            for key, value in content["evaluation"].items()
            if key != "rules"
        ),
    )


def _evaluation(told: Mapping[str, Any]) -> Evaluation:
    """What is told of how scores were made; what is of another type is not told."""
    tables = ("rules", "options", "names")
    found: dict[str, Any] = {
        key: value if key in tables else str(value)
        for key, value in told.items()
        if key in Evaluation.__slots__
        and value is not None
        and (key not in tables or isinstance(value, dict))
    }
    return Evaluation(**found)


def case_names(content: Mapping[str, Any]) -> dict[str, str]:
    """The names of the cases of a metrics.json, by their numbers."""
    pattern = content["evaluation"].get("names", {}).get("reference", CASE)
    names = content["case"]["gt_fname"]
    return {n: case_of(str(name), str(pattern)) for n, name in names.items()}


def check_known_cases(file: Path, found: Iterable[str], known: Iterable[str]) -> None:
    """Refuse cases of a file that metrics.json does not have.

    Raises
    ------
    RankingError
        If there are such cases.
    """
    unknown = sorted(set(found) - set(known))
    if unknown:
        problem = f"{listing(unknown)}: metrics.json has no such case"
        raise RankingError(str(file), problem)


def _score(value: object, metric: str, file: Path, case: str) -> float:
    """A score of metrics.json."""
    # In Python, true is the number 1.
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = f"{safe(case)}: {metric} is {safe(json.dumps(value))}, no number"
        raise RankingError(str(file), problem)
    if found := value_problem(float(value), metric):
        raise RankingError(str(file), f"{safe(case)}: {found}")
    return float(value)


def read_means(file: Path) -> tuple[float | None, ...]:
    """The mean DSC and NSD that a metrics.json has; None, whatever is wrong with it."""
    found = [json_at(file, "aggregates", f"{name}_mean") for name in SCORES]
    try:
        return tuple(map(float, found))
    except (TypeError, ValueError):
        return (None,) * len(SCORES)


def read_object(file: Path) -> dict[str, Any]:
    """Everything that a metrics.json holds, as the platform reads it.

    Raises
    ------
    MetricsFileError
        If the platform would not accept it.
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
    """A value for people."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key} {_text(own)}" for key, own in value.items())
        return pairs or "none"
    return value if isinstance(value, str) else json.dumps(value)


def read_metrics(file: str | Path) -> pd.DataFrame:
    """What a submission scores, as `flare.Results.to_frame` gives it.

    Parameters
    ----------
    file : str or Path
        A metrics.json, as ``flare evaluate`` and ``flare score`` write it.

    Returns
    -------
    DataFrame
        By case: a column for each metric, and ``failure``, which says why a case was
        not scored, and got the worst value instead; it is empty for all others.

    Raises
    ------
    RankingError
        If the file cannot be read.
    """
    import pandas as pd

    scores = read_evaluation(Path(file), refusal=RankingError)
    columns: dict[str, dict[str, object]] = {}
    for (case, metric), value in scores.values.items():  # noqa: PD011  no table yet
        columns.setdefault(metric, {})[case] = value
    columns["failure"] = {case: scores.failed.get(case, "") for case in scores.cases}
    return pd.DataFrame(columns, index=pd.Index(scores.cases, name="case"))


def write_scores(file: Path, teams: Iterable[Path]) -> None:
    """Write a row for each team, case and metric.

    A case that got the worst value, because it was missing or could not be used, has
    an empty value: it is ranked as a missing result, as from metrics.json.

    Parameters
    ----------
    file : Path
        To be written, whole or not at all.
    teams : iterable of Path
        Their folders, each with a metrics.json, in the order of the rows.

    Raises
    ------
    OutputError
        If it cannot be written.
    RankingError
        If a metrics.json cannot be read.
    """
    rows: list[tuple[str, str, str, object]] = []
    for folder in teams:
        scores = read_evaluation(folder / METRICS_JSON, refusal=RankingError)
        team = folder.resolve().name
        rows += (
            (team, case, metric, "" if case in scores.failed else value)
            for (case, metric), value in scores.values.items()  # noqa: PD011  no table
        )
    write_whole(file, csv_text(COLUMNS, rows))
