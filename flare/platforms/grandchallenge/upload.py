"""Unpacks an upload as grand-challenge.org does, and fails where the platform fails.

The rules are those of rse-sagemaker-shim (extract.safe_extract and the handlers of its
errors). Errors without a rule become "An unexpected error occurred", as there.
"""

from __future__ import annotations

import errno
import json
import shutil
import zipfile
from pathlib import Path

from flare.common.text import safe, why
from flare.evaluation.errors import UploadError
from flare.evaluation.submission.find import TABLE_FILE_NAME
from flare.evaluation.submission.jobs import (
    INPUTS_FILE_NAME,
    JOBS_SOCKET,
    TABLE_SOCKET,
    ZIP_SOCKET,
    has_jobs,
)
from flare.evaluation.submission.unpack import (
    METHODS,
    ZIP_BEGINNINGS,
    check_room,
    leads_outside,
    overlapping,
    paths_in_input,
)

_LOOKED_AT = 2048
"""The platform knows all other files by these first bytes."""

UNEXPECTED = "An unexpected error occurred"
"""The platform's message for an error that its program did not foresee."""

NOT_SUPPORTED = "That compression method is not supported"
"""The text by which the platform recognises this error of zipfile."""


def prepare_input(source: Path, target: Path) -> None:
    """Fill `target`, an empty folder, with the files that would be in /input.

    The source is a zip file, a folder that would be zipped, a table, or an /input of an
    algorithm phase, whose predictions.json lists its jobs. A UploadError is raised if
    the platform would refuse the upload, or could not unpack it, or it has no room
    here.
    """
    socket = ZIP_SOCKET
    if source.is_dir() and has_jobs(source):
        socket = JOBS_SOCKET
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
    elif source.is_dir():
        _copy(source, target)
    elif _beginning(source).startswith(ZIP_BEGINNINGS):
        _extract(source, target)
    else:
        socket = TABLE_SOCKET
        _check_table(source)
        shutil.copyfile(source, target / TABLE_FILE_NAME)
    # The platform writes inputs.json last, and replaces one that the zip has brought.
    inputs = target / INPUTS_FILE_NAME
    if inputs.is_dir() and not inputs.is_symlink():
        cause = "inputs.json is the platform's, and here a folder"
        raise _upload_error(source, UNEXPECTED, cause)
    inputs.unlink(missing_ok=True)
    inputs.write_text(json.dumps([{"socket": {"slug": socket}}]), encoding="utf-8")


def _beginning(source: Path) -> bytes:
    with source.open("rb") as file:
        return file.read(_LOOKED_AT)


def _check_table(source: Path) -> None:
    """Refuse a file that the platform would not take for a text.

    JSON is one if it goes on behind the bytes that the platform looks at.
    """
    beginning = _beginning(source)
    kind = _kind_of_json(beginning.decode("utf-8", "replace"))
    if kind:
        raise _upload_error(source, f"{kind} files are not supported.")
    if b"\0" in beginning or not beginning or beginning.startswith(b"\x1f\x8b"):
        problem = "the platform takes a zip file or a table, and this is neither"
        raise UploadError(f"{safe(source)}: {problem}")


def _kind_of_json(text: str) -> str:
    """The platform's name for whole objects or lists of JSON; empty for other texts."""
    text, lines = text.strip(" \t\r\n"), 0
    while text.startswith(("[", "{")):
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            break
        text, lines = text[end:].lstrip(" \t\r\n"), lines + 1
    if lines > 1:
        return "application/x-ndjson"
    return "application/json" if lines and not text else ""


def _copy(source: Path, target: Path) -> None:
    """Copy the files of a folder to where they would be if it had been zipped."""
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    names = [file.relative_to(source).as_posix() for file in files]
    for name, path in paths_in_input(names):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / path)


def _extract(source: Path, target: Path) -> None:
    """Extract a zip file; every failure is worded as the platform would."""
    try:
        with zipfile.ZipFile(source) as archive:
            check_room(archive.infolist(), safe(source), target)
            overlapping_entries = set(overlapping(archive))
            names = [entry.filename for entry in archive.infolist()]
            for name, path in paths_in_input(names):
                if leads_outside(path):
                    raise _upload_error(source, "Zip file contains invalid paths")
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                if archive.getinfo(name) in overlapping_entries:
                    raise zipfile.BadZipFile("it reaches into another one")
                _extract_file(archive, name, target / path)
    except UploadError:
        raise
    except Exception as error:  # zipfile lets many kinds through, from zlib and others
        raise _extraction_error(source, error) from error


def _extract_file(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    with archive.open(name) as content, file.open("wb") as stream:
        # This Python may know more methods than the platform's.
        if archive.getinfo(name).compress_type not in METHODS:
            raise NotImplementedError(NOT_SUPPORTED)
        shutil.copyfileobj(content, stream)


def _extraction_error(source: Path, error: Exception) -> UploadError:
    """The platform's message for an error of zipfile, or of what it calls."""
    if isinstance(error, zipfile.BadZipFile):
        return _upload_error(source, "Input zip file could not be extracted")
    if isinstance(error, NotImplementedError) and str(error) == NOT_SUPPORTED:
        message = "Zip file contains an unsupported compression method"
        return _upload_error(source, message)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return _upload_error(source, "Contents of zip file too large")
    cause = why(error) if isinstance(error, OSError) else str(error)
    return _upload_error(source, UNEXPECTED, cause)


def _upload_error(source: Path, message: str, cause: str = "") -> UploadError:
    """The error of an upload that cannot be unpacked."""
    text = f'{safe(source)}: the participant would read "{message}"'
    return UploadError(f"{text} ({safe(cause)})" if cause else text)
