"""Has all that a metrics.json tells people of one evaluation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.challenge.formats import case_of
from flare.results.errors import MetricsFileError
from flare.results.metrics_content import find_free_cases
from flare.results.metrics_json import NO_EVALUATION, Scores, read_evaluated
from flare.results.scores import FreeCases, LowScores


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFile:
    """What a metrics.json holds."""

    scores: Scores
    aggregates: Mapping[str, float]
    """Such as ``dsc_mean``, as the evaluation has written them."""
    free_cases: tuple[FreeCases, ...]
    """Of each organ whose absence is reported."""
    prediction_files: Mapping[str, str]
    """By case; one without a prediction is not there."""
    low_scores: tuple[LowScores, ...]
    warnings: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]
    """What is said of how the scores were made, in the order of the file."""


def is_evaluation(source: Path) -> bool:
    """Whether a path names the results of one evaluation, not those of all teams."""
    return source.suffix.lower() == ".json"


def read_evaluation(file: Path) -> EvaluationFile:
    """Read the metrics.json of an evaluation.

    Raises
    ------
    MetricsFileError
        If it is none, or a value is none that a score can have.
    """
    content, scores = read_evaluated(file)
    try:
        by_case = content["case"]
        cases = {n: case_of(str(name)) for n, name in by_case["gt_fname"].items()}
        return EvaluationFile(
            scores=scores,
            aggregates={
                str(name): float(value)
                for name, value in content.get("aggregates", {}).items()
                if isinstance(value, int | float) and math.isfinite(value)
            },
            free_cases=find_free_cases(content.get("aggregates", {})),
            prediction_files={
                cases[n]: str(name)
                for n, name in by_case.get("alg_fname", {}).items()
                if name and n in cases
            },
            low_scores=tuple(
                LowScores(
                    reason=str(low["reason"]), cases=tuple(map(str, low["cases"]))
                )
                for low in content.get("low_scores", ())
            ),
            warnings=tuple(map(str, content.get("warnings", ()))),
            provenance=tuple(_provenance(content["evaluation"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise MetricsFileError(str(file), NO_EVALUATION) from error


def _provenance(evaluation: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How the scores were made, without the rules one by one: their digest is there."""
    return [
        (str(key).replace("_", " "), _text(value))
        for key, value in evaluation.items()
        if key != "rules"
    ]


def _text(value: object) -> str:
    """A value for people."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key} {_text(own)}" for key, own in value.items())
        return pairs or "none"
    return value if isinstance(value, str) else json.dumps(value)
