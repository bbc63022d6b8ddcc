"""Keeps what a submission scores in metrics.json, written whole or not at all.

`metrics_reading.py` reads it; settings of a platform's phase have paths of its keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flare.challenge.formats import case_of
from flare.common.errors import OutputError
from flare.common.files import write_whole
from flare.common.text import printable, safe, why
from flare.results.scores import (
    JOBS_NOTE,
    FreeCases,
    Provenance,
    Results,
    statistics,
)

METRICS_JSON = "metrics.json"


_PART_NAME = f".{METRICS_JSON}.part"


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


FREE_CASES, LEFT_EMPTY = "_free_cases", "_free_left_empty"
"""What the keys of aggregates end in that count cases without an organ."""


def metrics_json(results: Results) -> str:
    """The content of metrics.json; its schema says what the keys mean.

    Raises
    ------
    ValueError
        If a value is not finite.
    """
    metrics = results.metrics

    def rounded(value: float) -> float:
        return value if results.decimals is None else round(value, results.decimals)

    content: dict[str, Any] = {
        "case": {
            **{
                metric: _numbered([rounded(value) for value in values])
                for metric, values in metrics.items()
            },
            "alg_fname": _numbered(
                [printable(c.prediction_file) for c in results.cases]
            ),
            "gt_fname": _numbered([printable(c.reference_file) for c in results.cases]),
        },
        "aggregates": {
            f"{metric}_{name}": None if value is None else rounded(value)
            for metric, values in metrics.items()
            for name, value in statistics(values).items()
        }
        | free_case_counts(results.free_cases),
        "evaluation": _evaluation(results.provenance),
        "failed": {case.case: case.failure for case in results.cases if case.failure},
        "warnings": list(results.warnings),
    }
    if results.low_scores:
        content["low_scores"] = [
            {"reason": found.reason, "cases": list(found.cases)}
            for found in results.low_scores
        ]
    if results.efficiency is not None:
        content["efficiency"] = results.efficiency
    if results.jobs:
        content["jobs"] = {"note": JOBS_NOTE, **results.jobs}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def free_case_counts(found: Sequence[FreeCases]) -> dict[str, int]:
    """Cases without an organ, and how many of them were left empty, by key.

    Examples
    --------
    >>> free_case_counts([FreeCases(organ="lesion", cases=5, left_empty=3)])
    {'lesion_free_cases': 5, 'lesion_free_left_empty': 3}
    """
    counts = {}
    for each in found:
        counts[f"{each.organ}{FREE_CASES}"] = each.cases
        counts[f"{each.organ}{LEFT_EMPTY}"] = each.left_empty
    return counts


def find_free_cases(aggregates: Mapping[str, Any]) -> tuple[FreeCases, ...]:
    """What the aggregates of a metrics.json tell of such cases."""
    return tuple(
        FreeCases(
            organ=organ,
            cases=int(value),
            left_empty=int(aggregates[f"{organ}{LEFT_EMPTY}"]),
        )
        for key, value in aggregates.items()
        if (organ := key.removesuffix(FREE_CASES)) != key
    )


def _evaluation(provenance: Provenance) -> dict[str, Any]:
    """Where the results come from; a note only where there is something to note."""
    content = asdict(provenance)
    if not provenance.rules_note:
        del content["rules_note"]
    return content


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Values by the number of their case."""
    return {str(number): value for number, value in enumerate(values)}


def case_scores_json(
    scores: Mapping[str, Sequence[float]],
    reference_files: Sequence[str],
    evaluation: Mapping[str, Any],
    failed: Mapping[str, str],
) -> str:
    """The content of a metrics.json that was made up, of the same form."""
    content: dict[str, Any] = {
        "case": {
            **{metric: _numbered(values) for metric, values in scores.items()},
            "alg_fname": _numbered(
                ["" if case_of(name) in failed else name for name in reference_files]
            ),
            "gt_fname": _numbered(reference_files),
        },
        "aggregates": {
            f"{metric}_{name}": value
            for metric, values in scores.items()
            for name, value in statistics(values).items()
        },
        "evaluation": evaluation,
        "failed": failed,
        "warnings": [],
    }
    return json.dumps(content, indent=2) + "\n"
