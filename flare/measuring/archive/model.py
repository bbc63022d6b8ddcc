"""Unpacks the model that a team has sent beside its image, which may mean harm.

grand-challenge.org unpacks such a file, TEAMNAME.model.tar.gz here, to /opt/ml/model of
an algorithm's container. It is gone through by the same rules twice: to judge it, then
to write its files. No file is ever written through a link: links come last, and each
leads to some place in the folder, whatever else the archive holds.
"""

from __future__ import annotations

import io
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tarfile import TarInfo
from typing import IO

from flare.common.errors import InputError, OutputError
from flare.common.files import open_regular
from flare.common.streams import PIECE_BYTES
from flare.common.text import safe, why
from flare.measuring.archive.strict import (
    NO_FILE,
    ArchiveError,
    BrokenError,
    Budget,
    Hashed,
    LimitError,
    ModelError,
    TarContent,
    compression_of,
    entries_of,
    explained,
    unpacked,
)

MODEL_SUFFIX = ".model.tar.gz"

_FILE, _FOLDER = "a file", "a folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is known of a model before it is unpacked."""

    path: Path
    sha256: str
    """Of the file."""
    unpacked_bytes: int
    """Of the tar file in it."""


def model_beside(archive: Path) -> Path | None:
    """The model that lies beside TEAMNAME.tar.gz; None if there is none.

    Examples
    --------
    >>> model_beside(Path("nowhere/team.tar.gz")) is None
    True
    """
    file = archive.with_name(f"{archive.name.removesuffix('.tar.gz')}{MODEL_SUFFIX}")
    return file if file.exists() else None


@contextmanager
def sent_file(
    path: Path, wrong: type[ArchiveError | ModelError], what: str
) -> Iterator[io.BufferedReader]:
    """Open what a team has sent.

    Raises
    ------
    ArchiveError, ModelError
        As `wrong`, if it is a folder, a device, a pipe or a socket.
    InputError
        If there is no such file, or it may not be read.
    """
    try:
        with open_regular(path) as file:
            yield file
    except OSError as error:
        if error.errno in NO_FILE:
            raise wrong(path.name, "it is not a file") from error
        raise InputError(
            f"{safe(path)}: it cannot be read ({why(error)})",
            f"Give {what} as the team has sent it.",
        ) from error


def read_model(path: Path) -> Model:
    """Go through a model once, without writing anything.

    Raises
    ------
    ModelError
        If it cannot be unpacked.
    InputError
        If there is no such file, or it may not be read.
    """
    with sent_file(path, ModelError, "the model"):
        pass
    try:
        return _go_through(path)
    except LimitError as error:
        problem = (
            f"it holds more than {MODEL_BYTES >> 30} GiB, or more than"
            f" {MODEL_ENTRIES} files"
        )
        remedy = "Leave out what is not needed."
        raise ModelError(path.name, problem, remedy) from error
    except BrokenError as error:
        raise ModelError(path.name, str(error)) from error


def unpack_model(model: Model, folder: Path) -> None:
    """Write the files of a model into a new folder, where anybody may read them.

    Raises
    ------
    ModelError
        If the file has changed since it was read.
    OutputError
        If they cannot be written.
    """
    try:
        _make_folder(folder)
        found = _go_through(model.path, folder)
    except (BrokenError, ModelError):
        found = None
    if found != model:
        problem = "it has changed since it was checked"
        raise ModelError(model.path.name, problem, "Hand it in again.")


def _go_through(path: Path, folder: Path | None = None) -> Model:  # noqa: C901
    """Judge all that a model holds, and write it to a folder, if there is one.

    Raises
    ------
    BrokenError
        If it cannot be read, or would not be the same for all readers.
    """
    kinds = {".": _FOLDER}
    links: dict[str, str] = {}
    budget = Budget(unpacked_bytes=MODEL_BYTES, entries=MODEL_ENTRIES)

    def enter(name: str, kind: str, target: str = "") -> None:
        """Note a name that is new: which of two counts depends on the reader."""
        if name in kinds:
            raise BrokenError(f"it holds {safe(name)} twice")
        budget.note(len(name) + len(target))
        kinds[name] = kind
        if kind == _FOLDER and folder:
            _make_folder(folder / name)

    with explained(), open_regular(path) as file:
        kind = compression_of(file)
        stored = Hashed(file)
        content = TarContent(unpacked(stored, kind), budget)
        for entry, archive in entries_of(content, budget):
            name = _plain_name(entry.name)
            if name == "." and entry.isdir():
                continue
            for above in [str(p) for p in reversed(PurePosixPath(name).parents)][1:]:
                if above not in kinds:
                    budget.enter(TarInfo(above))
                    enter(above, _FOLDER)
                elif kinds[above] != _FOLDER:
                    inner = f"{safe(name)} in {safe(above)}, which is {kinds[above]}"
                    raise BrokenError(f"it holds {inner}")
            if entry.isdir():
                if kinds.get(name) != _FOLDER:
                    enter(name, _FOLDER)
            elif entry.issym():
                links[name] = _inner_target(name, entry.linkname)
                enter(name, "a link", links[name])
            elif entry.isreg():
                enter(name, _FILE)
                if folder and (data := archive.extractfile(entry)):
                    mode = 0o755 if entry.mode & 0o100 else 0o644
                    _write(folder / name, data, mode=mode)
            elif entry.islnk():
                raise BrokenError(f"it holds {safe(name)}, a hard link")
            else:
                raise BrokenError(
                    f"it holds {safe(name)}, which is neither a file nor a folder"
                )
        while stored.read(PIECE_BYTES):
            pass
    if _FILE not in kinds.values():
        raise ModelError(path.name, "it holds no file")
    if folder:
        with _writing(folder):
            for name, target in links.items():
                (folder / name).symlink_to(target)
    return Model(path=path, sha256=stored.sha256(), unpacked_bytes=content.tell())


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say that something cannot be written, which is not the team's fault."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{safe(path)}: the model cannot be unpacked ({why(error)})",
            "Make room there.",
        ) from error


def _make_folder(path: Path) -> None:
    with _writing(path):
        path.mkdir()
        path.chmod(0o755)  # the image's user may be anybody


def _write(path: Path, content: IO[bytes], *, mode: int) -> None:
    with _writing(path), path.open("xb") as file:
        while True:
            with explained():
                piece = content.read(PIECE_BYTES)
            if not piece:
                break
            file.write(piece)
        path.chmod(mode)


MODEL_BYTES = 2**36
"""A model that unpacks to more than this, 64 GiB, is not gone through."""

MODEL_ENTRIES = 100_000
"""Nor one with more files, folders and links."""

NAME_BYTES = 255
"""Linux knows no longer name,"""

PATH_BYTES = 2048
"""and no path of 4096; a model lies below some folder of ours."""


def _plain_name(name: str) -> str:
    """A name within the folder, such as a/b for ./a//b/."""
    plain = posixpath.normpath(name)
    if name.startswith("/") or ".." in name.split("/"):
        raise BrokenError(f"it holds {safe(name)}, which lies outside of it")
    _check_path(plain)
    return plain


def _inner_target(name: str, target: str) -> str:
    """The target of a link, if it cannot lead out of the folder.

    It goes up first, past folders that are no links, and down then: so wherever the
    links that it meets there lead to, it stays within.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    if target.startswith("/") or ".." in parts[up:] or up > name.count("/"):
        raise BrokenError(f"it holds {safe(name)}, a link that may lead out of it")
    _check_path(target)
    return "/".join(parts) or "."


def _check_path(path: str) -> None:
    """Refuse a path that a system cannot have."""
    encoded = b""
    with suppress(UnicodeEncodeError):
        encoded = os.fsencode(path)
    longest = max(map(len, encoded.split(b"/")))
    if not encoded or b"\0" in encoded:
        raise BrokenError(f"it holds {safe(path)}, which is no name of a file")
    if longest > NAME_BYTES or len(encoded) > PATH_BYTES:
        raise BrokenError(f"it holds {safe(path)}, a name that is too long")
