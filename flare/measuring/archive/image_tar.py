"""Goes through the tar file of an image, front to back.

The layers are tar files within it. Whoever has made the file may mean harm, so all that
is read is limited; and what two readers could understand in two ways is refused.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from flare.common.streams import (
    GZIP_MAGIC,
    PIECE_BYTES,
    DamagedStreamError,
    GzipStream,
    PlainStream,
    Readable,
    Stream,
    ZstdStream,
)
from flare.common.text import safe
from flare.measuring.archive.layers import Layer

SMALL_BYTES = 2**22
"""Files of the archive up to this size may be JSON, and are kept."""

UNPACKED_BYTES = 2**37
"""An archive that unpacks to more than this, 128 GiB, is not gone through."""

MOST_ENTRIES = 1_000_000
"""Nor one with more files."""

PADDING_BYTES = 2**20
"""So many zeros may follow the end of a tar file."""

KEPT_BYTES = 2**26
"""So much of small files is kept at most."""

NOTED_BYTES = 2**28
"""So much is noted of layers at most: about a million links."""

NOTE_BYTES = 200
"""What Python needs for a note, beside its text."""

NAME_BYTES = 2**16
"""Headers that hold a longer name are no header of an honest file."""

_MAGIC = {
    GZIP_MAGIC: "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    # Podman puts such a frame, which holds no content, before others.
    b"\x50\x2a\x4d\x18": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}

_ROOT_FOLDERS = ("bin", "dev", "etc", "lib", "proc", "sbin", "sys", "usr", "var")
"""What a whole file system has at its top, and no image as it is saved."""

_END = "it is no tar file that can be read to its end"
_SENSELESS = "its headers make no sense"


class BrokenError(Exception):
    """The archive cannot be read; the text says why."""


class LimitError(BrokenError):
    """There is too much in it."""


@dataclass(slots=True)
class Budget:
    """What may still be read."""

    unpacked_bytes: int = field(default_factory=lambda: UNPACKED_BYTES)
    entries: int = field(default_factory=lambda: MOST_ENTRIES)
    kept_bytes: int = field(default_factory=lambda: KEPT_BYTES)
    noted_bytes: int = field(default_factory=lambda: NOTED_BYTES)

    def unpack(self, size: int) -> None:
        """Take off what was unpacked."""
        self.unpacked_bytes -= size
        self._check_size(0)

    def enter(self, member: tarfile.TarInfo) -> None:
        """Take off a file, which may claim any size."""
        if member.size < 0:
            raise BrokenError(_SENSELESS)
        self.entries -= 1
        self._check_size(member.size if member.isreg() else 0)

    def _check_size(self, size: int) -> None:
        if self.unpacked_bytes < size or self.entries < 0:
            text = f"it holds more than {UNPACKED_BYTES >> 30} GiB, or too many files"
            raise LimitError(text)

    def keep(self, size: int) -> None:
        """Take off a small file that is kept."""
        self.kept_bytes -= size
        if self.kept_bytes < 0:
            text = f"its small files take more than {KEPT_BYTES >> 20} MB"
            raise LimitError(text)

    def note(self, size: int) -> None:
        """Take off a text that is noted."""
        self.noted_bytes -= size + NOTE_BYTES
        if self.noted_bytes < 0:
            text = "it has too many links, or files that layers remove"
            raise LimitError(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A file of the archive that may be a layer."""

    sha256: str = ""
    """Of the file as it lies there."""
    diff_id: str = ""
    """SHA-256 of what it unpacks to."""
    unpacked_bytes: int = 0
    """Of the unpacked tar file."""
    layer: Layer | None = None
    problem: str = ""
    """Why it is none."""


@dataclass(slots=True)
class Contents:
    """What an archive holds, by name."""

    files: dict[str, bytes] = field(default_factory=dict)
    """All that may be JSON."""
    blobs: dict[str, Blob] = field(default_factory=dict)
    """Every file."""
    links: dict[str, str] = field(default_factory=dict)
    """Names of layers that are stored under another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file or a link of the archive."""

    name: str
    target: str
    """Where a link leads; nothing for a file."""
    content: io.BufferedReader
    """To be read before the next member is asked for."""
    size: int


# --- Tar files --------------------------------------------------------------------


class Entry(tarfile.TarInfo):
    """A header that is honest in length, and means the same to all readers."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, *rest: Any, **more: Any) -> Entry:
        """Read a header; tarfile takes a damaged one for the end of the file."""
        try:
            return super().frombuf(buf, *rest, **more)
        except tarfile.HeaderError as error:
            if bytes(buf).strip(b"\0"):
                raise BrokenError(_END) from error
            raise

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in (tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE):
            # Go reads neither as Python does.
            text = "it has headers that only some programs understand"
            raise BrokenError(text)
        special = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        if self.type in special and not 0 <= self.size <= NAME_BYTES:
            text = "a name in it is too long"
            raise BrokenError(text)
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found

    def _proc_sparse(self, *_: object) -> NoReturn:
        """Refuse files with holes: they unpack to any size, and engines write none."""
        text = "it holds a file with holes (sparse)"
        raise BrokenError(text)

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _proc_sparse


class _Hashed:
    """Content that goes by, front to back, and is hashed."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._digest = hashlib.sha256()
        self.size = 0
        """Of all that has gone by, in bytes."""

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end."""
        data = self._content.read(size)
        self.size += len(data)
        self._digest.update(data)
        return data

    def sha256(self) -> str:
        """The digest of all that has gone by."""
        return self._digest.hexdigest()


class _TarContent:
    """Content of a tar file that goes by, front to back, and is counted."""

    def __init__(self, content: Readable, budget: Budget) -> None:
        self._content, self._budget = content, budget
        self._position = 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end."""
        data = self._content.read(size)
        self._budget.unpack(len(data))
        self._position += len(data)
        # umoci leaves out what fills the last block; Go's reader does not mind.
        missing = min(-self._position % tarfile.BLOCKSIZE, size - len(data))
        self._position += missing
        return data + bytes(missing) if missing else data

    def tell(self) -> int:
        """How much has gone by."""
        return self._position

    def seek(self, position: int) -> None:
        """Let all before a position go by, or before the end."""
        if position < self._position:
            raise BrokenError(_SENSELESS)
        while self._position < position:
            if not self.read(min(position - self._position, PIECE_BYTES)):
                break

    def finish(self, *, is_strict: bool = False) -> bool:
        """Let the rest go by; says whether it was nothing but a few zeros."""
        size = 0
        is_zero = True
        while data := self.read(PIECE_BYTES):
            size += len(data)
            is_zero &= not data.strip(b"\0")
            if is_strict and not (is_zero and size <= PADDING_BYTES):
                return False
        return True


def _entries(
    content: _TarContent, budget: Budget
) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    """Every entry of a tar file, up to its end: two blocks of zeros, or no more."""
    archive = tarfile.TarFile(fileobj=cast("IO[bytes]", content), tarinfo=Entry)
    while (entry := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # they are not needed
        budget.enter(entry)
        yield entry, archive
    if content.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise BrokenError(_END)


def _kind(file: io.BufferedReader) -> str:
    """What a file is compressed by; nothing if it is not."""
    head = file.peek(8)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def _unpacked(file: Readable, kind: str) -> Stream:
    """What a file holds, whether it is compressed or not."""
    if kind == "gzip":
        return GzipStream(file, members=MOST_ENTRIES)
    if kind == "zstd":
        return ZstdStream(file, frames=MOST_ENTRIES)
    if kind:
        text = f"it is compressed by {kind}, expected gzip or zstd"
        raise BrokenError(text)
    return PlainStream(file)


@contextmanager
def _explained() -> Iterator[None]:
    """Say of every way in which reading fails what it means."""
    try:
        yield
    except (tarfile.TarError, OSError, EOFError, DamagedStreamError) as error:
        raise BrokenError(_END) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise BrokenError(_SENSELESS) from error


# --- Archives ---------------------------------------------------------------------


def open_members(path: Path, budget: Budget) -> Iterator[Member]:
    """Every file and link of an archive, in its order.

    Raises
    ------
    BrokenError
        If it cannot be read, or two readers could take it for two things.
    """
    names: set[str] = set()
    is_file_system = False
    with _explained(), path.open("rb") as file:
        content = _TarContent(_unpacked(file, _kind(file)), budget)
        for entry, archive in _entries(content, budget):
            name = posixpath.normpath(entry.name)
            if name.partition("/")[0] in _ROOT_FOLDERS or name == ".dockerenv":
                is_file_system = True
            if is_file_system:
                continue  # nothing of it matters, but that it ends
            if name.startswith(("/", "..")) or entry.name.endswith("/.."):
                text = f"it holds {safe(entry.name)}, which lies outside of it"
                raise BrokenError(text)
            if entry.isdir():
                continue
            if name in names:
                # Which of them counts depends on who reads it.
                text = f"it holds two files {safe(name)}"
                raise BrokenError(text)
            names.add(name)
            budget.note(len(name))
            target = ""
            if entry.issym() or entry.islnk():
                # Links lead from folder to folder.
                folder = posixpath.dirname(name) if entry.issym() else ""
                target = posixpath.normpath(posixpath.join(folder, entry.linkname))
            elif not entry.isfile():
                text = f"it holds {safe(name)}, which is neither a file nor a folder"
                raise BrokenError(text)
            data = archive.extractfile(entry) if entry.isfile() else None
            yield Member(
                name=name,
                target=target,
                content=cast("io.BufferedReader", data or io.BytesIO()),
                size=entry.size,
            )
        if not content.finish(is_strict=True):
            text = "there are other data behind its end"
            raise BrokenError(text)
        if is_file_system:
            text = "it is a file system (docker export), not an image: docker save"
            raise BrokenError(text)


def unpacked_pieces(member: Member) -> Iterator[bytes]:
    """What a member unpacks to, piece by piece.

    Raises
    ------
    BrokenError
        If it cannot be unpacked.
    """
    with _explained():
        content = _unpacked(member.content, _kind(member.content))
        while piece := content.read(PIECE_BYTES):
            yield piece


def read_contents(path: Path) -> Contents:
    """Go through an archive once; what might be a layer is read as one.

    Raises
    ------
    BrokenError
        If it cannot be read, or there is too much in it.
    """
    found = Contents()
    budget = Budget()
    for member in open_members(path, budget):
        if member.target:
            found.links[member.name] = member.target
            budget.note(len(member.target))
            continue
        content = member.content
        if member.size <= SMALL_BYTES:
            with _explained():
                data = content.read()
            if data.lstrip()[:1] in (b"{", b"["):
                budget.keep(len(data))
                found.files[member.name] = data
            content = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(data)))
        found.blobs[member.name] = _read_blob(content, budget)
    for name, target in found.links.items():
        blob = found.blobs.get(target)
        if not blob or not blob.layer:
            text = f"it holds {safe(name)}, a link that leads to no layer"
            raise BrokenError(text)
    return found


def _read_blob(file: io.BufferedReader, budget: Budget) -> Blob:
    """Read a file as a layer."""
    layer = Layer()
    try:
        with _explained():
            kind = _kind(file)
            stored = _Hashed(file)
            unpacked = _Hashed(_unpacked(stored, kind)) if kind else stored
            content = _TarContent(unpacked, budget)
            for entry, archive in _entries(content, budget):
                if noted := layer.add(entry, archive):
                    budget.note(noted)
            # Some builders put a table of contents behind the end.
            content.finish()
    except LimitError:
        raise
    except BrokenError as error:
        return Blob(problem=str(error))
    return Blob(
        sha256=stored.sha256(),
        diff_id=unpacked.sha256(),
        unpacked_bytes=unpacked.size,
        layer=layer,
    )
