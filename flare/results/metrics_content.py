"""Says in metrics.json what a submission scores; ``metrics_json.py`` keeps the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flare.challenge.case_names import case_of
from flare.common.text import printable
from flare.results.scores import JOBS_NOTE, Results, statistics


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
        },
        "evaluation": asdict(results.provenance),
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
