"""Reads a gzip file whose length is known, into the memory where it is wanted.

An object that inflates hands out memory of its own, and copying that takes half as long
as inflating. The reader of zlib-ng inflates into the caller's memory, and checks the
same checksum and length; but it says less of what is wrong with a file, and reads on
behind the content without a limit. So it is used for files that end as they should, and
if it finds damage, the file is read again in the careful way, which says what it is.
"""

from __future__ import annotations

import os
from typing import BinaryIO, NoReturn, Protocol

from zlib_ng import zlib_ng

from flare.common.streams import (
    COMPRESSED_PIECE_BYTES,
    DamagedStreamError,
    GzipStream,
)

LENGTH_BYTES = 4
"""A gzip file ends with the length of its content, in so many bytes."""

MOST_GROWTH = 2**16
"""Compressed data are this much longer than their content at most, and by its 64th."""


_DAMAGED: tuple[type[Exception], ...] = (
    *(EOFError, OSError, OverflowError),
    zlib_ng.error,  # type: ignore[assignment]
)
"""What the reader raises; OverflowError for a header that does not fit in its buffer,
as one of a long name does, which is no damage."""


class _Reader(Protocol):
    """What inflates into the memory of its caller."""

    def readinto(self, target: memoryview, /) -> int:
        """Fill the target as far as that goes at once; 0 only at the end."""


class SizedGzipStream(GzipStream):
    """A gzip file, which is read quicker once it is known how long its content is."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._whole, self._start = file, file.tell()
        self._given = self._size = 0
        self._reader: _Reader | None = None

    def expect(self, size: int) -> None:
        """Take it that the content has so many bytes more; it may have others."""
        self._size = self._given + size
        here = self._whole.tell()
        try:
            if self._members == 1 and self._ends_as_it_should():
                self._reader = self._reopened()
        finally:
            if self._reader is None:
                self._whole.seek(here)

    def readinto(self, target: memoryview) -> int:
        """Fill `target`, a buffer of bytes; the number is smaller only at the end."""
        filled = 0
        if self._reader is None:
            filled = super().readinto(target)
            self._given += filled
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

    def _reopened(self) -> _Reader | None:
        """The quick reader behind what was read already, if there is one."""
        kind = getattr(zlib_ng, "_GzipReader", None)  # not in every version
        if kind is None:
            return None
        self._whole.seek(self._start)
        reader: _Reader = kind(self._whole, COMPRESSED_PIECE_BYTES)
        rest = memoryview(bytearray(self._given))
        try:
            while rest:
                count = reader.readinto(rest)
                if not count:
                    return None
                rest = rest[count:]
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
