"""Keeps what a submission scores in metrics.json: written whole, read with reasons.

Few know its keys: ``metrics_content.py`` writes them, ``evaluation_file.py`` has what
is said besides scores, and the settings of a platform's phase have paths of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from flare.challenge.formats import case_of
from flare.challenge.metrics import metric_of
from flare.common.errors import OutputError
from flare.common.files import read_regular, write_whole
from flare.common.text import listing, safe, why
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_content import case_scores_json, metrics_json
from flare.results.scores import Results
from flare.results.values import check_value

METRICS_JSON = "metrics.json"
_PART_NAME = f".{METRICS_JSON}.part"
NO_EVALUATION = "it is no metrics.json that an evaluation has written"
_BAD = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)

MEANS = ("dsc", "nsd")
"""The metrics whose means tell a submission's scores in short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """How scores were made, as far as a metrics.json tells it; None where it does not.

    What another program has written may be anything.
    """

    challenge: Any = None
    challenge_sha256: Any = None
    references_sha256: Any = None
    rules: Any = None
    rules_sha256: Any = None
    rules_note: Any = None
    version: Any = None
    options: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What a metrics.json holds of each case."""

    cases: tuple[str, ...]
    """In the order of their names."""
    values: Mapping[tuple[str, str], float]
    """By case and metric; all DSC and NSD, and those metrics that were asked for."""
    failed: Mapping[str, str]
    """Why a case was not scored."""
    evaluation: Evaluation
    low_scores: tuple[str, ...]
    """Why cases score little or nothing, as the evaluation has said it."""


def prepare_output(folder: Path) -> None:
    """Remove the metrics.json of an earlier run, and see that a new one can be written.

    Raises
    ------
    OutputError
        If not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / METRICS_JSON).unlink(missing_ok=True)
        (folder / _PART_NAME).write_bytes(b"")
        (folder / _PART_NAME).unlink()
    except OSError as error:
        raise _output_error(folder, error) from error


def write_metrics(results: Results, folder: str | Path) -> Path:
    """Write metrics.json, whole or not at all.

    Parameters
    ----------
    results : Results
        What `flare.evaluate` returned.
    folder : str or Path
        To write to; made if it is not there.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    folder = Path(folder)
    part, file = folder / _PART_NAME, folder / METRICS_JSON
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(metrics_json(results), encoding="utf-8")
        part.replace(file)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise _output_error(folder, error) from error
    return file


def _output_error(folder: Path, error: OSError) -> OutputError:
    """Say why nothing can be written."""
    reason = why(error)
    return OutputError(
        f"{safe(folder)}: {METRICS_JSON} cannot be written here ({reason})"
    )


def write_case_scores(
    file: Path,
    scores: Mapping[str, Sequence[float]],
    reference_files: Sequence[str],
    evaluation: Mapping[str, Any],
    failed: Mapping[str, str],
) -> None:
    """Write the metrics.json of a team that was made up, whole or not at all.

    Parameters
    ----------
    file : Path
        To write to.
    scores : mapping of str to sequence of float
        By metric, a value for each case.
    reference_files : sequence of str
        Of the cases, in the same order; their predictions are called alike.
    evaluation, failed : mapping
        How the scores were made; by case, why it was not scored.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    write_whole(file, case_scores_json(scores, reference_files, evaluation, failed))


def read_scores(file: Path, metrics: Iterable[str]) -> Scores:
    """Read what each case scores.

    Parameters
    ----------
    file : Path
        A metrics.json.
    metrics : iterable of str
        Those that are read besides DSC and NSD, if they are there.

    Raises
    ------
    RankingError
        If it cannot be read, or a value is none that a metric can have.
    """
    try:
        content = json.loads(read_regular(file))
    except (OSError, ValueError, RecursionError) as error:
        raise RankingError(str(file), NO_EVALUATION) from error
    return _scores_of(content, file, metrics)


def read_evaluated(file: Path) -> tuple[dict[str, Any], Scores]:
    """Everything that a metrics.json holds, and what each case scores.

    Raises
    ------
    MetricsFileError
        If it cannot be read, or a value is none that a score can have.
    """
    content = _object(file, float)
    try:
        return content, _scores_of(content, file, ())
    except RankingError as error:
        raise MetricsFileError(str(file), error.problem) from error


def _scores_of(content: Any, file: Path, metrics: Iterable[str]) -> Scores:
    """What each case scores, as the content of a file says."""
    try:
        by_case = content["case"]
        names = {n: case_of(str(name)) for n, name in by_case["gt_fname"].items()}
        found = {
            (names[n], metric): _score(value, metric, file, names[n])
            for metric in (*metrics, *filter(metric_of, by_case))
            for n, value in by_case.get(metric, {}).items()
        }
        failed = {case_of(c): str(why) for c, why in content.get("failed", {}).items()}
        evaluation = dict(content["evaluation"])
        low_scores = tuple(str(low["reason"]) for low in content.get("low_scores", ()))
    except _BAD as error:
        raise RankingError(str(file), NO_EVALUATION) from error
    if not names:
        raise RankingError(str(file), "this team has no case")
    cases = sorted(names.values())
    twice = [case for case, number in Counter(cases).items() if number > 1]
    if twice:
        raise RankingError(str(file), f"{listing(twice)}: there twice")
    check_known_cases(file, failed, cases)
    return Scores(
        cases=tuple(cases),
        values={key: value for key, value in found.items() if value is not None},
        failed=failed,
        evaluation=Evaluation(
            **{field.name: evaluation.get(field.name) for field in fields(Evaluation)}
        ),
        low_scores=low_scores,
    )


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


def _score(value: object, metric: str, file: Path, case: str) -> float | None:
    """A score of metrics.json; None if it is missing."""
    if value is None:
        return None
    # In Python, true is the number 1.
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = f"{safe(case)}: {metric} is {safe(json.dumps(value))}, no number"
        raise RankingError(str(file), problem)
    return check_value(float(value), metric, file, safe(case))


def read_means(file: Path) -> tuple[float | None, ...]:
    """The mean DSC and NSD that a metrics.json has; None, whatever is wrong with it."""
    try:
        found = json.loads(read_regular(file))["aggregates"]
        return tuple(float(found[f"{name}_mean"]) for name in MEANS)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return (None,) * len(MEANS)


def read_options(file: Path) -> Any:
    """What a metrics.json says of the options of its evaluation; None if nothing."""
    try:
        return json.loads(read_regular(file))["evaluation"]["options"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


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


def evaluation_text(content: object, key: str) -> str:
    """What a metrics.json, as it was read, says of its evaluation; empty if nothing.

    Examples
    --------
    >>> evaluation_text({"evaluation": {"cases": 50}}, "cases")
    '50'
    >>> evaluation_text({}, "cases")
    ''
    """
    evaluation = content.get("evaluation") if isinstance(content, Mapping) else None
    return str(evaluation.get(key, "")) if isinstance(evaluation, Mapping) else ""
