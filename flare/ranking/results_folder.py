"""Reads the folder of results: all teams, and who else took part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from operator import attrgetter
from os.path import lexists
from pathlib import Path
from typing import NamedTuple

from flare.challenge.metrics import LEFT_OUT, METRICS
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import count, listing, safe, shell_word
from flare.ranking.answers import (
    AnswerColumn,
    AnswersByName,
    check_values,
    read_answer_columns,
    read_team_answers,
)
from flare.ranking.inspection import (
    Origin,
    RefusedTeam,
    RollCall,
    Waiting,
    check_origins,
    read_archives,
)
from flare.ranking.values_of_others import add_values
from flare.results.archives_csv import Refusal, read_flags, read_refused
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
    """The result of a team on a case by a metric."""

    team: str
    case: str
    metric: str
    value: float | None
    """None if it is missing."""
    reason: str = ""
    """Why it is missing, if it is; `LEFT_OUT` if the challenge leaves it out."""
    kind: str = ""
    """The part of the reason that many cases may share, such as ``status failed``, if
    it is not the whole."""
    spread: float | None = None
    """How far repeated measurements lay apart, or those of an empty container, if that
    is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """All that is known of results besides their values."""

    roll: RollCall = field(default_factory=RollCall)
    """Who took part, but is not ranked, or not with all results."""
    origin: Origin | None = None
    """What the results were made with; None for a table, which does not tell."""
    warned: tuple[tuple[str, str], ...] = ()
    """Teams, and the warnings from when they were scored."""
    notes: tuple[str, ...] = ()
    """What is odd about the folders, in sentences for the organisers."""
    answers: Mapping[str, AnswerColumn] = field(default_factory=dict)
    """The ranked metrics of answers by their names; their values, which are of all
    cases together, stand in every case. A ranking that was written has none."""
    worst_values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By metric without a worst value of its own, and by case that could not be scored:
    the value that metrics.json has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResults(Background):
    """The results of all teams, and what else their folders tell."""

    results: list[CaseResult]
    """By the metrics that are ranked, and by all other scores in the folders."""
    is_measured: bool
    """Whether any team was measured."""


def read_teams(
    path: Path, metrics: Sequence[RankedMetric], challenge: Challenge
) -> TeamResults:
    """Read the results of all teams, each from its folder; empty if none is scored.

    The metrics are those of `flare.ranking.table.read_results`. All label maps have to
    be scored by the rules of the challenge. A RankingError is raised if a file is
    missing, cannot be read, or contradicts another one.
    """
    if is_team(path):
        above = safe(path.resolve().parent.name or "/")
        remedy = f"Give the folder above it, {above}, which has one for each team."
        raise RankingError(str(path), "it is the folder of one team", remedy)
    refused = read_refused(path)
    accepted, replaced = read_archives(path, refused)
    refused_names = {archive.team for archive in refused}
    scored, unscored, strays = _sort_folders(path, accepted, refused_names)
    scores = _read_scores(scored, metrics)
    waiting = _find_waiting(path, unscored, scores)
    if not scores:
        return TeamResults(results=[], is_measured=False)
    evaluations = {team: file.evaluation for team, file in scores.items()}
    origin = check_origins(evaluations, challenge, path)
    measurements = {
        folder.name: read_measurement(folder / MEASUREMENT_JSON) for folder in scored
    }
    team_answers = _read_answers(scored, scores, metrics)
    scores = _with_cases(scores, team_answers)
    scores = add_values(scores, scored, challenge, metrics)
    answers = read_answer_columns(team_answers, challenge, metrics)
    results: list[CaseResult] = []
    unfinished: dict[Path, list[str]] = {}
    for folder in scored:
        team = folder.name
        check_values(answers, scores[team], folder)
        results += _answer_results(team, answers, scores[team].cases)
        runs = _read_runs(folder, scores[team])
        results += _results(team, metrics, scores[team], runs, measurements[team])
        cases = _unfinished_cases(scores[team], runs)
        if cases:
            unfinished[folder] = cases
    return TeamResults(
        results=results,
        is_measured=any(map(is_measured, (*scored, *unscored))),
        roll=RollCall(
            refused=tuple(_refused_team(archive, scores) for archive in refused),
            replaced=replaced,
            not_scored_yet=waiting,
            not_measured_to_the_end=tuple(
                folder.name for folder in unfinished if _is_ours(folder)
            ),
            ignored=strays,
        ),
        origin=_add_measurements(origin, measurements),
        warned=tuple(_warnings(path, scores)),
        notes=(*_notes(strays, unfinished), *unlike_teams(measurements)),
        answers=answers,
        worst_values=_worst_values(scores.values()),
    )


def _read_scores(
    folders: Sequence[Path], metrics: Sequence[RankedMetric]
) -> dict[str, EvaluationFile]:
    names = [rule.metric for rule in metrics]
    scores = {}
    for folder in folders:
        file = folder / METRICS_JSON
        scores[folder.name] = read_evaluation(file, names, RankingError)
    return scores


def _read_answers(
    folders: Sequence[Path],
    scores: Mapping[str, EvaluationFile],
    metrics: Sequence[RankedMetric],
) -> dict[Path, AnswersByName]:
    """Read the answers.csv of each team, if it is ranked by, or tells the cases."""
    if all(file.cases for file in scores.values()):
        if all(rule.record.is_of_each_case for rule in metrics):
            return {}
    return {folder: read_team_answers(folder) for folder in folders}


def _with_cases(
    scores: Mapping[str, EvaluationFile], answers: Mapping[Path, AnswersByName]
) -> dict[str, EvaluationFile]:
    """The scores of all teams; where only answers were scored, their cases are told.

    A metrics.json of answers alone has no cases.
    """
    files = dict(scores)
    for folder, rows_by_name in answers.items():
        rows = chain.from_iterable(rows_by_name.values())
        cases = {row.case for row in rows}
        if not scores[folder.name].cases:
            files[folder.name] = replace(files[folder.name], cases=tuple(sorted(cases)))
    return files


def _answer_results(
    team: str, answers: Mapping[str, AnswerColumn], cases: Sequence[str]
) -> Iterator[CaseResult]:
    """The values of answers of a team, each of which stands for every case.

    So a metric of answers has the weight of one metric, whatever the number of cases.
    """
    for name, column in answers.items():
        value = column.value(team)
        for case in cases:
            yield CaseResult(team=team, case=case, metric=name, value=value)


def _read_runs(folder: Path, scores: EvaluationFile) -> dict[str, MeasuredCase] | None:
    """Read the measured runs of a team by case; None if it has no such file."""
    file = folder / EFFICIENCY_CSV
    if not lexists(file):
        return None
    runs = read_by_case(file)
    check_known_cases(file, runs, scores.cases)
    return runs


def _unfinished_cases(
    scores: EvaluationFile, runs: Mapping[str, MeasuredCase] | None
) -> list[str]:
    """Cases that are still to be run; none of a team without measured runs."""
    if runs is None:
        return []
    return [
        case for case in scores.cases if case not in runs or runs[case].is_unfinished
    ]


def _is_ours(folder: Path) -> bool:
    """Whether flare measure has written the efficiency.csv of a folder."""
    return lexists(folder / MEASUREMENT_JSON)


def _refused_team(archive: Refusal, scores: Collection[str]) -> RefusedTeam:
    return RefusedTeam(
        team=archive.team,
        file=archive.archive,
        reason=archive.problem,
        is_ranked=archive.team in scores,
    )


def _add_measurements(
    origin: Origin, measurements: Mapping[str, Measurement]
) -> Origin:
    values_by_setting = {
        setting: tuple(sorted(set(values.values())))
        for setting, values in by_setting(measurements).items()
    }
    measured = [team for team in measurements.values() if team.settings]
    return replace(origin, measured=values_by_setting, teams_measured=len(measured))


def _warnings(
    path: Path, scores: Mapping[str, EvaluationFile]
) -> Iterator[tuple[str, str]]:
    """Teams, and the warnings from when they were scored."""
    for team, file in scores.items():
        for low in file.low_scores:
            yield team, low.reason
    for archive in read_flags(path):
        if archive.team in scores:
            yield archive.team, archive.flag


def _notes(
    strays: Sequence[str], unfinished: Mapping[Path, Sequence[str]]
) -> Iterator[str]:
    """Sentences about folders without results, and about unfinished measurements."""
    if strays:
        yield f"Ignored, as there are no results in them: {listing(strays)}"
    for folder, cases in unfinished.items():
        team = safe(folder.name)
        if _is_ours(folder):
            yield (
                f"{team} was not measured to the end ({listing(cases)}), and ranks"
                " last there, without its fault: measure it again before you publish"
            )
        else:
            yield (
                f"{team}: {EFFICIENCY_CSV}, which flare measure has not written, has no"
                f" value of {listing(cases)}, and the team ranks last there"
            )


def _worst_values(scores: Iterable[EvaluationFile]) -> dict[str, dict[str, float]]:
    """The values of cases that could not be scored, where a record has no worst one."""
    worst: dict[str, dict[str, float]] = {}
    metrics = [name for name, metric in METRICS.items() if metric.worst is None]
    for file in scores:
        for case, metric in product(dict(file.failed), metrics):
            value = file.values.get((case, metric))
            if value is not None:
                worst.setdefault(metric, {})[case] = value
    return worst


def _results(
    team: str,
    metrics: Sequence[RankedMetric],
    scores: EvaluationFile,
    runs: Mapping[str, MeasuredCase] | None,
    measurement: Measurement,
) -> Iterator[CaseResult]:
    """The results of a team on each case, from its scores and its runs.

    A run that failed has no results, not good ones: it was not slow, and needed no
    memory.
    """
    failures = dict(scores.failed)
    of_cases = list(filter(attrgetter("record.is_of_each_case"), metrics))
    for case in scores.cases:
        run = runs.get(case) if runs else None
        kind = ""
        if run and not run.is_ok:
            kind, failures[case] = _describe_failure(run)
            run = None
        for rule in of_cases:
            measured, key = _measured_value(rule, case, run), (case, rule.metric)
            value = scores.values.get(key, measured)
            reason = failures.get(case) or _reason_of_absence(value, rule, run)
            if scores.values.get(key, 0.0) is None:
                reason = LEFT_OUT
            yield CaseResult(
                team=team,
                case=case,
                metric=rule.metric,
                value=None if reason else value,
                reason=reason,
                kind=kind,
                spread=_spread(rule, run, measurement),
            )
    ranked = {rule.metric for rule in metrics}
    for result in _all_scores(team, scores, failures):
        if result.metric not in ranked:
            yield result


def _all_scores(
    team: str, scores: EvaluationFile, failures: Collection[str]
) -> Iterator[CaseResult]:
    """The scores of a team, but those of runs that failed; what is left out is told."""
    for (case, metric), value in scores.values.items():
        if value is None:
            yield CaseResult(team, case, metric, value=None, reason=LEFT_OUT)
        elif case not in failures:
            yield CaseResult(team=team, case=case, metric=metric, value=value)


def _describe_failure(run: MeasuredCase) -> tuple[str, str]:
    """The kind of a failure, which many cases may share, and the whole reason."""
    kind = f"status {run.status or 'missing'}"
    message = run.text("message")
    return kind, f"{kind}: {message}" if message else kind


def _measured_value(
    rule: RankedMetric, case: str, run: MeasuredCase | None
) -> float | None:
    """The value of a run that was ok, from its trace or its row."""
    if run is None:
        return None
    if rule.trace_tolerance_mb:
        trace = run.file.parent / TRACES / f"{case}.csv"
        return area_above(trace, rule.trace_tolerance_mb, run.number("runtime_s"))
    return run.value(rule.metric)


def _reason_of_absence(
    value: float | None, rule: RankedMetric, run: MeasuredCase | None
) -> str:
    """The reason why there is no value, though nothing failed; empty if there is."""
    if value is not None:
        return ""
    return EMPTY if run and rule.metric in run.cells else NO_ROW


def _spread(
    rule: RankedMetric, run: MeasuredCase | None, measurement: Measurement
) -> float | None:
    """How far repeated measurements lay apart, or those of an empty container."""
    spread = run.number(f"{rule.metric}_spread") if run else None
    if spread is None and rule.metric == "runtime_s":
        return measurement.noise_s
    return spread


def _sort_folders(
    path: Path, accepted: Sequence[str], refused: Collection[str]
) -> tuple[list[Path], list[Path], tuple[str, ...]]:
    """The folders of teams with scores, and without, and names that are no team's.

    A team without scores that was not measured yet has no folder, but its archive was
    accepted.
    """
    scored, strays = [], []
    unscored = {path / team for team in accepted}
    for folder in sorted(path.iterdir()):
        if not folder.is_dir() or folder.name.startswith("."):
            continue
        if lexists(folder / METRICS_JSON):
            scored.append(folder)
        elif is_measured(folder):
            unscored.add(folder)
        elif folder not in unscored and folder.name not in refused:
            strays.append(folder.name)
    return scored, sorted(unscored.difference(scored)), tuple(strays)


def _find_waiting(
    path: Path, folders: Sequence[Path], scores: Mapping[str, EvaluationFile]
) -> tuple[Waiting, ...]:
    """Teams without scores, if that is because they are not measured to the end.

    A RankingError is raised if a team could be scored, or none is scored.
    """
    cases = set(chain.from_iterable(map(attrgetter("cases"), scores.values())))
    waiting = []
    rescore = f"flare rescore {shell_word(path)} --ground-truth LABELS."
    for folder in folders:
        file = folder / EFFICIENCY_CSV
        rows = read_by_case(file) if lexists(file) else {}
        finished = {case for case, row in rows.items() if not row.is_unfinished}
        if cases and cases <= finished:
            problem = "it is not there, though the team was measured to the end"
            raise RankingError(
                str(folder / METRICS_JSON), problem, f"Score it: {rescore}"
            )
        waiting.append(Waiting(team=folder.name, cases_measured=len(finished)))
    if waiting and not scores:
        counts = listing(
            f"{team.team} ({count(team.cases_measured, 'case')} measured)"
            for team in waiting
        )
        raise RankingError(
            str(path),
            f"no team has a metrics.json: {counts}",
            "Go on with flare measure --ground-truth LABELS, or score what there is:"
            f" {rescore}",
        )
    return tuple(waiting)
