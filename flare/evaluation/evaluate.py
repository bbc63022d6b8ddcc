"""Scores a folder of predictions against a folder of reference labels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Literal

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.machine import default_workers
from flare.evaluation.preparing import log_folder
from flare.evaluation.rule_overrides import check_count
from flare.evaluation.scoring.pool import Attempt, score_cases
from flare.evaluation.stages import Options, Plan, plan_evaluation, results_of
from flare.results.scores import Results

_log = logging.getLogger(__name__)

OnCase = Callable[[int, int, Attempt], None]
"""Called after each case with its number, from 1, the number of cases, and the rest."""


def evaluate(
    predictions: str | Path,
    ground_truth: str | Path,
    *,
    challenge: str | Challenge = "flare21",
    on_bad_case: Literal["refuse", "worst"] = "refuse",
    grid: Literal["strict", "size"] | None = None,
    unknown_labels: Literal["refuse", "ignore"] | None = None,
    decimals: int | None = None,
    workers: int | None = 1,
    on_case: OnCase | None = None,
    absent: Collection[str] = (),
    is_measured: bool = False,
) -> Results:
    """Score a folder of predictions against a folder of reference labels.

    Parameters
    ----------
    predictions, ground_truth : str or Path
        Folders of label maps, nested in any way. Files of one case have the same name.
        Nothing in them is changed.
    challenge : str or Challenge
        Name of a bundled challenge, path of a TOML file, or a challenge read before.
    on_bad_case : {"refuse", "worst"}
        With "worst", a case that is missing or cannot be used scores 0 for every
        organ, and the reason stands in the results: for teams that were measured, and
        cannot submit again.
    grid : {"strict", "size"}, optional
        How strictly grids are compared, if not as the challenge says.
    unknown_labels : {"refuse", "ignore"}, optional
        What unknown labels in predictions mean, if not what the challenge says.
    decimals : int, optional
        Decimals of the numbers in metrics.json, 0 or more; all of them if left out.
    workers : int, optional
        Processes to use, 1 or more; None for as many as CPUs and memory allow. With
        more than one, call this from a program that may fork: before it starts threads.
    on_case : callable, optional
        Told of every case as it is finished, in the order of the cases.
    absent : collection of str
        Cases that are known to have no prediction: no warning tells of them.
    is_measured : bool
        Whether the organisers have made the predictions themselves: then the
        demonstration set is what they mean, even if no prediction is of it. Else it is
        taken for references that nobody has put in yet.

    Returns
    -------
    Results
        To be written by `flare.write_metrics`.

    Raises
    ------
    ValueError
        If an argument has no value listed above; says what is allowed.
    SubmissionError
        If the predictions cannot be scored; says all that is wrong with them.
    OrganiserError
        If the challenge or the reference labels are at fault.
    HostError
        If a folder or file cannot be read, or memory does not suffice.
    """
    options = Options(
        on_bad_case=on_bad_case,
        grid=grid,
        unknown_labels=unknown_labels,
        decimals=decimals,
    )
    check_count("workers", workers, least=1)
    if not isinstance(challenge, Challenge):
        challenge = read_challenge(challenge)
    plan = plan_evaluation(
        Path(predictions),
        Path(ground_truth),
        challenge,
        options,
        is_measured=is_measured,
    )
    log_folder(plan.submitted)
    results = results_of(plan, _attempts(plan, workers, on_case), absent=absent)
    for note in results.warnings[len(plan.prepared.warnings) :]:
        _log.info("%s", note)
    return results


def _attempts(
    plan: Plan, workers: int | None, on_case: OnCase | None
) -> Iterator[Attempt]:
    """Score all cases that can be, and tell of each."""
    prepared = plan.prepared
    attempts = score_cases(
        prepared.pairs,
        plan.rules,
        workers=workers or default_workers(prepared.largest_voxels),
        check_only=plan.check_only,
    )
    for number, attempt in enumerate(attempts, start=1):
        yield attempt
        if on_case:
            on_case(number, len(prepared.pairs), attempt)
