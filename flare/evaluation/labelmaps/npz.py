"""Reads the header of a label map in a .npz file of NumPy.

NumPy is not asked to read it: what an array holds is decided by a line of Python in the
file, and an array of objects is a program. Here that line has to be exactly as NumPy
writes it, and the type one of numbers.
"""

from __future__ import annotations

import math
import re
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from flare.challenge.formats import NpzLayout, SpacingOrder
from flare.common.archives import (
    ZIP_MAGIC,
    ZipMember,
    ZipMemberStream,
    read_members,
)
from flare.common.streams import DamagedStreamError, Stream
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
