"""Reads tar files front to back, if all readers would read the same in them."""

from __future__ import annotations

import errno
import hashlib
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
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
from flare.measuring.archive.budget import MOST_ENTRIES, BrokenError, Budget

PADDING_BYTES = 2**20
"""So many zeros may follow the end of a tar file."""

NO_FILE = (errno.EISDIR, errno.EINVAL, errno.ENXIO)
"""Errors of `open_regular` for a folder, for a pipe or a device, and for a socket."""

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

_END = "it is no tar file that can be read to its end"
_SENSELESS = "its headers make no sense"


class StrictHeader(tarfile.TarInfo):
    """A header that is honest in length, and means the same to all readers."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, *rest: Any, **more: Any) -> StrictHeader:
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
            raise BrokenError("it has headers that only some programs understand")
        special = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        if self.type in special and not 0 <= self.size <= NAME_BYTES:
            raise BrokenError("a name in it is too long")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found

    def _proc_sparse(self, *_: object) -> NoReturn:
        """Refuse files with holes: they unpack to any size, and engines write none."""
        raise BrokenError("it holds a file with holes (sparse)")

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _proc_sparse


class Hashed:
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


class TarContent:
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


def entries_of(
    content: TarContent, budget: Budget
) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    """Every entry of a tar file, up to its end: two blocks of zeros, or no more."""
    archive = tarfile.TarFile(fileobj=cast("IO[bytes]", content), tarinfo=StrictHeader)
    while (entry := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # they are not needed
        budget.enter(entry)
        yield entry, archive
    if content.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise BrokenError(_END)


def compression_of(file: io.BufferedReader) -> str:
    """What a file is compressed by; nothing if it is not."""
    head = file.peek(8)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def unpacked(file: Readable, kind: str) -> Stream:
    """What a file holds, whether it is compressed or not."""
    if kind == "gzip":
        return GzipStream(file, members=MOST_ENTRIES)
    if kind == "zstd":
        return ZstdStream(file, frames=MOST_ENTRIES)
    if kind:
        raise BrokenError(f"it is compressed by {kind}, expected gzip or zstd")
    return PlainStream(file)


@contextmanager
def explained() -> Iterator[None]:
    """Say of every way in which reading fails what it means."""
    try:
        yield
    except (tarfile.TarError, OSError, EOFError, DamagedStreamError) as error:
        raise BrokenError(_END) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise BrokenError(_SENSELESS) from error
