"""Brings together what lies in the folder of a team.

Which cases there are, metrics.json says: it has all of them, also those that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import lexists
from pathlib import Path

from flare.common.text import safe
from flare.results.efficiency_csv import EFFICIENCY_CSV, MeasuredCase, read_cases
from flare.results.errors import RankingError
from flare.results.measurement_json import (
    MEASUREMENT_JSON,
    Measurement,
    read_measurement,
)
from flare.results.metrics_json import METRICS_JSON, Scores, check_known_cases
from flare.results.traces_csv import TRACES, area_above

PREDICTIONS = "predictions"
"""Folder of a team with the label maps that its container has written."""

CaseMetric = tuple[str, str]
"""A case, and a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a result is missing."""

    text: str
    kind: str
    """What many cases may share of the text, such as ``status failed``."""


NO_ROW = Reason(text="there is no row", kind="there is no row")
EMPTY = Reason(text="the value is empty", kind="the value is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResults:
    """What a team has achieved."""

    team: str
    cases: tuple[str, ...]
    ranked: Mapping[CaseMetric, float]
    """Values of the metrics that were asked for, as far as they are there."""
    reasons: Mapping[CaseMetric, Reason]
    """Why the others are not."""
    spreads: Mapping[CaseMetric, float]
    """How far repeated measurements of a value lay apart, or those of an empty
    container, where that is known."""
    others: Mapping[CaseMetric, float]
    """DSC and NSD that were not asked for."""
    unfinished: tuple[str, ...]
    """Cases that have no value though the team is not to blame."""
    measurement: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What efficiency.csv holds, by case and metric."""

    values: dict[CaseMetric, float | None] = field(default_factory=dict)
    """None where the cell is empty."""
    spreads: dict[CaseMetric, float] = field(default_factory=dict)
    failed: dict[str, Reason] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()


def is_measured(folder: Path) -> bool:
    """Whether the image of a team was run, at least in part."""
    return any(lexists(folder / name) for name in (EFFICIENCY_CSV, MEASUREMENT_JSON))


def is_team(folder: Path) -> bool:
    """Whether a folder is that of one team, not of all."""
    return lexists(folder / METRICS_JSON) or is_measured(folder)


def finished_cases(folder: Path) -> set[str]:
    """Cases of a team that need not be run again.

    Raises
    ------
    RankingError
        If efficiency.csv cannot be read.
    """
    file = folder / EFFICIENCY_CSV
    rows = read_cases(file) if lexists(file) else ()
    return {row.case for row in rows if not row.is_unfinished}


def read_team(
    folder: Path,
    scores: Scores,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float],
) -> TeamResults:
    """Bring together what a team has achieved.

    Parameters
    ----------
    folder : Path
        Of the team.
    scores : Scores
        What its metrics.json holds.
    metrics : sequence of str
        What is asked for.
    trace_tolerances_mb : mapping of str to float
        As in `flare.ranking.table.read_results`.

    Raises
    ------
    RankingError
        If a file cannot be read, or contradicts another one.
    """
    measured = _read_efficiency(
        folder / EFFICIENCY_CSV, metrics, trace_tolerances_mb, scores.cases
    )
    measurement = read_measurement(folder / MEASUREMENT_JSON)
    # A run that failed has no results, not good ones: it was not slow, and needed
    # no memory.
    failed = {c: Reason(text=why, kind=why) for c, why in scores.failed.items()}
    failed |= measured.failed
    values: dict[CaseMetric, float] = {}
    reasons: dict[CaseMetric, Reason] = {}
    for case in scores.cases:
        for metric in metrics:
            key = (case, metric)
            value = scores.values.get(key, measured.values.get(key))
            if value is None or case in failed:
                is_empty = key in measured.values
                reasons[key] = failed.get(case, EMPTY if is_empty else NO_ROW)
            else:
                values[key] = value
    noise: dict[CaseMetric, float] = {}
    if measurement.noise_s is not None and "runtime_s" in metrics:
        noise = {(case, "runtime_s"): measurement.noise_s for case in scores.cases}
    others = {
        (case, metric): value
        for (case, metric), value in scores.values.items()
        if metric not in metrics and case not in failed
    }
    return TeamResults(
        team=folder.name,
        cases=scores.cases,
        ranked=values,
        reasons=reasons,
        spreads=noise | measured.spreads,
        others=others,
        unfinished=measured.unfinished,
        measurement=measurement,
    )


def _read_efficiency(
    file: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float],
    cases: Sequence[str],
) -> _Measured:
    """What was measured of a team; nothing if nothing was."""
    if not lexists(file):
        return _Measured()
    values: dict[CaseMetric, float | None] = {}
    spreads: dict[CaseMetric, float] = {}
    rows: dict[str, MeasuredCase] = {}
    for row in read_cases(file):
        if row.case in rows:
            problem = f"{row.where}: {safe(row.case)} is there twice"
            raise RankingError(str(file), problem)
        rows[row.case] = row
        for metric in metrics if row.is_ok else ():
            key = (row.case, metric)
            if metric in trace_tolerances_mb:
                values[key] = _trace_area(row, trace_tolerances_mb[metric])
            elif metric in row.cells:
                values[key] = row.value(metric)
            spread = row.spread(metric)
            if spread is not None:
                spreads[key] = spread
    check_known_cases(file, rows, cases)
    return _Measured(
        values=values,
        spreads=spreads,
        failed={row.case: _failure(row) for row in rows.values() if not row.is_ok},
        unfinished=_unfinished(rows.values(), cases),
    )


def _failure(row: MeasuredCase) -> Reason:
    """Why a case has no values, as its row tells it."""
    kind = f"status {row.status or 'missing'}"
    return Reason(text=f"{kind}: {row.message}" if row.message else kind, kind=kind)


def _trace_area(row: MeasuredCase, tolerance_mb: float) -> float:
    """The area under the memory of a case above a tolerance."""
    runtime_s = row.number("runtime_s")
    trace = row.file.parent / TRACES / f"{row.case}.csv"
    return area_above(trace, tolerance_mb, runtime_s)


def _unfinished(rows: Iterable[MeasuredCase], cases: Sequence[str]) -> tuple[str, ...]:
    """Cases that rank last though the team is not to blame."""
    known = list(rows)
    absent = set(cases) - {row.case for row in known}
    return tuple(sorted({*absent, *(row.case for row in known if row.is_unfinished)}))
