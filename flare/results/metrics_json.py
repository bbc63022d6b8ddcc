"""Aggregates case scores; the only module that knows the keys of metrics.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flare.common.errors import OutputError
from flare.common.text import printable, safe, why
from flare.results.scores import JOBS_NOTE, Results, statistics

FILE_NAME = "metrics.json"
_PART_NAME = f".{FILE_NAME}.part"


def metrics_json(results: Results) -> str:
    """The content of metrics.json; README says what its keys mean.

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
    if results.efficiency is not None:
        content["efficiency"] = results.efficiency
    if results.jobs:
        content["jobs"] = {"note": JOBS_NOTE, **results.jobs}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Values by the number of their case."""
    return {str(number): value for number, value in enumerate(values)}


def prepare_output(folder: Path) -> None:
    """Remove the metrics.json of an earlier run, and see that a new one can be written.

    Raises
    ------
    OutputError
        If not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE_NAME).unlink(missing_ok=True)
        (folder / _PART_NAME).write_bytes(b"")
        (folder / _PART_NAME).unlink()
    except OSError as error:
        raise _output_error(folder, error) from error


def write_metrics(results: Results, folder: str | Path) -> Path:
    """Write metrics.json, whole or not at all.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    folder = Path(folder)
    part, file = folder / _PART_NAME, folder / FILE_NAME
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
    return OutputError(f"{safe(folder)}: {FILE_NAME} cannot be written here ({reason})")


def results_table(results: Results, *, has_std: bool = True) -> str:
    """Mean, and standard deviation, of each organ, for people to read."""
    metrics = results.metrics
    names = ("mean", "std") if has_std else ("mean",)
    rest = [""] * (len(names) - 1)
    rows = [["", "DSC", *rest, "NSD", *rest], ["", *names, *names]]
    for metric in metrics:
        if metric.startswith("dsc"):
            numbers = [
                statistics(metrics[f"{kind}{metric[3:]}"]) for kind in ("dsc", "nsd")
            ]
            cells = [number[name] for number in numbers for name in names]
            texts = ["-" if cell is None else f"{cell:.4f}" for cell in cells]
            rows.append([metric[4:] or "mean of organs", *texts])
    width = max(len(row[0]) for row in rows)
    return "\n".join(
        f"{row[0]:<{width}}  " + "  ".join(f"{cell:>6}" for cell in row[1:])
        for row in rows
    )
