"""Reads the folder of results: all teams, and who else took part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import lexists
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.text import listing, safe, shell_word
from flare.ranking.completeness import RollCall, Waiting, find_copies, read_archives
from flare.ranking.provenance import Evaluated, Origin, check_origins
from flare.results.efficiency_csv import EFFICIENCY_CSV, MeasuredCase, read_by_case
from flare.results.errors import RankingError
from flare.results.measurement_json import (
    MEASUREMENT_JSON,
    Measurement,
    by_setting,
    read_measurement,
    unlike_hosts,
    unlike_settings,
)
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import Scores, check_known_cases, read_scores
from flare.results.refused_csv import read_refused
from flare.results.team_folder import finished_cases, is_measured, is_team
from flare.results.traces_csv import TRACES, area_above

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
    rows = read_by_case(file)
    for row in rows.values():
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AllResults:
    """Everything that the folders of all teams hold."""

    teams: tuple[TeamResults, ...] = ()
    notes: tuple[str, ...] = ()
    """What is odd about how teams were measured."""
    roll: RollCall = field(default_factory=RollCall)
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folders:
    """The folders in a folder of results."""

    scored: tuple[Path, ...]
    unscored: tuple[Path, ...]
    """Of teams without scores; one that was not measured yet is not there."""
    strays: tuple[str, ...]
    """Names of those that are no team's."""


def read_teams(
    path: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float],
    challenge: Challenge | str = "",
) -> AllResults:
    """Read the results of all teams.

    Parameters
    ----------
    path : Path
        The folder with a folder for each team.
    metrics : sequence of str
        What is read.
    trace_tolerances_mb : mapping of str to float
        As in `flare.ranking.table.read_results`.
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
    folders = _sort_folders(path, accepted, {found.team for found in refused})
    scores = {f.name: read_scores(f / METRICS_JSON, metrics) for f in folders.scored}
    waiting = _find_waiting(path, folders.unscored, scores)
    if not scores:
        return AllResults()
    origin, odd = check_origins(
        [
            Evaluated(
                team=folder.name,
                file=folder / METRICS_JSON,
                evaluation=scores[folder.name].evaluation,
                is_measured=is_measured(folder),
            )
            for folder in folders.scored
        ],
        challenge,
        path,
    )
    teams = tuple(
        read_team(folder, scores[folder.name], metrics, trace_tolerances_mb)
        for folder in folders.scored
    )
    measurements = {found.team: found.measurement for found in teams}
    roll = RollCall(
        refused=refused,
        replaced=replaced,
        waiting=waiting,
        unfinished=tuple(found.team for found in teams if found.unfinished),
        copies=find_copies(path, scores),
        warned=_warned(scores),
        strays=folders.strays,
        ranked=tuple(scores),
    )
    return AllResults(
        teams=teams,
        notes=(
            *_unfinished_notes(teams),
            *unlike_settings(measurements),
            *unlike_hosts(measurements),
            *odd,
        ),
        roll=roll,
        origin=_with_measurements(origin, measurements),
    )


def has_any(path: Path, metrics: Collection[str]) -> bool:
    """Whether any team was measured, or has such metrics beside its scores.

    Raises
    ------
    RankingError
        If a metrics.json cannot be read.
    """
    folders = _folders_in(path)
    if any(map(is_measured, folders)):
        return True
    files = (folder / METRICS_JSON for folder in folders)
    return any(
        metric in metrics
        for file in files
        if lexists(file)
        for _, metric in read_scores(file, metrics).values
    )


def _folders_in(path: Path) -> list[Path]:
    """The folders that may be a team's."""
    return sorted(p for p in path.iterdir() if p.is_dir() and p.name[0] != ".")


def _warned(scores: Mapping[str, Scores]) -> tuple[tuple[str, str], ...]:
    """What explains why teams score 0, in the words of the evaluation."""
    return tuple(
        (team, line) for team, own in scores.items() for line in own.low_scores
    )


def _check_parent(path: Path) -> None:
    """Refuse the folder of one team."""
    if is_team(path):
        problem = "it is the folder of one team"
        above = safe(path.resolve().parent.name or "/")
        remedy = f"Give the folder above it, {above}, which has one for each team."
        raise RankingError(str(path), problem, remedy)


def _sort_folders(
    path: Path, accepted: Sequence[str], refused: Collection[str]
) -> _Folders:
    """The folders of all teams, also of those whose archives alone are known."""
    scored, unscored, strays = [], [], []
    for folder in _folders_in(path):
        if lexists(folder / METRICS_JSON):
            scored.append(folder)
        elif folder.name in accepted or is_measured(folder):
            unscored.append(folder)
        elif folder.name not in refused:
            strays.append(folder.name)
    names = {folder.name for folder in (*scored, *unscored)}
    unscored += [path / team for team in accepted if team not in names]
    return _Folders(
        scored=tuple(scored), unscored=tuple(sorted(unscored)), strays=tuple(strays)
    )


def _find_waiting(
    path: Path, folders: Sequence[Path], scores: Mapping[str, Scores]
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
        done = finished_cases(folder)
        if cases and cases <= done:
            problem = "it is not there, though the team was measured to the end"
            remedy = (
                f"Score it: flare rescore {shell_word(path)} --ground-truth LABELS."
            )
            raise RankingError(str(folder / METRICS_JSON), problem, remedy)
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


# --- How teams were measured ------------------------------------------------------


def _unfinished_notes(teams: Iterable[TeamResults]) -> list[str]:
    """Teams that rank last on cases though they are not to blame."""
    return [
        f"{safe(found.team)} was not measured to the end ({listing(found.unfinished)}),"
        " and ranks last there, without its fault: measure it again before you publish"
        for found in teams
        if found.unfinished
    ]


def _with_measurements(
    origin: Origin, measurements: Mapping[str, Measurement]
) -> Origin:
    """What all results were made by, with how teams were measured."""
    settings = {team: own.settings for team, own in measurements.items()}
    made_with = {team: own.made_with for team, own in measurements.items()}
    measured = by_setting(settings) | by_setting(made_with)
    return replace(
        origin,
        measured={
            name: tuple(sorted(set(own.values()))) for name, own in measured.items()
        },
        teams_measured=sum(map(bool, settings.values())),
    )
