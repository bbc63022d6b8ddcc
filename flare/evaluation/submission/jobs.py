"""Finds what the jobs of an algorithm have written: reads predictions.json."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from flare.challenge.formats import SUFFIXES
from flare.challenge.reading import ChallengeError
from flare.challenge.rules import Challenge
from flare.common.errors import FileError
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
    TABLE_FILE_NAME,
    Folder,
    LabelMapFile,
    answer_files_in,
)

FILE_BYTES = 2**25
"""The most that is read: the platform writes a few KB for each job."""

INPUTS_FILE_NAME = "inputs.json"
"""The platform's list of what it has put into /input."""

JOBS_SOCKET, ZIP_SOCKET = "predictions-json-file", "predictions-zip-file"
"""The names that it lists in a phase for algorithms, and in one for predictions."""

TABLE_SOCKET = "predictions-csv-file"
"""The name that it lists for a table that was submitted by itself."""

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
    """One job: what matters here."""

    pk: str
    status: str
    inputs: tuple[JobImage, ...]
    outputs: tuple[JobImage, ...]
    durations_s: Mapping[str, float]


def read_sockets(file: Path) -> set[str]:
    """Read what the platform has put into /input; empty if it does not say so."""
    try:
        return {_text(_socket(value)["slug"]) for value in _read(file)}
    except (JobsFileError, TypeError, AttributeError, KeyError):
        return set()


def submitted_answer_files(
    predictions: Path, challenge: Challenge
) -> dict[str, list[Path]]:
    """The files of answers in a submission, by their names.

    A table that was submitted by itself has the name that the platform gives it, and
    so has JSON.
    """
    predictions = predictions.resolve()  # a file is read if no link is in its path
    files = answer_files_in(predictions, challenge, is_reference=False)
    names = {rules.file for rules in challenge.answers}
    is_table = TABLE_SOCKET in read_sockets(predictions / INPUTS_FILE_NAME)
    if is_table and len(names) == 1:
        (name,) = names
        file = predictions / TABLE_FILE_NAME
        if name.endswith(file.suffix) or _begins_as_json(file):
            files[name] = [file]
    return files


def _begins_as_json(file: Path) -> bool:
    with file.open("rb") as stream:
        beginning = stream.read(2**11).removeprefix(BOM_UTF8)
    return beginning.lstrip().startswith((b"[", b"{"))


def has_jobs(folder: Path) -> bool:
    """Whether the predictions.json of a folder is the platform's, by its content.

    A submission of answers may have a file of that name, with other keys.
    """
    if JOBS_SOCKET in read_sockets(folder / INPUTS_FILE_NAME):
        return True
    try:
        values = _read(folder / JOBS_FILE_NAME)
    except JobsFileError:
        return False
    if not isinstance(values, list) or not values or not isinstance(values[0], dict):
        return False
    return {"pk", "inputs", "outputs"} <= values[0].keys()


def refuse_jobs(folder: Path) -> NoReturn:
    """Refuse the jobs of an algorithm where answers are scored.

    A PhaseSettingsError is raised if the platform has written them: its phase is for
    algorithms. A JobsFileError is raised if not.
    """
    problem = "it lists jobs of an algorithm, and answers are read from files alone"
    if JOBS_SOCKET in read_sockets(folder / INPUTS_FILE_NAME):
        raise PhaseSettingsError(JOBS_FILE_NAME, problem)
    raise JobsFileError(problem, "Submit the files that the challenge asks for.")


def read_jobs(file: Path) -> tuple[Job, ...]:
    """Read all jobs; refuse what is not as the platform writes it."""
    values = _read(file)
    if not isinstance(values, list) or not values:
        raise JobsFileError("it is not a list of jobs")
    jobs = []
    for number, value in enumerate(values, start=1):
        try:
            jobs.append(_job(value))
        except (KeyError, TypeError, AttributeError) as error:
            problem = f"job {number} is not as the platform writes it"
            raise JobsFileError(problem) from error
    return tuple(jobs)


def _read(file: Path) -> Any:
    """Read the JSON of a file of the platform, which may hold anything."""
    if file.is_symlink() or not file.is_file():
        raise JobsFileError("it is a link or no regular file")
    try:
        with file.open("rb") as content:
            text = content.read(FILE_BYTES + 1)
        return json.loads(text if len(text) <= FILE_BYTES else "")
    except OSError as error:
        raise JobsFileError(why(error)) from error
    except (ValueError, RecursionError) as error:
        most = f"larger than {FILE_BYTES >> 20} MiB"
        raise JobsFileError(f"it is not JSON, or {most}") from error


def _job(value: Any) -> Job:
    """One job of the list, which has an image among its inputs."""
    inputs = _images(value["inputs"])
    if not inputs:
        raise KeyError("image")
    return Job(
        pk=_text(value["pk"]),
        status=_text(value["status"]),
        inputs=inputs,
        outputs=_images(value["outputs"]),
        durations_s=_running_times(value),
    )


def _images(values: Any) -> tuple[JobImage, ...]:
    """The images among a job's inputs or outputs."""
    return tuple(
        JobImage(
            slug=_text(_socket(value)["slug"]),
            relative_path=_text(_socket(value)["relative_path"]),
            image_name=_text(value["image"]["name"]),
        )
        for value in values
        if value.get("image") is not None
    )


def _socket(value: Any) -> Any:
    """Newer versions of the platform call an interface a socket."""
    return value.get("socket") or value["interface"]


def _text(value: Any) -> str:
    """A text, of characters that there are."""
    if not isinstance(value, str) or _SURROGATE.search(value):
        raise TypeError(value)
    return value


def _running_times(job: Any) -> dict[str, float]:
    """Running times in seconds; what is not as the platform writes it is left out."""
    times_s = {}
    for key in ("exec_duration", "invoke_duration"):
        value = job.get(key)
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match and any(match.groups()):
            days, hours, minutes, seconds = (
                float(part or 0) for part in match.groups()
            )
            times_s[f"{key}_s"] = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return times_s


NAME_CHARACTERS = 255
"""No file has a longer name, so no case has."""

ELSEWHERE = "the path of its output leads elsewhere"

BATCH_MODE = "use_batch_mode is not supported"

_SUFFIX = re.compile(
    rf"({'|'.join(map(re.escape, (*SUFFIXES, *OTHER_SUFFIXES)))})$", re.IGNORECASE
)
"""The longest one that is known, at the end of a name."""


def find_job_outputs(
    folder: Path, references: Sequence[LabelMapFile], challenge: Challenge
) -> Folder:
    """Find the label map of each case among the outputs of the jobs.

    The folder has predictions.json. A job may be for the case of a reference, whose
    name is what the case is called in messages. Each case that has a job gets a file;
    what is wrong with a job is its problem.

    A JobsFileError is raised if predictions.json is not what the platform writes, or is
    in a zip; a GroundTruthError if images have no reference; a ChallengeError if the
    challenge does not say which of several images of a job counts; a PhaseSettingsError
    if a job was run on several images of one kind, or the platform has written
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
    names = {reference.case: reference.name for reference in references}
    try:
        by_case = _jobs_by_case(jobs, names, challenge)
        files = [
            _output_file(folder, case, names[case], by_case[case], challenge)
            for case in sorted(by_case)
        ]
    except (GroundTruthError, ChallengeError, PhaseSettingsError) as error:
        # The organisers are to blame only for what the platform has written.
        if JOBS_SOCKET in sockets or any(_has_folder(folder, job) for job in jobs):
            raise
        raise JobsFileError(error.problem) from error
    return Folder(
        files=tuple(files),
        is_algorithm=True,
        durations_s={
            file.case: by_case[file.case][0].durations_s
            for file in files
            if not file.problem
        },
    )


def _jobs_by_case(
    jobs: Sequence[Job], cases: Container[str], challenge: Challenge
) -> dict[str, list[Job]]:
    case_of = partial(challenge.names.case_of, "image", cases=cases)
    by_case: dict[str, list[Job]] = {}
    strangers = 0
    for job in jobs:
        image = _choose(job.inputs, challenge.algorithm.input, "input", challenge)
        case = _case(image.image_name, case_of, cases)
        if case is None:
            strangers += 1
        else:
            by_case.setdefault(case, []).append(job)
    if strangers:
        raise GroundTruthError(
            f"{strangers} of {len(jobs)} images that the algorithm was run on have none"
            " of that name"
        )
    return by_case


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
    slugs = {value.slug for value in chosen}
    if len(slugs) == 1:
        raise PhaseSettingsError(
            JOBS_FILE_NAME,
            f"a job has {len(chosen)} image {kind}s {safe(slugs.pop())}, expected 1;"
            f" {BATCH_MODE}",
        )
    raise ChallengeError(
        f"{challenge.key}.toml",
        f"algorithm.{kind} is {slug!r}, expected the one image {kind} that counts of"
        f" those that every job has: {listing(sorted(value.slug for value in values))}",
    )


def _case(
    name: str, case_of: Callable[[str], str], cases: Container[str]
) -> str | None:
    """The case that an image is of, whatever suffixes its name has."""
    if len(name) > NAME_CHARACTERS:
        return None
    while (case := case_of(name)) not in cases:
        shorter = _SUFFIX.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return case


def _output_file(
    folder: Path, case: str, name: str, jobs: Sequence[Job], challenge: Challenge
) -> LabelMapFile:
    """The file that is the output for a case, or what is wrong with it."""
    try:
        path, problem = _output_path(folder, name, jobs, challenge), None
    except FileError as error:
        path, problem = folder, error
    except OSError:  # such as a name that no file can have
        path, problem = folder, JobError(name, ELSEWHERE)
    return LabelMapFile(case=case, path=path, name=name, problem=problem)


def _output_path(
    folder: Path, name: str, jobs: Sequence[Job], challenge: Challenge
) -> Path:
    """The only file in the output folder of the only job."""
    job = _only_job(name, jobs)
    output = _choose(job.outputs, challenge.algorithm.output, "output", challenge)
    where = _below(folder, (job.pk, "output", output.relative_path), name)
    files = sorted(where.iterdir()) if where.is_dir() else []
    if len(files) != 1:
        count = f"{len(files)} files" if files else "no file"
        slug = safe(output.slug)
        raise JobError(name, f"the algorithm's output {slug} is {count}")
    (file,) = files
    for suffix, problem in OTHER_SUFFIXES.items():
        if file.name.lower().endswith(suffix):
            remedy = "Let the algorithm write its output as .mha."
            raise FileFormatError(name, f"{problem} ({suffix})", remedy)
    if not file.is_file() or file.is_symlink():
        raise JobError(name, "the algorithm's output is a link or no regular file")
    return file


def _only_job(name: str, jobs: Sequence[Job]) -> Job:
    """The job that was run on a case, if it is the only one, and has written images."""
    if len(jobs) > 1:
        problem = f"{len(jobs)} jobs were run on it"
        raise JobError(name, problem, "Expected one: please tell the organisers.")
    (job,) = jobs
    if job.status != SUCCEEDED:
        raise JobError(name, f"the algorithm's job ended as {safe(job.status)}")
    if not job.outputs:
        raise JobError(name, "the algorithm wrote no image")
    return job


def _below(folder: Path, parts: Sequence[str], name: str) -> Path:
    """A path below a folder; no part of it, and no link on the way, leads out."""
    path = folder
    for step in chain.from_iterable(PurePosixPath(part).parts for part in parts):
        # A rooted step, and "//" is such a step as well, would begin at the very top.
        if step == ".." or step.startswith("/") or "\0" in step:
            raise JobError(name, ELSEWHERE)
        path /= step
        if path.is_symlink():
            raise JobError(name, ELSEWHERE)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise JobError(name, ELSEWHERE)
    return path
