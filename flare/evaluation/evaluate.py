"""Scores a folder of predictions against a folder of reference labels.

The spine: plan (`flare.evaluation.plan`), score, results.
"""

from __future__ import annotations

import hashlib
import logging
import platform
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, cast

from flare.challenge.digest import rules_digest, scoring_rules
from flare.challenge.formats import case_name
from flare.challenge.reading import read_challenge
from flare.challenge.rules import (
    Challenge,
)
from flare.common.errors import (
    FileError,
    SubmissionError,
    WorkerError,
)
from flare.common.executor import Done, LocalPool, completed
from flare.common.library_versions import library_version
from flare.common.machine import default_workers
from flare.common.places import BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH
from flare.common.text import listing, safe
from flare.common.version import __version__, source_commit
from flare.evaluation.errors import (
    DuplicateCasesError,
    EmptyError,
    MisnamedCasesError,
    NothingToScoreError,
    OrganFilesError,
    UnexpectedCasesError,
)
from flare.evaluation.options import Options, check_count
from flare.evaluation.plan import Plan, log_folder, plan_evaluation
from flare.evaluation.problems import raise_problems
from flare.evaluation.scoring.case import (
    Attempt,
    attempt_case,
    count_free_cases,
    worst_score,
)
from flare.evaluation.scoring.reading import (
    ignored_labels_text,
)
from flare.evaluation.submission.find import (
    Folder,
    LabelMapFile,
)
from flare.evaluation.submission.match import CasePair
from flare.results.scores import (
    CaseScore,
    LowScores,
    Provenance,
    References,
    Results,
)

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


def score_cases(
    pairs: Sequence[CasePair],
    challenge: Challenge,
    *,
    workers: int,
    check_only: bool = False,
) -> Iterator[Attempt]:
    """Score cases whose headers have been checked, in worker processes.

    Parameters
    ----------
    pairs : sequence of CasePair
        The cases.
    challenge : Challenge
        Whose rules apply.
    workers : int
        Number of processes; with one, this process does the work itself.
    check_only : bool
        Only look for problems of the predictions: for a submission that is refused
        anyway, so that its author learns of everything at once.

    Yields
    ------
    Attempt
        For each pair, in the order of `pairs`; a refused prediction does not end it.

    Raises
    ------
    GroundTruthError
        If a reference is damaged or breaks the rules of the challenge.
    WorkerError
        If a case is too much for a process that has this computer to itself.
    """
    attempt = partial(
        attempt_case,
        challenge=challenge,
        check_only=check_only,
    )
    pool = LocalPool(max(1, min(workers, len(pairs))))
    found: dict[str, Done[CasePair, Attempt]] = {}
    order = deque(pair.case for pair in pairs)
    for some in completed(pool, attempt, pairs):
        found[some.item.case] = some
        while order and order[0] in found:
            done = found.pop(order.popleft())
            if done.is_lost:
                raise worker_error(done.item, done.error) from done.error
            if done.error:
                raise done.error
            yield cast("Attempt", done.result)


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
            checksum or file_checksum,
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


LIBRARIES = ("nibabel", "numpy", "surface-distance", "zlib-ng")
"""What a result rests on."""


def make_provenance(
    challenge: Challenge,
    source: References,
    references: Sequence[LabelMapFile],
    options: Mapping[str, str],
    checksum: Callable[[Path], str],
) -> Provenance:
    """Describe this run; a function tells the SHA-256 of a reference file."""
    rules = scoring_rules(challenge)
    return Provenance(
        challenge=challenge.key,
        challenge_sha256=challenge.checksum,
        rules=rules,
        rules_sha256=rules_digest(rules),
        rules_note=challenge.rules_note,
        version=__version__,
        commit=source_commit(),
        references=source,
        references_sha256=references_digest(references, checksum),
        cases=len(references),
        options={name: value for name, value in options.items() if value},
        libraries={name: library_version(name) for name in LIBRARIES},
        machine={
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    )


def file_checksum(file: Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal digits."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def references_digest(
    files: Sequence[LabelMapFile], checksum: Callable[[Path], str]
) -> str:
    """SHA-256 over the cases' names and the checksums of their files."""
    digest = hashlib.sha256()
    for file in files:
        line = f"{file.case} {checksum(file.path)}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def reference_source(ground_truth: Path) -> References:
    """Where the reference labels of a run are from, in one word."""
    sources: dict[Path, References] = {
        BUNDLED_GROUND_TRUTH: "bundled",
        PLATFORM_GROUND_TRUTH: "tarball",
    }
    return sources.get(ground_truth.resolve(), "given")
