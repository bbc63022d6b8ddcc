"""Scores the predictions of a measured team."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.evaluation.evaluate import evaluate
from flare.results.efficiency_csv import EFFICIENCY_CSV, RunStatus, means, read_records
from flare.results.metrics_json import write_metrics
from flare.results.scores import Results
from flare.results.team_folder import PREDICTIONS


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
