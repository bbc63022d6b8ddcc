"""Unpacks a zip file of label maps, as it would be uploaded, into a folder to check."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flare.common.errors import DISK, InputError, unwritable
from flare.common.text import listing, safe, why
from flare.evaluation.errors import UploadError

MOST_ENTRIES = 100_000
"""Files and folders of a zip: no challenge has so many cases."""

SPARE_BYTES = 2**30
"""What is left on the disk when all is unpacked."""

ZIP_MAGIC = b"PK\x03\x04"

_ENCRYPTED = 0x1

_SUPPORTED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_ANEW = "Zip the label maps anew with the tool of your system, without a password."

IMAGE_SUFFIX = ".tar.gz"
"""Of a container image that is sent."""

_REMEDY = f"Give the folder of the label maps, their zip, or TEAMNAME{IMAGE_SUFFIX}."


def is_image(path: Path) -> bool:
    """Whether a path is a container image, and no folder or zip of label maps."""
    return path.name.lower().endswith(IMAGE_SUFFIX) and path.is_file()


@contextmanager
def opened(path: Path) -> Iterator[tuple[Path, str]]:
    """A folder of label maps, or that which their zip is unpacked into.

    Beside it is said what was unpacked.

    Raises
    ------
    InputError
        If it is neither.
    UploadError
        If it is a zip that the platform would refuse.
    """
    if not path.exists():
        raise InputError(f"{safe(path)}: there is no such file or folder", _REMEDY)
    if path.is_dir():
        yield path, ""
        return
    if not path.is_file() or not is_zip(path):
        problem = "it is neither a folder, nor a zip, nor an image"
        raise InputError(f"{safe(path)}: {problem}", _REMEDY)
    with tempfile.TemporaryDirectory(prefix="flare-check-") as folder:
        yield Path(folder), unpack_zip(path, Path(folder))


def is_zip(file: Path) -> bool:
    """Whether a file is, or is called, a zip file.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        with file.open("rb") as content:
            return file.suffix.lower() == ".zip" or content.read(4) == ZIP_MAGIC
    except OSError as error:
        raise InputError(f"{safe(file)}: it cannot be read ({why(error)})") from error


def unpack_zip(file: Path, folder: Path) -> str:
    """Unpack a zip file, and say in a few words what is in it.

    Raises
    ------
    UploadError
        If the platform would refuse it, or it has no room here.
    """
    name = safe(file.name)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, name)
            size = check_room(entries, name, folder)
            files = [entry for entry in entries if not entry.is_dir()]
            for entry in files:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as content, target.open("xb") as unpacked:
                    shutil.copyfileobj(content, unpacked, 2**20)
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise UploadError(
            f"{name}: it is no zip file, or a damaged one ({error})", _ANEW
        ) from error
    except (RuntimeError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno in DISK:
            raise unwritable(folder, error) from error
        reason = why(error) if isinstance(error, OSError) else str(error).lower()
        raise UploadError(
            f"{name}: it cannot be unpacked ({safe(reason)})", _ANEW
        ) from error
    return f"{name}: {len(files)} files, {size / 2**20:.0f} MB unpacked."


def check_room(entries: list[zipfile.ZipInfo], name: str, folder: Path) -> int:
    """Refuse a zip file of too many files, or of more than the disk has room for.

    Returns
    -------
    int
        Bytes of all files as the zip tells them; zipfile never unpacks more.
    """
    if len(entries) > MOST_ENTRIES:
        raise UploadError(
            f"{name}: it has {len(entries)} entries, at most {MOST_ENTRIES}",
            "Zip the label maps alone, one for each case.",
        )
    size = sum(entry.file_size for entry in entries)
    if size + SPARE_BYTES > shutil.disk_usage(folder).free:
        raise UploadError(
            f"{name}: it has no room here ({size / 2**30:.1f} GiB)",
            "Make room, or choose another disk with --output or TMPDIR.",
        )
    return size


def _check_entries(entries: list[zipfile.ZipInfo], name: str) -> None:
    """Refuse what is not to be unpacked."""
    backslashes = "its names have backslashes, which are no folders on the platform"
    for what, found in (
        (backslashes, [e.filename for e in entries if "\\" in e.orig_filename]),
        (
            "its names lead elsewhere",
            [e.filename for e in entries if not _is_inside(e.filename)],
        ),
        (
            "it is encrypted, or not compressed by Deflate",
            [
                e.filename
                for e in entries
                if e.flag_bits & _ENCRYPTED or e.compress_type not in _SUPPORTED
            ],
        ),
    ):
        if found:
            raise UploadError(f"{name}: {what} ({listing(found)})", _ANEW)


def _is_inside(filename: str) -> bool:
    """Whether a name of a zip leads to a place in the folder where it is unpacked."""
    parts = filename.rstrip("/").split("/")
    is_plain = not any(part in ("", ".", "..") for part in parts)
    return is_plain and "\0" not in filename and len(os.fsencode(filename)) < 2**11
