"""Reads the header of a label map in a .npz file of NumPy.

NumPy is not asked to read it: a line of Python in the file decides the content of an
array, and an array of objects is a program. Here that line has to be exactly as NumPy
writes it, and the type one of numbers.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import struct
import warnings
from typing import BinaryIO, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt
from zlib_ng import zlib_ng

from flare.challenge.formats import NpzLayout, SpacingOrder
from flare.common.streams import PIECE_BYTES, DamagedStreamError, Stream, ZlibStream
from flare.common.text import listing, safe
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import Header, check_sizes, make_unplaced_grid

SPACING = "spacing"
"""The array of the three voxel sizes, in mm."""

_SUFFIX = ".npy"

_STARTS = tuple(b"\x93NUMPY" + bytes((version, 0)) for version in (1, 2, 3))
"""The beginnings of an array, by the version of its format."""

_HEADER_BYTES = 2**10
"""NumPy pads the line of an array to 64 bytes, or to 128."""

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


def is_start(start: bytes) -> bool:
    """Whether a file that begins like this can be a .npz file."""
    return start.startswith(ZIP_MAGIC)


def open_voxels(file: BinaryIO, layout: NpzLayout) -> tuple[Header, Stream]:
    """Read and check all but the labels; the stream begins with them.

    Such a file has a size and a voxel size, but no place: its grid says so. A
    FileFormatError is raised if the arrays are not those of `layout`, or of a kind that
    no label map has. A DamagedFileError is raised if the zip file is cut off or not
    plain, or an array has another size than the file says. A DamagedStreamError is
    raised if the data of an array are damaged.
    """
    try:
        members = _arrays(_read_members(file), layout)
    except DamagedStreamError as error:
        raise DamagedFileError(
            "", str(error), _AS_UINT8.format(layout.labels)
        ) from error
    spacing = _spacing(file, members[SPACING])
    if layout.spacing_order is SpacingOrder.ZYX:
        spacing = spacing[::-1]
    member = members[layout.labels]
    stream = _MemberStream(file, member)
    dtype, shape = _read_line(stream, member, layout.labels)
    sizes = check_sizes(shape[::-1])
    return Header(grid=make_unplaced_grid(sizes, spacing), dtype=dtype), stream


def _arrays(members: dict[str, _Member], layout: NpzLayout) -> dict[str, _Member]:
    """The members by the names of their arrays, if they are those expected."""
    expected = (layout.labels, SPACING)
    arrays = {name.removesuffix(_SUFFIX): members[name] for name in members}
    has_only_arrays = all(name.endswith(_SUFFIX) for name in members)
    has_expected = arrays.keys() >= set(expected)
    if not layout.may_have_more:
        has_expected = arrays.keys() == set(expected)
    if not (has_only_arrays and has_expected):
        raise FileFormatError(
            "",
            f"its arrays are {listing(map(safe, sorted(members)))}, expected"
            f" {listing(expected, last=' and ')}",
            _AS_UINT8.format(layout.labels),
        )
    return arrays


def _spacing(file: BinaryIO, member: _Member) -> npt.NDArray[np.float64]:
    """The three voxel sizes in mm, in the order of the file: shape (3,)."""
    stream = _MemberStream(file, member)
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
    stream: Stream, member: _Member, name: str
) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """Type and shape of an array, whose size has to be that of its member."""
    start = stream.read(len(_STARTS[0]))
    if start not in _STARTS:
        raise FileFormatError("", f"its member {name} is no array of NumPy")
    width = 2 if start == _STARTS[0] else 4
    length = int.from_bytes(stream.read(width), "little")
    line = stream.read(length) if length <= _HEADER_BYTES else b""
    dtype, shape = _parse_line(line, name)
    promised = len(start) + width + length + math.prod(shape) * dtype.itemsize
    if promised != member.entry.file_size:
        raise DamagedFileError("", f"its array {name} is not as large as it says")
    return dtype, shape


def _parse_line(line: bytes, name: str) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """Type and shape of an array from the line that says them, which is not run."""
    if b"'|O'" in line or b"'O'" in line:
        raise FileFormatError("", f"its array {name} holds Python objects (a pickle)")
    match = _LINE.fullmatch(line)
    if not match:
        raise FileFormatError("", f"what its array {name} is cannot be read")
    type_code, order, sizes = match[1].decode(), match[2], match[3]
    if type_code.lstrip("<>|=") not in _TYPES:
        problem = f"its array {name} is of type {safe(type_code)}, expected uint8"
        raise FileFormatError("", problem)
    # As bool, a byte that is neither 0 nor 1 would not be noticed.
    dtype = np.dtype(type_code.replace("b1", "u1"))
    shape = tuple(int(size) for size in sizes.split(b",") if size.strip())
    if order == b"True" and len(shape) > 1:
        raise FileFormatError("", f"its array {name} is in Fortran order")
    return dtype, shape


# --- The zip file -----------------------------------------------------------------

ZIP_MAGIC = b"PK\x03\x04"
"""The beginning of a zip file with a member."""

MEMBERS = 16
"""Most members of a file with a few arrays."""

ENTRY_BYTES = 2**10 + 2**8
"""Most bytes of the directory for one member."""

_END = struct.Struct("<4s4H2IH")
_LOCAL = struct.Struct("<4s5H3I2H")
_END_MAGIC, _ZIP64_MAGIC, _ZIP64_BYTES = b"PK\x05\x06", b"PK\x06\x07", 20

_ENCRYPTED = 0x1


class _Member(NamedTuple):
    """A member of a zip file: the place of its data, and its entry in the directory."""

    start: int
    entry: ZipInfo


def _read_members(file: BinaryIO) -> dict[str, _Member]:
    """Find the members of a zip file by their names, without unpacking any.

    The end of the file is looked at before `zipfile`, which would read a directory of
    any size. Members that lie over one another could unpack to far more than the file
    holds, so they are refused.
    """
    size = file.seek(0, os.SEEK_END)
    end = size - _END.size
    _check(end >= _ZIP64_BYTES, "it ends early")
    file.seek(end - _ZIP64_BYTES)
    is_zip64 = file.read(_ZIP64_BYTES).startswith(_ZIP64_MAGIC)
    magic, *disks, count, length, start, comment = _END.unpack(file.read(_END.size))
    is_whole = magic == _END_MAGIC and not comment
    _check(is_whole, "its end is not that of a .npz file: was it cut off?")
    is_plain = disks == [0, 0, count] and start + length == end and not is_zip64
    _check(is_plain, "its directory is not where it says, or in ZIP64")
    is_small = 1 <= count <= MEMBERS and length <= count * ENTRY_BYTES
    _check(is_small, f"it has {count} members, or long names, expected a few arrays")
    try:
        with warnings.catch_warnings(action="ignore"):  # of second names, on stderr
            entries = ZipFile(file).infolist()
    except (BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise DamagedStreamError("its directory is damaged") from error
    # Only some versions of Python read a second name, in Unicode: this is the first.
    members = {entry.orig_filename: _located(file, entry, start) for entry in entries}
    _check(len(members) == len(entries), "two of its members have one name")
    places = sorted((m.start, m.entry.compress_size) for m in members.values())
    for (place, size), (next_place, _) in itertools.pairwise(places):
        _check(place + size <= next_place, "its members lie over one another")
    return members


def _located(file: BinaryIO, entry: ZipInfo, directory: int) -> _Member:
    """A member that can be read, all of which lies before the directory."""
    is_plain = not entry.flag_bits & _ENCRYPTED
    is_plain &= entry.compress_type in (ZIP_STORED, ZIP_DEFLATED)
    _check(is_plain, "it is encrypted, or not compressed by Deflate")
    largest = max(entry.header_offset, entry.compress_size, entry.file_size)
    _check(largest < 2**32, "it is a ZIP64 file, for more than 4 GiB")
    file.seek(entry.header_offset)
    header = file.read(_LOCAL.size).ljust(_LOCAL.size)
    magic, *_, name_length, extra_length = _LOCAL.unpack(header)
    start = entry.header_offset + _LOCAL.size + name_length + extra_length
    is_in_place = magic == ZIP_MAGIC and start + entry.compress_size <= directory
    _check(is_in_place, "a member is not where its directory says")
    return _Member(start, entry)


def _check(holds: bool, text: str) -> None:
    """Refuse a file if a condition does not hold; the text says what is wrong then."""
    if not holds:
        raise DamagedStreamError(text)


class _Part:
    """The bytes of a member in its file, whose position does not matter."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._place, self._end = file, start, start + size

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        self._file.seek(self._place)
        content = self._file.read(min(size, self._end - self._place))
        self._place += len(content)
        return content


class _MemberStream(ZlibStream):
    """The content of a member, as long as the directory says and no longer.

    Raises `DamagedStreamError` while it is read: where it ends early, holds more, or
    does not fit its checksum, which is known at its end.
    """

    _window = -15  # what zlib calls 15 bits without a header or trailer

    def __init__(self, file: BinaryIO, member: _Member) -> None:
        self._entry = member.entry
        super().__init__(_Part(file, member.start, member.entry.compress_size))
        self._left, self._checksum = member.entry.file_size, 0

    def _next_piece(self) -> bytes:
        is_deflated = self._entry.compress_type == ZIP_DEFLATED
        content = super()._next_piece() if is_deflated else self._file.read(PIECE_BYTES)
        self._left -= len(content)
        self._checksum = zlib_ng.crc32(content, self._checksum)
        _check(self._left >= 0, "it holds more than it says")
        if not content:
            _check(not self._left, "its compressed data end early")
            is_right = self._checksum == self._entry.CRC
            _check(is_right, "its compressed data do not fit their checksum")
        return content
