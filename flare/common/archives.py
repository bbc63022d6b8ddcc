"""Opens zip files of a few arrays, which may claim anything.

zipfile reads whatever a directory holds, however large it is, and takes the last of two
members of one name. Here a file is refused unless it is as plain as NumPy writes it:
a few members, each at a place of its own, whose sizes are known before any is unpacked.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from zlib_ng import zlib_ng

from flare.common.streams import PIECE_BYTES, DamagedStreamError, ZlibStream

ZIP_MAGIC = b"PK\x03\x04"
"""How a zip file with a member begins."""

MEMBERS = 16
"""More than these are no file of a few arrays."""

NAME_BYTES = 100
"""No name of an array is longer."""

_END = struct.Struct("<4s4H2IH")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_END_MAGIC, _ENTRY_MAGIC = b"PK\x05\x06", b"PK\x01\x02"

_ENTRY_BYTES = _ENTRY.size + NAME_BYTES + 2**10
"""The most that the directory has of one member."""

_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 0x1
_IN_ZIP64 = 0xFFFFFFFF
"""Stands for a number that is in an extra field, because it needs 64 bits."""

_COUNT_IN_ZIP64 = 0xFFFF
"""The same for the number of members."""

_ZIP64 = "it is a ZIP64 file, for more than 4 GiB"
_BAD_DIRECTORY = "its directory is damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipMember:
    """A member of a zip file."""

    name: str
    start: int
    """Where its data begin."""
    packed: int
    """So many bytes in the file."""
    size: int
    """So many bytes when it is unpacked."""
    checksum: int
    is_deflated: bool


def read_members(file: BinaryIO) -> dict[str, ZipMember]:
    """Find the members of a zip file by their names, without unpacking any.

    Raises
    ------
    DamagedStreamError
        If the file is cut off, or is not as plain as it should be; says in what way.
    """
    size = file.seek(0, os.SEEK_END)
    _check(size >= _END.size, "it ends early")
    file.seek(size - _END.size)
    magic, *disks, count, length, start, comment = _END.unpack(file.read(_END.size))
    is_whole = magic == _END_MAGIC and not comment
    _check(is_whole, "its end is not that of a .npz file: was it cut off?")
    _check(disks == [0, 0, count], "it is a part of a zip file")
    _check(start != _IN_ZIP64 and count != _COUNT_IN_ZIP64, _ZIP64)
    is_small = 1 <= count <= MEMBERS and length <= count * _ENTRY_BYTES
    _check(is_small, f"it has {count} members, or long names, expected a few arrays")
    end = size - _END.size
    _check(start + length == end, "its directory is not where it says")
    file.seek(start)
    entries = tuple(_entries(file.read(length), count))
    found = [_located(file, entry, start) for entry in entries]
    members = {member.name: member for member in found}
    _check(len(members) == len(found), "two of its members have one name")
    places = sorted((member.start, member.packed) for member in found)
    for (first, packed), (following, _) in itertools.pairwise(places):
        _check(first + packed <= following, "its members lie over one another")
    return members


def _entries(directory: bytes, count: int) -> Iterator[ZipMember]:
    """What the directory says of each member; `start` is that of its own header."""
    place = 0
    for _ in range(count):
        _check(len(directory) - place >= _ENTRY.size, _BAD_DIRECTORY)
        entry = _ENTRY.unpack_from(directory, place)
        flags, method = entry[3:5]
        checksum, packed, size, *lengths = entry[7:13]
        start = entry[16]
        name = directory[place + _ENTRY.size :][: lengths[0]]
        place += _ENTRY.size + sum(lengths)
        is_entry = entry[0] == _ENTRY_MAGIC and place <= len(directory)
        _check(is_entry, _BAD_DIRECTORY)
        _check(_IN_ZIP64 not in (packed, size, start), _ZIP64)
        is_plain = not flags & _ENCRYPTED and method in (_STORED, _DEFLATED)
        _check(is_plain, "it is encrypted, or not compressed by Deflate")
        _check(method != _STORED or packed == size, _BAD_DIRECTORY)
        is_name = name.isascii() and 1 <= len(name) <= NAME_BYTES
        _check(is_name, "a name in it is none of an array")
        yield ZipMember(
            name=name.decode("ascii"),
            start=start,
            packed=packed,
            size=size,
            checksum=checksum,
            is_deflated=method == _DEFLATED,
        )
    _check(place == len(directory), _BAD_DIRECTORY)


def _located(file: BinaryIO, member: ZipMember, directory: int) -> ZipMember:
    """A member, with the place where its data begin; all lie before the directory."""
    name = member.name.encode("ascii")
    file.seek(member.start)
    header = file.read(_LOCAL.size + len(name))
    _check(len(header) == _LOCAL.size + len(name), "it ends early")
    magic, *_, name_length, extra_length = _LOCAL.unpack_from(header)
    start = member.start + len(header) + extra_length
    is_there = (magic, name_length) == (ZIP_MAGIC, len(name)) and header.endswith(name)
    is_before = start + member.packed <= directory
    _check(is_there and is_before, "a member is not where its directory says")
    return replace(member, start=start)


def _check(holds: bool, text: str) -> None:
    """Refuse a file of which something does not hold; the text says in what way."""
    if not holds:
        raise DamagedStreamError(text)


class _Part:
    """The bytes of a member in its file, wherever the file stands."""

    def __init__(self, file: BinaryIO, member: ZipMember) -> None:
        self._file, self._place = file, member.start
        self._end = member.start + member.packed

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        self._file.seek(self._place)
        content = self._file.read(min(size, self._end - self._place))
        self._place += len(content)
        return content


class ZipMemberStream(ZlibStream):
    """The content of a member, as long as the directory says and no longer.

    Raises `DamagedStreamError` while it is read: where it ends early, holds more, or
    does not fit its checksum, which is known at its end.
    """

    _window = -15  # what zlib calls 15 bits without a header or trailer

    def __init__(self, file: BinaryIO, member: ZipMember) -> None:
        super().__init__(_Part(file, member))
        self._member, self._left, self._checksum = member, member.size, 0

    def _next_piece(self) -> bytes:
        is_deflated = self._member.is_deflated
        content = super()._next_piece() if is_deflated else self._file.read(PIECE_BYTES)
        self._left -= len(content)
        self._checksum = zlib_ng.crc32(content, self._checksum)
        _check(self._left >= 0, "it holds more than it says")
        if not content:
            _check(not self._left, "its compressed data end early")
            is_right = self._checksum == self._member.checksum
            _check(is_right, "its compressed data do not fit their checksum")
        return content
