"""Reads the folder of results: all teams, and who else took part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from os.path import lexists
from pathlib import Path
from typing import Any, NamedTuple

from flare.challenge.metrics import METRICS
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import listing, safe, shell_word
from flare.ranking.inspection import (
    RefusedTeam,
    RollCall,
    Waiting,
    check_origins,
    read_archives,
)
from flare.results.archives_csv import read_flags, read_refused
from flare.results.efficiency_csv import EFFICIENCY_CSV, MeasuredCase, read_by_case
from flare.results.errors import RankingError
from flare.results.measurement_json import (
    MEASUREMENT_JSON,
    Measurement,
    by_setting,
    read_measurement,
    unlike_teams,
)
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import (
    EvaluationFile,
    check_known_cases,
    read_evaluation,
)
from flare.results.team_folder import is_measured, is_team
from flare.results.traces_csv import TRACES, area_above

Key = tuple[str, str, str]
"""A team, a case, and a metric."""

NO_ROW, EMPTY = "there is no row", "the value is empty"


class CaseResult(NamedTuple):
    """What a team has achieved on a case by a metric."""

    team: str
    case: str
    metric: str
    value: float | None
    """None if it is missing."""
    reason: str = ""
    """Why it is missing, if it is."""
    kind: str = ""
    """What many cases may share of the reason, such as ``status failed``, if that is
    not all of it."""
    spread: float | None = None
    """How far repeated measurements lay apart, or those of an empty container, if that
    is known."""


def read_teams(
    path: Path, metrics: Sequence[RankedMetric], challenge: Challenge
) -> tuple[list[CaseResult], dict[str, Any], bool]:
    """Read the results of all teams.

    Parameters
    ----------
    path : Path
        The folder with a folder for each team.
    metrics : sequence of RankedMetric
        What is read, as in `flare.ranking.table.read_results`.
    challenge : Challenge
        By which the label maps should have been scored.

    Returns
    -------
    tuple
        The results by the metrics that were asked for, and by other scores that are
        there; what a `ResultTable` has besides; and whether teams were measured.

    Raises
    ------
    RankingError
        If a file is missing, cannot be read, or contradicts another one.
    """
    if is_team(path):
        above = safe(path.resolve().parent.name or "/")
        remedy = f"Give the folder above it, {above}, which has one for each team."
        raise RankingError(str(path), "it is the folder of one team", remedy)
    refused = read_refused(path)
    accepted, replaced = read_archives(path, refused)
    scored, unscored, strays = _sort_folders(path, accepted, {r.team for r in refused})
    asked = [rule.metric for rule in metrics]
    scores = {
        f.name: read_evaluation(f / METRICS_JSON, asked, RankingError) for f in scored
    }
    waiting = _find_waiting(path, unscored, scores)
    if not scores:
        return [], {}, False
    made = {team: own.evaluation for team, own in scores.items()}
    origin = check_origins(made, challenge, path)
    measured = {f.name: read_measurement(f / MEASUREMENT_JSON) for f in scored}
    efficiency: dict[str, dict[str, MeasuredCase] | None] = {}
    results: list[CaseResult] = []
    for folder in scored:
        team, file, rows = folder.name, folder / EFFICIENCY_CSV, None
        if lexists(file):
            rows = read_by_case(file)
            check_known_cases(file, rows, scores[team].cases)
        efficiency[team] = rows
        results += _results(team, metrics, scores[team], rows, measured[team])
    unfinished = {
        team: [c for c in scores[team].cases if c not in rows or rows[c].is_unfinished]
        for team, rows in efficiency.items()
        if rows is not None
    }
    unfinished = {team: cases for team, cases in unfinished.items() if cases}
    ours = {f.name for f in scored if lexists(f / MEASUREMENT_JSON)}
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
        not_measured_to_the_end=tuple(team for team in unfinished if team in ours),
        ignored=strays,
    )
    ignored = f"Ignored, as there are no results in them: {listing(strays)}"
    told = {
        "warned": (
            *(
                (team, low.reason)
                for team, own in scores.items()
                for low in own.low_scores
            ),
            *((own.team, own.flag) for own in read_flags(path) if own.team in scores),
        ),
        "notes": (
            *([ignored] if strays else []),
            *(
                _unfinished_line(team, cases, is_ours=team in ours)
                for team, cases in unfinished.items()
            ),
            *unlike_teams(measured),
        ),
        "worst_distances": dict(_worst_distances(scores.values())),
        "roll": roll,
        "origin": replace(
            origin,
            measured={
                name: tuple(sorted(set(own.values())))
                for name, own in by_setting(measured).items()
            },
            teams_measured=sum(bool(own.settings) for own in measured.values()),
        ),
    }
    return results, told, any(map(is_measured, (*scored, *unscored)))


def _worst_distances(scores: Iterable[EvaluationFile]) -> Iterator[tuple[str, float]]:
    """The distances of cases that could not be scored, as metrics.json has them."""
    distances = {name for name, metric in METRICS.items() if metric.worst is None}
    for found in scores:
        for case, metric in product(found.failed, distances):
            if (case, metric) in found.values:
                yield case, found.values[case, metric]


def _results(  # noqa: C901
    team: str,
    metrics: Sequence[RankedMetric],
    scores: EvaluationFile,
    rows: Mapping[str, MeasuredCase] | None,
    measurement: Measurement,
) -> Iterator[CaseResult]:
    """Bring together what a team has achieved.

    A run that failed has no results, not good ones: it was not slow, and needed no
    memory.
    """
    asked = {rule.metric for rule in metrics}
    failed = dict(scores.failed)
    for case in scores.cases:
        row, kind = (rows or {}).get(case), ""
        if row and not row.is_ok:
            kind = f"status {row.status or 'missing'}"
            message = row.text("message")
            failed[case] = f"{kind}: {message}" if message else kind
        ok = row if row and row.is_ok else None
        for rule in metrics:
            measured, is_there = None, bool(ok and rule.metric in ok.cells)
            if ok and (tolerance_mb := rule.trace_tolerance_mb):
                trace = ok.file.parent / TRACES / f"{case}.csv"
                measured = area_above(trace, tolerance_mb, ok.number("runtime_s"))
            elif ok:
                measured = ok.value(rule.metric)
            value = scores.values.get((case, rule.metric), measured)
            reason = failed.get(case, "")
            if not reason and value is None:
                reason = EMPTY if is_there else NO_ROW
            spread = ok.number(f"{rule.metric}_spread") if ok else None
            if spread is None and rule.metric == "runtime_s":
                spread = measurement.noise_s
            yield CaseResult(
                team=team,
                case=case,
                metric=rule.metric,
                value=None if reason else value,
                reason=reason,
                kind=kind,
                spread=spread,
            )
    for (case, metric), value in scores.values.items():
        if metric not in asked and case not in failed:
            yield CaseResult(team=team, case=case, metric=metric, value=value)


def _sort_folders(
    path: Path, accepted: Sequence[str], refused: Collection[str]
) -> tuple[list[Path], list[Path], tuple[str, ...]]:
    """The folders of teams with scores, and without, and names that are no team's.

    A team without scores that was not measured yet has no folder, but its archive was
    accepted.
    """
    scored, unscored, strays = [], {path / team for team in accepted}, []
    for folder in sorted(p for p in path.iterdir() if p.is_dir() and p.name[0] != "."):
        if lexists(folder / METRICS_JSON):
            scored.append(folder)
        elif is_measured(folder):
            unscored.add(folder)
        elif folder not in unscored and folder.name not in refused:
            strays.append(folder.name)
    return scored, sorted(unscored.difference(scored)), tuple(strays)


def _unfinished_line(team: str, cases: Sequence[str], *, is_ours: bool) -> str:
    """What to tell of a team that was measured on some cases alone."""
    if is_ours:
        return (
            f"{safe(team)} was not measured to the end ({listing(cases)}), and ranks"
            " last there, without its fault: measure it again before you publish"
        )
    return (
        f"{safe(team)}: {EFFICIENCY_CSV}, which flare measure has not written, has no"
        f" value of {listing(cases)}, and the team ranks last there"
    )


def _find_waiting(
    path: Path, folders: Sequence[Path], scores: Mapping[str, EvaluationFile]
) -> tuple[Waiting, ...]:
    """Teams without scores, if that is because they are not measured to the end.

    Raises
    ------
    RankingError
        If a team could be scored, or none is scored.
    """
    cases = {case for own in scores.values() for case in own.cases}
    found = []
    again = f"flare rescore {shell_word(path)} --ground-truth LABELS."
    for folder in folders:
        file = folder / EFFICIENCY_CSV
        rows = read_by_case(file) if lexists(file) else {}
        done = {case for case, row in rows.items() if not row.is_unfinished}
        if cases and cases <= done:
            problem = "it is not there, though the team was measured to the end"
            raise RankingError(
                str(folder / METRICS_JSON), problem, f"Score it: {again}"
            )
        found.append(Waiting(team=folder.name, cases_measured=len(done)))
    if found and not scores:
        counts = listing(f"{w.team} ({w.cases_measured} cases measured)" for w in found)
        raise RankingError(
            str(path),
            f"no team has a metrics.json: {counts}",
            "Go on with flare measure --ground-truth LABELS, or score what there is:"
            f" {again}",
        )
    return tuple(found)
