"""Checks a submission before it is submitted, in the words of the evaluation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flare.challenge import Challenge
from flare.errors import (
    EmptyError,
    GroundTruthError,
    InputError,
    SubmissionError,
    problem_lines,
)
from flare.evaluation import OnCase, Prepared, find_files, prepare
from flare.jobs import CHANNEL
from flare.labelmaps import SUFFIX, read_grid
from flare.names import safe
from flare.resources import default_workers
from flare.submission import (
    find_label_maps,
    find_references,
    match_alone,
    match_cases,
)
from flare.workers import score_cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check has found."""

    lines: tuple[str, ...]
    """What is wrong, a line for each kind of problem; none if nothing is."""
    summary: str
    """What would be scored, and what could not be checked."""


def check_submission(
    predictions: Path,
    challenge: Challenge,
    *,
    ground_truth: Path | None = None,
    images: Path | None = None,
    workers: int | None = None,
    on_case: OnCase | None = None,
) -> Report:
    """Look for everything that the evaluation would refuse.

    Parameters
    ----------
    predictions : Path
        What would be zipped.
    challenge : Challenge
        Whose rules apply.
    ground_truth : Path, optional
        The reference labels, if they are public: names and grids are compared.
    images : Path, optional
        The CTs, if the labels are not: the same, as far as CTs tell.
    workers : int, optional
        Processes to use; None for as many as CPUs and memory allow.
    on_case : callable, optional
        Told of every label map as it has been read.

    Raises
    ------
    OrganiserError
        If the reference labels are at fault.
    HostError
        If a folder or file cannot be read, or memory does not suffice.
    """
    if ground_truth:
        references, submitted = find_files(predictions, ground_truth, challenge)
        prepared = prepare(match_cases(submitted, references), challenge)
        missing = "Scores depend on the labels: only an evaluation tells them."
    elif images:
        prepared = _prepare_with_images(predictions, images, challenge)
        missing = "Names and grids are those of the images."
    else:
        prepared = _prepare_alone(predictions)
        missing = (
            "Names and grids were not compared with anything: add --images with the"
            " folder of the CTs."
        )
    problems = list(prepared.problems)
    organs: Counter[str] = Counter()
    attempts = score_cases(
        prepared.pairs,
        challenge,
        workers=workers or default_workers(prepared.largest_voxels),
        check_only=True,
    )
    count = len(prepared.pairs)
    for number, attempt in enumerate(attempts, start=1):
        organs.update(attempt.organs)
        if attempt.problem:
            problems.append(attempt.problem)
        if on_case:
            on_case(number, count, attempt)
    if not problems and not organs:
        problems.append(EmptyError(count))
    return Report(
        lines=problem_lines(problems),
        summary=_summary(challenge, count, organs, missing),
    )


def _prepare_with_images(
    predictions: Path, images: Path, challenge: Challenge
) -> Prepared:
    """Check names and headers against those of the CTs."""
    for folder in (predictions, images):
        if not folder.is_dir():
            problem = f"{safe(folder)}: there is no such folder"
            raise InputError(problem)
    try:
        references = [
            replace(file, case=case, name=f"{case}{SUFFIX}")
            for file in find_references(images)
            for case in [file.case.removesuffix(CHANNEL)]
        ]
        matching = match_cases(find_label_maps(predictions), references)
        return prepare(matching, challenge)
    except GroundTruthError as error:
        problem = f"{safe(images)}: {error.problem}"
        raise InputError(problem) from error


def _prepare_alone(predictions: Path) -> Prepared:
    """Check the headers of label maps that there is nothing to compare with."""
    if not predictions.is_dir():
        problem = f"{safe(predictions)}: there is no such folder"
        raise InputError(problem)
    matching = match_alone(find_label_maps(predictions))
    problems = list(matching.problems)
    pairs, voxels = [], [0]
    for pair in matching.pairs:
        try:
            grid = read_grid(pair.prediction.path, pair.prediction.name)
        except SubmissionError as error:
            problems.append(error)
        else:
            pairs.append(pair)
            voxels.append(math.prod(grid.shape))
    return Prepared(
        pairs=tuple(pairs),
        problems=tuple(problems),
        warnings=(),
        largest_voxels=max(voxels),
    )


def _summary(
    challenge: Challenge, count: int, organs: Mapping[str, int], missing: str
) -> str:
    """What would be scored, in a few lines."""
    names = [organ.name for organ in challenge.organs]
    width = max(map(len, names))
    lines = [f"Checked {count} label maps by the rules of {challenge.name}. They have:"]
    lines += [f"  {name.ljust(width)}  in {organs[name]} of {count}" for name in names]
    return "\n".join([*lines, missing])
