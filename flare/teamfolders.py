"""Reads the folder of a team: its metrics.json, and its efficiency.csv if there is one.

Which cases there are, metrics.json says: it has all of them, also those that failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flare.efficiency import FILE_NAME as EFFICIENCY_FILE
from flare.efficiency import SPREAD, RunStatus
from flare.errors import RankingError
from flare.hostrecord import RECORD
from flare.labelmaps import case_name
from flare.names import cell_text, listing, safe
from flare.resultrows import Row, check_value, number, read_rows
from flare.results import FILE_NAME
from flare.traces import area

TRACES = "traces"
"""Folder of a team with what was sampled of each case, CASE.csv."""

TRACE_COLUMNS = ("seconds", "gpu_memory_mb")
"""Columns of a trace that an area is taken of."""

TRACE_GAP_S = 1.0
TRACE_GAP_SHARE = 0.05
"""A trace may end so much, and by this part of the running time, before the run."""

COMPARED = (
    *("timeout_s", "memory", "shm_size", "processes", "gpu", "interval_s"),
    *("repeats", "images_sha256", "processor", "caches", "cpus", "runtime"),
    *("output_size", "disk_bytes"),
)
"""Settings of measurement.json that should be equal for all teams."""

SHARED_PROVENANCE = ("challenge_sha256", "references_sha256", "version", "options")
"""What must be equal in the `evaluation` of all teams."""


@dataclass(slots=True)
class _Origin:
    """What results were made by, as far as it is known; equal for all teams."""

    challenge: str
    known: dict[str, str] = field(default_factory=dict)

    def check(self, file: Path, provenance: Mapping[str, Any]) -> None:
        """Refuse results of another origin."""
        found = {
            key: json.dumps(provenance.get(key), sort_keys=True).strip('"')
            for key in SHARED_PROVENANCE
        }
        for key, text in found.items():
            if self.known.setdefault(key, text) != text:
                other = safe(self.known[key])
                problem = f"its {key} is {safe(text)}, that of others {other}"
                raise RankingError(str(file), problem)
        challenge = str(provenance.get("challenge", self.challenge))
        if self.challenge and challenge != self.challenge:
            problem = (
                f"it was scored by {safe(challenge)}, not by {safe(self.challenge)}"
            )
            raise RankingError(str(file), problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """What metrics.json holds."""

    cases: tuple[str, ...]
    values: dict[tuple[str, str], float]
    """By case and metric."""
    failed: dict[str, str]


@dataclass(slots=True)
class _Measured:
    """What efficiency.csv holds, by case and metric."""

    values: dict[tuple[str, str], float | None] = field(default_factory=dict)
    spreads: dict[tuple[str, str], float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    is_there: bool = False
    """Whether the team was measured at all."""
    cases: set[str] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)
    """Cases that the team is not to blame for."""


def read_folders(
    path: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float],
    challenge: str = "",
    notes: list[str] | None = None,
) -> Iterator[Row]:
    """A row for each team, case and metric.

    Parameters
    ----------
    path : Path
        The folder with a folder for each team.
    metrics : sequence of str
        What is read.
    trace_tolerances_mb : mapping of str to float
        As in `flare.teams.read_results`.
    challenge : str
        By which the label maps should have been scored; empty for any.
    notes : list of str, optional
        Gets what is odd about how teams were measured.

    Raises
    ------
    RankingError
        If a file is missing, cannot be read, or contradicts another one.
    """
    origin = _Origin(challenge)
    notes = [] if notes is None else notes
    settings: dict[str, dict[str, str]] = {}
    for folder in sorted(p for p in path.iterdir() if p.is_dir() and p.name[0] != "."):
        scores = _read_metrics(folder / FILE_NAME, metrics, origin)
        measured = _read_efficiency(
            folder / EFFICIENCY_FILE, metrics, trace_tolerances_mb, scores.cases
        )
        noise_s = _read_record(folder / RECORD, folder.name, settings)
        _note_unfinished(folder.name, scores.cases, measured, notes)
        # A run that failed has no results, not good ones: it was not slow, and needed
        # no memory.
        failed = scores.failed | measured.failed
        for case in scores.cases:
            for metric in metrics:
                key = (case, metric)
                is_measured = key not in scores.values
                value = measured.values.get(key) if is_measured else scores.values[key]
                is_empty = key in measured.values
                absent = "the value is empty" if is_empty else "there is no row"
                yield Row(
                    team=folder.name,
                    case=case,
                    metric=metric,
                    value=None if case in failed else value,
                    reason=failed.get(case, absent),
                    where=folder.name,
                    spread=measured.spreads.get(
                        key, noise_s if metric == "runtime_s" else None
                    ),
                )
    for name, by_team in settings.items():
        if len(set(by_team.values())) > 1:
            found = ", ".join(f"{team} {value}" for team, value in by_team.items())
            notes.append(f"Teams were measured with different {name}: {safe(found)}")


def _read_metrics(file: Path, metrics: Sequence[str], origin: _Origin) -> _Scores:
    """Read the scores of a team."""
    if not file.exists():
        raise RankingError(str(file), "it is not there; every team needs one")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        by_case = content["case"]
        names = {n: _case(str(name)) for n, name in by_case["gt_fname"].items()}
        found = {
            (names[n], metric): _score(value, metric, file, names[n])
            for metric in metrics
            for n, value in by_case.get(metric, {}).items()
        }
        failed = {_case(c): str(why) for c, why in content.get("failed", {}).items()}
        origin.check(file, content["evaluation"])
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError),
        *(OverflowError, RecursionError),
    ) as error:
        problem = "it is no metrics.json that an evaluation has written"
        raise RankingError(str(file), problem) from error
    if not names:
        raise RankingError(str(file), "this team has no case")
    cases = sorted(names.values())
    twice = sorted({case for case in cases if cases.count(case) > 1})
    if twice:
        raise RankingError(str(file), f"{listing(twice)}: there twice")
    _check_cases(file, failed, cases)
    values = {key: value for key, value in found.items() if value is not None}
    return _Scores(cases=tuple(cases), values=values, failed=failed)


def _score(value: object, metric: str, file: Path, case: str) -> float | None:
    """A score of metrics.json; None if it is missing."""
    if value is None:
        return None
    # In Python, true is the number 1.
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = f"{safe(case)}: {metric} is {safe(json.dumps(value))}, no number"
        raise RankingError(str(file), problem)
    return check_value(float(value), metric, file, safe(case))


def _case(file_name: str) -> str:
    """The case of a reference file."""
    return case_name(Path(file_name)) or file_name


def _check_cases(file: Path, found: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse cases that the challenge does not have."""
    unknown = sorted(set(found) - set(known))
    if unknown:
        problem = f"{listing(unknown)}: metrics.json has no such case"
        raise RankingError(str(file), problem)


def _read_efficiency(
    file: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float],
    cases: Sequence[str],
) -> _Measured:
    """Read what was measured of a team; nothing if nothing was."""
    found = _Measured()
    found.is_there = file.exists()
    if not found.is_there:
        return found
    for where, row in read_rows(file, ("case", "status")):
        case = _case(cell_text(row["case"]))
        if case in found.cases:
            raise RankingError(str(file), f"{where}: {safe(case)} is there twice")
        found.cases.add(case)
        if row["status"] != RunStatus.OK.value:
            # Whatever stands in its other cells does not count.
            message = cell_text(row.get("message", ""))
            found.failed[case] = f"status {row['status'] or 'missing'}" + (
                f": {message}" if message else ""
            )
            if row["status"] == RunStatus.ENGINE_ERROR.value:
                found.unfinished.add(case)
            continue
        for metric in metrics:
            if metric in trace_tolerances_mb:
                runtime_s = number(row.get("runtime_s", ""), file, where)
                trace = file.parent / TRACES / f"{case}.csv"
                tolerance = trace_tolerances_mb[metric]
                found.values[case, metric] = _area_above(trace, tolerance, runtime_s)
            elif metric in row:
                value = number(row[metric], file, where)
                if value is not None:
                    check_value(value, metric, file, where)
                found.values[case, metric] = value
            spread = number(row.get(f"{metric}{SPREAD}", ""), file, where)
            if spread is not None:
                found.spreads[case, metric] = spread
    _check_cases(file, dict.fromkeys(found.cases), cases)
    return found


def _note_unfinished(
    team: str, cases: Sequence[str], measured: _Measured, notes: list[str]
) -> None:
    """Note cases that rank last though the team is not to blame."""
    absent = set(cases) - measured.cases if measured.is_there else set()
    unfinished = sorted({*absent, *measured.unfinished})
    if unfinished:
        notes.append(
            f"{safe(team)} was not measured to the end ({listing(unfinished)}), and"
            " ranks last there, without its fault: measure it again before you publish"
        )


def _read_record(
    file: Path, team: str, settings: dict[str, dict[str, str]]
) -> float | None:
    """Note how a team was measured, and how far empty containers lay apart, in s."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        for name in COMPARED:
            if name in content["settings"]:
                by_team = settings.setdefault(name, {})
                by_team[team] = str(content["settings"][name])
        cost = content["sessions"][-1]["engine_cost_s"]
        return float(cost["largest"]) - float(cost["smallest"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None  # it was measured by another program


def _area_above(file: Path, tolerance_mb: float, runtime_s: float | None) -> float:
    """Area under the memory above a tolerance, in MB s, by true time stamps."""
    points: list[tuple[float, float]] = []
    for where, row in read_rows(file, TRACE_COLUMNS):
        seconds, memory_mb = (number(row[c], file, where) for c in TRACE_COLUMNS)
        if seconds is None or memory_mb is None or (points and seconds < points[-1][0]):
            problem = f"{where}: expected seconds, in order, and the memory in MB"
            raise RankingError(str(file), problem)
        points.append((seconds, max(0.0, memory_mb - tolerance_mb)))
    # A sampler that has died has seen no memory: that is no small area.
    end = points[-1][0] if len(points) > 1 else 0.0
    allowed = TRACE_GAP_S + TRACE_GAP_SHARE * (runtime_s or 0.0)
    if len(points) < 2 or (runtime_s is not None and runtime_s - end > allowed):
        problem = f"{len(points)} samples, up to {end:.1f} s"
        if runtime_s is not None:
            problem += f" of {runtime_s:.1f} s"
        raise RankingError(str(file), f"{problem}: measure the case again")
    return area(points)
