"""Reads a gzip file piece by piece, and vouches for every byte it hands on.

SimpleITK and nibabel do not tell when a label map is truncated or damaged: niftilib
never looks at the checksum and length at the end of a gzip file. Here both are checked,
by zlib-ng, which is also faster, and no more is decompressed than is asked for.
"""

from __future__ import annotations

from typing import BinaryIO

from zlib_ng import zlib_ng

COMPRESSED_PIECE_BYTES = 2**16
"""How much is read from the file at once."""

PIECE_BYTES = 2**19
"""How much is decompressed at once: it stays in the CPU's cache until it is used."""

MAGIC = b"\x1f\x8b"
"""How a gzip member begins."""

_GZIP_ONLY = 31
"""What zlib calls 15 bits of window, and nothing but a gzip header and trailer."""


class DamagedGzipError(Exception):
    """The file is not what was once written; the text says in what way."""


class GzipReader:
    """The decompressed content of a gzip file, front to back.

    Several members behind one another, as bgzip and parallel compressors write them,
    are one content; zeros behind the last are padding. Anything else behind it, an
    early end, and a checksum or length that does not fit raise `DamagedGzipError`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._member = zlib_ng.decompressobj(_GZIP_ONLY)
        self._compressed = b""
        self._piece = memoryview(b"")

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end of the content."""
        content = bytearray(size)
        return bytes(content[: self.readinto(memoryview(content))])

    def readinto(self, target: memoryview) -> int:
        """Fill `target`, a buffer of bytes; the number is smaller only at the end."""
        filled = 0
        while filled < len(target):
            if not self._piece:
                self._piece = memoryview(self._decompress())
                if not self._piece:
                    break
            part = self._piece[: len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)
            self._piece = self._piece[len(part) :]
        return filled

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

    def _decompress(self) -> bytes:
        """Some more of the content; nothing only at its end."""
        while True:
            if self._member.eof and not self._begin_member():
                return b""
            self._compressed = self._compressed or self._file.read(
                COMPRESSED_PIECE_BYTES
            )
            if not self._compressed:
                text = "its compressed data end early"
                raise DamagedGzipError(text)
            try:
                content = self._member.decompress(self._compressed, PIECE_BYTES)
            except zlib_ng.error as error:  # type: ignore[misc]
                text = "its compressed data do not fit their checksum"
                raise DamagedGzipError(text) from error
            self._compressed = self._member.unconsumed_tail
            if content:
                return content

    def _begin_member(self) -> bool:
        """Go on to the next gzip member; False at the end of the file."""
        rest = self._member.unused_data.lstrip(b"\0")
        while len(rest) < len(MAGIC):
            more = self._file.read(COMPRESSED_PIECE_BYTES)
            if not more:
                break
            rest = (rest + more).lstrip(b"\0")
        if not rest:
            return False
        if not rest.startswith(MAGIC):
            text = "there are other data behind its compressed data"
            raise DamagedGzipError(text)
        self._member = zlib_ng.decompressobj(_GZIP_ONLY)
        self._compressed = rest
        return True
