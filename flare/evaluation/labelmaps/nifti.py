"""Reads the header of a NIfTI file, of version 1 or 2.

nibabel does the work for all but ordinary files, because SimpleITK refuses some good
ones (a sheared orientation) and rescales others (units of metres or microns). It is
imported when it is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flare.common.streams import Stream
from flare.evaluation.labelmaps.errors import NamelessDamageError, NamelessFormatError
from flare.evaluation.labelmaps.grid import (
    Grid,
    Header,
    check_sizes,
    check_type,
    make_grid,
)
from flare.evaluation.labelmaps.plain_nifti import plain_header

LARGEST_EXTENSION_BYTES = 2**26
"""More than this between the header and the voxels is no header extension."""

_MAGIC = {348: b"n+1\0", 540: b"n+2\0"}
"""Magic number of a single-file NIfTI, by the header's size."""

_UNUSUAL = {
    0: "of no type (datatype 0)",
    1: "single bits (datatype 1)",
    1536: "numbers of 128 bits (datatype 1536)",
}
"""Types that are numbers, and that hardly any program reads."""


def is_nifti(start: bytes) -> bool:
    """Whether a file that begins like this can be a NIfTI file."""
    return _header_size(start) is not None


def read_nifti_header(stream: Stream) -> Header:
    """Read and check the header; the stream is left at its end.

    Raises
    ------
    NamelessFormatError
        If it is no NIfTI header, or of a kind that no label map has.
    NamelessDamageError
        If the file ends within its header.
    """
    smallest = min(_MAGIC)
    content = stream.read(smallest)
    size = _header_size(content)
    if size is None:
        raise NamelessFormatError("it is not a NIfTI file")
    content += stream.read(size - smallest)
    if len(content) < size:
        raise NamelessDamageError("it ends within its header")
    return plain_header(content) or _any_header(content)


def _any_header(content: bytes) -> Header:
    """The header of any file, or what is wrong with it, as nibabel reads it."""
    import nibabel as nib

    size = len(content)
    kind: Any = nib.Nifti1Header if size == min(_MAGIC) else nib.Nifti2Header
    header = kind(content, check=False)
    if not bytes(header["magic"]).ljust(4, b"\0").startswith(_MAGIC[size]):
        raise NamelessFormatError("it is not a NIfTI file with its voxels inside")
    slope, intercept = _scaling(header)
    return Header(
        grid=_grid(header),
        dtype=_dtype(header),
        slope=slope,
        intercept=intercept,
        voxel_offset=_voxel_offset(header, size),
    )


def _header_size(start: bytes) -> int | None:
    """The number that begins a NIfTI header, if it is one of those it can be."""
    sizes = {int.from_bytes(start[:4], order) for order in ("little", "big")}
    return next(iter(sizes & _MAGIC.keys()), None)


def _grid(header: Any) -> Grid:
    """Shape, spacing and position."""
    from nibabel.spatialimages import HeaderDataError

    count, *sizes = (int(size) for size in header["dim"])
    shape = check_sizes(sizes[:count] if 0 < count <= 7 else [])
    try:
        affine = header.get_best_affine()[:3].astype(np.float64)
    except (HeaderDataError, ValueError) as error:
        raise NamelessFormatError("its header has an impossible orientation") from error
    return make_grid(shape, nifti_spacing(header), affine)


def nifti_spacing(header: Any) -> npt.NDArray[np.float64]:
    """Voxel size in mm along x, y, z."""
    # As the official scripts take it: pixdim alone, and nibabel makes it positive.
    spacing: npt.NDArray[np.float64] = np.abs(header["pixdim"][1:4].astype(np.float64))
    return spacing


def _dtype(header: Any) -> np.dtype[Any]:
    """The stored type: whole or floating-point numbers of at most eight bytes."""
    from nibabel.spatialimages import HeaderDataError

    try:
        dtype: np.dtype[Any] = header.get_data_dtype()
    except (HeaderDataError, KeyError) as error:
        raise NamelessFormatError(
            f"its voxels have the unknown type {int(header['datatype'])}"
        ) from error
    kind = _UNUSUAL.get(int(header["datatype"]))
    if kind:
        raise NamelessFormatError(f"its voxels are {kind}, expected uint8")
    check_type(dtype)
    return dtype


def _scaling(header: Any) -> tuple[float, float]:
    """Slope and intercept that turn stored values into labels; mostly 1 and 0."""
    from nibabel.spatialimages import HeaderDataError

    try:
        slope, intercept = header.get_slope_inter()
    except HeaderDataError as error:
        raise NamelessFormatError("its header has an impossible scl_inter") from error
    return (1.0, 0.0) if slope is None else (float(slope), float(intercept))


def _voxel_offset(header: Any, size: int) -> int:
    """Bytes to skip after the header."""
    smallest = size + 4
    offset = float(header["vox_offset"])
    if not smallest <= offset <= smallest + LARGEST_EXTENSION_BYTES:
        raise NamelessFormatError(f"its voxels cannot begin at byte {offset:.0f}")
    return int(offset) - size
