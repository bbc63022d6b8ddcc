"""Reads the folder of a team: its metrics.json, and its efficiency.csv if there is one.

Which cases there are, metrics.json says: it has all of them, also those that failed.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flare.challenge.cases import case_name
from flare.challenge.rules import Challenge
from flare.common.text import cell_text, listing, safe, shell_word
from flare.results.csv_rows import Row, check_value, is_score, number, read_rows
from flare.results.efficiency_csv import FILE_NAME as EFFICIENCY_FILE
from flare.results.efficiency_csv import SPREAD, RunStatus
from flare.results.errors import RankingError
from flare.results.measurement_json import RECORD
from flare.results.metrics_json import FILE_NAME
from flare.results.origins import Evaluated, Origin, check_origins
from flare.results.roll_call import (
    TOLD,
    Copies,
    RollCall,
    Waiting,
    find_equal,
    read_archives,
    read_refused,
)
from flare.results.traces_csv import area

TRACES = "traces"
"""Folder of a team with what was sampled of each case, CASE.csv."""

PREDICTIONS = "predictions"
"""Folder of a team with the label maps that its container has written."""

TRACE_COLUMNS = ("seconds", "gpu_memory_mb")
"""Columns of a trace that an area is taken of."""

TRACE_GAP_S = 1.0
TRACE_GAP_SHARE = 0.05
"""A trace may end so much, and by this part of the running time, before the run."""

COMPARED = (
    *("timeout_s", "memory", "shm_size", "processes", "gpu", "interval_s"),
    *("repeats", "images_sha256", "processor", "caches", "cpus", "runtime"),
    *("output_size", "disk_bytes", "max_gpu_memory"),
)
"""Settings of measurement.json that should be equal for all teams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """What metrics.json holds."""

    cases: tuple[str, ...]
    values: dict[tuple[str, str], float]
    """By case and metric: also DSC and NSD that are not ranked."""
    failed: dict[str, str]
    evaluation: Mapping[str, Any]
    warnings: tuple[str, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamFolders:
    """Everything that the folders of all teams hold."""

    rows: tuple[Row, ...]
    """A row for each team, case and metric that was asked for."""
    others: Mapping[tuple[str, str, str], float]
    """DSC and NSD that were not asked for, by team, case and metric."""
    notes: tuple[str, ...]
    """What is odd about how teams were measured."""
    roll: RollCall
    origin: Origin


def read_folders(
    path: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float],
    challenge: Challenge | str = "",
) -> TeamFolders:
    """Read the results of all teams.

    Parameters
    ----------
    path : Path
        The folder with a folder for each team.
    metrics : sequence of str
        What is read.
    trace_tolerances_mb : mapping of str to float
        As in `flare.ranking.teams.read_results`.
    challenge : Challenge or str
        By which the label maps should have been scored; empty for any.

    Raises
    ------
    RankingError
        If a file is missing, cannot be read, or contradicts another one.
    """
    _check_parent(path)
    refused = read_refused(path)
    accepted, replaced = read_archives(path, refused)
    folders, strays, unscored = [], [], []
    for folder in sorted(p for p in path.iterdir() if p.is_dir() and p.name[0] != "."):
        if (folder / FILE_NAME).exists():
            folders.append(folder)
        elif folder.name in accepted or _is_measured(folder):
            unscored.append(folder)
        elif folder.name not in {found.team for found in refused}:
            strays.append(folder.name)
    names = {folder.name for folder in (*folders, *unscored)}
    unscored += [path / team for team in accepted if team not in names]
    scores = {f.name: _read_metrics(f / FILE_NAME, metrics) for f in folders}
    waiting = _waiting(path, sorted(unscored), scores)
    notes: list[str] = []
    if not scores:
        return TeamFolders(
            rows=(), others={}, notes=(), roll=RollCall(), origin=Origin()
        )
    evaluated = [
        Evaluated(
            team=folder.name,
            file=folder / FILE_NAME,
            evaluation=scores[folder.name].evaluation,
            is_measured=_is_measured(folder),
        )
        for folder in folders
    ]
    origin, odd = check_origins(evaluated, challenge, path)
    settings: dict[str, dict[str, str]] = {}
    described: dict[str, dict[str, str]] = {}
    rows: list[Row] = []
    others: dict[tuple[str, str, str], float] = {}
    unfinished = []
    for folder in folders:
        team, own = folder.name, scores[folder.name]
        measured = _read_efficiency(
            folder / EFFICIENCY_FILE, metrics, trace_tolerances_mb, own.cases
        )
        noise_s = _read_record(folder / RECORD, team, settings, described)
        if _note_unfinished(team, own.cases, measured, notes):
            unfinished.append(team)
        # A run that failed has no results, not good ones: it was not slow, and needed
        # no memory.
        failed = own.failed | measured.failed
        for case in own.cases:
            for metric in metrics:
                key = (case, metric)
                is_measured = key not in own.values
                value = measured.values.get(key) if is_measured else own.values[key]
                is_empty = key in measured.values
                absent = "the value is empty" if is_empty else "there is no row"
                rows.append(
                    Row(
                        team=team,
                        case=case,
                        metric=metric,
                        value=None if case in failed else value,
                        reason=failed.get(case, absent),
                        where=team,
                        spread=measured.spreads.get(
                            key, noise_s if metric == "runtime_s" else None
                        ),
                    )
                )
        others |= {
            (team, case, metric): value
            for (case, metric), value in own.values.items()
            if metric not in metrics and case not in failed
        }
    for name, by_team in settings.items():
        if len(set(by_team.values())) > 1:
            found = ", ".join(f"{team} {value}" for team, value in by_team.items())
            notes.append(f"Teams were measured with different {name}: {safe(found)}")
    roll = RollCall(
        refused=refused,
        replaced=replaced,
        waiting=waiting,
        unfinished=tuple(unfinished),
        copies=_find_copies(path, scores),
        warned=tuple(
            (team, line)
            for team, own in scores.items()
            for line in own.warnings
            if TOLD.search(line)
        ),
        strays=tuple(strays),
        ranked=tuple(scores),
    )
    everything = {**settings, **described}
    return TeamFolders(
        rows=tuple(rows),
        others=others,
        notes=(*notes, *odd),
        roll=roll,
        origin=replace(
            origin,
            measured={
                name: tuple(sorted(set(by_team.values())))
                for name, by_team in everything.items()
            },
            teams_measured=len({t for found in settings.values() for t in found}),
        ),
    )


def _check_parent(path: Path) -> None:
    """Refuse the folder of one team."""
    if (path / FILE_NAME).exists() or _is_measured(path):
        problem = "it is the folder of one team"
        above = safe(path.resolve().parent.name or "/")
        remedy = f"Give the folder above it, {above}, which has one for each team."
        raise RankingError(str(path), problem, remedy)


def _is_measured(folder: Path) -> bool:
    """Whether the image of a team was run, at least in part."""
    return any((folder / name).exists() for name in (EFFICIENCY_FILE, RECORD))


def _waiting(
    path: Path, folders: Sequence[Path], scores: Mapping[str, _Scores]
) -> tuple[Waiting, ...]:
    """Teams without scores, if that is because they are not measured to the end.

    Raises
    ------
    RankingError
        If a team could be scored, or none is scored.
    """
    cases = {case for own in scores.values() for case in own.cases}
    found = []
    for folder in folders:
        done = _measured_cases(folder / EFFICIENCY_FILE)
        if cases and cases <= done:
            problem = "it is not there, though the team was measured to the end"
            remedy = (
                f"Score it: flare rescore {shell_word(path)} --ground-truth LABELS."
            )
            raise RankingError(str(folder / FILE_NAME), problem, remedy)
        found.append(Waiting(team=folder.name, measured=len(done)))
    if found and not scores:
        counts = listing(f"{w.team} ({w.measured} cases measured)" for w in found)
        problem = f"no team has a metrics.json: {counts}"
        remedy = (
            "Go on with flare measure --ground-truth LABELS, or score what there is:"
            f" flare rescore {shell_word(path)} --ground-truth LABELS."
        )
        raise RankingError(str(path), problem, remedy)
    return tuple(found)


def _measured_cases(file: Path) -> set[str]:
    """Cases that need not be run again."""
    if not file.exists():
        return set()
    return {
        _case(cell_text(row["case"]))
        for _, row in read_rows(file, ("case", "status"))
        if row["status"] != RunStatus.ENGINE_ERROR.value
    }


def _find_copies(path: Path, scores: Mapping[str, _Scores]) -> tuple[Copies, ...]:
    """Teams with the same predictions, or the same scores, on all cases."""
    values = {
        team: own.values
        for team, own in scores.items()
        if len(own.failed) < len(own.cases)
    }
    digests: defaultdict[str, list[str]] = defaultdict(list)
    for teams in _equal(values):
        for team in teams:
            digests[_digest(path / team / PREDICTIONS)].append(team)
    digests.pop("", None)
    copies = [
        Copies(teams=tuple(same), what="the same predictions, byte by byte")
        for same in digests.values()
        if len(same) > 1
    ]
    known = {found.teams for found in copies}
    copies += [found for found in find_equal(values) if found.teams not in known]
    return tuple(sorted(copies, key=lambda found: (found.teams, found.what)))


def _equal(values: Mapping[str, Mapping[Any, float]]) -> list[list[str]]:
    """Teams of which all values are equal, whose files are worth a look."""
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for team, own in values.items():
        groups[frozenset(own.items())].append(team)
    return [teams for teams in groups.values() if len(teams) > 1]


def _digest(folder: Path) -> str:
    """SHA-256 over all predictions of a team; empty if none is kept."""
    files = (
        sorted(f for f in folder.glob("*") if f.is_file()) if folder.is_dir() else []
    )
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            own = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.name} {own}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest() if files else ""


def _read_metrics(file: Path, metrics: Sequence[str]) -> _Scores:
    """Read the scores of a team."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        by_case = content["case"]
        names = {n: _case(str(name)) for n, name in by_case["gt_fname"].items()}
        found = {
            (names[n], metric): _score(value, metric, file, names[n])
            for metric in (*metrics, *filter(is_score, by_case))
            for n, value in by_case.get(metric, {}).items()
        }
        failed = {_case(c): str(why) for c, why in content.get("failed", {}).items()}
        evaluation = dict(content["evaluation"])
        warnings = tuple(map(str, content.get("warnings") or ()))
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
    return _Scores(
        cases=tuple(cases),
        values=values,
        failed=failed,
        evaluation=evaluation,
        warnings=warnings,
    )


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
) -> bool:
    """Note cases that rank last though the team is not to blame; whether there are."""
    absent = set(cases) - measured.cases if measured.is_there else set()
    unfinished = sorted({*absent, *measured.unfinished})
    if unfinished:
        notes.append(
            f"{safe(team)} was not measured to the end ({listing(unfinished)}), and"
            " ranks last there, without its fault: measure it again before you publish"
        )
    return bool(unfinished)


def _read_record(
    file: Path,
    team: str,
    settings: dict[str, dict[str, str]],
    described: dict[str, dict[str, str]],
) -> float | None:
    """Note how a team was measured, and how far empty containers lay apart, in s."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        for name in COMPARED:
            if name in content["settings"]:
                by_team = settings.setdefault(name, {})
                by_team[team] = str(content["settings"][name])
        for name, text in _session_texts(content["sessions"][-1]).items():
            described.setdefault(name, {})[team] = text
        cost = content["sessions"][-1]["engine_cost_s"]
        return float(cost["largest"]) - float(cost["smallest"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None  # it was measured by another program


def _session_texts(session: Mapping[str, Any]) -> dict[str, str]:
    """What a measurement was made with, in words of a paper."""
    gpu, engine = session.get("gpu"), session.get("engine")
    found = {}
    if "gpu" in session:
        found["device"] = "no GPU"
        if isinstance(gpu, dict):
            found["device"] = f"{gpu.get('name')} (driver {gpu.get('driver')})"
    if isinstance(engine, dict) and engine.get("version"):
        found["engine"] = str(engine["version"])
    return found


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
