"""Reads tar and JSON files of authors who may mean harm.

A file that two programs could understand differently is refused, and every byte that is
read is taken off a budget.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn, cast

from flare.common.errors import FileError
from flare.common.streams import (
    GZIP_MAGIC,
    DamagedStreamError,
    GzipStream,
    PlainStream,
    Readable,
    Stream,
    ZstdStream,
)
from flare.common.text import safe

UNPACKED_BYTES = 2**37
"""An archive that unpacks to more than this, 128 GiB, is refused."""

MOST_ENTRIES = 1_000_000
"""An archive with more entries than this is refused."""

KEPT_BYTES = 2**26
"""The small files of an archive, which are kept, have at most this size together."""

NOTED_BYTES = 2**28
"""The paths noted of layers take at most this much memory: about a million paths."""

HEADER_BYTES = 2**27
"""At most this much is read of headers that hold the long name of the next entry."""

PACKED_BYTES = 2**26
"""Of compressed layers, at most this and twice the archive's size is read: layers full
of blocks without content take longest of all to unpack."""

_SENSELESS_HEADERS = "its headers make no sense"


class ArchiveError(FileError):
    """A team's image archive cannot be run.

    The message is about TEAMNAME.tar.gz: it says what to change in the Dockerfile or in
    predict.sh. Then build it anew, `docker save -o teamname.tar.gz teamname:latest`,
    and try it as it will be measured: `flare check teamname.tar.gz --run CT.nii.gz`.
    The file need not be compressed; elsewhere than in PowerShell, whose `>` and `|`
    spoil it, `docker save teamname:latest | gzip > teamname.tar.gz` makes it smaller.
    `docker export` writes another kind of file, which has no commands and no layers.
    """

    code = "F15"
    remedy = "Write it with: docker save -o teamname.tar.gz teamname:latest"


class ModelError(FileError):
    """A model that was sent beside an image cannot be unpacked.

    It is unpacked to `/opt/ml/model` of the container, as grand-challenge.org does it.
    It may hold files, folders, and symbolic links that stay within it: no name with
    `..`, or with a `/` at its beginning, no hard links (`tar --hard-dereference` writes
    files instead), no devices, and no name twice. Write it anew, and look at what it
    holds with `tar -tzvf`.
    """

    code = "F19"
    remedy = (
        "Write it with: tar --hard-dereference -czf TEAMNAME.model.tar.gz -C FOLDER ."
    )


class BrokenError(Exception):
    """The archive cannot be read; the text says why."""


class LimitError(BrokenError):
    """The archive holds too much."""


@dataclass(slots=True)
class Budget:
    """The amounts that may still be read of an archive."""

    # Factories look the limits up late: a test may have lowered them.
    unpacked_bytes: int = field(default_factory=lambda: UNPACKED_BYTES)
    entries: int = field(default_factory=lambda: MOST_ENTRIES)
    kept_bytes: int = field(default_factory=lambda: KEPT_BYTES)
    noted_bytes: int = field(default_factory=lambda: NOTED_BYTES)
    header_bytes: int = field(default_factory=lambda: HEADER_BYTES)
    packed_bytes: int = field(default_factory=lambda: PACKED_BYTES)

    def take_unpacked(self, size: int) -> None:
        """Take off what was unpacked."""
        self.unpacked_bytes -= size
        self._check()

    def take_entry(self, member: tarfile.TarInfo) -> None:
        """Take off one entry, whose header may claim any size for its file."""
        if member.size < 0:
            raise BrokenError(_SENSELESS_HEADERS)
        self.entries -= 1
        self._check(member.size if member.isreg() else 0)

    def _check(self, next_bytes: int = 0) -> None:
        """Refuse an archive that is too large, or will be after the next file."""
        if self.unpacked_bytes < next_bytes or self.entries < 0:
            raise LimitError(
                f"it holds more than {UNPACKED_BYTES >> 30} GiB, or too many files"
            )

    def take_kept(self, size: int) -> None:
        """Take off a small file that is kept."""
        self.kept_bytes -= size
        if self.kept_bytes < 0:
            raise LimitError(f"its small files take more than {KEPT_BYTES >> 20} MB")

    def take_noted(self, size: int) -> None:
        """Take off a text that is noted."""
        self.noted_bytes -= size + 200  # what Python needs for a note
        if self.noted_bytes < 0:
            raise LimitError("it has too many files, or their paths are too long")

    def take_header(self, size: int) -> None:
        """Take off a header that only describes the entry behind it."""
        self.header_bytes -= size
        if self.header_bytes < 0:
            raise LimitError(f"its headers take more than {HEADER_BYTES >> 20} MB")

    def take_packed(self, size: int) -> None:
        """Take off what was read of a compressed layer."""
        self.packed_bytes -= size
        if self.packed_bytes < 0:
            raise LimitError("its layers are far larger than it, even compressed")


PIECE_BYTES = 2**16
"""The number of bytes that are read at once. The memory of larger pieces would go back
to the system each time, which takes as long as inflating and hashing them."""

PADDING_BYTES = 2**20
"""At most this many zeros may follow the end of a tar file."""

NO_FILE = (errno.EISDIR, errno.EINVAL, errno.ENXIO)
"""The errors of `open_regular` for a folder, for a pipe or device, and for a socket."""

NAME_BYTES = 2**16
"""A header with a longer name is refused."""

NUMBER_DIGITS = 255
"""A header with more digits in a row is refused: old versions of tarfile are slow."""

_PAX_SIZE = re.compile(rb"([1-9]\d{0,5}) ")
"""The size at the beginning of each record of a PAX header."""

_MAGIC = {
    GZIP_MAGIC: "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    # Podman puts such a frame, which holds no content, before others.
    b"\x50\x2a\x4d\x18": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}

_NO_TAR = {
    b"\xff\xfe": "it begins with FF FE: the > of PowerShell has made UTF-16 text of it",
    GZIP_MAGIC: "it is compressed by gzip twice",
    b"PK\x03\x04": "it is a zip file",
}
"""What is found by its first bytes in the place of a tar file."""

_END = "it is no tar file that can be read to its end"

_NAME_TYPES = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
"""Types of headers that only describe the entry behind them."""


class StrictHeader(tarfile.TarInfo):
    """A header that all readers understand alike, and whose name is not too long."""

    @classmethod
    def frombuf(
        cls, buf: bytes | bytearray, *arguments: Any, **keywords: Any
    ) -> StrictHeader:
        """Read a header; tarfile takes a damaged one for the end of the file."""
        try:
            return super().frombuf(buf, *arguments, **keywords)
        except tarfile.HeaderError as error:
            has_content = any(buf)
            if has_content:
                raise BrokenError(_END) from error
            raise

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in (tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE):
            # Programs in Go read both of them in another way than Python.
            raise BrokenError("it has headers that only some programs understand")
        if self.type in _NAME_TYPES and not 0 <= self.size <= NAME_BYTES:
            raise BrokenError("a name in it is too long")
        entry: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return entry

    def _proc_sparse(self, *_: object) -> NoReturn:
        """Refuse files with holes: they unpack to any size, and engines write none."""
        raise BrokenError("it holds a file with holes (sparse)")

    # tarfile calls these three for the ways in which PAX headers describe holes.
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _proc_sparse


class _CountedHeader(StrictHeader):
    """A header of an archive that a stranger has written, which is counted."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _NAME_TYPES and 0 <= self.size <= NAME_BYTES:
            # Only `entries_of` makes such headers, and it reads a TarContent.
            content = cast("TarContent", archive.fileobj)
            content.budget.take_header(tarfile.BLOCKSIZE + self.size)
            if self.type == tarfile.XHDTYPE:
                _check_pax(content.peek(self.size))
        return super()._proc_member(archive)


def _check_pax(header: bytes) -> None:
    """Refuse a PAX header that is not made of records, or that tarfile reads slowly.

    A record is its size, as in "16 path=a/b.txt", a key with its value, and a line end.
    The size is that of the whole record.
    """
    start = 0
    while start < len(header):
        start = _end_of_record(header, start)
    numbers = re.findall(rb"\d+", header)
    if max(map(len, numbers), default=0) > NUMBER_DIGITS:
        raise BrokenError(_SENSELESS_HEADERS)


def _end_of_record(header: bytes, start: int) -> int:
    """The position behind the record that begins at `start`."""
    match = _PAX_SIZE.match(header, start)
    if not match:
        raise BrokenError(_SENSELESS_HEADERS)
    end = start + int(match[1])
    record = header[match.end() : end]
    has_key = record.find(b"=") > 0
    if end > len(header) or not has_key or not record.endswith(b"\n"):
        raise BrokenError(_SENSELESS_HEADERS)
    return end


class Hashed:
    """Content that is read once, front to back, and hashed on the way.

    `take_off` is called with the number of bytes of each piece that is read.
    """

    def __init__(
        self, content: Readable, take_off: Callable[[int], None] | None = None
    ) -> None:
        self._content, self._take_off = content, take_off
        self._digest = hashlib.sha256()
        self.size = 0
        """The number of bytes that were read."""

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end."""
        data = self._content.read(size)
        if self._take_off:
            self._take_off(len(data))
        self.size += len(data)
        self._digest.update(data)
        return data

    def sha256(self) -> str:
        """The digest of all that was read."""
        return self._digest.hexdigest()


class TarContent:
    """Content of a tar file that is read once, front to back, and counted."""

    def __init__(self, content: Readable, budget: Budget) -> None:
        self._content, self.budget = content, budget
        self._position = 0
        self._ahead = b""

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end."""
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            self._position += len(data)
            return data
        data = self._content.read(size)
        self.budget.take_unpacked(len(data))
        self._position += len(data)
        # umoci leaves out the zeros at the end of the last block, and Go accepts that.
        rest_of_block = -self._position % tarfile.BLOCKSIZE
        missing = min(rest_of_block, size - len(data))
        self._position += missing
        return data + bytes(missing)

    def peek(self, size: int) -> bytes:
        """The next bytes; tarfile will read them again, in whole blocks."""
        rest_of_block = -size % tarfile.BLOCKSIZE
        self._ahead = self.read(size + rest_of_block)
        self._position -= len(self._ahead)  # `read` counts them again
        return self._ahead[:size]

    def tell(self) -> int:
        """The number of bytes that were read."""
        return self._position

    def seek(self, position: int) -> None:
        """Go on to a position, or to the end if that comes first."""
        if position < self._position:
            raise BrokenError(_SENSELESS_HEADERS)
        while self._position < position:
            if not self.read(min(position - self._position, PIECE_BYTES)):
                break

    def finish(self, *, is_strict: bool) -> None:
        """Read the rest; if `is_strict` is set, it may only be a few zeros."""
        size, is_zero = 0, True
        while data := self.read(PIECE_BYTES):
            size += len(data)
            is_zero = is_zero and not data.strip(b"\0")
            if is_strict and not (is_zero and size <= PADDING_BYTES):
                raise BrokenError("there are other data behind its end")


def entries_of(
    content: TarContent, *, is_strict: bool = True
) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    """All entries of a tar file, which ends with two blocks of zeros, or its content.

    A BrokenError is raised if it ends otherwise, or data follow the zeros and
    `is_strict` is set.
    """
    start = content.peek(tarfile.BLOCKSIZE)
    for magic, problem in _NO_TAR.items():
        if start.startswith(magic):
            raise BrokenError(problem)
    file = cast("IO[bytes]", content)
    archive = tarfile.TarFile(fileobj=file, tarinfo=_CountedHeader)
    while (entry := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # they are not needed
        content.budget.take_entry(entry)
        yield entry, archive
    # tarfile has read the first of the two blocks of zeros; this is the second one.
    if content.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise BrokenError(_END)
    content.finish(is_strict=is_strict)


def compression_of(file: io.BufferedReader) -> str:
    """The compression of a file, by its first bytes; empty if it has none."""
    head = file.peek(8)
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return ""


def unpacked(file: Readable, kind: str) -> Stream:
    """The content of a file, unpacked if it is compressed."""
    if kind == "gzip":
        return GzipStream(file, members=MOST_ENTRIES)
    if kind == "zstd":
        return ZstdStream(file, frames=MOST_ENTRIES)
    if kind:
        raise BrokenError(f"it is compressed by {kind}, expected gzip or zstd")
    return PlainStream(file)


@contextmanager
def explained() -> Iterator[None]:
    """Turn every error of reading into a BrokenError that says what it means."""
    try:
        yield
    except (tarfile.TarError, OSError, EOFError, DamagedStreamError) as error:
        raise BrokenError(_END) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise BrokenError(_SENSELESS_HEADERS) from error


_MANIFEST = "its manifest, or its configuration,"

SENSELESS_JSON = f"{_MANIFEST} makes no sense"


def strict_json(content: bytes) -> Any:
    """The value that a small JSON file holds; None if it is not JSON in UTF-8.

    A BrokenError is raised if it has a number, or a key, that only some readers
    understand.
    """
    try:
        # From bytes, Python would also read encodings that engines do not know.
        text = content.decode("utf-8")
        return json.loads(
            text,
            object_pairs_hook=_with_unique_keys,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    """A number; NaN and 1e999 are refused, which Python reads and engines do not."""
    number = float(text)
    if not math.isfinite(number):
        raise BrokenError(f"{_MANIFEST} has {safe(text)} for a number")
    return number


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys nobody can read in two ways."""
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated_key = next(key for key, count in counts.items() if count > 1)
        raise BrokenError(f"{_MANIFEST} has {safe(repeated_key)} twice")
    return table


def fields_of(value: Any, *names: str) -> dict[str, Any]:
    """A JSON object whose fields have the right capitals; engines ignore capitals."""
    if not isinstance(value, dict):
        raise BrokenError(SENSELESS_JSON)
    names_by_folded = {name.casefold(): name for name in names}
    for key in value:
        expected_key = names_by_folded.get(key.casefold(), key)
        if key != expected_key:
            is_repeated = expected_key in value
            end = "twice" if is_repeated else f"in the place of {expected_key}"
            raise BrokenError(f"{_MANIFEST} has {safe(key)} {end}")
    return value
