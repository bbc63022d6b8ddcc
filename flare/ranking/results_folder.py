"""Reads the folder of results: all teams, and who else took part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import lexists
from pathlib import Path

from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import listing, safe, shell_word
from flare.ranking.completeness import (
    RefusedTeam,
    RollCall,
    Waiting,
    find_copies,
    read_archives,
)
from flare.ranking.provenance import Evaluated, Origin, check_origins
from flare.results.efficiency_csv import EFFICIENCY_CSV, MeasuredCase, read_by_case
from flare.results.errors import RankingError
from flare.results.measurement_json import (
    MEASUREMENT_JSON,
    Measurement,
    all_settings,
    read_measurement,
    unlike_hosts,
    unlike_settings,
)
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import Scores, check_known_cases, read_scores
from flare.results.refused_csv import read_flags, read_refused
from flare.results.team_folder import finished_cases, is_measured, is_team
from flare.results.traces_csv import TRACES, area_above

CaseMetric = tuple[str, str]
"""A case, and a metric."""

Key = tuple[str, str, str]
"""A team, a case, and a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a result is missing."""

    text: str
    kind: str
    """What many cases may share of the text, such as ``status failed``."""


NO_ROW = Reason(text="there is no row", kind="there is no row")


EMPTY = Reason(text="the value is empty", kind="the value is empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a team has achieved on a case by a metric."""

    team: str
    case: str
    metric: str
    value: float | None
    """None if it is missing."""
    reason: Reason | None = None
    """Why it is missing, if it is."""
    spread: float | None = None
    """How far repeated measurements lay apart, or those of an empty container, if that
    is known."""

    @property
    def key(self) -> Key:
        """What identifies it."""
        return self.team, self.case, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResults:
    """What a team has achieved."""

    team: str
    results: tuple[CaseResult, ...]
    """By the metrics that were asked for, and by other scores that are there."""
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
    folder: Path, scores: Scores, metrics: Sequence[RankedMetric]
) -> TeamResults:
    """Bring together what a team has achieved.

    Parameters
    ----------
    folder : Path
        Of the team.
    scores : Scores
        What its metrics.json holds.
    metrics : sequence of RankedMetric
        What is asked for, as in `flare.ranking.table.read_results`.

    Raises
    ------
    RankingError
        If a file cannot be read, or contradicts another one.
    """
    measured = _read_efficiency(folder / EFFICIENCY_CSV, metrics, scores.cases)
    measurement = read_measurement(folder / MEASUREMENT_JSON)
    # A run that failed has no results, not good ones: it was not slow, and needed
    # no memory.
    failed = {c: Reason(text=why, kind=why) for c, why in scores.failed.items()}
    failed |= measured.failed
    asked = [rule.metric for rule in metrics]
    results = []
    for key in ((case, metric) for case in scores.cases for metric in asked):
        case, metric = key
        value = scores.values.get(key, measured.values.get(key))
        reason = failed.get(case)
        if reason is None and value is None:
            reason = EMPTY if key in measured.values else NO_ROW
        noise = measurement.noise_s if metric == "runtime_s" else None
        results.append(
            CaseResult(
                team=folder.name,
                case=case,
                metric=metric,
                value=None if reason else value,
                reason=reason,
                spread=measured.spreads.get(key, noise),
            )
        )
    results += [
        CaseResult(team=folder.name, case=case, metric=metric, value=value)
        for (case, metric), value in scores.values.items()
        if metric not in asked and case not in failed
    ]
    return TeamResults(
        team=folder.name,
        results=tuple(results),
        unfinished=measured.unfinished,
        measurement=measurement,
    )


def _read_efficiency(
    file: Path, metrics: Sequence[RankedMetric], cases: Sequence[str]
) -> _Measured:
    """What was measured of a team; nothing if nothing was."""
    if not lexists(file):
        return _Measured()
    values: dict[CaseMetric, float | None] = {}
    spreads: dict[CaseMetric, float] = {}
    rows = read_by_case(file)
    for row in rows.values():
        for rule in metrics if row.is_ok else ():
            key = (row.case, rule.metric)
            if rule.trace_tolerance_mb:
                trace = file.parent / TRACES / f"{row.case}.csv"
                runtime_s = row.number("runtime_s")
                values[key] = area_above(trace, rule.trace_tolerance_mb, runtime_s)
            elif rule.metric in row.cells:
                values[key] = row.value(rule.metric)
            spread = row.number(f"{rule.metric}_spread")
            if spread is not None:
                spreads[key] = spread
    unfinished = {row.case for row in rows.values() if row.is_unfinished}
    unfinished |= set(cases) - rows.keys()
    found = _Measured(
        values=values,
        spreads=spreads,
        failed={row.case: _failure(row) for row in rows.values() if not row.is_ok},
        unfinished=tuple(sorted(unfinished)),
    )
    check_known_cases(file, rows, cases)
    return found


def _failure(row: MeasuredCase) -> Reason:
    """Why a case has no values, as its row tells it."""
    kind = f"status {row.status or 'missing'}"
    return Reason(text=f"{kind}: {row.message}" if row.message else kind, kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllResults:
    """Everything that the folders of all teams hold."""

    teams: tuple[TeamResults, ...] = ()
    notes: tuple[str, ...] = ()
    """What is odd about how teams were measured."""
    warned: tuple[tuple[str, str], ...] = ()
    """Teams, and what was said of them when they were scored."""
    roll: RollCall = field(default_factory=RollCall)
    origin: Origin | None = None
    is_unmeasured: bool = False
    """Whether the folders tell that no team was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folders:
    """The folders in a folder of results."""

    scored: tuple[Path, ...]
    unscored: tuple[Path, ...]
    """Of teams without scores; one that was not measured yet is not there."""
    strays: tuple[str, ...]
    """Names of those that are no team's."""


def read_teams(
    path: Path, metrics: Sequence[RankedMetric], challenge: Challenge
) -> AllResults:
    """Read the results of all teams.

    Parameters
    ----------
    path : Path
        The folder with a folder for each team.
    metrics : sequence of RankedMetric
        What is read, as in `flare.ranking.table.read_results`.
    challenge : Challenge
        By which the label maps should have been scored.

    Raises
    ------
    RankingError
        If a file is missing, cannot be read, or contradicts another one.
    """
    _check_parent(path)
    refused = read_refused(path)
    accepted, replaced = read_archives(path, refused)
    folders = _sort_folders(path, accepted, {found.team for found in refused})
    asked = [rule.metric for rule in metrics]
    scores = {f.name: read_scores(f / METRICS_JSON, asked) for f in folders.scored}
    waiting = _find_waiting(path, folders.unscored, scores)
    if not scores:
        return AllResults()
    origin = check_origins(
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
        read_team(folder, scores[folder.name], metrics) for folder in folders.scored
    )
    measurements = {found.team: found.measurement for found in teams}
    roll = RollCall(
        refused=tuple(
            RefusedTeam(
                team=own.team,
                file=own.archive,
                reason=own.problem,
                is_ranked=own.team in scores,
            )
            for own in refused
        ),
        replaced=replaced,
        not_scored_yet=waiting,
        not_measured_to_the_end=tuple(own.team for own in teams if own.unfinished),
        equal_results=find_copies(path, scores),
        ignored=folders.strays,
    )
    return AllResults(
        teams=teams,
        warned=(*_warned(scores), *_flagged(path, scores)),
        notes=(
            *_ignored_notes(folders.strays),
            *_unfinished_notes(teams),
            *unlike_settings(measurements),
            *unlike_hosts(measurements),
        ),
        roll=roll,
        origin=replace(
            origin,
            measured=all_settings(measurements),
            teams_measured=sum(bool(own.settings) for own in measurements.values()),
        ),
        is_unmeasured=not any(map(is_measured, (*folders.scored, *folders.unscored))),
    )


def _warned(scores: Mapping[str, Scores]) -> tuple[tuple[str, str], ...]:
    """What explains why teams score 0, in the words of the evaluation."""
    return tuple(
        (team, line) for team, own in scores.items() for line in own.low_scores
    )


def _flagged(path: Path, scores: Mapping[str, Scores]) -> list[tuple[str, str]]:
    """What was found odd when the teams were scored."""
    return [(own.team, own.flag) for own in read_flags(path) if own.team in scores]


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
    for folder in sorted(p for p in path.iterdir() if p.is_dir() and p.name[0] != "."):
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
        found.append(Waiting(team=folder.name, cases_measured=len(done)))
    if found and not scores:
        counts = listing(f"{w.team} ({w.cases_measured} cases measured)" for w in found)
        problem = f"no team has a metrics.json: {counts}"
        remedy = (
            "Go on with flare measure --ground-truth LABELS, or score what there is:"
            f" flare rescore {shell_word(path)} --ground-truth LABELS."
        )
        raise RankingError(str(path), problem, remedy)
    return tuple(found)


# --- How teams were measured ------------------------------------------------------


def _ignored_notes(strays: Sequence[str]) -> list[str]:
    """Folders that are no team's."""
    text = f"Ignored, as there are no results in them: {listing(strays)}"
    return [text] if strays else []


def _unfinished_notes(teams: Iterable[TeamResults]) -> list[str]:
    """Teams that rank last on cases though they are not to blame."""
    return [
        f"{safe(found.team)} was not measured to the end ({listing(found.unfinished)}),"
        " and ranks last there, without its fault: measure it again before you publish"
        for found in teams
        if found.unfinished
    ]
