"""Reads the content of a file front to back, decompressed, vouching for every byte.

SimpleITK and nibabel do not tell when a label map is truncated or damaged: they ignore
the checksum and length at the end of compressed data. Here both are checked, by
zlib-ng, which is also faster, and no more is decompressed than is asked for.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from typing import Any, BinaryIO, NoReturn, Protocol

from zlib_ng import zlib_ng

COMPRESSED_PIECE_BYTES = 2**16
"""How much is read from a compressed file at once."""

PIECE_BYTES = 2**19
"""How much content is handed on at once: it stays in the CPU's cache until used."""

FIRST_BYTES = 2**9
"""How much of a gzip member is decompressed at first: what is behind a member is copied
when it ends, which would make thousands of tiny ones slow."""

FRAME_BYTES = 2**14
"""The same for zstd, which copies what is behind a frame whenever one ends."""

PADDING_BYTES = 2**20
"""More zeros than these behind a gzip file are no padding: a tape's block is smaller.
Without a limit, gigabytes of them, which take no place on a disk or in a zip, would
keep a worker busy for minutes."""

MEMBERS = 2**16
"""More than these are no label map: bgzip has a member for each 64 KiB of content."""

GZIP_MAGIC = b"\x1f\x8b"
"""How a gzip member begins."""

LENGTH_BYTES = 4
"""A gzip file ends with the length of its content, in this many bytes."""

MOST_GROWTH = 2**16
"""Compressed data are this much longer than their content at most, and by its 64th."""


_DAMAGED: tuple[type[Exception], ...] = (
    *(EOFError, OSError, OverflowError),
    zlib_ng.error,  # type: ignore[assignment]
)
"""The errors of the reader; OverflowError is that of a header which does not fit in its
buffer, as one with a long name, and which is not damaged."""

_GZIP_ONLY = 31
"""15 bits of window, and nothing but a gzip header and trailer, in zlib's numbers."""

_ZLIB_ONLY = 15
"""The same for a zlib header and trailer."""


class DamagedStreamError(Exception):
    """The file is not what was once written; the text says in what way."""


class Readable(Protocol):
    """A source of bytes that is read front to back."""

    def read(self, size: int, /) -> bytes:
        """The next `size` bytes, or fewer at the end."""


class Stream(ABC):
    """The content of a file, front to back."""

    def __init__(self) -> None:
        self._piece = memoryview(b"")

    @abstractmethod
    def _next_piece(self) -> bytes:
        """Some more of the content; nothing only at its verified end."""

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

    def expect(self, size: int) -> None:  # noqa: B027  most have no use for it
        """Learn how many bytes more there should be, by which some may be quicker."""

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
        if not hasattr(self._file, "readinto"):
            return super().readinto(target)
        filled = 0
        while filled < len(target):
            count = self._file.readinto(target[filled:])
            if not count:
                break
            filled += count
        return filled

    def _next_piece(self) -> bytes:
        return self._file.read(PIECE_BYTES)


class _InflatingStream(Stream):
    """Compressed content; any damage, and anything behind it, is noticed.

    Raises `DamagedStreamError` while it is read: at an early end, at a checksum or
    length that does not fit, and at other data behind the content.
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
        """Whether there is more content behind the data that just ended."""

    def _next_piece(self) -> bytes:
        while True:
            if self._inflate.eof and not self._goes_on():
                return b""
            if not self._compressed:
                self._compressed = memoryview(self._file.read(COMPRESSED_PIECE_BYTES))
            if not self._compressed:
                raise DamagedStreamError("its compressed data end early")
            compressed = self._compressed[: self._step]
            self._step = COMPRESSED_PIECE_BYTES
            try:
                content = self._inflate.decompress(compressed, PIECE_BYTES)
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

    Several members behind one another, as bgzip and parallel compressors write them,
    are one content; up to a MiB of zeros behind one is padding. More than `members` of
    them are refused.
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
        # Imported here because no label map, and hardly any image, is compressed so.
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
        """Begin another frame with these bytes, unless the file ends here."""
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
        """The next bytes of the frame; empty while it still holds some of the last."""
        if not self._frame.needs_input:
            return b""
        compressed = self._file.read(FRAME_BYTES)
        if not compressed:
            raise DamagedStreamError("its compressed data end early")
        return compressed


class SizedGzipStream(GzipStream):
    """A gzip file, which is read quicker once it is known how long its content is.

    An object that inflates hands out memory of its own, and copying that takes half as
    long as inflating. The reader of zlib-ng inflates into the caller's memory, and
    checks the same checksum and length; but it says less of what is wrong with a file,
    and reads on behind the content without a limit. So it is used for files that end as
    they should, and if it finds damage, the file is read again in the careful way.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._whole, self._start = file, file.tell()
        self._position = self._size = 0
        self._reader: Any = None  # once it is known how long the content is

    def expect(self, size: int) -> None:
        """Suppose that `size` bytes of content follow; there may be more, or fewer."""
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
        filled = 0
        if self._reader is None:
            filled = super().readinto(target)
            self._position += filled
            return filled
        try:
            while filled < len(target):
                count = self._reader.readinto(target[filled:])
                if not count:
                    break
                filled += count
        except _DAMAGED as error:
            self._tell(error)
        return filled

    def _ends_as_it_should(self) -> bool:
        """Whether the file is not too long, and its last bytes tell the length.

        Then it is a single member, if its content has this length: of several, the last
        one would be all of it, and the first is not empty, as a header was read.
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
        """The quick reader behind what was read already, if there is one."""
        kind = getattr(zlib_ng, "_GzipReader", None)  # not in every version
        if kind is None:
            return None
        self._whole.seek(self._start)
        reader = kind(self._whole, COMPRESSED_PIECE_BYTES)
        scratch = memoryview(bytearray(self._position))
        try:
            while scratch:
                count = reader.readinto(scratch)
                if not count:
                    return None
                scratch = scratch[count:]
        except _DAMAGED:
            return None
        return reader

    def _tell(self, error: Exception) -> NoReturn:
        """Read the file carefully, to say what is wrong with it."""
        self._whole.seek(self._start)
        GzipStream(self._whole).skip(self._size + 1)
        raise DamagedStreamError(
            "its compressed data do not fit their checksum"
        ) from error
