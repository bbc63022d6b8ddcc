"""Reads headers that are text: those of MetaImage (.mha) and NRRD files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from flare.common.streams import PlainStream, SizedGzipStream, Stream, ZlibStream
from flare.common.text import count, safe
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import (
    LPS,
    ONE_VOLUME,
    Header,
    check_sizes,
    make_placed_grid,
)

SEGMENT = "Segment0_ID:="
"""3D Slicer begins the description of its first segment like this."""

ONE_LABEL_MAP = (
    "In 3D Slicer, export the segments to one binary labelmap, and save that."
)

SIZE_DIGITS = 10
"""A number of voxels has fewer; Python would refuse to read one with thousands."""

LINE_BYTES = 2**14
"""Longest line of a header."""

LINES = 1000
"""Most lines of a header."""

_NRRD = b"NRRD"

_FIRST_KEYS = (b"ObjectType", b"NDims", b"Comment", b"ObjectSubType", b"Name", b"ID")

_MET_TYPES = {
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

_NRRD_NAMES = {
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
}
"""All names of a type in a .nrrd file."""

_NRRD_TYPES: dict[str, str] = {}
for _dtype, _names in _NRRD_NAMES.items():
    _NRRD_TYPES |= dict.fromkeys(_names.split(", "), _dtype)

_SPACES = {
    "left-posterior-superior": LPS,
    "lps": LPS,
    "right-anterior-superior": np.ones(3),
    "ras": np.ones(3),
    "left-anterior-superior": np.array([-1.0, 1.0, 1.0]),
    "las": np.array([-1.0, 1.0, 1.0]),
}
"""The factors that turn a position in a named space into one in RAS."""


_UNITS = {"um": "micrometres", "cm": "centimetres", "m": "metres"}
"""The units of lengths but mm."""


def is_start(start: bytes) -> bool:
    """Whether a file that begins like this is a MetaImage or NRRD file."""
    key = start.partition(b"=")[0].strip()
    return start.startswith(_NRRD) or key in _FIRST_KEYS


def open_voxels(file: BinaryIO) -> tuple[Header, Stream]:
    """Read and check the header; the stream begins with the voxels.

    A FileFormatError is raised if it is of a kind that no label map has. A
    DamagedFileError is raised if the file ends within its header.
    """
    is_nrrd = file.read(len(_NRRD)) == _NRRD
    file.seek(0)
    return _open_nrrd(file) if is_nrrd else _open_metaimage(file)


def _open_metaimage(file: BinaryIO) -> tuple[Header, Stream]:
    fields = _read_metaimage_fields(file)
    if fields["ElementDataFile"].upper() != "LOCAL":
        raise FileFormatError("", "its voxels are in another file")
    if not _flag(fields, "BinaryData", default=True):
        raise FileFormatError("", "its voxels are written as text")
    if fields.get("ElementNumberOfChannels", "1") != "1":
        raise FileFormatError("", "its voxels have several channels", ONE_VOLUME)
    if fields.get("HeaderSize", "0") not in ("0", "-1"):
        raise FileFormatError("", "its header has a HeaderSize")

    sizes = _read_sizes(fields.get("DimSize", ""))
    shape, count = check_sizes(sizes), len(sizes)
    spacing = _vector(fields, ("ElementSpacing", "ElementSize"), np.ones(count))
    origin = _vector(fields, ("Offset", "Origin", "Position"), np.zeros(count))
    keys = ("TransformMatrix", "Rotation", "Orientation")
    turn = _vector(fields, keys, np.eye(count).ravel())
    # Each row of the matrix is where an axis of the voxels points.
    axes = turn.reshape(count, count) * spacing[:, np.newaxis]
    is_big = _flag(
        fields, "BinaryDataByteOrderMSB", "ElementByteOrderMSB", default=False
    )
    header = Header(
        grid=make_placed_grid(
            shape, axes, spacing, origin, LPS, _unit(fields.get("DistanceUnits", ""))
        ),
        dtype=_stored_type(_MET_TYPES, fields.get("ElementType", ""), is_big),
    )
    is_compressed = _flag(fields, "CompressedData", default=False)
    return header, ZlibStream(file) if is_compressed else PlainStream(file)


def _read_metaimage_fields(file: BinaryIO) -> dict[str, str]:
    """The values of a .mha file's header by their keys; the last one ends it."""
    fields: dict[str, str] = {}
    lines = 0
    while "ElementDataFile" not in fields:
        key, _, value = _read_line(file, lines).partition("=")
        fields[key.strip()] = value.strip()
        lines += 1
    return fields


def _flag(fields: Mapping[str, str], *keys: str, default: bool) -> bool:
    """Whether a value is true; only its first letter counts, as for MetaIO."""
    for key in keys:
        if key in fields:
            return fields[key][:1] in ("T", "t", "1")
    return default


def _open_nrrd(file: BinaryIO) -> tuple[Header, Stream]:
    fields = _read_nrrd_fields(file)
    if "datafile" in fields:
        raise FileFormatError("", "its voxels are in another file")
    for key in ("byteskip", "lineskip"):
        if fields.get(key, "0") != "0":
            raise FileFormatError("", f"its header has a {key}")

    sizes = _read_sizes(fields.get("sizes", ""))
    _drop_lone_axis(fields, sizes)
    if "segment0_id" in fields and len(sizes) > 3:
        raise FileFormatError("", "its segments lie in layers", ONE_LABEL_MAP)
    shape, count = check_sizes(sizes), len(sizes)
    space = fields.get("space", "lps").lower()
    if space not in _SPACES:
        raise FileFormatError(
            "", f"its space is {safe(space[:40])}, expected LPS or RAS"
        )
    axes = _nrrd_axes(fields, count)
    origin = _nrrd_origin(fields, axes)
    spacing = np.linalg.norm(axes, axis=1)
    is_big = fields.get("endian", "").lower() == "big"
    unit = _unit(fields.get("spaceunits", ""))
    header = Header(
        grid=make_placed_grid(shape, axes, spacing, origin, _SPACES[space], unit),
        dtype=_stored_type(_NRRD_TYPES, fields.get("type", "").lower(), is_big),
    )
    return header, _nrrd_stream(file, fields.get("encoding", "").lower())


def _read_nrrd_fields(file: BinaryIO) -> dict[str, str]:
    """The values of a .nrrd file's header by their keys; an empty line ends it.

    Keys are in small letters, without spaces. Comments, and pairs of a program's own
    (``key:=value``), are passed by, but for 3D Slicer's first one of segments; vectors
    lose their brackets and commas.
    """
    fields: dict[str, str] = {}
    lines = 0
    while line := _read_line(file, lines):
        lines += 1
        if not line.startswith("#") and (":=" not in line or line.startswith(SEGMENT)):
            key, _, value = line.partition(":")
            fields[key.strip().lower().replace(" ", "")] = value.strip()
    for key in ("spacedirections", "spaceorigin"):
        if key in fields:
            fields[key] = re.sub(r"[(),]", " ", fields[key])
    return fields


def _nrrd_axes(fields: Mapping[str, str], count: int) -> npt.NDArray[np.float64]:
    """The steps along each axis in mm, of shape (n, n): a row for each axis."""
    if "spacedirections" not in fields:
        return np.diag(_vector(fields, ("spacings",), np.ones(count)))
    missing = np.full(count * count, np.nan)
    return _vector(fields, ("spacedirections",), missing).reshape(count, count)


def _drop_lone_axis(fields: dict[str, str], sizes: list[int]) -> None:
    """Take an axis of length 1 without a direction out of four, as ITK does."""
    directions = fields.get("spacedirections", "").split()
    for place in (0, -1):
        is_lone = directions[place:][:1] == ["none"] and sizes[place:][:1] == [1]
        if len(sizes) > 3 and is_lone:
            del directions[place], sizes[place]
            fields["spacedirections"] = " ".join(directions)


def _nrrd_origin(
    fields: Mapping[str, str], axes: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Position of the first voxel's centre, of shape (n,).

    Axes of no space may begin at a minimum. As ITK takes it, this is the first voxel's
    edge, half a voxel before its centre, unless the file says ``node``.
    """
    nowhere = np.zeros(len(axes))
    has_ends = "axismins" in fields or "axismaxs" in fields
    if not has_ends or not fields.keys().isdisjoint(("spaceorigin", "spacedirections")):
        return _vector(fields, ("spaceorigin",), nowhere)
    if "spacings" not in fields:
        raise FileFormatError("", "its header has ends of axes, and no spacings")
    mins = _vector(fields, ("axismins",), nowhere)
    centerings = (fields.get("centers") or fields.get("centerings", "")).lower()
    words = np.array([*centerings.split(), *[""] * len(axes)])[: len(axes)]
    halves = np.diag(axes) / 2 * (words != "node")
    return nowhere if np.isnan(mins).all() else mins + halves


def _unit(text: str) -> str:
    """The unit of lengths in a header; empty if it is mm, or no unit that is known."""
    words = text.lower().replace('"', " ").split()
    return _UNITS.get(words[0], "") if words else ""


def _nrrd_stream(file: BinaryIO, encoding: str) -> Stream:
    """The voxels of a file that stands at the end of its header."""
    if encoding == "raw":
        return PlainStream(file)
    if encoding in ("gzip", "gz"):
        return SizedGzipStream(file)
    raise FileFormatError(
        "", f"its encoding is {safe(encoding[:20])}, expected gzip or raw"
    )


def _read_line(file: BinaryIO, lines: int) -> str:
    """The next line of a header without its end; `lines` were read before it."""
    line = file.readline(LINE_BYTES)
    if len(line) == LINE_BYTES or lines >= LINES:
        raise FileFormatError("", "its header is too long")
    if not line.endswith(b"\n"):
        raise DamagedFileError("", "it ends within its header")
    return line.decode("latin-1").rstrip("\r\n")


def _read_sizes(text: str) -> list[int]:
    """Numbers of voxels in the order of the file; 0 for a word that is not one."""
    sizes = []
    for word in text.split():
        is_size = word.isdecimal() and len(word) < SIZE_DIGITS
        sizes.append(int(word) if is_size else 0)
    return sizes


def _vector(
    fields: Mapping[str, str], keys: tuple[str, ...], default: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Numbers of the first of several keys that has a value; else the default.

    Both are of shape (n,), in the order of the file.
    """
    key = next((key for key in keys if fields.get(key)), None)
    if key is None:
        return default
    try:
        numbers = [*map(float, fields[key].split())]
    except ValueError as error:
        raise FileFormatError(
            "", f"its header has {safe(fields[key][:40])} where numbers should be"
        ) from error
    if len(numbers) != default.size:
        raise FileFormatError(
            "",
            f"its header has {count(len(numbers), 'number')} for {key}, expected"
            f" {default.size}",
        )
    return np.array(numbers)


def _stored_type(kinds: Mapping[str, str], name: str, is_big: bool) -> np.dtype[Any]:
    if name not in kinds:
        raise FileFormatError(
            "", f"its voxels are of type {safe(name[:40])}, expected numbers"
        )
    return np.dtype((">" if is_big else "<") + kinds[name])
