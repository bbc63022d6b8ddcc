"""Says in metrics.json what a submission scores; ``metrics_json.py`` keeps the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flare.challenge.formats import case_of
from flare.common.text import printable
from flare.results.scores import (
    JOBS_NOTE,
    FreeCases,
    Provenance,
    Results,
    statistics,
)

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
