"""Aggregates case scores; the only module that knows the keys of metrics.json."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flare.challenge.rulebook import Rule
from flare.challenge.rules import STATISTICS
from flare.common.errors import OutputError
from flare.common.text import printable, safe, why
from flare.evaluation.scoring.case import CaseScore

FILE_NAME = "metrics.json"
_PART_NAME = f".{FILE_NAME}.part"

JOBS_NOTE = (
    "As the platform says: on its own, shared hardware, with the start of the container"
    " and the loading of the model. Not to be ranked by."
)
"""What stands beside the running times of an algorithm's jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where results come from; equal for equal results, but for the machine."""

    challenge: str
    challenge_sha256: str
    """Of the bytes of its file."""
    rules: dict[str, Rule]
    """What scoring has read of it, see `flare.challenge.rulebook`."""
    rules_sha256: str
    version: str
    commit: str
    """Commit of the program's source, or "unknown"."""
    references: str
    """Which reference labels: "bundled", "tarball", or "given" on the command line."""
    references_sha256: str
    """Digest of the names and contents of all reference files."""
    cases: int
    options: dict[str, str]
    """Options that change a result, as they were set on the command line."""
    libraries: dict[str, str]
    """Versions."""
    machine: dict[str, str]
    """Of this run alone: Python and the operating system."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Results:
    """What a submission scores."""

    cases: tuple[CaseScore, ...]
    """In the order of their names."""
    warnings: tuple[str, ...]
    provenance: Provenance
    decimals: int | None = None
    """Decimals in metrics.json; None for full precision."""
    efficiency: dict[str, float] | None = None
    """Means of what was measured; None if nothing was."""
    jobs: dict[str, dict[str, float]] = field(default_factory=dict)
    """Running times of an algorithm's jobs on the platform, in s, by key and case."""

    def __repr__(self) -> str:
        """Return one short line: the rules, how many cases there are, and the means."""
        dsc, nsd = (statistics(self.metrics[name])["mean"] for name in ("dsc", "nsd"))
        return (
            f"<Results: {self.provenance.challenge}, {len(self.cases)} cases,"
            f" DSC {dsc:.4f}, NSD {nsd:.4f}>"
        )

    @property
    def metrics(self) -> dict[str, tuple[float, ...]]:
        """The values of all cases, by metric, in the order of metrics.json."""
        columns: dict[str, tuple[float, ...]] = {}
        for number, organ in enumerate(self.cases[0].organs):
            scores = [case.organs[number] for case in self.cases]
            columns[f"dsc_{organ.organ}"] = tuple(score.dsc for score in scores)
            columns[f"nsd_{organ.organ}"] = tuple(score.nsd for score in scores)
        columns["dsc"] = tuple(case.dsc for case in self.cases)
        columns["nsd"] = tuple(case.nsd for case in self.cases)
        return columns


def statistics(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, sample standard deviation (n - 1), minimum, maximum and median.

    Sums are exact (`math.fsum`), so that no order and no processor changes a digit.

    Examples
    --------
    >>> statistics([0.5, 1.0])["mean"]
    0.75
    >>> print(statistics([0.5])["std"])
    None
    """
    count = len(values)
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    middle = sorted(values)[(count - 1) // 2 : count // 2 + 1]
    found = (
        mean,
        math.sqrt(squares / (count - 1)) if count > 1 else None,
        min(values),
        max(values),
        math.fsum(middle) / len(middle),
    )
    return dict(zip(STATISTICS, found, strict=True))


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
