"""Scores the predictions that teams' folders keep: after measuring, or anew.

Nothing is run: neither archives nor an engine are needed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flare.challenge.metrics import SCORES
from flare.challenge.rules import Challenge
from flare.common.errors import FlareError, InputError
from flare.common.executor import bulkhead
from flare.common.files import json_at
from flare.common.text import aligned, safe
from flare.evaluation.evaluate import evaluate
from flare.evaluation.options import Options
from flare.results.efficiency_csv import EFFICIENCY_CSV, RunStatus, means, read_records
from flare.results.errors import RankingError
from flare.results.metrics_json import METRICS_JSON, write_metrics
from flare.results.metrics_reading import read_means
from flare.results.scores import Results
from flare.results.team_folder import PREDICTIONS, FolderLock, is_measured

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """The scores of a team before and after."""

    team: str
    before: tuple[float | None, ...]
    """Its mean DSC and NSD; None where they were not known."""
    after: tuple[float | None, ...]
    """The same now; None if it was not scored."""
    error: FlareError | None
    """Why it could not be scored."""
    is_left: bool
    """Whether it was only evaluated, and no prediction is kept."""


def rescore(
    results: Path,
    ground_truth: Path,
    challenge: Challenge,
    *,
    workers: int | None = None,
) -> tuple[Rescored, ...]:
    """Score the kept predictions of all teams, and write each one's metrics.json.

    What was measured stays, also the reasons of runs that failed. A team that was only
    evaluated, here or on the platform, is scored with the options of its metrics.json.
    A team that cannot be scored keeps its metrics.json, and the others go on.

    Parameters
    ----------
    results : Path
        With a folder for each team.
    ground_truth : Path
        The reference labels.
    challenge : Challenge
        Whose rules apply.
    workers : int, optional
        Processes to use; None for as many as CPUs and memory allow.

    Raises
    ------
    InputError
        If there is no team in the folder.
    """
    done = []
    folders = sorted(results.iterdir()) if results.is_dir() else ()
    for folder in folders:
        if not folder.is_dir() or folder.name[0] == ".":
            continue
        before, scored = read_means(folder / METRICS_JSON), None
        errors: list[FlareError] = []
        is_evaluated = (folder / METRICS_JSON).exists()
        if is_measured(folder) or (is_evaluated and (folder / PREDICTIONS).is_dir()):
            _log.info("%s:", safe(folder.name))  # above what its evaluation says
            with bulkhead(results, folder.name, errors.append), FolderLock(folder):
                if is_measured(folder):
                    scored = evaluate_team(folder, ground_truth, challenge, workers)
                else:
                    again = evaluate(
                        *(folder / PREDICTIONS, ground_truth),
                        challenge=challenge,
                        workers=workers,
                        **_options(folder / METRICS_JSON),
                    )
                    write_metrics(again, folder)
                    scored = again
        elif not is_evaluated:
            continue  # no team's
        found = Rescored(
            team=folder.name,
            before=before,
            after=tuple(scored.mean(name) if scored else None for name in SCORES),
            error=next(iter(errors), None),
            is_left=not scored and not errors,
        )
        done.append(found)
    if not done:
        raise InputError(
            f"{safe(results)}: no team's folder is in it",
            "Give the folder that has one for each team.",
        )
    return tuple(done)


def _options(file: Path) -> dict[str, Any]:
    """The options that a team was evaluated with, as arguments of `evaluate`."""
    try:
        found = {**json_at(file, "evaluation", "options")}
        if "decimals" in found:
            found["decimals"] = int(found["decimals"])
        Options(**found)
    except (TypeError, ValueError, OverflowError) as error:
        raise RankingError(
            str(file),
            "it does not say what the team was evaluated with",
            "Evaluate it again: flare evaluate --input PREDICTIONS.",
        ) from error
    return found


def rescored_table(teams: tuple[Rescored, ...]) -> str:
    """What has changed, a row for each team, as text."""
    rows = [["team", "DSC before", "after", "NSD before", "after", ""]]
    for found in teams:
        cells = [
            "-" if mean is None else f"{mean:.4f}"
            for pair in zip(found.before, found.after, strict=True)
            for mean in pair
        ]
        what = "" if found.before != found.after else "as before"
        if found.error:
            what = "not scored"
        if found.is_left:
            what = "left as it is: no prediction is kept"
        rows.append([safe(found.team), *cells, what])
    return "\n".join(aligned(rows))


def evaluate_team(
    folder: Path,
    ground_truth: Path,
    challenge: Challenge,
    workers: int | None = None,
) -> Results:
    """Score the predictions of a measured team, and write metrics.json beside them.

    Whatever the container has failed on scores 0, with its status as the reason. What
    was measured is kept.
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
    scored = tuple(
        replace(case, failure=reasons[case.case])
        if case.failure and case.case in reasons
        else case
        for case in results.cases
    )
    efficiency = means(records.values(), len(results.cases))
    results = replace(results, cases=scored, efficiency=efficiency)
    write_metrics(results, folder)
    return results
