"""Unpacks a zip file, as it would be uploaded, into a folder to check."""

from __future__ import annotations

import math
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flare.challenge.answers import ANSWER_SUFFIXES
from flare.common.errors import DISK, InputError, unwritable
from flare.common.text import safe, why
from flare.evaluation.errors import UploadError

MOST_ZIP_ENTRIES = 100_000
"""At most this many files and folders are in a zip: no challenge has more cases."""

SPARE_BYTES = 2**30
"""The room that is left on the disk when all is unpacked."""

_ENCRYPTED = 0x1

_SUPPORTED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_ANEW = "Zip the files anew with the tool of your system, without a password."

_ALONE = (
    "Zip what the challenge asks for alone: label maps, one for each case, or tables."
)

IMAGE_SUFFIX = ".tar.gz"
"""The end of the name of a container image that is sent."""

_REMEDY = f"Give the folder of the label maps, their zip, or TEAMNAME{IMAGE_SUFFIX}."


def is_container_image(path: Path) -> bool:
    """Whether a path is a container image, and no folder or zip of label maps."""
    return path.name.lower().endswith(IMAGE_SUFFIX) and path.is_file()


@contextmanager
def label_maps_folder(path: Path, remedy: str = _REMEDY) -> Iterator[Path]:
    """A folder of label maps or tables, or the one that their zip is unpacked into.

    A table by itself is copied into a folder of its own.

    `remedy` is what to do where there is neither.

    Raises
    ------
    InputError
        If there is neither.
    UploadError
        If it is not a zip that the platform would take.
    """
    if path.is_file():
        with tempfile.TemporaryDirectory(prefix="flare-check-") as folder:
            if path.suffix in ANSWER_SUFFIXES:
                shutil.copy(path, folder)
            else:
                unpack_zip(path, Path(folder))
            yield Path(folder)
    elif path.is_dir():
        yield path
    else:
        raise InputError(f"{safe(path)}: there is no such file or folder", remedy)


class NoRoomError(UploadError):
    """The disk has no room for a zip file now."""


def unpack_zip(file: Path, folder: Path, most_bytes: float = math.inf) -> None:
    """Unpack a zip file, of at most this many bytes when it is unpacked.

    An UploadError is raised if the platform would refuse it, or it has too much;
    `NoRoomError` if it has no room here.
    """
    name = safe(file.name)
    try:
        with zipfile.ZipFile(file) as archive:
            _refuse_entries(archive, name)
            check_room(archive.infolist(), name, folder, most_bytes)
            for entry in overlapping(archive):
                problem = f"{safe(entry.filename)} overlaps what follows"
                raise zipfile.BadZipFile(problem)
            _extract(archive, folder)
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise UploadError(
            f"{name}: it is no zip file, or a damaged one ({error})", _ANEW
        ) from error
    except OSError as error:
        if error.errno in DISK:
            raise unwritable(folder, error) from error
        raise _cannot_be_unpacked(name, why(error)) from error
    except (RuntimeError, ValueError) as error:
        raise _cannot_be_unpacked(name, str(error).lower()) from error


def _refuse_entries(archive: zipfile.ZipFile, name: str) -> None:
    """Raise an UploadError if an entry of a zip is not to be unpacked."""
    for entry in archive.infolist():
        problem = _problem(entry)
        if problem:
            text = f"{name}: {problem} ({safe(entry.filename)})"
            raise UploadError(text, _ANEW)


def _extract(archive: zipfile.ZipFile, folder: Path) -> None:
    """Write all files of a zip into a folder, over none that is there."""
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        target = folder / entry.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as content, target.open("xb") as unpacked:
            shutil.copyfileobj(content, unpacked, 2**20)


def _cannot_be_unpacked(name: str, reason: str) -> UploadError:
    return UploadError(f"{name}: it cannot be unpacked ({safe(reason)})", _ANEW)


def check_room(
    entries: list[zipfile.ZipInfo],
    name: str,
    folder: Path,
    most_bytes: float = math.inf,
) -> None:
    """Refuse a zip file of too much, or of more than the disk has room for.

    Sizes are as the zip tells them; zipfile never unpacks more.
    """
    if len(entries) > MOST_ZIP_ENTRIES:
        raise UploadError(
            f"{name}: it has {len(entries)} entries, at most {MOST_ZIP_ENTRIES}", _ALONE
        )
    size = sum(entry.file_size for entry in entries)
    if size > most_bytes:
        raise UploadError(
            f"{name}: it has {size / 2**20:.0f} MiB when it is unpacked, more than its"
            " label maps and tables can have",
            _ALONE,
        )
    if size + SPARE_BYTES > shutil.disk_usage(folder).free:
        raise NoRoomError(
            f"{name}: it has no room here ({size / 2**30:.1f} GiB)",
            "Make room, or choose another disk with --output or TMPDIR.",
        )


def overlapping(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Files of a zip whose data reach into the next one, or into the directory.

    Bombs are made so. Python refuses to open them since 3.11.8, 3.12.2 and 3.13, and so
    does the platform.
    """
    reaching: list[zipfile.ZipInfo] = []
    if archive.fp is None:  # it was closed
        return reaching
    end = archive.start_dir
    by_place = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    for entry in reversed(by_place):
        archive.fp.seek(entry.header_offset + 26)
        lengths = struct.unpack("<2H", archive.fp.read(4).ljust(4, b"\0"))
        if entry.header_offset + 30 + sum(lengths) + entry.compress_size > end:
            reaching.append(entry)
        end = entry.header_offset
    return reaching


def _problem(entry: zipfile.ZipInfo) -> str:
    """Why a file of a zip is not to be unpacked; empty if it is."""
    if "\\" in entry.orig_filename:
        return "its names have backslashes, which are no folders on the platform"
    if not _is_inside(entry.filename):
        return "its names lead elsewhere"
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _SUPPORTED:
        return "it is encrypted, or not compressed by Deflate"
    return ""


def _is_inside(filename: str) -> bool:
    """Whether a name of a zip leads to a place in the folder where it is unpacked."""
    parts = filename.rstrip("/").split("/")
    is_plain = not any(part in ("", ".", "..") for part in parts)
    return is_plain and "\0" not in filename and len(os.fsencode(filename)) < 2**11
