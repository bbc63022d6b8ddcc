"""Scores a folder of predictions against a folder of reference labels.

The spine: plan (`flare.evaluation.plan`), score, results.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, cast

from flare.challenge.metrics import metrics_in
from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.environment import default_workers
from flare.common.errors import WorkerError, raise_problems
from flare.common.executor import Done, LocalPool, completed
from flare.common.text import count, listing, safe
from flare.evaluation.errors import (
    EmptyError,
    NothingToScoreError,
    UnexpectedCasesError,
)
from flare.evaluation.labelmaps.reading import UNKNOWN_LABELS_LIMIT
from flare.evaluation.options import EvaluationOptions, check_count
from flare.evaluation.plan import (
    Plan,
    file_checksum,
    plan_evaluation,
    provenance_of,
)
from flare.evaluation.scoring.case import (
    Attempt,
    attempt_case,
    count_free_cases,
    worst_score,
)
from flare.evaluation.submission.find import Folder
from flare.evaluation.submission.match import CasePair, Reason
from flare.results.scores import CaseScore, LowScores, Results

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
    options = EvaluationOptions(
        on_bad_case=on_bad_case,
        grid=grid,
        unknown_labels=unknown_labels,
        decimals=decimals,
    )
    return evaluate_folder(
        Path(predictions),
        Path(ground_truth),
        challenge,
        options,
        workers=workers,
        on_case=on_case,
        absent=absent,
        is_measured=is_measured,
    )


def evaluate_folder(
    predictions: Path,
    ground_truth: Path,
    challenge: str | Challenge,
    options: EvaluationOptions,
    *,
    workers: int | None = 1,
    on_case: OnCase | None = None,
    absent: Collection[str] = (),
    is_measured: bool = False,
) -> Results:
    """Score a folder of predictions, as `evaluate` does, by options in one record."""
    check_count("workers", workers, least=1)
    challenge = as_challenge(challenge)
    plan = plan_evaluation(
        predictions, ground_truth, challenge, options, is_measured=is_measured
    )
    _log_folder(plan.submitted)
    attempts = score_cases(
        plan.prepared.pairs,
        plan.rules,
        workers=workers,
        check_only=plan.check_only,
        on_case=on_case,
    )
    results = results_of(plan, attempts, absent=absent)
    for note in results.warnings[len(plan.prepared.warnings) :]:
        _log.info("%s", note)
    return results


def _log_folder(folder: Folder) -> None:
    """Tell what was found, and what was left out."""
    names = [file.name for file in folder.files]
    for verb, noun, files in (
        ("Found", "label map", names),
        ("Ignored", "file", folder.ignored),
    ):
        if files:
            _log.info("%s %s: %s", verb, count(len(files), noun), listing(files))


def score_cases(
    pairs: Sequence[CasePair],
    rules: Challenge,
    *,
    workers: int | None,
    check_only: bool,
    on_case: OnCase | None = None,
) -> Iterator[Attempt]:
    """Score cases whose headers have been checked, in worker processes.

    Parameters
    ----------
    pairs : sequence of CasePair
        A reference and a prediction each.
    rules : Challenge
        What applies.
    workers : int, optional
        Number of processes; with one, this process does the work itself. None for as
        many as CPUs and memory allow.
    check_only : bool
        Only look for problems of the predictions: for a submission that is refused
        anyway, so that its author learns of everything at once.
    on_case : callable, optional
        Called after each case, in their order.

    Yields
    ------
    Attempt
        For each pair, in their order; a refused prediction does not end it.

    Raises
    ------
    GroundTruthError
        If a reference is damaged or breaks the rules of the challenge.
    WorkerError
        If a case is too much for a process that has this computer to itself.
    """
    workers = workers or default_workers(
        max((pair.voxels for pair in pairs), default=0),
        has_distances=any(each.needs_distances for each in metrics_in(rules.metrics)),
    )
    pool = LocalPool(max(1, min(workers, len(pairs))))
    attempt = partial(attempt_case, challenge=rules, check_only=check_only)
    found: dict[str, Done[CasePair, Attempt]] = {}
    outcomes = completed(pool, attempt, pairs)
    for number, pair in enumerate(pairs, start=1):
        while pair.case not in found:
            some = next(outcomes)
            found[some.item.case] = some
        done = found.pop(pair.case)
        if done.is_lost:
            raise worker_error(done.item, done.error) from done.error
        if done.error:
            raise done.error
        outcome = cast("Attempt", done.result)
        yield outcome
        if on_case:
            on_case(number, len(pairs), outcome)


def worker_error(pair: CasePair, error: BaseException | None) -> WorkerError:
    """Say which case was too much, and how it ended."""
    how = "ran out of memory" if isinstance(error, MemoryError) else "was killed"
    name = safe(pair.prediction.name)
    return WorkerError(f"{name}: the process that scored it {how}")


def results_of(
    plan: Plan,
    attempts: Iterable[Attempt],
    *,
    absent: Collection[str] = (),
    checksum: Callable[[Path], str] | None = None,
) -> Results:
    """Make the results of a submission from the outcomes of its cases.

    Parameters
    ----------
    plan : Plan
        What was to be scored.
    attempts : iterable of Attempt
        The outcome of each pair of the plan, in their order.
    absent : collection of str
        Cases that are known to have no prediction: no warning tells of them.
    checksum : callable, optional
        The SHA-256 of a reference file, where that is known already.

    Raises
    ------
    SubmissionError
        If the submission is refused; says all that is wrong with it.
    """
    problems, scores = list(plan.prepared.problems), {}
    reasons = dict(plan.prepared.reasons)
    for attempt in attempts:
        if attempt.problem:
            problems.append(attempt.problem)
            reasons[attempt.pair.case] = (
                attempt.problem.problem,
                (attempt.problem.file,),
            )
        if attempt.score:
            scores[attempt.pair.case] = attempt.score
    if plan.options.is_refused:
        if not problems and all(score.is_empty for score in scores.values()):
            problems.append(EmptyError(len(scores)))
        raise_problems(problems)

    jobs = _durations(plan)
    unknown = {case: score.unknown_labels for case, score in scores.items()}
    line = ignored_labels_text([*unknown.values()], plan.rules)
    having = tuple(case for case, labels in unknown.items() if labels)
    ignored = [LowScores(reason=line, cases=having)] if line else []
    asked = {f.case: f.prediction_name for f in plan.references if f.case not in absent}
    unusable = _unusable(scores, reasons, asked, len(plan.references))
    cases = tuple(
        scores.get(file.case)
        or worst_score(file, plan.rules, _failure(*reasons.get(file.case, _NO_FILE)))
        for file in plan.references
    )
    return Results(
        cases=cases,
        free_cases=count_free_cases(cases, plan.rules),
        warnings=(
            *plan.prepared.warnings,
            *(low.reason for low in unusable),
            *(found.finding for found in problems if isinstance(found, _FOREIGN)),
            *(low.reason for low in ignored),
        ),
        low_scores=(*unusable, *ignored),
        decimals=plan.options.decimals,
        jobs=jobs,
        provenance=provenance_of(plan, checksum or file_checksum),
    )


def _durations(plan: Plan) -> dict[str, dict[str, float]]:
    """What the platform says of its jobs' running times, by the number of the case."""
    found: dict[str, dict[str, float]] = {}
    for number, reference in enumerate(plan.references):
        durations_s = plan.submitted.durations_s.get(reference.case, {})
        for key, seconds in durations_s.items():
            found.setdefault(key, {})[str(number)] = seconds
    return found


# --- Why cases score little or nothing ---------------------------------------------

REASONS = 5
"""So many reasons of zeros are told apart, those of most cases first."""

_NO_FILE: Reason = "no file was submitted", ()
"""Why a case that has no file cannot be scored."""

_FOREIGN = (UnexpectedCasesError, NothingToScoreError)
"""What is said of files that belong to no case, and are left out."""


def _failure(reason: str, files: Sequence[str]) -> str:
    """Why a case has the worst score, with its files if it has any."""
    return f"{listing(files)}: {reason}" if files else reason


def _unusable(
    scores: Mapping[str, CaseScore],
    reasons: Mapping[str, Reason],
    asked: Mapping[str, str],
    cases: int,
) -> list[LowScores]:
    """Which cases score 0 because they have no prediction that can be used, and why."""
    groups: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for case, name in asked.items():
        if case not in scores:
            reason, files = reasons.get(case, _NO_FILE)
            groups[reason][case] = listing(files or [name])
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    rest = {k: name for _, names in ordered[REASONS:] for k, name in names.items()}
    found = []
    for reason, names in [*ordered[:REASONS], ("other reasons", rest)]:
        if names:
            verb = "scores" if len(names) == 1 else "score"
            share = f"{len(names)} of {cases} cases {verb} 0"
            line = f"{share}: {reason} ({listing(dict.fromkeys(names.values()))})"
            found.append(LowScores(reason=line, cases=tuple(names)))
    return found


def ignored_labels_text(files: Sequence[tuple[int, ...]], challenge: Challenge) -> str:
    """What happens to labels that are not organs; empty if there are none.

    `files` are the unknown labels of each prediction.
    """
    having = [labels for labels in files if labels]
    if not having:
        return ""
    found = sorted(set().union(*having))
    effect = "count as background"
    if challenge.unknown_labels.prediction is UnknownLabels.ZERO:
        effect = "make their case score 0"
    where = f"in {len(having)} of {len(files)} files"
    if len(found) >= UNKNOWN_LABELS_LIMIT:
        labels = f"{len(found)} or more labels, such as {found[0]},"
        return f"{labels} are no organs and {effect}, {where}"
    if len(found) == 1:
        effect = effect.replace("count ", "counts ").replace("make their", "makes its")
        return f"label {found[0]} is no organ and {effect}, {where}"
    names = listing(map(str, found), last=" and ")
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        names = f"{found[0]} to {found[-1]}"
    return f"labels {names} are no organs and {effect}, {where}"
