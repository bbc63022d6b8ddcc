"""Reads the platform's list of an algorithm's jobs, predictions.json.

There, the submission is an algorithm that the platform has run, as one job for each
image of an archive.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from flare.common.files import open_regular
from flare.common.text import why
from flare.evaluation.errors import JobsFileError

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
