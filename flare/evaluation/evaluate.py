"""Scores a folder of predictions against a folder of reference labels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import SubmissionError
from flare.common.machine import default_workers
from flare.evaluation.errors import EmptyError
from flare.evaluation.notes import (
    foreign_files,
    ignored_labels,
    reason_text,
    reasons_by_case,
    unusable_cases,
)
from flare.evaluation.preparing import Prepared, find_files, log_folder, prepare
from flare.evaluation.provenance import make_provenance, reference_source
from flare.evaluation.rule_overrides import (
    check_choice,
    check_count,
    check_rule_options,
    with_options,
)
from flare.evaluation.scoring.case import worst_score
from flare.evaluation.scoring.pool import Attempt, score_cases
from flare.evaluation.several_problems import raise_problems
from flare.evaluation.submission.folder import (
    Folder,
    LabelMapFile,
)
from flare.evaluation.submission.matching import match_cases
from flare.results.scores import CaseScore, Results

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
    check_choice("on_bad_case", on_bad_case, ("refuse", "worst"))
    check_rule_options(grid, unknown_labels)
    check_count("decimals", decimals, least=0)
    check_count("workers", workers, least=1)
    if not isinstance(challenge, Challenge):
        challenge = read_challenge(challenge)
    rules = with_options(challenge, grid, unknown_labels)
    references, submitted = find_files(
        Path(predictions), Path(ground_truth), rules, is_measured=is_measured
    )
    log_folder(submitted)
    prepared = prepare(match_cases(submitted, references, rules.labels_by_name), rules)
    is_refused = on_bad_case == "refuse"
    scores, problems = _score(
        prepared, rules, workers=workers, is_refused=is_refused, on_case=on_case
    )
    if is_refused:
        if not problems and all(score.is_empty for score in scores.values()):
            problems.append(EmptyError(len(scores)))
        raise_problems(problems)

    reasons = reasons_by_case(problems, submitted)
    told = [file for file in references if file.case not in absent]
    unusable = unusable_cases(scores, reasons, told, len(references))
    ignored = ignored_labels(scores, rules)
    notes = [
        *(low.reason for low in unusable),
        *foreign_files(problems),
        *(low.reason for low in ignored),
    ]
    for note in notes:
        _log.info("%s", note)
    options = {
        "on_bad_case": "" if is_refused else on_bad_case,
        "grid": grid or "",
        "unknown_labels": unknown_labels or "",
        "decimals": "" if decimals is None else str(decimals),
    }
    return Results(
        cases=tuple(
            scores.get(file.case)
            or worst_score(file, rules, reason_text(reasons, file.case))
            for file in references
        ),
        warnings=(*prepared.warnings, *notes),
        low_scores=(*unusable, *ignored),
        provenance=make_provenance(
            challenge, reference_source(Path(ground_truth)), references, options
        ),
        decimals=decimals,
        jobs=_durations(references, submitted),
    )


def _score(
    prepared: Prepared,
    challenge: Challenge,
    *,
    workers: int | None,
    is_refused: bool,
    on_case: OnCase | None,
) -> tuple[dict[str, CaseScore], list[SubmissionError]]:
    """Score all cases that can be: their scores, and all problems of the submission.

    One with problems that `is_refused` for them is only searched for more of them.
    """
    problems = list(prepared.problems)
    scores: dict[str, CaseScore] = {}
    attempts = score_cases(
        prepared.pairs,
        challenge,
        workers=workers or default_workers(prepared.largest_voxels),
        check_only=bool(problems) and is_refused,
    )
    for number, attempt in enumerate(attempts, start=1):
        if attempt.problem:
            problems.append(attempt.problem)
        if attempt.score:
            scores[attempt.pair.case] = attempt.score
        if on_case:
            on_case(number, len(prepared.pairs), attempt)
    return scores, problems


def _durations(
    references: Sequence[LabelMapFile], submitted: Folder
) -> dict[str, dict[str, float]]:
    """What the platform says of its jobs' running times, by the number of the case."""
    files = {file.case: file.durations_s for file in submitted.files}
    found: dict[str, dict[str, float]] = {}
    for number, reference in enumerate(references):
        for key, seconds in files.get(reference.case, ()):
            found.setdefault(key, {})[str(number)] = seconds
    return found
