"""The main job, from two folders to results: find, match, check headers, score."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import platform
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Literal

import numpy as np

from flare.challenge.cases import case_name
from flare.challenge.reading import read_challenge
from flare.challenge.rulebook import rules_digest, scoring_rules
from flare.challenge.rules import Challenge, GridComparison, UnknownLabels
from flare.common.errors import FileError, InputError, SubmissionError
from flare.common.machine import default_workers
from flare.common.places import BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH
from flare.common.text import aligned, listing, safe
from flare.common.version import __version__, source_commit
from flare.evaluation.errors import (
    DemonstrationSetError,
    DuplicateCasesError,
    EmptyError,
    FolderError,
    GroundTruthError,
    MisnamedCasesError,
    NothingToScoreError,
    UnexpectedCasesError,
    raise_problems,
)
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.scoring.case import (
    check_headers,
    ignored_labels_text,
    read_reference,
    worst_score,
)
from flare.evaluation.scoring.pool import Attempt, score_cases
from flare.evaluation.submission.folder import (
    Folder,
    LabelMapFile,
    find_label_maps,
    find_references,
    is_demonstration,
)
from flare.evaluation.submission.job_outputs import find_job_outputs
from flare.evaluation.submission.jobs import JOBS_FILE_NAME
from flare.evaluation.submission.matching import CasePair, Matching, match_cases
from flare.results.scores import CaseScore, Provenance, Results

LIBRARIES = ("nibabel", "numpy", "surface-distance", "zlib-ng")
"""What a result rests on."""

NO_FILE = "", "no file was submitted"
"""The files, and why a case cannot be scored, where there is none."""

REASONS = 5
"""So many reasons of zeros are told apart, those of most cases first."""

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

    Returns
    -------
    Results
        To be written by `flare.write_metrics`.

    Raises
    ------
    ValueError
        If an argument is none of those above; says what is allowed.
    SubmissionError
        If the predictions cannot be scored; says all that is wrong with them.
    OrganiserError
        If the challenge or the reference labels are at fault.
    HostError
        If a folder or file cannot be read, or memory does not suffice.
    """
    _check_choice("on_bad_case", on_bad_case, ("refuse", "worst"))
    if grid is not None:
        _check_choice("grid", grid, ("strict", "size"))
    if unknown_labels is not None:
        _check_choice("unknown_labels", unknown_labels, ("refuse", "ignore"))
    _check_count("decimals", decimals, least=0)
    _check_count("workers", workers, least=1)
    if not isinstance(challenge, Challenge):
        challenge = read_challenge(challenge)
    given = challenge
    challenge = _with_options(challenge, grid, unknown_labels)
    references, submitted = find_files(
        Path(predictions),
        Path(ground_truth),
        challenge,
        is_measured=on_bad_case == "worst",
    )
    _log_folder(submitted)
    prepared = prepare(
        match_cases(submitted, references, challenge.labels_by_name), challenge
    )
    problems = list(prepared.problems)

    scores: dict[str, CaseScore] = {}
    attempts = score_cases(
        prepared.pairs,
        challenge,
        workers=workers or default_workers(prepared.largest_voxels),
        check_only=bool(problems) and on_bad_case == "refuse",
    )
    for number, attempt in enumerate(attempts, start=1):
        if attempt.problem:
            problems.append(attempt.problem)
        if attempt.score:
            scores[attempt.pair.case] = attempt.score
        if on_case:
            on_case(number, len(prepared.pairs), attempt)
    if on_bad_case == "refuse":
        if not problems and all(score.is_empty for score in scores.values()):
            problems.append(EmptyError(len(scores)))
        raise_problems(problems)

    reasons = _reasons(problems, submitted)
    told = [file for file in references if file.case not in absent]
    notes = _notes(scores, reasons, told, len(references), problems, challenge)
    for note in notes:
        _log.info("%s", note)
    warnings = [*prepared.warnings, *notes]
    options = {
        "on_bad_case": on_bad_case if on_bad_case != "refuse" else "",
        "grid": grid or "",
        "unknown_labels": unknown_labels or "",
        "decimals": "" if decimals is None else str(decimals),
    }
    return Results(
        cases=tuple(
            scores.get(reference.case)
            or worst_score(
                reference,
                challenge,
                ": ".join(filter(None, reasons.get(reference.case, NO_FILE))),
            )
            for reference in references
        ),
        warnings=tuple(warnings),
        provenance=_provenance(
            given, _reference_source(Path(ground_truth)), references, options
        ),
        decimals=decimals,
        jobs=_durations(references, submitted),
    )


def _check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value of an argument that is not one of a few."""
    if value not in allowed:
        text = f"{name} must be {' or '.join(map(repr, allowed))}: {value!r}"
        raise ValueError(text)


def _check_count(name: str, value: object, *, least: int) -> None:
    """Refuse a value of an argument that is neither None nor a number to count with."""
    if value is None or (type(value) is int and value >= least):
        return
    text = f"{name} must be None or a whole number (int) from {least} on: {value!r}"
    raise ValueError(text)


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


def _with_options(
    challenge: Challenge, grid: str | None, unknown_labels: str | None
) -> Challenge:
    """A challenge, some of whose rules were set for this run."""
    if grid:
        compare = GridComparison(grid)
        challenge = replace(challenge, grid=replace(challenge.grid, compare=compare))
    if unknown_labels:
        rules = replace(
            challenge.unknown_labels, prediction=UnknownLabels(unknown_labels)
        )
        challenge = replace(challenge, unknown_labels=rules)
    return challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A submission whose names and headers have been checked."""

    pairs: tuple[CasePair, ...]
    """Those whose voxels can be read."""
    problems: tuple[SubmissionError, ...]
    warnings: tuple[str, ...]
    largest_voxels: int
    """Number of voxels of the largest label map."""


def prepare(matching: Matching, challenge: Challenge) -> Prepared:
    """Check all headers, without reading any voxel."""
    problems = list(matching.problems)
    pairs, headers = [], []
    for pair in matching.pairs:
        try:
            headers.append(check_headers(pair, challenge))
            pairs.append(pair)
        except SubmissionError as error:
            problems.append(error)
    return Prepared(
        pairs=tuple(pairs),
        problems=tuple(problems),
        warnings=tuple(header.warning for header in headers if header.warning),
        largest_voxels=max((header.voxels for header in headers), default=0),
    )


def find_files(
    predictions: Path,
    ground_truth: Path,
    challenge: Challenge,
    *,
    is_measured: bool = False,
) -> tuple[tuple[LabelMapFile, ...], Folder]:
    """The references, and what was submitted.

    Parameters
    ----------
    predictions, ground_truth : Path
        Their folders.
    challenge : Challenge
        Its rules for algorithm submissions.
    is_measured : bool
        Whether the organisers have made the predictions themselves: then the
        demonstration set is what they mean, even if no prediction is of it.

    Raises
    ------
    SubmissionError
        If predictions.json is not what the platform writes.
    OrganiserError
        If the reference labels are at fault.
    InputError
        If a folder cannot be read.
    """
    if not predictions.is_dir():
        there = "it is not a" if predictions.exists() else "there is no such"
        problem = f"{safe(predictions)}: {there} folder"
        if predictions.suffix.lower() == ".zip":
            problem += " (unzip it first: only the platform does so itself)"
        raise InputError(problem)
    if not ground_truth.is_dir():
        problem = "there is no such folder"
        raise GroundTruthError(problem)
    is_algorithm = os.path.lexists(predictions / JOBS_FILE_NAME)
    is_hidden = is_algorithm and challenge.algorithm.hide_cases
    try:
        references = find_references(ground_truth)
    except (GroundTruthError, InputError) as error:
        if not is_hidden:
            raise
        _log.info("%s", error)
        problem = "there is a mistake in their files, which the log names"
        raise GroundTruthError(problem) from error
    is_demo = all(is_demonstration(file.case) for file in references)
    if is_hidden:
        references = _hidden(references)
    try:
        submitted = find_submission(predictions, references, challenge)
    except GroundTruthError as error:
        if is_demo:
            raise DemonstrationSetError from error
        raise
    expected = {file.case for file in references}
    if (
        is_demo
        and not is_measured
        and not any(file.case in expected for file in submitted.files)
    ):
        raise DemonstrationSetError
    return references, submitted


def find_submission(
    predictions: Path, references: Sequence[LabelMapFile], challenge: Challenge
) -> Folder:
    """What was submitted: files, or what the jobs of an algorithm have written."""
    if os.path.lexists(predictions / JOBS_FILE_NAME):
        return find_job_outputs(predictions, references, challenge)
    return find_label_maps(predictions)


def _hidden(references: Sequence[LabelMapFile]) -> tuple[LabelMapFile, ...]:
    """References whose names, in messages, are numbers; the log has both."""
    count = len(references)
    hidden = []
    for number, file in enumerate(references, start=1):
        name = f"case {number} of {count}"
        hidden.append(replace(file, name=name, is_hidden=True))
        _log.info("%s is %s", hidden[-1].name, safe(file.name))
    return tuple(hidden)


def _reference_source(ground_truth: Path) -> str:
    """Where the reference labels of a run are from, in one word."""
    sources = {BUNDLED_GROUND_TRUTH: "bundled", PLATFORM_GROUND_TRUTH: "tarball"}
    return sources.get(ground_truth.resolve(), "given")


def _reasons(
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
    return reasons


def _notes(
    scores: Mapping[str, CaseScore],
    reasons: Mapping[str, tuple[str, str]],
    references: Sequence[LabelMapFile],
    cases: int,
    problems: Sequence[SubmissionError],
    challenge: Challenge,
) -> list[str]:
    """What was let pass, and may be why scores are low: a line for each kind."""
    groups: dict[str, list[str]] = {}
    for reference in references:
        if reference.case not in scores:
            files, reason = reasons.get(reference.case, NO_FILE)
            groups.setdefault(reason, []).append(files or safe(reference.name))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    rest = [file for _, files in ordered[REASONS:] for file in files]
    notes = []
    for reason, names in [*ordered[:REASONS], ("other reasons", rest)]:
        if names:
            verb = "scores" if len(names) == 1 else "score"
            count = f"{len(names)} of {cases} cases {verb} 0"
            notes.append(f"{count}: {reason} ({listing(names)})")
    kinds = (UnexpectedCasesError, NothingToScoreError)
    notes += [problem.finding for problem in problems if isinstance(problem, kinds)]
    unknown = [score.unknown_labels for score in scores.values()]
    ignored = ignored_labels_text(unknown, challenge)
    return [*notes, ignored] if ignored else notes


def has_label_maps(folder: Path) -> bool:
    """Whether there is any label map in a folder, which need not exist."""
    try:
        found = folder.is_dir() and find_label_maps(folder, follow_links=True).files
    except FolderError:
        return True  # and they are the organisers': reading them will say it
    return bool(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSet:
    """What the reference labels of a challenge are like."""

    count: int
    """How many there are."""
    grids: tuple[Grid, ...] = ()
    """Of those that were read."""
    volumes_ml: Mapping[str, tuple[float, ...]]
    """By organ: its volumes in the label maps that have it, in ml, smallest first."""


def check_references(ground_truth: Path, challenge: Challenge) -> ReferenceSet:
    """Read all references of a challenge, so that no mistake waits for a submission.

    Returns
    -------
    ReferenceSet
        The demonstration set is counted, and not read: it need not fit.

    Raises
    ------
    GroundTruthError
        If one is missing, damaged, there twice, or breaks the challenge's rules.
    """
    if not ground_truth.is_dir():
        problem = "there is no such folder"
        raise GroundTruthError(problem)
    references = find_references(ground_truth)
    grids = []
    volumes: dict[str, list[float]] = {organ.name: [] for organ in challenge.organs}
    for file in references:
        if is_demonstration(file.case):
            continue
        reference = read_reference(file, challenge)
        grids.append(reference.grid)
        voxels = np.bincount(reference.labels.ravel(), minlength=256)
        voxel_ml = math.prod(reference.grid.spacing) / 1000
        for organ in challenge.organs:
            if voxels[organ.label]:
                volumes[organ.name].append(float(voxels[organ.label]) * voxel_ml)
    return ReferenceSet(
        count=len(references),
        grids=tuple(grids),
        volumes_ml={name: tuple(sorted(found)) for name, found in volumes.items()},
    )


def references_table(found: ReferenceSet, challenge: Challenge) -> str:
    """How often each organ is there, how large, and on what grids; for organisers."""
    count = len(found.grids)
    if not count:
        return "They are the demonstration set, which was not read."
    rows: list[Sequence[str]] = [("", "in", "smallest", "median", "largest")]
    for organ in challenge.organs:
        volumes = found.volumes_ml[organ.name]
        texts = ["-", "-", "-"]
        if volumes:
            middle = statistics.median(volumes)
            texts = [f"{v:.1f} ml" for v in (volumes[0], middle, volumes[-1])]
        rows.append((organ.name, f"{len(volumes)} of {count}", *texts))
    lines = aligned(rows)
    for axis, name in enumerate("zyx"):
        lengths = [grid.spacing[axis] for grid in found.grids]
        sizes = [grid.shape[axis] for grid in found.grids]
        lines.append(
            f"Along {name}: spacing {_span(f'{v:g}' for v in _ends(lengths))} mm,"
            f" {_span(str(v) for v in _ends(sizes))} voxels"
        )
    absent = [name for name, volumes in found.volumes_ml.items() if not volumes]
    if absent:
        challenge_is = f"is --challenge {challenge.key} the right one?"
        lines.append(f"No label map has {listing(absent)}: {challenge_is}")
    return "\n".join(lines)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest of some numbers."""
    return min(values), max(values)


def _span(ends: Iterable[str]) -> str:
    """A range in words; one number, if its ends are alike."""
    return " to ".join(dict.fromkeys(ends))


def _log_folder(folder: Folder) -> None:
    """Tell what was found, and what was left out."""
    if folder.files:
        _log.info(
            "Found %d label maps: %s",
            len(folder.files),
            listing(file.name for file in folder.files),
        )
    if folder.ignored:
        _log.info("Ignored %d files: %s", len(folder.ignored), listing(folder.ignored))


def _provenance(
    challenge: Challenge,
    source: str,
    references: Sequence[LabelMapFile],
    options: Mapping[str, str],
) -> Provenance:
    """Describe this run."""
    rules = scoring_rules(challenge)
    return Provenance(
        challenge=challenge.key,
        challenge_sha256=challenge.checksum,
        rules=rules,
        rules_sha256=rules_digest(rules),
        version=__version__,
        commit=source_commit(),
        references=source,
        references_sha256=_digest(references),
        cases=len(references),
        options={name: value for name, value in options.items() if value},
        libraries={name: metadata.version(name) for name in LIBRARIES},
        machine={
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    )


def _digest(files: Sequence[LabelMapFile]) -> str:
    """SHA-256 over the cases' names and the checksums of their files."""
    digest = hashlib.sha256()
    for file in files:
        with file.path.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.case} {checksum}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
