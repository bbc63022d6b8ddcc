"""Finds what the jobs of an algorithm have written: reads predictions.json."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from flare.challenge.formats import SUFFIXES, FileNames, suffix_of
from flare.challenge.reading import ChallengeError
from flare.challenge.rules import Challenge
from flare.common.errors import FileError
from flare.common.files import open_regular
from flare.common.text import listing, safe, why
from flare.evaluation.errors import (
    FileFormatError,
    GroundTruthError,
    JobError,
    JobsFileError,
    PhaseSettingsError,
)
from flare.evaluation.submission.find import (
    JOBS_FILE_NAME,
    OTHER_SUFFIXES,
    Folder,
    LabelMapFile,
)

FILE_BYTES = 2**25
"""More is not read: the platform writes a few KB for each job."""

INPUTS_FILE_NAME = "inputs.json"
"""The platform's list of what it has put into /input."""

JOBS_SOCKET, ZIP_SOCKET = "predictions-json-file", "predictions-zip-file"
"""What it lists in a phase for algorithms, and in one for predictions."""

SUCCEEDED = "Succeeded"

_DURATION = re.compile(
    r"P(?:(\d{1,6})D)?T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6}(?:\.\d{1,9})?)S)?",
    re.ASCII,
)
"""A time as the platform writes it, by ISO 8601: P0DT00H01M23.456000S."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can escape and no file name holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobImage:
    """An image that a job read or wrote."""

    slug: str
    relative_path: str
    image_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, as far as it matters here."""

    pk: str
    status: str
    inputs: tuple[JobImage, ...]
    outputs: tuple[JobImage, ...]
    durations_s: tuple[tuple[str, float], ...]


def read_sockets(file: Path) -> set[str]:
    """What the platform says that it has put into /input; empty if it does not say."""
    try:
        with open_regular(file) as content:
            values = json.loads(content.read(FILE_BYTES))
        sockets = [value.get("socket") or value.get("interface") for value in values]
        return {_text(socket, "slug") for socket in sockets}
    except (OSError, ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return set()


def read_jobs(file: Path) -> tuple[Job, ...]:
    """Read all jobs; what is not as the platform writes it ends here."""
    if file.is_symlink() or not file.is_file():
        raise JobsFileError("it is a link or no regular file")
    try:
        with file.open("rb") as content:
            data = content.read(FILE_BYTES + 1)
    except OSError as error:
        raise JobsFileError(why(error)) from error
    if len(data) > FILE_BYTES:
        raise JobsFileError(f"it is larger than {FILE_BYTES >> 20} MiB")
    try:
        values = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise JobsFileError("it is not JSON") from error
    if not isinstance(values, list) or not values:
        raise JobsFileError("it is not a list of jobs")
    return tuple(_job(value, number) for number, value in enumerate(values, start=1))


def _job(value: object, number: int) -> Job:
    """One job of the list."""
    try:
        job = Job(
            pk=_text(value, "pk"),
            status=_text(value, "status"),
            inputs=_images(value, "inputs"),
            outputs=_images(value, "outputs"),
            durations_s=_durations(value),
        )
        if not job.inputs:
            raise KeyError("image among its inputs")
    except KeyError as error:
        raise JobsFileError(f"job {number} has no usable {error.args[0]}") from error
    return job


def _images(job: object, key: str) -> tuple[JobImage, ...]:
    """The images among a job's inputs or outputs."""
    values = job.get(key) if isinstance(job, dict) else None
    if not isinstance(values, list):
        raise KeyError(key)
    images = []
    for value in values:
        if not isinstance(value, dict):
            raise KeyError(key)
        # Newer versions of the platform call an interface a socket.
        socket = value.get("socket") or value.get("interface")
        if value.get("image") is not None:
            images.append(
                JobImage(
                    slug=_text(socket, "slug"),
                    relative_path=_text(socket, "relative_path"),
                    image_name=_text(value["image"], "name"),
                )
            )
    return tuple(images)


def _text(value: object, key: str) -> str:
    """A text of a JSON object, of characters that there are."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, str) or _SURROGATE.search(found):
        raise KeyError(key)
    return found


def _durations(job: object) -> tuple[tuple[str, float], ...]:
    """Running times in seconds; what is not as the platform writes it is left out."""
    found = []
    for key in ("exec_duration", "invoke_duration"):
        value = job.get(key) if isinstance(job, dict) else None
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match and any(match.groups()):
            days, hours, minutes, seconds = (
                float(part or 0) for part in match.groups()
            )
            total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
            found.append((f"{key}_s", total))
    return tuple(found)


NAME_CHARACTERS = 255
"""No file has a longer name, so no case has."""

ELSEWHERE = "the path of its output leads elsewhere"

BATCH_MODE = "use_batch_mode is not supported"

_KNOWN = (*SUFFIXES, *OTHER_SUFFIXES)


def find_job_outputs(
    folder: Path, references: Sequence[LabelMapFile], challenge: Challenge
) -> Folder:
    """Find the label map of each case among the outputs of the jobs.

    Parameters
    ----------
    folder : Path
        Where predictions.json is.
    references : sequence of LabelMapFile
        Their cases are those that a job may be for; their names are what the cases
        are called in messages.
    challenge : Challenge
        Says which input and which output of a job counts.

    Returns
    -------
    Folder
        A file for each case that has a job; what is wrong with a job is its problem.

    Raises
    ------
    JobsFileError
        If predictions.json is not what the platform writes, or is in a zip.
    GroundTruthError
        If images have no reference.
    ChallengeError
        If the challenge does not say which of several images of a job counts.
    PhaseSettingsError
        If a job was run on several images of one kind, or the platform has written
        something else than is known, as it may in batch mode.
    """
    sockets = read_sockets(folder / INPUTS_FILE_NAME)
    if ZIP_SOCKET in sockets:
        raise JobsFileError("it came in a zip, but the platform alone writes it")
    try:
        jobs = read_jobs(folder / JOBS_FILE_NAME)
    except JobsFileError as error:
        if JOBS_SOCKET not in sockets:
            raise
        raise PhaseSettingsError(
            JOBS_FILE_NAME,
            f"{error.problem}, though the platform has written it; {BATCH_MODE}",
        ) from error
    try:
        return _find_outputs(folder, jobs, references, challenge)
    except (GroundTruthError, ChallengeError, PhaseSettingsError) as error:
        # The organisers are to blame only for what the platform has written.
        if JOBS_SOCKET in sockets or any(_has_folder(folder, job) for job in jobs):
            raise
        raise JobsFileError(error.problem) from error


def _find_outputs(
    folder: Path,
    jobs: Sequence[Job],
    references: Sequence[LabelMapFile],
    challenge: Challenge,
) -> Folder:
    """The label map of each case that has a job."""
    names = {reference.case: reference.name for reference in references}
    by_case: dict[str, list[Job]] = {}
    strangers = 0
    for job in jobs:
        image = _choose(job.inputs, challenge.algorithm.input, "input", challenge)
        case = _case(image.image_name, names, challenge.names)
        if case is None:
            strangers += 1
        else:
            by_case.setdefault(case, []).append(job)
    if strangers:
        raise GroundTruthError(
            f"{strangers} of {len(jobs)} images that the algorithm was run on have none"
            " of that name"
        )
    files = [
        _output_file(folder, case, names[case], by_case[case], challenge)
        for case in sorted(by_case)
    ]
    return Folder(files=tuple(files), ignored=(), is_algorithm=True)


def _has_folder(folder: Path, job: Job) -> bool:
    """Whether the outputs of a job are there, as on the platform."""
    try:
        return _below(folder, (job.pk, "output"), job.pk).is_dir()
    except (JobError, OSError):
        return False


def _choose(
    values: Sequence[JobImage], slug: str, kind: str, challenge: Challenge
) -> JobImage:
    """The image of a job that counts; there is at least one."""
    chosen = [value for value in values if not slug or value.slug == slug]
    if len(chosen) == 1:
        return chosen[0]
    found = listing(sorted(value.slug for value in values), last=" and ")
    if len(chosen) > 1 and len({value.slug for value in chosen}) == 1:
        same = safe(chosen[0].slug)
        raise PhaseSettingsError(
            JOBS_FILE_NAME,
            f"a job has {len(chosen)} image {kind}s {same}, expected 1; {BATCH_MODE}",
        )
    given = f"is {slug!r}" if slug else "is missing"
    text = f"algorithm.{kind} {given}, but the image {kind}s of a job are {found}"
    if slug and not chosen:
        text += "; every interface of the phase has to have it"
    raise ChallengeError(f"{challenge.key}.toml", text)


def _case(name: str, cases: Container[str], names: FileNames) -> str | None:
    """The case that an image is of, whatever suffixes its name has."""
    if len(name) > NAME_CHARACTERS:
        return None
    while (case := names.case_of("image", name, cases)) not in cases:
        suffix = suffix_of(name, _KNOWN)
        if not suffix:
            return None
        name = name[: -len(suffix)]
    return case


def _output_file(
    folder: Path, case: str, name: str, jobs: Sequence[Job], challenge: Challenge
) -> LabelMapFile:
    """The file that is the output for a case, or what is wrong with it."""
    try:
        path = _output_path(folder, name, jobs, challenge)
    except FileError as error:
        return LabelMapFile(case=case, path=folder, name=name, problem=error)
    except OSError:  # such as a name that no file can have
        problem = JobError(name, ELSEWHERE)
        return LabelMapFile(case=case, path=folder, name=name, problem=problem)
    durations_s = jobs[0].durations_s
    return LabelMapFile(case=case, path=path, name=name, durations_s=durations_s)


def _output_path(
    folder: Path, name: str, jobs: Sequence[Job], challenge: Challenge
) -> Path:
    """The only file in the output folder of the only job."""
    if len(jobs) > 1:
        raise JobError(
            name,
            f"{len(jobs)} jobs were run on it",
            "Expected one: please tell the organisers.",
        )
    (job,) = jobs
    if job.status != SUCCEEDED:
        raise JobError(name, f"the algorithm's job ended as {safe(job.status)}")
    if not job.outputs:
        raise JobError(name, "the algorithm wrote no image")
    output = _choose(job.outputs, challenge.algorithm.output, "output", challenge)
    where = _below(folder, (job.pk, "output", output.relative_path), name)
    files = sorted(where.iterdir()) if where.is_dir() else []
    if len(files) != 1:
        found = f"{len(files)} files" if files else "no file"
        slug = safe(output.slug)
        raise JobError(name, f"the algorithm's output {slug} is {found}")
    (file,) = files
    suffix = suffix_of(file.name, _KNOWN)
    if suffix in OTHER_SUFFIXES:
        problem, _ = OTHER_SUFFIXES[suffix]
        raise FileFormatError(
            name, f"{problem} ({suffix})", "Let the algorithm write its output as .mha."
        )
    if not file.is_file() or file.is_symlink():
        raise JobError(name, "the algorithm's output is a link or no regular file")
    return file


def _below(folder: Path, parts: Sequence[str], name: str) -> Path:
    """A path below a folder; no part of it, and no link on the way, leads out."""
    path = folder
    for part in (step for text in parts for step in PurePosixPath(text).parts):
        # A rooted part, of which "//" is one as well, would begin at the very top.
        if part == ".." or part.startswith("/") or "\0" in part:
            raise JobError(name, ELSEWHERE)
        path /= part
        if path.is_symlink():
            raise JobError(name, ELSEWHERE)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise JobError(name, ELSEWHERE)
    return path
