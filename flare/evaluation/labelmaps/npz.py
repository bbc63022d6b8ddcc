"""Reads the header of a label map in a .npz file of NumPy.

NumPy is not asked to read it: what an array holds is decided by a line of Python in the
file, and an array of objects is a program. Here that line has to be exactly as NumPy
writes it, and the type one of numbers.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from zlib_ng import zlib_ng

from flare.challenge.formats import NpzLayout, SpacingOrder
from flare.common.streams import PIECE_BYTES, DamagedStreamError, Stream, ZlibStream
from flare.common.text import listing, safe
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import (
    Header,
    check_sizes,
    make_grid,
)

SPACING = "spacing"
"""The array of the three voxel sizes, in mm."""

_SUFFIX = ".npy"

_STARTS = tuple(b"\x93NUMPY" + bytes((version, 0)) for version in (1, 2, 3))
"""How an array begins, by the version of its format."""

_HEADER_BYTES = 2**10
"""NumPy pads what it says of an array to 64 bytes, or to 128."""

_LINE = re.compile(
    rb"\{'descr': '([<>|=]?[a-zA-Z]\d*)', 'fortran_order': (True|False),"
    rb" 'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\),? ?\} *\n?"
)
"""The line, as NumPy writes it."""

_TYPES = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
"""Types of numbers, without the order of their bytes."""

_AS_UINT8 = (
    "Save it with numpy.savez_compressed(file, {}=labels.astype('uint8'),"
    " spacing=spacing)."
)

_PLAIN = "Save arrays of numbers: labels as uint8, spacing as float64."

_IN_C_ORDER = "Save numpy.ascontiguousarray(labels)."


def is_start(start: bytes) -> bool:
    """Whether a file that begins like this can be a .npz file."""
    return start.startswith(ZIP_MAGIC)


def open_voxels(file: BinaryIO, layout: NpzLayout) -> tuple[Header, Stream]:
    """Read and check all but the labels; the stream begins with them.

    Such a file has a size and a voxel size, but no place: its grid says so.

    Raises
    ------
    FileFormatError
        If the arrays are not those of `layout`, or of a kind that no label map has.
    DamagedFileError
        If the zip file is cut off or not plain, or an array has another size than the
        file says.
    DamagedStreamError
        If the data of an array are damaged.
    """
    try:
        members = _arrays(read_members(file), layout)
    except DamagedStreamError as error:
        raise DamagedFileError(
            "", str(error), _AS_UINT8.format(layout.labels)
        ) from error
    spacing = _spacing(file, members[SPACING])
    if layout.spacing_order is SpacingOrder.ZYX:
        spacing = spacing[::-1]
    member = members[layout.labels]
    stream = ZipMemberStream(file, member)
    dtype, shape = _read_line(stream, member, layout.labels)
    sizes = check_sizes(shape[::-1])
    affine = np.column_stack([np.diag(spacing), np.zeros(3)])
    grid = make_grid(sizes, spacing, affine, is_placed=False)
    return Header(grid=grid, dtype=dtype), stream


def _arrays(members: dict[str, ZipMember], layout: NpzLayout) -> dict[str, ZipMember]:
    """The members by the names of their arrays, if they are those expected."""
    expected = (layout.labels, SPACING)
    arrays = {name.removesuffix(_SUFFIX): each for name, each in members.items()}
    is_plain = all(name.endswith(_SUFFIX) for name in members)
    more = () if layout.may_have_more else set(arrays) - set(expected)
    if not is_plain or more or not set(expected) <= set(arrays):
        raise FileFormatError(
            "",
            f"its arrays are {listing(map(safe, sorted(members)))}, expected"
            f" {listing(expected, last=' and ')}",
            _AS_UINT8.format(layout.labels),
        )
    return arrays


def _spacing(file: BinaryIO, member: ZipMember) -> npt.NDArray[np.float64]:
    """The three voxel sizes in mm, in the order of the file: shape (3,)."""
    stream = ZipMemberStream(file, member)
    dtype, shape = _read_line(stream, member, SPACING)
    if shape != (3,):
        raise FileFormatError("", f"its array {SPACING} has not three numbers")
    content = stream.read(3 * dtype.itemsize)
    stream.read(1)  # what is at its end is verified then
    spacing = np.frombuffer(content, dtype=dtype).astype(np.float64)
    if not (np.isfinite(spacing).all() and spacing.min() > 0):
        raise FileFormatError(
            "", f"its array {SPACING} has numbers that are no voxel sizes"
        )
    return spacing


def _read_line(
    stream: Stream, member: ZipMember, name: str
) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """Type and shape of an array, whose size is that of its member."""
    start = stream.read(len(_STARTS[0]))
    if start not in _STARTS:
        raise FileFormatError("", f"its member {name} is no array of NumPy")
    width = 2 if start == _STARTS[0] else 4
    length = int.from_bytes(stream.read(width), "little")
    line = stream.read(length) if length <= _HEADER_BYTES else b""
    if b"'|O'" in line or b"'O'" in line:
        raise FileFormatError(
            "", f"its array {name} holds Python objects (a pickle)", _PLAIN
        )
    found = _LINE.fullmatch(line)
    if not found:
        raise FileFormatError("", f"what its array {name} is cannot be read")
    dtype = _type(found[1].decode(), name)
    shape = tuple(int(number) for number in found[3].split(b",") if number.strip())
    if found[2] == b"True" and len(shape) > 1:
        raise FileFormatError("", f"its array {name} is in Fortran order", _IN_C_ORDER)
    promised = len(start) + width + length + math.prod(shape) * dtype.itemsize
    if promised != member.size:
        raise DamagedFileError("", f"its array {name} is not as large as it says")
    return dtype, shape


def _type(text: str, name: str) -> np.dtype[np.generic]:
    """The stored type: a number of 8 to 64 bits."""
    kind = text.lstrip("<>|=")
    if kind not in _TYPES:
        raise FileFormatError(
            "", f"its array {name} is of type {safe(text)}, expected uint8"
        )
    if kind == "b1":  # a byte that is neither 0 nor 1 is to be seen
        kind = "u1"
    return np.dtype((">" if text.startswith(">") else "<") + kind)


# --- The zip file -----------------------------------------------------------------

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
