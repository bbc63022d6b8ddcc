"""Reads the header of a MetaImage (.mha) file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

import numpy as np

from flare.common.streams import PlainStream, Stream, ZlibStream
from flare.evaluation.errors import FileFormatError
from flare.evaluation.labelmaps.headers import (
    LPS,
    ONE_VOLUME,
    Header,
    check_sizes,
    make_placed_grid,
    read_line,
    read_sizes,
    read_vector,
    stored_type,
)

_TYPES = {
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


_FIRST_KEYS = (b"ObjectType", b"NDims", b"Comment", b"ObjectSubType", b"Name", b"ID")


def is_start(start: bytes) -> bool:
    """Whether a file that begins like this is a MetaImage file."""
    return start.partition(b"=")[0].strip() in _FIRST_KEYS


def open_voxels(file: BinaryIO) -> tuple[Header, Stream]:
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
        key, _, value = read_line(file, lines).partition("=")
        fields[key.strip()] = value.strip()
        lines += 1
    if fields["ElementDataFile"].upper() != "LOCAL":
        raise FileFormatError("", "its voxels are in another file")
    if not _flag(fields, "BinaryData", default=True):
        raise FileFormatError("", "its voxels are written as text")
    if fields.get("ElementNumberOfChannels", "1") != "1":
        raise FileFormatError("", "its voxels have several channels", ONE_VOLUME)
    if fields.get("HeaderSize", "0") not in ("0", "-1"):
        raise FileFormatError("", "its header has a HeaderSize")

    sizes = read_sizes(fields.get("DimSize", ""))
    shape, count = check_sizes(sizes), len(sizes)
    spacing = read_vector(fields, ("ElementSpacing", "ElementSize"), np.ones(count))
    origin = read_vector(fields, ("Offset", "Origin", "Position"), np.zeros(count))
    keys = ("TransformMatrix", "Rotation", "Orientation")
    turn = read_vector(fields, keys, np.eye(count).ravel())
    # Each row of the matrix is where an axis of the voxels points.
    axes = turn.reshape(count, count) * spacing[:, np.newaxis]
    is_big = _flag(
        fields, "BinaryDataByteOrderMSB", "ElementByteOrderMSB", default=False
    )
    kind = fields.get("ElementType", "")
    header = Header(
        grid=make_placed_grid(shape, axes, spacing, origin, LPS),
        dtype=stored_type(_TYPES.get(kind), kind, ">" if is_big else "<"),
    )
    is_compressed = _flag(fields, "CompressedData", default=False)
    return header, ZlibStream(file) if is_compressed else PlainStream(file)


def _flag(fields: Mapping[str, str], *keys: str, default: bool) -> bool:
    """Whether a value is true; only its first letter counts, as for MetaIO."""
    for key in keys:
        if key in fields:
            return fields[key][:1] in ("T", "t", "1")
    return default
