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

_CHANGED = "it has changed since it was checked"


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
    walk = ModelTar(path)
    try:
        kinds = {entry.kind for entry in walk.entries()}
    except BrokenError as error:
        raise _model_error(path, error) from error
    if _FILE not in kinds:
        raise ModelError(path.name, "it holds no file")
    return Model(path=path, sha256=walk.sha256, unpacked_bytes=walk.unpacked_bytes)


def unpack_model(model: Model, folder: Path) -> None:
    """Write the files of a model into a folder, where anybody may read them.

    Parameters
    ----------
    model : Model
        That was read.
    folder : Path
        There is nothing of this name yet.

    Raises
    ------
    ModelError
        If the file has changed since it was read.
    OutputError
        If they cannot be written.
    """
    walk, links = ModelTar(model.path), []
    try:
        _make_folder(folder)
        for entry in walk.entries():
            path = folder / entry.name
            if entry.target:
                links.append((path, entry.target))
            elif entry.content is None:
                _make_folder(path)
            else:
                _write(path, entry.content, mode=0o755 if entry.is_program else 0o644)
        for path, target in links:
            path.symlink_to(target)
    except BrokenError as error:
        raise ModelError(model.path.name, _CHANGED, "Hand it in again.") from error
    except OSError as error:
        raise OutputError(
            f"{safe(folder)}: the model cannot be unpacked ({why(error)})",
            "Make room there.",
        ) from error
    if walk.sha256 != model.sha256:
        raise ModelError(model.path.name, _CHANGED, "Hand it in again.")


def _make_folder(path: Path) -> None:
    """Make a folder that anybody may read."""
    path.mkdir()
    path.chmod(0o755)  # the image's user may be anybody


def _write(path: Path, content: IO[bytes], *, mode: int) -> None:
    with path.open("xb") as file:
        while True:
            with explained():
                piece = content.read(PIECE_BYTES)
            if not piece:
                break
            file.write(piece)
    path.chmod(mode)


def _model_error(path: Path, error: BrokenError) -> ModelError:
    problem = str(error)
    if isinstance(error, LimitError):
        problem = (
            f"it holds more than {MODEL_BYTES >> 30} GiB, or more than"
            f" {MODEL_ENTRIES} files"
        )
        return ModelError(path.name, problem, "Leave out what is not needed.")
    return ModelError(path.name, problem)


MODEL_BYTES = 2**36
"""A model that unpacks to more than this, 64 GiB, is not gone through."""

MODEL_ENTRIES = 100_000
"""Nor one with more files, folders and links."""

NAME_BYTES = 255
"""Linux knows no longer name,"""

PATH_BYTES = 2048
"""and no path of 4096; a model lies below some folder of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, a folder or a link of a model."""

    name: str
    """Relative, without `..`; its folder has come before it."""
    content: IO[bytes] | None = None
    """Of a file, to be read before the next entry is asked for."""
    is_program: bool = False
    target: str = ""
    """Where a link leads: from its folder upwards, then downwards, never out."""

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if self.content is not None:
            return _FILE
        return "a link" if self.target else _FOLDER


class ModelTar:
    """A model that is gone through; at its end, what it was is known."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kinds = {".": _FOLDER}
        self._budget = Budget(unpacked_bytes=MODEL_BYTES, entries=MODEL_ENTRIES)
        self.sha256 = ""
        self.unpacked_bytes = 0

    def entries(self) -> Iterator[Entry]:
        """All that it holds, each folder before what lies in it.

        Raises
        ------
        BrokenError
            If it cannot be read, or would not be the same for all readers.
        """
        with explained(), open_regular(self._path) as file:
            kind = compression_of(file)
            stored = Hashed(file)
            content = TarContent(unpacked(stored, kind), self._budget)
            for entry, archive in entries_of(content, self._budget):
                yield from self._found(entry, archive)
            while stored.read(PIECE_BYTES):
                pass
            self.sha256, self.unpacked_bytes = stored.sha256(), content.tell()

    def _found(self, entry: TarInfo, archive: TarFile) -> Iterator[Entry]:
        """An entry, behind the folders above it that were not there yet."""
        name = _plain_name(entry.name)
        if name == "." and entry.isdir():
            return
        yield from self._folders_above(name)
        if entry.isdir():
            if self._kinds.get(name) != _FOLDER:
                yield self._first(Entry(name=name))
        elif entry.issym():
            target = _inner_target(name, entry.linkname)
            yield self._first(Entry(name=name, target=target))
        elif entry.isreg():
            yield self._first(
                Entry(
                    name=name,
                    content=archive.extractfile(entry),
                    is_program=bool(entry.mode & 0o100),
                )
            )
        elif entry.islnk():
            raise BrokenError(f"it holds {safe(name)}, a hard link")
        else:
            raise BrokenError(
                f"it holds {safe(name)}, which is neither a file nor a folder"
            )

    def _folders_above(self, name: str) -> Iterator[Entry]:
        """Folders that a name is in, and that were not there yet."""
        parts = name.split("/")
        for count in range(1, len(parts)):
            above = "/".join(parts[:count])
            kind = self._kinds.get(above)
            if kind is None:
                self._budget.enter(TarInfo(above))
                yield self._first(Entry(name=above))
            elif kind != _FOLDER:
                raise BrokenError(
                    f"it holds {safe(name)} in {safe(above)}, which is {kind}"
                )

    def _first(self, entry: Entry) -> Entry:
        """An entry whose name is new: which of two counts depends on the reader."""
        if entry.name in self._kinds:
            raise BrokenError(f"it holds {safe(entry.name)} twice")
        self._budget.note(len(entry.name) + len(entry.target))
        self._kinds[entry.name] = entry.kind
        return entry


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
