"""Explains the text headers of MetaImage (.mha) and NRRD files.

Both have lines of "key, separator, value", and directions and origins that SimpleITK
writes in LPS: to the left, back and top. Only what a label map needs is read; whatever
would change the meaning of the voxels, and is not known here, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from flare.common.streams import GzipStream, PlainStream, Stream, ZlibStream
from flare.common.text import safe
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import ONE_VOLUME, Header, check_sizes, make_grid

SIZE_DIGITS = 10
"""A number of voxels has fewer; Python would refuse to read one with thousands."""

LINE_BYTES = 2**14
"""Longest line of a header."""

LINES = 1000
"""Most lines of a header."""

_METAIMAGE_TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}

_NRRD_TYPES = {
    name: dtype
    for dtype, names in {
        "i1": "signed char, int8, int8_t",
        "u1": "uchar, unsigned char, uint8, uint8_t",
        "i2": "short, short int, signed short, signed short int, int16, int16_t",
        "u2": "ushort, unsigned short, unsigned short int, uint16, uint16_t",
        "i4": "int, signed int, int32, int32_t",
        "u4": "uint, unsigned int, uint32, uint32_t",
        "i8": "longlong, long long, long long int, signed long long,"
        " signed long long int, int64, int64_t",
        "u8": "ulonglong, unsigned long long, unsigned long long int, uint64, uint64_t",
        "f4": "float",
        "f8": "double",
    }.items()
    for name in names.split(", ")
}

_LPS = np.array([-1.0, -1.0, 1.0])
"""What turns a position in LPS into one in RAS."""

_NRRD_SPACES = {
    "left-posterior-superior": _LPS,
    "lps": _LPS,
    "right-anterior-superior": np.array([1.0, 1.0, 1.0]),
    "ras": np.array([1.0, 1.0, 1.0]),
    "left-anterior-superior": np.array([-1.0, 1.0, 1.0]),
    "las": np.array([-1.0, 1.0, 1.0]),
}
"""What turns a position in a named space into one in RAS."""


def is_metaimage(start: bytes) -> bool:
    """Whether a file that begins like this is a MetaImage file."""
    key = start.partition(b"=")[0].strip()
    return key in (
        b"ObjectType",
        b"NDims",
        b"Comment",
        b"ObjectSubType",
        b"Name",
        b"ID",
    )


def is_nrrd(start: bytes) -> bool:
    """Whether a file that begins like this is a NRRD file."""
    return start.startswith(b"NRRD")


def read_metaimage_header(file: BinaryIO, name: str) -> tuple[Header, Stream]:
    """Read and check the header of a .mha file; the stream begins with the voxels.

    Raises
    ------
    FileFormatError
        If it is of a kind that no label map has.
    DamagedFileError
        If the file ends within its header.
    """
    fields: dict[str, str] = {}
    lines = 0
    while "ElementDataFile" not in fields:
        key, _, value = _read_line(file, name, lines).partition("=")
        fields[key.strip()] = value.strip()
        lines += 1
    if fields["ElementDataFile"].upper() != "LOCAL":
        raise FileFormatError(name, "its voxels are in another file")
    if _flag(fields, "BinaryData", default=True) is False:
        raise FileFormatError(name, "its voxels are written as text")
    if fields.get("ElementNumberOfChannels", "1") != "1":
        raise FileFormatError(name, "its voxels have several channels", ONE_VOLUME)
    if fields.get("HeaderSize", "0") not in ("0", "-1"):
        raise FileFormatError(name, "its header has a HeaderSize")

    shape, count = _sizes(fields.get("DimSize", ""), name)
    spacing = _vector(fields, ("ElementSpacing", "ElementSize"), np.ones(count), name)
    origin = _vector(fields, ("Offset", "Origin", "Position"), np.zeros(count), name)
    keys = ("TransformMatrix", "Rotation", "Orientation")
    turn = _vector(fields, keys, np.eye(count).ravel(), name)
    # Each row of the matrix is where an axis of the voxels points.
    axes = turn.reshape(count, count) * spacing[:, np.newaxis]
    affine = _affine(axes, origin, _LPS)
    order = _flag(
        fields, "BinaryDataByteOrderMSB", "ElementByteOrderMSB", default=False
    )
    kind = _METAIMAGE_TYPES.get(fields.get("ElementType", ""))
    header = Header(
        grid=make_grid(shape, _three(spacing, 1.0), affine, name),
        dtype=_dtype(kind, fields.get("ElementType", ""), ">" if order else "<", name),
    )
    is_compressed = _flag(fields, "CompressedData", default=False)
    return header, ZlibStream(file) if is_compressed else PlainStream(file)


def read_nrrd_header(file: BinaryIO, name: str) -> tuple[Header, Stream]:
    """Read and check the header of a .nrrd file; the stream begins with the voxels.

    Raises
    ------
    FileFormatError, DamagedFileError
        As `read_metaimage_header`.
    """
    fields: dict[str, str] = {}
    lines = 0
    while line := _read_line(file, name, lines):
        lines += 1
        if not line.startswith("#") and ":=" not in line:
            key, _, value = line.partition(":")
            fields[key.strip().lower().replace(" ", "")] = value.strip()
    if "datafile" in fields:
        raise FileFormatError(name, "its voxels are in another file")
    for key in ("byteskip", "lineskip"):
        if fields.get(key, "0") != "0":
            raise FileFormatError(name, f"its header has a {key}")

    shape, count = _sizes(fields.get("sizes", ""), name)
    space = fields.get("space", "lps").lower()
    if space not in _NRRD_SPACES:
        problem = f"its space is {safe(space[:40])}, expected LPS or RAS"
        raise FileFormatError(name, problem)
    if "spacedirections" in fields:
        numbers = _numbers(re.sub(r"[(),]", " ", fields["spacedirections"]), name)
        if len(numbers) != count * count:
            raise FileFormatError(name, "its header has an impossible orientation")
        axes = np.array(numbers).reshape(count, count)
    else:
        axes = np.diag(_vector(fields, ("spacings",), np.ones(count), name))
    fields["spaceorigin"] = re.sub(r"[(),]", " ", fields.get("spaceorigin", ""))
    origin = _vector(fields, ("spaceorigin",), np.zeros(count), name)
    affine = _affine(axes, origin, _NRRD_SPACES[space])
    order = ">" if fields.get("endian", "little").lower() == "big" else "<"
    kind = fields.get("type", "")
    header = Header(
        grid=make_grid(shape, _three(np.linalg.norm(axes, axis=1), 1.0), affine, name),
        dtype=_dtype(_NRRD_TYPES.get(kind.lower()), kind, order, name),
    )
    encoding = fields.get("encoding", "").lower()
    if encoding == "raw":
        return header, PlainStream(file)
    if encoding in ("gzip", "gz"):
        return header, GzipStream(file)
    problem = f"its encoding is {safe(encoding[:20])}, expected gzip or raw"
    raise FileFormatError(name, problem)


def _read_line(file: BinaryIO, name: str, lines: int) -> str:
    """The next line of a header, without its end."""
    line = file.readline(LINE_BYTES)
    if len(line) == LINE_BYTES or lines >= LINES:
        raise FileFormatError(name, "its header is too long")
    if not line.endswith(b"\n"):
        raise DamagedFileError(name, "it ends within its header")
    return line.decode("latin-1").rstrip("\r\n")


def _sizes(text: str, name: str) -> tuple[tuple[int, int, int], int]:
    """Numbers of voxels along z, y, x, and how many axes the file has."""
    words = text.split()
    is_size = [word.isdecimal() and len(word) < SIZE_DIGITS for word in words]
    sizes = [
        int(word) if fits else 0 for word, fits in zip(words, is_size, strict=True)
    ]
    return check_sizes(sizes, name), len(sizes)


def _numbers(text: str, name: str) -> list[float]:
    """The numbers in a value."""
    try:
        return [float(word) for word in text.split()]
    except ValueError as error:
        problem = f"its header has {safe(text[:40])} where numbers should be"
        raise FileFormatError(name, problem) from error


def _vector(
    fields: Mapping[str, str],
    keys: Sequence[str],
    default: npt.NDArray[np.float64],
    name: str,
) -> npt.NDArray[np.float64]:
    """Numbers under the first of several keys that is there; else the default."""
    for key in keys:
        if fields.get(key):
            numbers = _numbers(fields[key], name)
            if len(numbers) != default.size:
                found = f"its header has {len(numbers)} numbers for {key}"
                raise FileFormatError(name, f"{found}, expected {default.size}")
            return np.array(numbers)
    return default


def _flag(fields: Mapping[str, str], *keys: str, default: bool) -> bool:
    """Whether a value is true; only its first letter counts, as for MetaIO."""
    for key in keys:
        if key in fields:
            return fields[key][:1] in ("T", "t", "1")
    return default


def _three(values: npt.NDArray[np.float64], fill: float) -> npt.NDArray[np.float64]:
    """The first three values; missing ones are `fill`."""
    return np.append(values, [fill] * 3)[:3]


def _affine(
    axes: npt.NDArray[np.float64],
    origin: npt.NDArray[np.float64],
    to_ras: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """An affine of shape (3, 4), in RAS, from steps along each axis, as rows."""
    affine = np.eye(3, 4)
    count = min(len(axes), 3)
    affine[:count, :count] = axes[:count, :count].T
    affine[:, 3] = _three(origin, 0.0)
    return affine * to_ras[:, np.newaxis]


def _dtype(kind: str | None, found: str, order: str, name: str) -> np.dtype[Any]:
    """A stored type in its byte order."""
    if kind is None:
        problem = f"its voxels are of type {safe(found[:40])}, expected numbers"
        raise FileFormatError(name, problem)
    return np.dtype(order + kind)
