"""Reads the header of an ordinary NIfTI file, for which nibabel need not be loaded.

To import nibabel takes as long as everything else before the first case. Ordinary is
what nearly all programs write: version 1, little-endian, with an sform. Whatever else
there is, and whatever is wrong with a header, is left to nibabel.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from flare.evaluation.labelmaps.grid import Header, make_grid

HEADER_BYTES = 348
"""Size of the header of version 1."""

LARGEST_OFFSET = 2**26
"""Voxels begin before this byte; else something is wrong."""

_TYPES = {
    2: "<u1",
    4: "<i2",
    8: "<i4",
    16: "<f4",
    64: "<f8",
    256: "<i1",
    512: "<u2",
    768: "<u4",
    1024: "<i8",
    1280: "<u8",
}
"""Stored types by their code."""

_FIELDS = struct.Struct("<i36x8h14xh4x8f3f132x2h24x12f16x4s")
"""Size, numbers of voxels, type, pixdim, offset and scaling, codes, sform, magic."""


def plain_header(content: bytes) -> Header | None:
    """The header, if it is an ordinary one without a fault.

    Parameters
    ----------
    content : bytes
        All that stands before the extensions.

    Raises
    ------
    NamelessFormatError
        If its positions are not finite, or far beyond any patient.
    """
    if len(content) != HEADER_BYTES:
        return None
    values = _FIELDS.unpack(content)
    size, count, sizes, kind = values[0], values[1], values[2:9], values[9]
    pixdim, (offset, slope, intercept) = values[10:18], values[18:21]
    sform_code, rows, magic = values[22], values[23:35], values[35]
    if not (
        size == HEADER_BYTES
        and magic == b"n+1\0"
        and 1 <= count <= 7
        and min(sizes[:count]) >= 1
        and math.prod(sizes[3:count]) == 1
        and kind in _TYPES
        and sform_code
        and HEADER_BYTES + 4 <= offset <= LARGEST_OFFSET
    ):
        return None
    if slope == 0 or not math.isfinite(slope):
        slope, intercept = 1.0, 0.0
    if not math.isfinite(intercept):
        return None
    width, height, depth = (*sizes[: min(count, 3)], 1, 1)[:3]
    spacing = map(abs, pixdim[1:4])
    affine = (rows[:4], rows[4:8], rows[8:])
    return Header(
        grid=make_grid((depth, height, width), spacing, affine),
        dtype=np.dtype(_TYPES[kind]),
        slope=slope,
        intercept=intercept,
        voxel_offset=int(offset) - HEADER_BYTES,
    )
