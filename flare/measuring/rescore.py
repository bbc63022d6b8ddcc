"""Scores the predictions in the folders of teams, after measuring or later.

No container is run, so neither archives nor an engine are needed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flare.challenge.metrics import METRICS, SCORES
from flare.challenge.rules import Challenge
from flare.common.errors import FlareError, InputError
from flare.common.executor import bulkhead
from flare.common.files import json_at
from flare.common.schema import build
from flare.common.text import aligned, safe
from flare.evaluation.evaluate import evaluate, evaluate_folder
from flare.evaluation.options import EvaluationOptions
from flare.results.efficiency_csv import EFFICIENCY_CSV, RunStatus, means, read_records
from flare.results.errors import RankingError
from flare.results.metrics_json import METRICS_JSON, write_results
from flare.results.metrics_reading import read_means
from flare.results.scores import AnswerScore, Results
from flare.results.team_folder import PREDICTIONS, FolderLock, is_measured, is_team

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """The scores of a team before and after."""

    team: str
    before: Mapping[str, float | None]
    """Its mean DSC and NSD, and values of answers, before; None if not known."""
    after: Mapping[str, float | None]
    """The same now; None if it was not scored."""
    error: FlareError | None
    """The reason why it could not be scored."""
    is_skipped: bool
    """Whether it was left as it is: no prediction of it is kept."""
    flags: str = ""
    """The options of its metrics.json, as a command takes them."""


def rescore(
    results: Path,
    ground_truth: Path,
    challenge: Challenge,
    *,
    workers: int | None = None,
) -> tuple[Rescored, ...]:
    """Score the kept predictions of all teams, and write each one's metrics.json.

    Measurements stay, also the reasons why runs have failed. A team that was only
    evaluated, here or on the platform, is scored with the options of its metrics.json.
    A team that cannot be scored keeps its metrics.json, and the others go on. Unless
    `workers` is set, there are as many processes as CPUs and memory allow. An
    InputError is raised if there is no team in the folder.
    """
    teams = []
    folders = sorted(results.iterdir()) if results.is_dir() else []
    for folder in folders:
        is_hidden = folder.name.startswith(".")
        if folder.is_dir() and not is_hidden and is_team(folder):
            teams.append(_rescore_team(folder, ground_truth, challenge, workers))
    if not teams:
        raise InputError(
            f"{safe(results)}: no team's folder is in it",
            "Give the folder that has one for each team.",
        )
    return tuple(teams)


def _rescore_team(
    folder: Path, ground_truth: Path, challenge: Challenge, workers: int | None
) -> Rescored:
    names = [*challenge.metrics[: len(SCORES)]] if challenge.organs else []
    for rules in challenge.answers:
        names += rules.columns
    before = read_means(folder / METRICS_JSON, names)
    scores: Results | None = None
    errors: list[FlareError] = []
    if is_measured(folder) or (folder / PREDICTIONS).is_dir():
        _log.info("%s:", safe(folder.name))  # the title of what the evaluation logs
        # An error, or a locked folder, ends this team alone.
        with bulkhead(folder.parent, folder.name, errors.append), FolderLock(folder):
            if is_measured(folder):
                scores = evaluate_team(folder, ground_truth, challenge, workers)
            else:
                options = _read_options(folder / METRICS_JSON)
                predictions = folder / PREDICTIONS
                evaluation = evaluate_folder(
                    predictions, ground_truth, challenge, options, workers=workers
                )
                write_results(evaluation, folder)
                scores = evaluation  # if they are written
    return Rescored(
        team=folder.name,
        before=before,
        after={name: scores.totals[name] if scores else None for name in names},
        error=errors[0] if errors else None,
        is_skipped=not scores and not errors,
        flags=_flags(folder),
    )


def _flags(folder: Path) -> str:
    """The flags of the options in a metrics.json; empty if it does not tell any."""
    try:
        return _read_options(folder / METRICS_JSON).flags
    except RankingError:
        return ""


def _read_options(file: Path) -> EvaluationOptions:
    try:
        # Without a JSON object there, the braces raise a TypeError.
        values = {**json_at(file, "evaluation", "options")}
        if "decimals" in values:  # metrics.json has all options as texts
            values["decimals"] = int(values["decimals"])
        return build(EvaluationOptions, values)
    except (TypeError, ValueError, OverflowError) as error:
        raise RankingError(
            str(file),
            "it does not say what the team was evaluated with",
            "Evaluate it again: flare evaluate --input PREDICTIONS.",
        ) from error


def rescored_table(teams: tuple[Rescored, ...]) -> str:
    """A table of the scores before and after, with a row for each team."""
    rows = [["team"]]
    for name in teams[0].before:
        title = METRICS[name].title if name in METRICS else name
        rows[0] += [f"{title} before", "after"]
    rows[0].append("")
    for team in teams:
        row = [safe(team.team)]
        for name, mean in team.before.items():
            row += [_cell(mean), _cell(team.after[name])]
        rows.append([*row, _remark(team)])
    return "\n".join(aligned(rows))


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _remark(team: Rescored) -> str:
    if team.is_skipped:
        return "left as it is: no prediction is kept"
    if team.error:
        return "not scored"
    return "as before" if team.before == team.after else ""


def evaluate_team(
    folder: Path, ground_truth: Path, challenge: Challenge, workers: int | None = None
) -> Results:
    """Score the predictions of a measured team, and write metrics.json beside them.

    A case on which the container has failed scores 0, and its answer counts as wrong,
    with the status as the reason. With answers, answers.csv is written, too.
    """
    records = read_records(folder / EFFICIENCY_CSV)
    (folder / PREDICTIONS).mkdir(exist_ok=True)
    reasons = {
        name: f"{record.status.value}: {record.message}"
        for name, record in records.items()
        if record.status is not RunStatus.OK
    }
    results = evaluate(
        folder / PREDICTIONS,
        ground_truth,
        challenge=challenge,
        on_bad_case="worst",
        grid="size",
        unknown_labels="ignore",
        workers=workers,
        absent=reasons,
        is_measured=True,
    )
    cases = list(results.cases)
    for index, case in enumerate(cases):
        if case.failure and case.case in reasons:
            cases[index] = replace(case, failure=reasons[case.case])
    answers = tuple(_with_reasons(score, reasons) for score in results.answers)
    efficiency = means(records.values(), results.provenance.cases)
    results = replace(
        results, cases=tuple(cases), answers=answers, efficiency=efficiency
    )
    write_results(results, folder)
    return results


def _with_reasons(score: AnswerScore, reasons: Mapping[str, str]) -> AnswerScore:
    """The answers to something, of which those of failed runs tell why."""
    rows = [
        replace(row, problem=reasons.get(row.case, row.problem)) if row.problem else row
        for row in score.rows
    ]
    return replace(score, rows=tuple(rows))
