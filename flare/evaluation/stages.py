"""Evaluates a submission in two stages, between which its cases are scored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flare.challenge.rules import Challenge
from flare.evaluation.errors import EmptyError
from flare.evaluation.notes import (
    foreign_files,
    ignored_labels,
    reason_text,
    reasons_by_case,
    unusable_cases,
)
from flare.evaluation.preparing import Prepared, find_files, prepare
from flare.evaluation.provenance import (
    file_checksum,
    make_provenance,
    reference_source,
)
from flare.evaluation.rule_overrides import (
    check_choice,
    check_count,
    check_rule_options,
    with_options,
)
from flare.evaluation.scoring.case import worst_score
from flare.evaluation.scoring.free_cases import count_free_cases
from flare.evaluation.scoring.pool import Attempt
from flare.evaluation.several_problems import raise_problems
from flare.evaluation.submission.folder import Folder, LabelMapFile
from flare.evaluation.submission.matching import match_cases
from flare.results.scores import Results


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a submission is evaluated, as `flare.evaluate` takes it.

    Raises
    ------
    ValueError
        If a value is none of those that are allowed.
    """

    on_bad_case: Literal["refuse", "worst"] = "refuse"
    grid: Literal["strict", "size"] | None = None
    unknown_labels: Literal["refuse", "ignore"] | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        """Look at the values."""
        check_choice("on_bad_case", self.on_bad_case, ("refuse", "worst"))
        check_rule_options(self.grid, self.unknown_labels)
        check_count("decimals", self.decimals, least=0)

    @property
    def is_refused(self) -> bool:
        """Whether a submission with a bad case is."""
        return self.on_bad_case == "refuse"

    def told(self) -> dict[str, str]:
        """What is not the default, as metrics.json has it."""
        return {
            "on_bad_case": "" if self.is_refused else self.on_bad_case,
            "grid": self.grid or "",
            "unknown_labels": self.unknown_labels or "",
            "decimals": "" if self.decimals is None else str(self.decimals),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A submission that was found and looked through, and that is to be scored."""

    challenge: Challenge
    """As it was given."""
    rules: Challenge
    """As the options change it."""
    options: Options
    ground_truth: Path
    references: tuple[LabelMapFile, ...]
    submitted: Folder
    prepared: Prepared

    @property
    def check_only(self) -> bool:
        """Whether it will be refused, and is only searched for more problems."""
        return bool(self.prepared.problems) and self.options.is_refused


def plan_evaluation(
    predictions: Path,
    ground_truth: Path,
    challenge: Challenge,
    options: Options,
    *,
    is_measured: bool = False,
) -> Plan:
    """Find the files of a submission, and look at their names and headers.

    Raises
    ------
    FlareError
        As `flare.evaluate` does.
    """
    rules = with_options(challenge, options.grid, options.unknown_labels)
    references, submitted = find_files(
        predictions, ground_truth, rules, is_measured=is_measured
    )
    matching = match_cases(submitted, references, rules.labels_by_name)
    return Plan(
        challenge=challenge,
        rules=rules,
        options=options,
        ground_truth=ground_truth,
        references=references,
        submitted=submitted,
        prepared=prepare(matching, rules),
    )


def results_of(
    plan: Plan,
    attempts: Iterable[Attempt],
    *,
    absent: Collection[str] = (),
    checksum: Callable[[Path], str] = file_checksum,
) -> Results:
    """Make the results of a submission from what came of its cases.

    Parameters
    ----------
    plan : Plan
        What was to be scored.
    attempts : iterable of Attempt
        What came of each of its pairs, in their order.
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
    for attempt in attempts:
        if attempt.problem:
            problems.append(attempt.problem)
        if attempt.score:
            scores[attempt.pair.case] = attempt.score
    if plan.options.is_refused:
        if not problems and all(score.is_empty for score in scores.values()):
            problems.append(EmptyError(len(scores)))
        raise_problems(problems)

    references = plan.references
    reasons = reasons_by_case(problems, plan.submitted)
    told = [file for file in references if file.case not in absent]
    unusable = unusable_cases(scores, reasons, told, len(references))
    ignored = ignored_labels(scores, plan.rules)
    notes = [
        *(low.reason for low in unusable),
        *foreign_files(problems),
        *(low.reason for low in ignored),
    ]
    cases = tuple(
        scores.get(file.case)
        or worst_score(file, plan.rules, reason_text(reasons, file.case))
        for file in references
    )
    return Results(
        cases=cases,
        free_cases=count_free_cases(cases, plan.rules),
        warnings=(*plan.prepared.warnings, *notes),
        low_scores=(*unusable, *ignored),
        provenance=make_provenance(
            plan.challenge,
            reference_source(plan.ground_truth),
            references,
            plan.options.told(),
            checksum,
        ),
        decimals=plan.options.decimals,
        jobs=_durations(references, plan.submitted),
    )


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
