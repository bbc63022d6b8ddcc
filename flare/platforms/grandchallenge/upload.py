"""Unpacks what would be uploaded as grand-challenge.org does, or fails as it does.

The rules are those of rse-sagemaker-shim (extract.safe_extract and what catches its
errors), which mends nothing: what it did not foresee is "An unexpected error occurred".
"""

from __future__ import annotations

import errno
import json
import posixpath
import re
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from flare.common.text import safe, why
from flare.evaluation.errors import UploadError
from flare.evaluation.submission.find import JOBS_FILE_NAME
from flare.evaluation.submission.jobs import INPUTS_FILE_NAME, JOBS_SOCKET, ZIP_SOCKET
from flare.evaluation.submission.unpack import check_room, overlapping

_JUNK = re.compile(r"__MACOSX|\.DS_Store|desktop.ini")
"""The platform drops what has this anywhere in its path."""

_ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PK00PK\x03\x04")
"""By its first bytes alone does the platform know a zip file, not by its name."""

_METHODS = (
    *(zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
    *(zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA),
)
"""What Python 3.12, in which the platform unpacks, can decompress."""

UNEXPECTED = "An unexpected error occurred"
"""What its program did not foresee."""

NOT_SUPPORTED = "That compression method is not supported"
"""How zipfile words it; the platform tells this error from others by these words."""


def prepare_input(source: Path, target: Path) -> None:
    """Fill `target` with what would be in /input.

    Parameters
    ----------
    source : Path
        A zip file, a folder of what would be zipped, or an /input of an algorithm
        phase, which has a predictions.json.
    target : Path
        A folder that is there and empty.

    Raises
    ------
    UploadError
        If the platform would refuse the upload, or could not unpack it, or it has no
        room here.
    """
    socket = ZIP_SOCKET
    if source.is_dir() and (source / JOBS_FILE_NAME).is_file():
        socket = JOBS_SOCKET
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
    elif source.is_dir():
        names = [
            path.relative_to(source).as_posix()
            for path in sorted(source.rglob("*"))
            if path.is_file()
        ]
        for name, place in _places(names):
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / place)
    else:
        with source.open("rb") as file:
            is_zip = file.read(8).startswith(_ZIP_BEGINNINGS)
        if not is_zip:
            raise UploadError(
                f"{safe(source)}: the platform takes a zip file, and this is none"
            )
        _extract(source, target)
    # The platform writes this after the zip, and in the place of such a file.
    inputs = target / INPUTS_FILE_NAME
    if inputs.is_dir() and not inputs.is_symlink():
        cause = "inputs.json is the platform's, and here a folder"
        raise _failed(source, UNEXPECTED, cause)
    inputs.unlink(missing_ok=True)
    inputs.write_text(json.dumps([{"socket": {"slug": socket}}]), encoding="utf-8")


def _extract(source: Path, target: Path) -> None:  # noqa: C901
    """Extract a zip file; every failure is worded as the platform would."""
    try:
        with zipfile.ZipFile(source) as archive:
            check_room(archive.infolist(), safe(source), target)
            overlaps = {*overlapping(archive)}
            names = [entry.filename for entry in archive.infolist()]
            # Python 3.11's is_dir fails on an empty name, and the platform's does not.
            files = [name for name in names if not name.endswith("/")]
            for name, place in _places(files):
                # In order before it is used: "a/../b" needs no folder a.
                path = posixpath.normpath(place) if place else place
                if path == ".." or path.startswith(("../", "/")):
                    raise _failed(source, "Zip file contains invalid paths")
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                if archive.getinfo(name) in overlaps:
                    raise zipfile.BadZipFile("it reaches into another one")
                with archive.open(name) as content, (target / path).open("wb") as file:
                    if archive.getinfo(name).compress_type not in _METHODS:
                        raise NotImplementedError(NOT_SUPPORTED)
                    shutil.copyfileobj(content, file)
    except UploadError:
        raise
    except Exception as error:  # zipfile lets many kinds through, from zlib and others
        if isinstance(error, zipfile.BadZipFile):
            message = "Input zip file could not be extracted"
        elif isinstance(error, NotImplementedError) and str(error) == NOT_SUPPORTED:
            message = "Zip file contains an unsupported compression method"
        elif isinstance(error, OSError) and error.errno == errno.ENOSPC:
            message = "Contents of zip file too large"
        else:
            cause = why(error) if isinstance(error, OSError) else str(error)
            raise _failed(source, UNEXPECTED, cause) from error
        raise _failed(source, message) from error


def _failed(source: Path, message: str, cause: str = "") -> UploadError:
    """What becomes of an upload that cannot be unpacked."""
    because = f" ({safe(cause)})" if cause else ""
    said = f'the participant would read "{message}"{because}'
    return UploadError(f"{safe(source)}: {said}")


def _places(names: Iterable[str]) -> list[tuple[str, str]]:
    """Each file of a zip, and where it is to lie in /input.

    Junk is dropped, and what all other names begin with. A single file has no folder
    left; of several, the path that they share is cut off as a number of characters:
    of "a//b" too few, of "/a" too many.
    """
    kept = [name for name in names if not _JUNK.search(name)]
    if not kept:
        return []
    if len(kept) > 1:
        shared = posixpath.commonpath(kept)
    else:
        parent = str(PurePosixPath(kept[0]).parent)
        shared = "" if parent == "." else parent
    start = len(shared) + 1 if shared else 0
    return [(name, name[start:]) for name in kept]
