"""The main job, from two folders to results: find, match, check headers, score."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from flare._version import __version__
from flare.challenge import Challenge, read_challenge
from flare.errors import (
    DemonstrationSetError,
    InputError,
    SubmissionError,
    listing,
    raise_problems,
    safe,
)
from flare.resources import default_workers
from flare.results import Provenance, Results
from flare.scoring import Attempt, check_headers, score_cases
from flare.submission import (
    Folder,
    LabelMapFile,
    find_label_maps,
    find_references,
    is_demonstration,
    match_cases,
)

LIBRARIES = ("nibabel", "numpy", "surface-distance", "zlib-ng")
"""What a result rests on."""

_log = logging.getLogger(__name__)

OnCase = Callable[[int, int, Attempt], None]
"""Called after each case with its number, from 1, the number of cases, and the rest."""


def evaluate(
    predictions: str | Path,
    ground_truth: str | Path,
    *,
    challenge: str | Challenge = "flare21",
    workers: int | None = 1,
    on_case: OnCase | None = None,
) -> Results:
    """Score a folder of predictions against a folder of reference labels.

    Parameters
    ----------
    predictions, ground_truth : str or Path
        Folders of .nii.gz label maps, nested in any way. Files of one case have the
        same name. Nothing in them is changed.
    challenge : str or Challenge
        Name of a bundled challenge, path of a TOML file, or a challenge read before.
    workers : int, optional
        Processes to use; None for as many as CPUs and memory allow. With more than
        one, call this from a program that may fork: before it starts threads.
    on_case : callable, optional
        Told of every case as it is finished, in the order of the cases.

    Returns
    -------
    Results
        To be written by `flare.results.write_metrics`.

    Raises
    ------
    SubmissionError
        If the predictions cannot be scored; says all that is wrong with them.
    OrganiserError
        If the challenge or the reference labels are at fault.
    HostError
        If a folder or file cannot be read, or a worker process died.
    """
    if not isinstance(challenge, Challenge):
        challenge = read_challenge(challenge)
    predictions, ground_truth = Path(predictions), Path(ground_truth)
    for folder in (predictions, ground_truth):
        if not folder.is_dir():
            what = (
                "it is not a folder" if folder.exists() else "there is no such folder"
            )
            problem = f"{safe(folder)}: {what}"
            raise InputError(problem)
    references = find_references(ground_truth)
    submitted = find_label_maps(predictions)
    _log_folder(submitted)
    matching = match_cases(submitted, references)
    is_demo = all(is_demonstration(file.case) for file in references)
    if is_demo and _belongs_elsewhere(submitted, references):
        raise DemonstrationSetError

    problems, warnings, pairs = list(matching.problems), [], []
    largest = 0
    for pair in matching.pairs:
        try:
            checked = check_headers(pair, challenge)
        except SubmissionError as error:
            problems.append(error)
            continue
        pairs.append(pair)
        largest = max(largest, checked.voxels)
        if checked.warning:
            warnings.append(checked.warning)

    attempts = []
    for attempt in score_cases(
        pairs,
        challenge,
        workers=workers or default_workers(largest),
        check_only=bool(problems),
    ):
        attempts.append(attempt)
        if on_case:
            on_case(len(attempts), len(pairs), attempt)
    problems += [attempt.problem for attempt in attempts if attempt.problem]
    raise_problems(problems)
    return Results(
        cases=tuple(attempt.score for attempt in attempts if attempt.score),
        warnings=tuple(warnings),
        provenance=_provenance(challenge, references),
    )


def has_label_maps(folder: Path) -> bool:
    """Whether there is any label map in a folder, which need not exist."""
    return folder.is_dir() and bool(find_label_maps(folder, follow_links=True).files)


def source_commit() -> str:
    """Commit of the program's source, or "unknown".

    The image has it in FLARE_COMMIT; a checkout is asked through git.
    """
    commit = os.environ.get("FLARE_COMMIT", "")
    root = Path(__file__).parents[1]
    if not commit and (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            commit = run.stdout.strip() if run.returncode == 0 else ""
        except OSError:
            pass
    return commit or "unknown"


def _log_folder(folder: Folder) -> None:
    """Tell what was found, and what was left out."""
    _log.info(
        "Found %d label maps: %s",
        len(folder.files),
        listing(file.name for file in folder.files),
    )
    if folder.ignored:
        _log.info("Ignored %d files: %s", len(folder.ignored), listing(folder.ignored))


def _belongs_elsewhere(folder: Folder, references: Sequence[LabelMapFile]) -> bool:
    """Whether something was submitted, and all of it for other cases."""
    expected = {file.case for file in references}
    return bool(folder.files) and all(f.case not in expected for f in folder.files)


def _provenance(challenge: Challenge, references: Sequence[LabelMapFile]) -> Provenance:
    """Describe this run."""
    return Provenance(
        challenge=challenge.key,
        challenge_sha256=challenge.checksum,
        version=__version__,
        commit=source_commit(),
        references_sha256=_digest(references),
        cases=len(references),
        options={},
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
