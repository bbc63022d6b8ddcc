"""Unpacks a zip file, as the platform would, into a folder to check.

What rse-sagemaker-shim takes (extract.safe_extract) is taken, and lies where it would
lie in /input; what it refuses is refused, with the reason. Bombs are refused besides.
"""

from __future__ import annotations

import lzma
import math
import os
import posixpath
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from flare.challenge.answers import ANSWER_SUFFIXES
from flare.common.errors import DISK, InputError, unwritable
from flare.common.text import safe, why
from flare.evaluation.errors import UploadError

MOST_ZIP_ENTRIES = 100_000
"""At most this many files and folders are in a zip: no challenge has more cases."""

SPARE_BYTES = 2**30
"""The room that is left on the disk when all is unpacked."""

ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PK00PK\x03\x04")
"""The platform knows a zip file by its first bytes alone, not by its name."""

METHODS = {0: "Stored", 8: "Deflate", 12: "BZip2", 14: "LZMA"}
"""The compression methods of Python 3.12, in which the platform unpacks."""

MOST_DICTIONARY_BYTES = 2**28
"""As much memory may LZMA ask for: 7-Zip's "ultra" asks for a quarter of it."""

_JUNK = re.compile(r"__MACOSX|\.DS_Store|desktop.ini")
"""The platform drops files whose path contains this."""

_OTHER_METHODS = {
    9: "Deflate64, as by Windows Explorer from 2 GB on",
    93: "Zstandard",
    98: "PPMd",
}

_ENCRYPTED = 0x1

_WITHIN = "Zip the files from within their folder, without paths before their names."

_ANEW = "Zip the files anew, by Deflate and without a password."

_BY_TAR = "In their folder, on Windows: tar -a -c -f ../submission.zip ."

_ALONE = (
    "Zip what the challenge asks for alone: label maps, one for each case, or tables."
)

IMAGE_SUFFIX = ".tar.gz"
"""The end of the name of a container image that is sent."""

_REMEDY = f"Give the folder of the label maps, their zip, or TEAMNAME{IMAGE_SUFFIX}."


def is_container_image(path: Path) -> bool:
    """Whether a path is a container image, and no folder or zip of label maps."""
    return path.name.lower().endswith((IMAGE_SUFFIX, ".tar", ".tgz")) and path.is_file()


@contextmanager
def label_maps_folder(path: Path, remedy: str = _REMEDY) -> Iterator[Path]:
    """A folder of label maps or tables, or the one that their zip is unpacked into.

    A table by itself is copied into a folder of its own.

    `remedy` is what to do where there is neither. An InputError is raised if there is
    neither. A UploadError is raised if it is not a zip that the platform would take.
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


EVERY_SUFFIX = ("",)
"""All names end in it."""


def unpack_zip(
    file: Path,
    folder: Path,
    most_bytes: float = math.inf,
    suffixes: tuple[str, ...] = EVERY_SUFFIX,
) -> None:
    """Unpack a zip file, of at most this many bytes when it is unpacked.

    Files with other suffixes, which nobody reads, are unpacked as empty ones.

    An UploadError is raised if the platform would refuse it, or it has too much;
    `NoRoomError` if it has no room here.
    """
    name = safe(file.name)
    try:
        with zipfile.ZipFile(file) as archive:
            check_room(archive.infolist(), name, folder, most_bytes, suffixes)
            with file.open("rb") as stream:
                if not stream.read(8).startswith(ZIP_BEGINNINGS):
                    what = "it unpacks itself, or is a part of several"
                    raise ValueError(f"it does not begin as a zip: {what}")
            names = [entry.filename for entry in archive.infolist()]
            entries = {path: archive.getinfo(n) for n, path in paths_in_input(names)}
            _refuse_entries(archive, entries, name)
            for path, entry in entries.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                if not path.lower().endswith(suffixes):
                    (folder / path).touch()
                    continue
                with archive.open(entry) as content, (folder / path).open("wb") as copy:
                    shutil.copyfileobj(content, copy, 2**20)
    except (zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise UploadError(
            f"{name}: it is no zip file, or a damaged one ({error})", _ANEW
        ) from error
    except OSError as error:
        if error.errno in DISK:
            raise unwritable(folder, error) from error
        raise _cannot_be_unpacked(name, why(error)) from error
    except (RuntimeError, ValueError, MemoryError, struct.error) as error:
        raise _cannot_be_unpacked(name, str(error).lower()) from error


_CURES = {
    "backslashes": _BY_TAR,
    "too long": "Give the files shorter names.",
    "lead elsewhere": _WITHIN,
    "inputs.json": "Rename that folder.",
}
"""What helps against names, by words of the problem."""


def _cure(problem: str) -> str:
    cures = (cure for words, cure in _CURES.items() if words in problem)
    return next(cures, _ANEW)


def paths_in_input(names: Iterable[str]) -> list[tuple[str, str]]:
    """The files of a zip that are extracted, each with its path in /input.

    Folders and junk are dropped. The folders that all other files share are cut off; a
    single file loses all of its folders. As on the platform, the length of the shared
    path and a slash is cut off: too little of "a//b", and too much of "/a". Dots are
    taken out of what is left: "a/../b" needs no folder a.
    """
    # Only folders end with "/". Python 3.11's is_dir fails on an empty name.
    files = [name for name in names if not (name.endswith("/") or _JUNK.search(name))]
    if not files:
        return []
    if len(files) > 1:
        shared = posixpath.commonpath(files)
    else:
        parent = str(PurePosixPath(files[0]).parent)
        shared = "" if parent == "." else parent
    start = len(shared) + 1 if shared else 0
    paths = []
    for name in files:
        place = name[start:]
        # An empty path stays empty: normpath would make it ".".
        paths.append((name, posixpath.normpath(place) if place else ""))
    return paths


def leads_outside(path: str) -> bool:
    """Whether a path, without dots, leads out of the folder that it is below."""
    return path == ".." or path.startswith(("../", "/"))


def _refuse_entries(
    archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str
) -> None:
    overlapping_entries = set(overlapping(archive))
    for path, entry in entries.items():
        file = safe(entry.filename)
        if entry in overlapping_entries:
            raise zipfile.BadZipFile(f"{file} overlaps what follows")
        problem = _name_problem(path, entry) or _dictionary_problem(archive, entry)
        if problem:
            raise UploadError(f"{name}: {problem} ({file})", _cure(problem))
        method = entry.compress_type
        if entry.flag_bits & _ENCRYPTED:
            remedy = "Zip the files anew, without a password."
            raise UploadError(f"{name}: it has a password ({file})", remedy)
        if method not in METHODS:
            title = _OTHER_METHODS.get(method, f"method {method}")
            problem = f"compressed by {title}, which the platform cannot unpack"
            remedy = _BY_TAR if method == 9 else "Zip the files anew, by Deflate."
            raise UploadError(f"{name}: {problem} ({file})", remedy)


def _cannot_be_unpacked(name: str, reason: str) -> UploadError:
    problem = f"it cannot be unpacked ({safe(reason)})"
    return UploadError(f"{name}: {problem}", _cure(reason))


def check_room(
    entries: list[zipfile.ZipInfo],
    name: str,
    folder: Path,
    most_bytes: float = math.inf,
    suffixes: tuple[str, ...] = EVERY_SUFFIX,
) -> None:
    """Refuse a zip file of too much, or of more than the disk has room for.

    Sizes are as the zip tells them; zipfile never unpacks more.
    """
    if len(entries) > MOST_ZIP_ENTRIES:
        raise UploadError(
            f"{name}: it has {len(entries)} entries, at most {MOST_ZIP_ENTRIES}", _ALONE
        )
    read = [e for e in entries if e.filename.lower().endswith(suffixes)]
    size = sum(entry.file_size for entry in read)
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


def _name_problem(path: str, entry: zipfile.ZipInfo) -> str:
    """Why a file cannot lie at its path; empty if it can."""
    if "\\" in entry.orig_filename:
        return "its names have backslashes, which are no folders on the platform"
    if leads_outside(path) or path in ("", "."):
        return "its names lead elsewhere: they have .., // or a single / before them"
    if path.startswith("inputs.json/"):
        return "a folder has the name of the platform's file, inputs.json"
    if len(os.fsencode(path)) >= 2**11:
        return "its names are too long"
    return ""


def _dictionary_problem(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """Why a file would take too much memory to unpack; empty if it does not."""
    if entry.compress_type != zipfile.ZIP_LZMA or archive.fp is None:
        return ""
    archive.fp.seek(entry.header_offset + 26)
    lengths = struct.unpack("<2H", archive.fp.read(4).ljust(4, b"\0"))
    archive.fp.seek(sum(lengths) + 5, os.SEEK_CUR)
    size = int.from_bytes(archive.fp.read(4), "little")
    is_large = size > MOST_DICTIONARY_BYTES
    return f"its LZMA dictionary has {size >> 20} MiB, at most 256" * is_large
