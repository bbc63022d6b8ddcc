"""Notes what was tolerated in a submission, which may explain low scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from flare.challenge.formats import case_name
from flare.challenge.rules import Challenge
from flare.common.errors import FileError, SubmissionError
from flare.common.text import listing, safe
from flare.evaluation.errors import (
    DuplicateCasesError,
    MisnamedCasesError,
    NothingToScoreError,
    OrganFilesError,
    UnexpectedCasesError,
)
from flare.evaluation.scoring.unknown_labels import ignored_labels_text
from flare.evaluation.submission.folder import (
    Folder,
    LabelMapFile,
)
from flare.results.scores import CaseScore, LowScores

NO_FILE = "", "no file was submitted"
"""The files of a case that has none, and why it cannot be scored."""


REASONS = 5
"""So many reasons of zeros are told apart, those of most cases first."""


def reasons_by_case(
    problems: Sequence[SubmissionError], submitted: Folder
) -> dict[str, tuple[str, str]]:
    """Why the prediction of a case cannot be used, by case: the files, and the reason.

    The reason alone is equal for all cases of which the same is wrong.
    """
    cases = {file.name: file.case for file in submitted.files}
    reasons: dict[str, tuple[str, str]] = {}
    for problem in problems:
        if isinstance(problem, FileError):
            reasons[cases[problem.file]] = safe(problem.file), problem.problem
        elif isinstance(problem, DuplicateCasesError):
            for case, files in problem.duplicates:
                reasons[case] = listing(files), f"{len(files)} files for one case"
        elif isinstance(problem, MisnamedCasesError):
            for file, expected in problem.renames:
                case = case_name(Path(expected)) or expected
                reasons[case] = safe(file), "no case has this name"
        elif isinstance(problem, OrganFilesError):
            of_case: dict[str, list[str]] = {}
            for file, case in zip(problem.files, problem.cases, strict=True):
                of_case.setdefault(case, []).append(file)
            for case, own in of_case.items():
                reasons[case] = listing(own), "each file holds one organ alone"
    return reasons


def reason_text(reasons: Mapping[str, tuple[str, str]], case: str) -> str:
    """Why the prediction of a case cannot be used, with its files if it has any."""
    return ": ".join(filter(None, reasons.get(case, NO_FILE)))


def unusable_cases(
    scores: Mapping[str, CaseScore],
    reasons: Mapping[str, tuple[str, str]],
    references: Sequence[LabelMapFile],
    cases: int,
) -> list[LowScores]:
    """Which cases score 0 because they have no prediction that can be used, and why."""
    groups: dict[str, dict[str, str]] = {}
    for reference in references:
        if reference.case not in scores:
            files, reason = reasons.get(reference.case, NO_FILE)
            names = groups.setdefault(reason, {})
            names[reference.case] = files or safe(reference.name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    rest = {
        case: name for _, names in ordered[REASONS:] for case, name in names.items()
    }
    found = []
    for reason, names in [*ordered[:REASONS], ("other reasons", rest)]:
        if names:
            verb = "scores" if len(names) == 1 else "score"
            count = f"{len(names)} of {cases} cases {verb} 0"
            line = f"{count}: {reason} ({listing(names.values())})"
            found.append(LowScores(reason=line, cases=tuple(names)))
    return found


def foreign_files(problems: Sequence[SubmissionError]) -> list[str]:
    """Files that were left out, as they belong to no case: a line for each kind."""
    kinds = (UnexpectedCasesError, NothingToScoreError)
    return [problem.finding for problem in problems if isinstance(problem, kinds)]


def ignored_labels(
    scores: Mapping[str, CaseScore], challenge: Challenge
) -> list[LowScores]:
    """Which cases have labels that are no organs; one kind at most."""
    unknown = {case: score.unknown_labels for case, score in scores.items()}
    line = ignored_labels_text(list(unknown.values()), challenge)
    having = tuple(case for case, labels in unknown.items() if labels)
    return [LowScores(reason=line, cases=having)] if line else []
