"""Unpacks a zip file of label maps, as it would be uploaded, into a folder to check."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
import zlib
from collections import Counter
from itertools import islice
from pathlib import Path, PurePosixPath

from flare.challenge.formats import SUFFIXES
from flare.common.files import DISK, unwritable
from flare.common.text import listing, safe
from flare.evaluation.errors import UploadError

MOST_ENTRIES = 100_000
"""Files and folders of a zip: no challenge has so many cases."""

SPARE_BYTES = 2**30
"""What is left on the disk when all is unpacked."""

ZIP_MAGIC = b"PK\x03\x04"

MEMBERS = 1000
"""So many members of a tar file are looked at."""

_IMAGE_MEMBERS = ("manifest.json", "index.json", "oci-layout", "repositories")

_ENCRYPTED = 0x1

_SUPPORTED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_ANEW = "Zip the label maps anew with the tool of your system."


def is_zip(file: Path) -> bool:
    """Whether a file is, or is called, a zip file."""
    with file.open("rb") as content:
        return file.suffix.lower() == ".zip" or content.read(4) == ZIP_MAGIC


def find_label_maps_in_tar(file: Path) -> tuple[str, ...]:
    """The label maps in a tar file that is no image; none if it is no tar file."""
    try:
        with tarfile.open(file, "r:*") as archive:
            names = [member.name for member in islice(archive, MEMBERS)]
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError):
        return ()
    if any(PurePosixPath(name).name in _IMAGE_MEMBERS for name in names):
        return ()
    return tuple(name for name in names if name.lower().endswith(SUFFIXES))


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
    except (zipfile.BadZipFile, UnicodeError, EOFError, zlib.error) as error:
        raise UploadError(
            f"{name}: it is no zip file, or a damaged one ({error})", _ANEW
        ) from error
    except (NotImplementedError, RuntimeError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno in DISK:
            raise unwritable(folder, error) from error
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UploadError(
            f"{name}: it cannot be unpacked ({safe(str(reason).lower())})", _ANEW
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
    counts = Counter(entry.filename for entry in entries)
    for what, remedy, found in (
        (
            "it is encrypted",
            "Zip the label maps without a password.",
            [e.filename for e in entries if e.flag_bits & _ENCRYPTED],
        ),
        (
            "its names have backslashes, which are no folders on the platform",
            "Zip the files with another tool, which writes a / between folders.",
            [e.filename for e in entries if "\\" in e.orig_filename],
        ),
        (
            "its names lead elsewhere",
            _ANEW,
            [e.filename for e in entries if not _is_inside(e.filename)],
        ),
        (
            "there are several entries of one name",
            _ANEW,
            [filename for filename, count in counts.items() if count > 1],
        ),
        (
            "it is not compressed by Deflate",
            _ANEW,
            [e.filename for e in entries if e.compress_type not in _SUPPORTED],
        ),
    ):
        if found:
            raise UploadError(f"{name}: {what} ({listing(found)})", remedy)


def _is_inside(filename: str) -> bool:
    """Whether a name of a zip leads to a place in the folder where it is unpacked."""
    parts = filename.rstrip("/").split("/")
    is_plain = not any(part in ("", ".", "..") for part in parts)
    return is_plain and "\0" not in filename and len(os.fsencode(filename)) < 2**11
