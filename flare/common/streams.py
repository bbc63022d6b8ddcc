"""Reads the content of a file front to back, decompressed, vouching for every byte.

SimpleITK and nibabel do not tell when a label map is truncated or damaged: they ignore
the checksum and length at the end of compressed data. Here both are checked, by
zlib-ng, which is also faster, and no more is decompressed than is asked for.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from typing import Any, BinaryIO, Protocol

from zlib_ng import zlib_ng

COMPRESSED_PIECE_BYTES = 2**16
"""The piece of a compressed file that is read at once."""

PIECE_BYTES = 2**20
"""The piece of content that is handed on at once: it stays in the CPU's cache."""

FIRST_BYTES = 2**9
"""The first piece of a gzip member that is decompressed, to little content. It is
small, as the data left when a member ends are copied, which makes thousands of tiny
members slow, and as of most files no more than the header is read this way."""

FRAME_BYTES = 2**14
"""The piece of a zstd file that is read at once; it is small for the same reason."""

PADDING_BYTES = 2**20
"""More zeros than these behind a gzip file are no padding: a tape's block is smaller.
Without a limit, gigabytes of zeros, which take no room on a disk or in a zip, would
keep a worker busy for minutes."""

MEMBERS = 2**16
"""No label map has more gzip members: bgzip makes one for each 64 KiB of content."""

GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a gzip member."""

LENGTH_BYTES = 4
"""A gzip file ends with the length of its content, in this many bytes."""

MOST_GROWTH = 2**16
"""Compressed data are longer than their content by at most this and a 64th of it."""

_DAMAGED: tuple[type[Exception], ...] = (
    EOFError,
    OSError,
    OverflowError,  # an intact header, as one with a long name, is too long for it
    zlib_ng.error,  # type: ignore[assignment]
)
"""The errors of the reader of zlib-ng."""

_GZIP_ONLY = 31
"""zlib's number for a window of 15 bits, and a gzip header and trailer."""

_ZLIB_ONLY = 15
"""zlib's number for a window of 15 bits, and a zlib header and trailer."""


class DamagedStreamError(Exception):
    """The file is damaged; the text says how."""


class Readable(Protocol):
    """A source of bytes that is read front to back."""

    def read(self, size: int, /) -> bytes:
        """The next `size` bytes, or fewer at the end."""


def _fill(target: memoryview, source: Any) -> int:
    """Fill `target` from a file; the number of bytes is smaller only at the end."""
    filled = 0
    while filled < len(target):
        count: int = source.readinto(target[filled:])
        if not count:
            break
        filled += count
    return filled


class Stream(ABC):
    """The content of a file, front to back."""

    def __init__(self) -> None:
        self._piece = memoryview(b"")

    @abstractmethod
    def _next_piece(self) -> bytes:
        """The next bytes of the content, or none at its verified end."""

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end of the content."""
        content = bytearray(size)
        return bytes(content[: self.readinto(memoryview(content))])

    def readinto(self, target: memoryview) -> int:
        """Fill `target`, a buffer of bytes; the number is smaller only at the end."""
        filled = 0
        while filled < len(target):
            if not self._piece:
                self._piece = memoryview(self._next_piece())
                if not self._piece:
                    break
            part = self._piece[: len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)
            self._piece = self._piece[len(part) :]
        return filled

    def expect(self, size: int) -> None:  # noqa: B027  most streams do not use it
        """Learn how many bytes are left, which makes some streams faster."""

    def skip(self, size: int) -> int:
        """Read `size` bytes and forget them; the number is smaller only at the end."""
        skipped = 0
        scratch = memoryview(bytearray(min(size, PIECE_BYTES)))
        while skipped < size:
            count = self.readinto(scratch[: size - skipped])
            if not count:
                break
            skipped += count
        return skipped


class PlainStream(Stream):
    """A file that is not compressed: it has no checksum, so only its length counts."""

    def __init__(self, file: Readable) -> None:
        super().__init__()
        self._file = file

    def readinto(self, target: memoryview) -> int:
        """Fill `target`, a buffer of bytes; the number is smaller only at the end."""
        if hasattr(self._file, "readinto"):
            return _fill(target, self._file)
        return super().readinto(target)

    def _next_piece(self) -> bytes:
        return self._file.read(PIECE_BYTES)


class _InflatingStream(Stream):
    """Content that is decompressed as it is read.

    Reading raises `DamagedStreamError` at an early end, at a checksum or length that
    does not fit, and at other data behind the content.
    """

    _window: int

    def __init__(self, file: Readable) -> None:
        super().__init__()
        self._file = file
        self._inflate = zlib_ng.decompressobj(self._window)
        self._compressed = memoryview(b"")
        self._step = FIRST_BYTES

    @abstractmethod
    def _goes_on(self) -> bool:
        """Whether more content follows the compressed data that have ended."""

    def _next_piece(self) -> bytes:
        while True:
            if self._inflate.eof and not self._goes_on():
                return b""
            if not self._compressed:
                self._compressed = memoryview(self._file.read(COMPRESSED_PIECE_BYTES))
            if not self._compressed:
                raise DamagedStreamError("its compressed data end early")
            compressed = self._compressed[: self._step]
            most_bytes = PIECE_BYTES * self._step // COMPRESSED_PIECE_BYTES
            self._step = COMPRESSED_PIECE_BYTES
            try:
                content = self._inflate.decompress(compressed, most_bytes)
            except zlib_ng.error as error:  # type: ignore[misc]
                raise DamagedStreamError(
                    "its compressed data do not fit their checksum"
                ) from error
            inflate = self._inflate
            unread = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            self._compressed = self._compressed[len(compressed) - len(unread) :]
            if content:
                return content

    @staticmethod
    def _refuse_other_data() -> None:
        raise DamagedStreamError("there are other data behind its compressed data")


class GzipStream(_InflatingStream):
    """A gzip file.

    Several members, as bgzip and parallel compressors write them, are one content; up
    to a MiB of zeros behind them is padding. More than `members` of them are refused.
    """

    _window = _GZIP_ONLY

    def __init__(self, file: Readable, *, members: int = MEMBERS) -> None:
        super().__init__(file)
        self._members, self._most_members = 1, members
        self._padding = 0

    def _goes_on(self) -> bool:
        while not self._compressed or self._compressed[0] == 0:
            behind = bytes(self._compressed).lstrip(b"\0")
            self._padding += len(self._compressed) - len(behind)
            if self._padding > PADDING_BYTES:
                raise DamagedStreamError(
                    "there are more than a MiB of zeros behind its compressed data"
                )
            self._compressed = memoryview(
                behind or self._file.read(COMPRESSED_PIECE_BYTES)
            )
            if not self._compressed:
                return False
        if len(self._compressed) < len(GZIP_MAGIC):
            next_bytes = self._file.read(COMPRESSED_PIECE_BYTES)
            self._compressed = memoryview(bytes(self._compressed) + next_bytes)
        self._members += 1
        if self._compressed[: len(GZIP_MAGIC)] != GZIP_MAGIC:
            self._refuse_other_data()
        if self._members > self._most_members:
            raise DamagedStreamError(
                f"it has more than {self._most_members} gzip members"
            )
        self._inflate = zlib_ng.decompressobj(_GZIP_ONLY)
        self._step = FIRST_BYTES
        return True


class ZlibStream(_InflatingStream):
    """Data compressed by zlib, up to the end of a file: what MetaImage files hold."""

    _window = _ZLIB_ONLY

    def _goes_on(self) -> bool:
        if self._compressed or self._file.read(1):
            self._refuse_other_data()
        return False


class ZstdStream(Stream):
    """A zstd file; several frames behind one another are one content.

    Damage is noticed as in a gzip file. More than `frames` of them are refused.
    """

    def __init__(self, file: Readable, *, frames: int) -> None:
        super().__init__()
        # Not at the top: no label map, and hardly any image, is compressed by it.
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        self._library = zstd
        self._file = file
        self._frame = zstd.ZstdDecompressor()
        self._frames, self._most_frames = 1, frames

    def _next_piece(self) -> bytes:
        content = b""
        while not content:
            if not self._frame.eof:
                compressed = self._frame_data()
            else:
                compressed = self._next_frame()
                if not compressed:
                    return b""
            try:
                content = self._frame.decompress(compressed, PIECE_BYTES)
            except self._library.ZstdError as error:
                raise DamagedStreamError("its compressed data are damaged") from error
        return content

    def _next_frame(self) -> bytes:
        """The first bytes of the next frame; empty if the file ends here."""
        compressed: bytes = self._frame.unused_data or self._file.read(FRAME_BYTES)
        if compressed:
            self._frames += 1
            if self._frames > self._most_frames:
                raise DamagedStreamError(
                    f"it has more than {self._most_frames} zstd frames"
                )
            self._frame = self._library.ZstdDecompressor()
        return compressed

    def _frame_data(self) -> bytes:
        """The next bytes of the frame; empty while it has not used up the last ones."""
        if not self._frame.needs_input:
            return b""
        compressed = self._file.read(FRAME_BYTES)
        if not compressed:
            raise DamagedStreamError("its compressed data end early")
        return compressed


class SizedGzipStream(GzipStream):
    """A gzip file, which is read faster once the length of its content is known.

    A decompression object returns memory of its own, and copying that takes half as
    long as inflating. The reader of zlib-ng inflates into the caller's memory, and
    checks the same checksum and length; but it says less of what is wrong with a file,
    and reads on behind the content without a limit. So it only reads files that end as
    they should, and if it finds damage, the file is read again in the careful way.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._whole, self._start = file, file.tell()
        self._position = self._size = 0
        self._reader: Any = None  # once it is known how long the content is

    def expect(self, size: int) -> None:
        """Learn that `size` bytes should be left; there may be more, or fewer."""
        self._size = self._position + size
        offset = self._whole.tell()
        try:
            if self._members == 1 and self._ends_as_it_should():
                self._reader = self._reopened()
        finally:
            if self._reader is None:
                self._whole.seek(offset)

    def readinto(self, target: memoryview) -> int:
        """Fill `target`, a buffer of bytes; the number is smaller only at the end."""
        if self._reader is None:
            filled = super().readinto(target)
            self._position += filled
            return filled
        try:
            return _fill(target, self._reader)
        except _DAMAGED as error:
            # The careful way says what is wrong with the file.
            self._whole.seek(self._start)
            GzipStream(self._whole).skip(self._size + 1)
            raise DamagedStreamError(
                "its compressed data do not fit their checksum"
            ) from error

    def _ends_as_it_should(self) -> bool:
        """Whether the file is not too long, and its last bytes have the length.

        Then it is one member, if its content has this length. Of several members, the
        last one would have all of it, but the first has a header that was read.
        """
        end = self._whole.seek(0, os.SEEK_END)
        if not (
            self._start + LENGTH_BYTES < end
            and end - self._start < self._size + self._size // 64 + MOST_GROWTH
        ):
            return False
        self._whole.seek(-LENGTH_BYTES, os.SEEK_END)
        return int.from_bytes(self._whole.read(LENGTH_BYTES), "little") == self._size

    def _reopened(self) -> Any:
        """The fast reader at the present position; None if it does not get there."""
        kind = getattr(zlib_ng, "_GzipReader", None)  # not in every version
        if kind is None:
            return None
        self._whole.seek(self._start)
        reader = kind(self._whole, COMPRESSED_PIECE_BYTES)
        scratch = memoryview(bytearray(self._position))
        try:
            is_there = _fill(scratch, reader) == self._position
        except _DAMAGED:
            return None
        return reader if is_there else None
