"""Reads the header of a NRRD file."""

from __future__ import annotations

import re
from typing import BinaryIO

import numpy as np

from flare.common.streams import PlainStream, SizedGzipStream, Stream
from flare.common.text import safe
from flare.evaluation.errors import FileFormatError
from flare.evaluation.labelmaps.headers import (
    LPS,
    Header,
    check_sizes,
    make_placed_grid,
    read_line,
    read_numbers,
    read_sizes,
    read_vector,
    stored_type,
)

_TYPES = {
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

_SPACES = {
    "left-posterior-superior": LPS,
    "lps": LPS,
    "right-anterior-superior": np.array([1.0, 1.0, 1.0]),
    "ras": np.array([1.0, 1.0, 1.0]),
    "left-anterior-superior": np.array([-1.0, 1.0, 1.0]),
    "las": np.array([-1.0, 1.0, 1.0]),
}
"""What turns a position in a named space into one in RAS."""


def is_start(start: bytes) -> bool:
    """Whether a file that begins like this is a NRRD file."""
    return start.startswith(b"NRRD")


def open_voxels(file: BinaryIO) -> tuple[Header, Stream]:
    """Read and check the header of a .nrrd file; the stream begins with the voxels.

    Raises
    ------
    FileFormatError, DamagedFileError
        As for a .mha file: see `metaimage.open_voxels`.
    """
    fields: dict[str, str] = {}
    lines = 0
    while line := read_line(file, lines):
        lines += 1
        if not line.startswith("#") and ":=" not in line:
            key, _, value = line.partition(":")
            fields[key.strip().lower().replace(" ", "")] = value.strip()
    if "datafile" in fields:
        raise FileFormatError("", "its voxels are in another file")
    for key in ("byteskip", "lineskip"):
        if fields.get(key, "0") != "0":
            raise FileFormatError("", f"its header has a {key}")

    sizes = read_sizes(fields.get("sizes", ""))
    shape, count = check_sizes(sizes, may_have_layers=True), len(sizes)
    space = fields.get("space", "lps").lower()
    if space not in _SPACES:
        raise FileFormatError(
            "", f"its space is {safe(space[:40])}, expected LPS or RAS"
        )
    if "spacedirections" in fields:
        numbers = read_numbers(re.sub(r"[(),]", " ", fields["spacedirections"]))
        if len(numbers) != count * count:
            raise FileFormatError("", "its header has an impossible orientation")
        axes = np.array(numbers).reshape(count, count)
    else:
        axes = np.diag(read_vector(fields, ("spacings",), np.ones(count)))
    fields["spaceorigin"] = re.sub(r"[(),]", " ", fields.get("spaceorigin", ""))
    origin = read_vector(fields, ("spaceorigin",), np.zeros(count))
    spacing = np.linalg.norm(axes, axis=1)
    order = ">" if fields.get("endian", "little").lower() == "big" else "<"
    kind = fields.get("type", "")
    header = Header(
        grid=make_placed_grid(shape, axes, spacing, origin, _SPACES[space]),
        dtype=stored_type(_TYPES.get(kind.lower()), kind, order),
    )
    encoding = fields.get("encoding", "").lower()
    if encoding == "raw":
        return header, PlainStream(file)
    if encoding in ("gzip", "gz"):
        return header, SizedGzipStream(file)
    raise FileFormatError(
        "", f"its encoding is {safe(encoding[:20])}, expected gzip or raw"
    )
