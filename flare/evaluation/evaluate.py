"""Scores a folder of predictions against a folder of reference labels.

The spine: plan (`flare.evaluation.plan`), score, results.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar, cast

from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.environment import default_workers
from flare.common.errors import SubmissionError, WorkerError, raise_problems
from flare.common.executor import Done, LocalPool, completed
from flare.common.text import count, listing, safe
from flare.evaluation.errors import (
    EmptyError,
    NothingToScoreError,
    UnexpectedCasesError,
)
from flare.evaluation.labelmaps.reading import UNKNOWN_LABELS_LIMIT
from flare.evaluation.options import EvaluationOptions, check_count
from flare.evaluation.plan import Plan, file_checksum, plan_evaluation, provenance_of
from flare.evaluation.scoring.case import (
    Attempt,
    attempt_case,
    case_bytes,
    count_free_cases,
    worst_score,
)
from flare.evaluation.scoring.reading import has_organs
from flare.evaluation.submission.find import Folder
from flare.evaluation.submission.match import CasePair, Reason
from flare.results.scores import AnswerScore, CaseScore, LowScores, Results

_log = logging.getLogger(__name__)

FOREIGN = UnexpectedCasesError, NothingToScoreError
"""Problems of files that belong to no case, and are left out."""

OnCase = Callable[[int, int, Attempt], None]
"""Called after each case with its number, from 1, the number of cases, its outcome."""


Outcome = TypeVar("Outcome")


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
    """Score predictions against a folder of reference labels.

    Parameters
    ----------
    predictions, ground_truth : str or Path
        Folders of label maps, nested in any way; predictions may be a zip of one. Files
        of one case have the same name. Nothing in them is changed.
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
    with submitted_folder(Path(predictions)) as folder:
        return evaluate_folder(
            folder,
            Path(ground_truth),
            challenge,
            options,
            workers=workers,
            on_case=on_case,
            absent=absent,
            is_measured=is_measured,
        )


def submitted_folder(predictions: Path) -> AbstractContextManager[Path]:
    """Return a folder of predictions, or a new one with what their zip holds."""
    if not predictions.is_file():
        return nullcontext(predictions)
    # Not at the top: the container, which gets a folder, starts sooner without it.
    from flare.evaluation.submission.unpack import label_maps_folder

    return label_maps_folder(predictions)


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
    if folder.files:
        names = listing(file.name for file in folder.files)
        _log.info("Found %s: %s", count(len(folder.files), "label map"), names)
    if folder.ignored:
        names = listing(folder.ignored)
        _log.info("Ignored %s: %s", count(len(folder.ignored), "file"), names)


def score_cases(
    pairs: Sequence[CasePair],
    rules: Challenge,
    *,
    workers: int | None,
    check_only: bool,
    on_case: OnCase | None = None,
) -> Iterator[Attempt]:
    """Score cases whose headers have been checked, in worker processes.

    Yields an attempt for each pair, in their order; a refused prediction does not end
    it. One worker is this process itself; None is as many as CPUs and memory allow.
    With `check_only`, only problems of the predictions are looked for: for a submission
    that is refused anyway, so that its author learns of everything at once. A
    GroundTruthError is raised if a reference is damaged or breaks the rules of the
    challenge. A WorkerError is raised if a case is too much for a process that has this
    computer to itself.
    """
    largest = max((pair.voxels for pair in pairs), default=0)
    workers = workers or default_workers(case_bytes(largest, rules))
    pool = LocalPool(max(1, min(workers, len(pairs))))
    attempt = partial(attempt_case, challenge=rules, check_only=check_only)
    # Cases are finished in any order: those that come too early wait here.
    finished: dict[str, Done[CasePair, Attempt]] = {}
    # Workers end before an error is told: nothing may stand behind it on stderr.
    with closing(completed(pool, attempt, pairs)) as completions:
        for number, pair in enumerate(pairs, start=1):
            while pair.case not in finished:
                done = next(completions)
                finished[done.item.case] = done
            outcome = outcome_of(finished.pop(pair.case))
            yield outcome
            if on_case:
                on_case(number, len(pairs), outcome)


def outcome_of(done: Done[CasePair, Outcome]) -> Outcome:
    """The outcome of a case; raises the error that has kept it from having any."""
    if done.is_lost:
        raise worker_error(done.item, done.error) from done.error
    if done.error:
        raise done.error
    return cast("Outcome", done.result)


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

    Attempts are in the order of the plan's pairs. Cases in `absent` are known to have
    no prediction: no warning tells of them. `checksum` gives the SHA-256 of a reference
    file, where that is known already. A SubmissionError, which says all that is wrong,
    is raised if it is refused.
    """
    outcomes = _collect(plan, attempts)
    if plan.options.is_refused:
        _refuse_problems(plan, outcomes)
    cases = _cases(plan, outcomes)
    unusable = _unusable_cases(plan, outcomes, absent)
    ignored = _ignored_labels(plan, outcomes)
    answers: tuple[AnswerScore, ...] = ()
    if plan.sheets:
        # Not at the top: an evaluation of label maps starts sooner without it.
        from flare.evaluation.answers import low_answers, score_sheet

        answers = tuple(map(score_sheet, plan.sheets))
        unusable += low_answers(plan.sheets, absent)
    return Results(
        cases=cases,
        answers=answers,
        free_cases=count_free_cases(cases, plan.rules),
        warnings=(
            *plan.prepared.warnings,
            *(low.reason for low in unusable),
            *(e.finding for e in outcomes.problems if isinstance(e, FOREIGN)),
            *(low.reason for low in ignored),
        ),
        low_scores=(*unusable, *ignored),
        decimals=plan.options.decimals,
        jobs=_durations(plan),
        provenance=provenance_of(plan, checksum or file_checksum),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcomes:
    scores: Mapping[str, CaseScore]
    """By case, in the order of the cases."""
    problems: Sequence[SubmissionError]
    reasons: Mapping[str, Reason]
    """Why files of cases could not be scored, by case."""


def _collect(plan: Plan, attempts: Iterable[Attempt]) -> _Outcomes:
    """Gather the outcomes of cases beside what their names and headers have shown."""
    scores: dict[str, CaseScore] = {}
    problems = list(plan.prepared.problems)
    reasons = dict(plan.prepared.reasons)
    for attempt in attempts:
        case, error = attempt.pair.case, attempt.problem
        if error:
            problems.append(error)
            reasons[case] = error.problem, (error.file,)
        if attempt.score:
            scores[case] = attempt.score
    return _Outcomes(scores=scores, problems=problems, reasons=reasons)


def _refuse_problems(plan: Plan, outcomes: _Outcomes) -> None:
    """Raise what is wrong with a submission, if only that it has no organ at all."""
    raise_problems(outcomes.problems)
    scores = outcomes.scores.values()
    is_empty = bool(scores) and all(score.is_empty for score in scores)
    if is_empty and has_organs(plan.references, plan.rules):
        raise_problems([EmptyError(len(outcomes.scores))])


def _cases(plan: Plan, outcomes: _Outcomes) -> tuple[CaseScore, ...]:
    """The score of each reference's case: the worst where there is no outcome."""
    cases = []
    for reference in plan.references:
        score = outcomes.scores.get(reference.case)
        if score is None:
            reason, files = outcomes.reasons.get(reference.case, _NO_FILE)
            failure = f"{listing(files)}: {reason}" if files else reason
            score = worst_score(reference, plan.rules, failure)
        cases.append(score)
    return tuple(cases)


def _durations(plan: Plan) -> dict[str, dict[str, float]]:
    """Running times of the platform's jobs in seconds, by their key and case number."""
    durations: dict[str, dict[str, float]] = {}
    for number, reference in enumerate(plan.references):
        durations_s = plan.submitted.durations_s.get(reference.case, {})
        for key, seconds in durations_s.items():
            durations.setdefault(key, {})[str(number)] = seconds
    return durations


# --- Why cases score little or nothing ---------------------------------------------

REASONS = 5
"""At most this many reasons of zeros are told apart, those of most cases first."""

_NO_FILE: Reason = "no file was submitted", ()
"""Why a case that has no file cannot be scored."""


def _unusable_cases(
    plan: Plan, outcomes: _Outcomes, absent: Collection[str]
) -> list[LowScores]:
    """The cases that score 0 because they have no usable prediction, by the reason."""
    files_by_reason: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for reference in plan.references:
        case = reference.case
        if case not in outcomes.scores and case not in absent:
            reason, files = outcomes.reasons.get(case, _NO_FILE)
            files_by_reason[reason][case] = listing(
                files or [reference.prediction_name]
            )
    groups = sorted(files_by_reason.items(), key=lambda group: -len(group[1]))
    if len(groups) > REASONS:
        further_files: dict[str, str] = {}
        for _, files_by_case in groups[REASONS:]:
            further_files |= files_by_case
        groups = [*groups[:REASONS], ("other reasons", further_files)]

    low_scores = []
    for reason, files_by_case in groups:
        verb = "scores" if len(files_by_case) == 1 else "score"
        share = f"{len(files_by_case)} of {len(plan.references)} cases {verb} 0"
        names = listing(dict.fromkeys(files_by_case.values()))
        line = f"{share}: {reason} ({names})"
        low_scores.append(LowScores(reason=line, cases=tuple(files_by_case)))
    return low_scores


def _ignored_labels(plan: Plan, outcomes: _Outcomes) -> list[LowScores]:
    """The cases with labels that are not organs, and what happens to these."""
    unknown_labels = [score.unknown_labels for score in outcomes.scores.values()]
    text = ignored_labels_text(unknown_labels, plan.rules)
    if not text:
        return []
    cases = (case for case, score in outcomes.scores.items() if score.unknown_labels)
    return [LowScores(reason=text, cases=tuple(cases))]


def ignored_labels_text(
    unknown_labels: Sequence[tuple[int, ...]], challenge: Challenge
) -> str:
    """Say what happens to labels that are not organs; empty if there are none.

    `unknown_labels` are those of each prediction.
    """
    affected = [labels for labels in unknown_labels if labels]
    if not affected:
        return ""
    labels = sorted(set().union(*affected))
    effect = "count as background"
    if challenge.unknown_labels.prediction is UnknownLabels.ZERO:
        effect = "make their case score 0"
    where = f"in {len(affected)} of {len(unknown_labels)} files"
    if len(labels) >= UNKNOWN_LABELS_LIMIT:
        several = f"{len(labels)} or more labels, such as {labels[0]},"
        return f"{several} are no organs and {effect}, {where}"
    if len(labels) == 1:
        effect = effect.replace("count ", "counts ").replace("make their", "makes its")
        return f"label {labels[0]} is no organ and {effect}, {where}"
    names = listing(map(str, labels), last=" and ")
    if len(labels) > 2 and labels[-1] - labels[0] == len(labels) - 1:
        names = f"{labels[0]} to {labels[-1]}"
    return f"labels {names} are no organs and {effect}, {where}"
