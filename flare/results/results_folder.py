"""Reads the folder of results: all teams, and who else took part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import lexists
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.text import listing, safe, shell_word
from flare.results.copies import find_copies
from flare.results.errors import RankingError
from flare.results.measurement_json import DEFAULTS
from flare.results.metrics_json import METRICS_JSON, Scores, read_scores
from flare.results.origins import Evaluated, Origin, check_origins
from flare.results.refused_csv import read_refused
from flare.results.roll_call import RollCall, Waiting, read_archives
from flare.results.team_folder import (
    TeamResults,
    finished_cases,
    is_measured,
    is_team,
    read_team,
)
from flare.results.unlike_hosts import unlike_notes


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
            *_settings_notes(teams),
            *unlike_notes({found.team: found.measurement for found in teams}),
            *odd,
        ),
        roll=roll,
        origin=_with_measurements(origin, teams),
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


def _settings_notes(teams: Sequence[TeamResults]) -> list[str]:
    """Settings that are not equal for all teams."""
    notes = []
    for name, by_team in _settings(teams).items():
        if name in DEFAULTS:
            others = [t.team for t in teams if t.measurement.settings]
            by_team = {**dict.fromkeys(others, DEFAULTS[name]), **by_team}
        if len(set(by_team.values())) > 1:
            found = ", ".join(f"{team} {value}" for team, value in by_team.items())
            notes.append(f"Teams were measured with different {name}: {safe(found)}")
    return notes


def _settings(teams: Iterable[TeamResults]) -> dict[str, dict[str, str]]:
    """The settings that teams were measured with, by name and team."""
    return _by_name((found.team, found.measurement.settings) for found in teams)


def _made_with(teams: Iterable[TeamResults]) -> dict[str, dict[str, str]]:
    """The devices and engines that teams were measured with, by name and team."""
    return _by_name((found.team, found.measurement.made_with) for found in teams)


def _by_name(
    teams: Iterable[tuple[str, Mapping[str, str]]],
) -> dict[str, dict[str, str]]:
    """What teams have, by name and team."""
    found: dict[str, dict[str, str]] = {}
    for team, own in teams:
        for name, text in own.items():
            found.setdefault(name, {})[team] = text
    return found


def _with_measurements(origin: Origin, teams: Sequence[TeamResults]) -> Origin:
    """What all results were made by, with how teams were measured."""
    measured = _settings(teams) | _made_with(teams)
    return replace(
        origin,
        measured={
            name: tuple(sorted(set(own.values()))) for name, own in measured.items()
        },
        teams_measured=sum(bool(found.measurement.settings) for found in teams),
    )
