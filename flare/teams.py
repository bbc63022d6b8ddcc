"""Reads what teams have achieved: a folder of results for each, or one long table."""

from __future__ import annotations

import csv
import json
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flare.errors import RankingError
from flare.labelmaps import case_name
from flare.names import listing, safe
from flare.results import FILE_NAME

EFFICIENCY_NAME = "efficiency.csv"

TRACES = "traces"
"""Folder of a team with what was sampled of each case, CASE.csv."""

TRACE_SECONDS = "seconds"
TRACE_MEMORY = "gpu_memory_mb"
"""Columns of a trace that an area is taken of."""

SPREAD = "_spread"
"""METRIC_spread is the largest less the smallest value of a case's repeats."""

WORKED = "ok"
"""Status in efficiency.csv of a case whose values count."""

COLUMNS = ("team", "case", "metric", "value")
"""Of a long table."""

SHARED_PROVENANCE = ("challenge_sha256", "references_sha256", "version")
"""What must be equal in the `evaluation` of all teams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A result that is not there."""

    team: str
    case: str
    metric: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """The results of all teams in all cases, by some metrics."""

    teams: tuple[str, ...]
    """In the order of their names."""
    cases: tuple[str, ...]
    """In the order of their names."""
    metrics: tuple[str, ...]
    values: Mapping[tuple[str, str, str], float]
    """By team, case and metric; finite; what is missing is not there."""
    reasons: Mapping[tuple[str, str, str], str]
    """Why a result is missing, where that is known."""
    spreads: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """How far repeated measurements of a value lay apart, where there were any."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """All results that are not there, in the order of teams, cases, metrics."""
        return tuple(
            Missing(
                team=team,
                case=case,
                metric=metric,
                reason=self.reasons.get((team, case, metric), "there is no row"),
            )
            for team in self.teams
            for case in self.cases
            for metric in self.metrics
            if (team, case, metric) not in self.values
        )


def read_results(
    path: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float] | None = None,
) -> ResultTable:
    """Read the results of all teams.

    Parameters
    ----------
    path : Path
        A folder with a folder for each team, or a table with the columns team, case,
        metric and value.
    metrics : sequence of str
        The metrics to read, such as ``dsc`` and ``runtime_s``.
    trace_tolerances_mb : mapping of str to float, optional
        By metric: instead of what efficiency.csv has, take the area under the part of
        the GPU memory in traces/CASE.csv that is above so many MB. A table has no
        traces; its areas have to be such ones.

    Raises
    ------
    RankingError
        If something contradicts itself; the message names rows or files.
    """
    if path.is_dir():
        rows = _read_folders(path, metrics, trace_tolerances_mb or {})
    elif path.is_file():
        rows = _read_table(path, metrics)
    else:
        raise RankingError(str(path), "there is no such file or folder")
    values: dict[tuple[str, str, str], float] = {}
    reasons: dict[tuple[str, str, str], str] = {}
    spreads: dict[tuple[str, str, str], float] = {}
    seen: dict[tuple[str, str, str], str] = {}
    for row in rows:
        key = (row.team, row.case, row.metric)
        if key in seen:
            problem = f"{seen[key]} and {row.where} are both {' '.join(map(safe, key))}"
            raise RankingError(str(path), problem)
        seen[key] = row.where
        if row.value is None:
            reasons[key] = row.reason
        else:
            values[key] = row.value
        if row.spread is not None:
            spreads[key] = row.spread
    teams, cases = (sorted({key[n] for key in seen}) for n in range(2))
    for kind, names in (("teams", teams), ("cases", cases)):
        _check_spelling(path, kind, names)
    if not teams:
        raise RankingError(str(path), "there is no result in it")
    absent = [m for m in metrics if not any(key[2] == m for key in values)]
    if absent:
        problem = (
            f"no team has a value of {listing(absent)}; leave it out with --metrics"
        )
        raise RankingError(str(path), problem)
    return ResultTable(
        teams=tuple(teams),
        cases=tuple(cases),
        metrics=tuple(metrics),
        values=values,
        reasons=reasons,
        spreads=spreads,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One result, and where it stands."""

    team: str
    case: str
    metric: str
    value: float | None
    reason: str
    where: str
    spread: float | None = None


def _check_spelling(path: Path, kind: str, names: Iterable[str]) -> None:
    """Refuse names that a person would take for one another."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold().strip()
        alike[plain].append(name)
    for same in alike.values():
        if len(same) > 1:
            problem = f"{kind} {listing(same)} differ only in spelling"
            raise RankingError(str(path), problem)


def _number(text: str, path: Path, where: str) -> float | None:
    """A finite number; None if there is none."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError as error:
        problem = f"{where}: {safe(text)} is no number"
        raise RankingError(str(path), problem) from error
    if not math.isfinite(value):
        raise RankingError(str(path), f"{where}: {safe(text)} is not finite")
    if value < 0:
        # Not a sentinel of some other program: it would be the best running time.
        problem = f"{where}: {safe(text)} is negative; leave a missing value empty"
        raise RankingError(str(path), problem)
    return value


# --- A long table -----------------------------------------------------------------


def _read_table(path: Path, metrics: Sequence[str]) -> Iterator[_Row]:
    """Read a CSV file with a row for each result."""
    for where, row in _rows(path, COLUMNS):
        metric = row["metric"]
        if metric not in metrics:
            problem = f"{where}: unknown metric {safe(metric)}, not {listing(metrics)}"
            raise RankingError(str(path), problem)
        yield _Row(
            team=row["team"],
            case=row["case"],
            metric=metric,
            value=_number(row["value"], path, where),
            reason="the value is empty",
            where=where,
        )


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a CSV file that has some columns, and where they stand."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            absent = [c for c in columns if c not in (table.fieldnames or [])]
            if absent:
                raise RankingError(str(path), f"it has no column {listing(absent)}")
            for row in table:
                where = f"line {table.line_num}"
                if None in row or None in row.values():
                    problem = f"{where} has another number of cells than the first line"
                    raise RankingError(str(path), problem)
                yield where, {key: value.strip() for key, value in row.items()}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = f"it cannot be read ({safe(str(error))})"
        raise RankingError(str(path), problem) from error


# --- A folder for each team -------------------------------------------------------


def _read_folders(
    path: Path, metrics: Sequence[str], trace_tolerances_mb: Mapping[str, float]
) -> Iterator[_Row]:
    """Read metrics.json and efficiency.csv of every team."""
    folders = sorted(p for p in path.iterdir() if p.is_dir() and p.name[0] != ".")
    made_by: dict[str, str] = {}
    for folder in folders:
        scores = _read_metrics(folder / FILE_NAME, metrics, made_by)
        measured = _read_efficiency(
            folder / EFFICIENCY_NAME, metrics, trace_tolerances_mb
        )
        if not scores.values and not scores.failed:
            raise RankingError(str(folder), "this team has no case")
        failed = {
            case: why
            for table in (scores, measured)
            for case, why in table.failed.items()
        }
        for table in (scores, measured):
            for (case, metric), value in table.values.items():
                # A run that failed has no results, not good ones: it was not slow, and
                # needed no memory.
                reason = failed.get(case, "the value is empty")
                yield _Row(
                    team=folder.name,
                    case=case,
                    metric=metric,
                    value=None if case in failed else value,
                    reason=reason,
                    where=f"{folder.name}/{table.name}",
                    spread=table.spreads.get((case, metric)),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TeamTable:
    """What one file of a team holds."""

    name: str
    values: dict[tuple[str, str], float | None]
    failed: dict[str, str]
    spreads: dict[tuple[str, str], float] = field(default_factory=dict)


def _read_metrics(
    file: Path, metrics: Sequence[str], made_by: dict[str, str]
) -> _TeamTable:
    """Read the scores of a team; `made_by` is compared with those before it."""
    if not file.exists():
        raise RankingError(str(file), "it is not there; every team needs one")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        by_case = content["case"]
        names = {n: _case(text) for n, text in by_case["gt_fname"].items()}
        values = {
            (names[number], metric): _score(value)
            for metric in metrics
            for number, value in by_case.get(metric, {}).items()
        }
        failed = {case: str(why) for case, why in content.get("failed", {}).items()}
        provenance = content["evaluation"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = "it is no metrics.json that an evaluation has written"
        raise RankingError(str(file), problem) from error
    for key in SHARED_PROVENANCE:
        found = str(provenance.get(key))
        if made_by.setdefault(key, found) != found:
            problem = f"its {key} is {safe(found)}, that of others {safe(made_by[key])}"
            raise RankingError(str(file), problem)
    return _TeamTable(name=FILE_NAME, values=values, failed=failed)


def _case(file_name: str) -> str:
    """The case of a reference file."""
    return case_name(Path(file_name)) or file_name


def _score(value: Any) -> float | None:
    """A value of metrics.json."""
    return float(value) if isinstance(value, int | float) else None


def _read_efficiency(
    file: Path, metrics: Sequence[str], trace_tolerances_mb: Mapping[str, float]
) -> _TeamTable:
    """Read what was measured of a team; nothing if nothing was."""
    values: dict[tuple[str, str], float | None] = {}
    failed: dict[str, str] = {}
    spreads: dict[tuple[str, str], float] = {}
    if file.exists():
        for where, row in _rows(file, ("case", "status")):
            case = row["case"]
            if any(key[0] == case for key in values) or case in failed:
                raise RankingError(str(file), f"{where}: {safe(case)} is there twice")
            if row["status"] != WORKED:
                failed[case] = f"status {row['status'] or 'missing'}"
            for metric in metrics:
                if metric in row:
                    values[case, metric] = _number(row[metric], file, where)
                if metric in trace_tolerances_mb and case not in failed:
                    trace = file.parent / TRACES / f"{case}.csv"
                    area = _area_above(trace, trace_tolerances_mb[metric])
                    values[case, metric] = area
                spread = _number(row.get(f"{metric}{SPREAD}", ""), file, where)
                if spread is not None:
                    spreads[case, metric] = spread
    return _TeamTable(
        name=EFFICIENCY_NAME, values=values, failed=failed, spreads=spreads
    )


def _area_above(file: Path, tolerance_mb: float) -> float:
    """Area under the memory above a tolerance, in MB s, by true time stamps."""
    times: list[float] = []
    heights: list[float] = []
    for where, row in _rows(file, (TRACE_SECONDS, TRACE_MEMORY)):
        seconds = _number(row[TRACE_SECONDS], file, where)
        memory_mb = _number(row[TRACE_MEMORY], file, where)
        if seconds is None or memory_mb is None or seconds < max(times, default=0):
            problem = f"{where}: expected seconds, in order, and the memory in MB"
            raise RankingError(str(file), problem)
        times.append(seconds)
        heights.append(max(0.0, memory_mb - tolerance_mb))
    return math.fsum(
        (times[n + 1] - times[n]) * (heights[n] + heights[n + 1]) / 2
        for n in range(len(times) - 1)
    )
