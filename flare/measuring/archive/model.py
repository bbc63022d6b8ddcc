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
from pathlib import Path
from tarfile import TarFile, TarInfo
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
    """A model that was gone through, and can be unpacked."""

    path: Path
    sha256: str
    """SHA-256 of the file."""
    unpacked_bytes: int
    """Size of the tar file in it."""


def model_beside(archive: Path) -> Path | None:
    """The model that lies beside TEAMNAME.tar.gz; None without one.

    Examples
    --------
    >>> model_beside(Path("nowhere/team.tar.gz")) is None
    True
    """
    file = archive.with_name(f"{archive.name.removesuffix('.tar.gz')}{MODEL_SUFFIX}")
    return file if file.exists() else None


@contextmanager
def sent_file(
    path: Path, error_class: type[ArchiveError | ModelError], name: str
) -> Iterator[io.BufferedReader]:
    """Open what a team has sent.

    An ArchiveError or ModelError is raised: as `error_class`, if it is a folder, a
    device, a pipe or a socket. An InputError is raised if there is no such file, or it
    may not be read.
    """
    try:
        with open_regular(path) as file:
            yield file
    except OSError as error:
        if error.errno in NO_FILE:
            raise error_class(path.name, "it is not a file") from error
        raise InputError(
            f"{safe(path)}: it cannot be read ({why(error)})",
            f"Give {name} as the team has sent it.",
        ) from error


def read_model(path: Path) -> Model:
    """Go through a model once, without writing anything.

    A ModelError is raised if it cannot be unpacked. An InputError is raised if there is
    no such file, or it may not be read.
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

    A ModelError is raised if the file has changed since it was read. An OutputError is
    raised if they cannot be written.
    """
    try:
        _make_folder(folder)
        is_same = _go_through(model.path, folder) == model
    except (BrokenError, ModelError):
        is_same = False
    if not is_same:
        problem = "it has changed since it was checked"
        raise ModelError(model.path.name, problem, "Hand it in again.")


def _go_through(path: Path, folder: Path | None = None) -> Model:
    """Judge all that a model holds, and write it to a folder, if there is one."""
    budget = Budget(unpacked_bytes=MODEL_BYTES, entries=MODEL_ENTRIES)
    tree = _Tree(budget, folder)
    with explained(), open_regular(path) as file:
        kind = compression_of(file)
        stored = Hashed(file)
        content = TarContent(unpacked(stored, kind), budget)
        for entry, archive in entries_of(content):
            tree.add(entry, archive)
        while stored.read(PIECE_BYTES):
            pass
    if _FILE not in tree.kinds.values():
        raise ModelError(path.name, "it holds no file")
    tree.make_links()
    return Model(path=path, sha256=stored.sha256(), unpacked_bytes=content.tell())


class _Tree:
    """The files, folders and links of a model; no two have the same name.

    Names, and folders that no entry is about, are taken off the budget. If there is a
    new folder for them, they are made in it.
    """

    def __init__(self, budget: Budget, folder: Path | None) -> None:
        self._budget, self._folder = budget, folder
        self.kinds = {".": _FOLDER}
        self._targets: dict[str, str] = {}

    def add(self, entry: TarInfo, archive: TarFile) -> None:
        """Judge an entry, and make it, unless it is a link.

        A BrokenError is raised if it would not be the same for all readers.
        """
        name = _plain_name(entry.name)
        if name == "." and entry.isdir():
            return
        self._add_parents(name)
        if entry.isdir():
            if self.kinds.get(name) != _FOLDER:
                self._enter(name, _FOLDER)
        elif entry.issym():
            self._targets[name] = _inner_target(name, entry.linkname)
            self._enter(name, "a link", self._targets[name])
        elif entry.isreg():
            self._enter(name, _FILE)
            self._write(name, entry, archive)
        elif entry.islnk():
            raise BrokenError(f"it holds {safe(name)}, a hard link")
        else:
            raise BrokenError(
                f"it holds {safe(name)}, which is neither a file nor a folder"
            )

    def _add_parents(self, name: str) -> None:
        """Make the folders above a name that no entry has been about yet."""
        # Above a folder that is there, all are: a path may have a thousand of them.
        missing: list[str] = []
        parent = posixpath.dirname(name) or "."
        while parent not in self.kinds:
            missing.append(parent)
            parent = posixpath.dirname(parent) or "."
        if self.kinds[parent] != _FOLDER:
            inner = f"{safe(name)} in {safe(parent)}, which is {self.kinds[parent]}"
            raise BrokenError(f"it holds {inner}")
        for folder in reversed(missing):
            self._budget.take_entry(TarInfo(folder))
            self._enter(folder, _FOLDER)

    def _enter(self, name: str, kind: str, target: str = "") -> None:
        """Note a name that is new: which of two counts depends on the reader."""
        if name in self.kinds:
            raise BrokenError(f"it holds {safe(name)} twice")
        self._budget.take_noted(len(name) + len(target))
        self.kinds[name] = kind
        if kind == _FOLDER and self._folder:
            _make_folder(self._folder / name)

    def _write(self, name: str, entry: TarInfo, archive: TarFile) -> None:
        content = archive.extractfile(entry) if self._folder else None
        if self._folder and content:
            mode = 0o755 if entry.mode & 0o100 else 0o644
            _write(self._folder / name, content, mode=mode)

    def make_links(self) -> None:
        """Make the links, when nothing can be written through them any more."""
        if not self._folder:
            return
        with _writing(self._folder):
            for name, target in self._targets.items():
                (self._folder / name).symlink_to(target)


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

    It goes up first, past real folders, and down then: so wherever the
    links that it meets there lead to, it stays within.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    if target.startswith("/") or ".." in parts[up:] or up > name.count("/"):
        raise BrokenError(f"it holds {safe(name)}, a link that may lead out of it")
    _check_path(target)
    return "/".join(parts) or "."


def _check_path(path: str) -> None:
    encoded = b""
    with suppress(UnicodeEncodeError):
        encoded = os.fsencode(path)
    longest = max(map(len, encoded.split(b"/")))
    if not encoded or b"\0" in encoded:
        raise BrokenError(f"it holds {safe(path)}, which is no name of a file")
    if longest > NAME_BYTES or len(encoded) > PATH_BYTES:
        raise BrokenError(f"it holds {safe(path)}, a name that is too long")
