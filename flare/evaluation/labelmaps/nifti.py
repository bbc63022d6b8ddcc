"""Reads the header of a NIfTI file, of version 1 or 2, and writes such files.

An ordinary header is read here, as to import nibabel takes as long as everything else
before the first case. Ordinary is what nearly all programs write: version 1,
little-endian, with an sform, without a fault. All others are left to nibabel, and not
to SimpleITK, which refuses some good ones (a sheared orientation) and rescales others
(units of metres or microns).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from flare.common.streams import GZIP_MAGIC, PlainStream, SizedGzipStream, Stream
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import (
    Grid,
    Header,
    check_sizes,
    check_type,
    kind_of,
    make_grid,
)
from flare.evaluation.metrics.arrays import Labels

_MAGIC = {348: b"n+1\0", 540: b"n+2\0"}
"""Magic number of a single-file NIfTI, by the header's size."""

HEADER_BYTES = min(_MAGIC)
"""Size of the header of version 1."""

LARGEST_EXTENSION_BYTES = 2**26
"""More than this between the header and the voxels is not a header extension."""

_PLAIN_TYPES = {
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

_UNITS = {1: "metres", 3: "micrometres"}
"""The units of lengths but mm, in the lowest three bits of `xyzt_units`."""

_FIELDS = np.dtype(  # type: ignore[call-overload]
    {
        "size": ("<i4", 0),
        "dim": ("(8,)<i2", 40),
        "datatype": ("<i2", 70),
        "pixdim": ("(8,)<f4", 76),
        "vox_offset": ("<f4", 108),
        "scl_slope": ("<f4", 112),
        "scl_inter": ("<f4", 116),
        "xyzt_units": ("u1", 123),
        "sform_code": ("<i2", 254),
        "sform": ("(3,4)<f4", 280),
        "magic": ("S4", 344),
    }
)
"""The fields of a header of version 1 that count, with their places."""


def _is_ordinary(fields: Any) -> bool:
    """Whether `plain_header` may read these; else nibabel tells what is wrong."""
    dimensions, *sizes = fields["dim"].tolist()
    return (
        fields["size"] == HEADER_BYTES
        and fields["magic"].ljust(4, b"\0") == _MAGIC[HEADER_BYTES]
        and 1 <= dimensions <= 7
        and min(sizes[:dimensions]) >= 1
        and math.prod(sizes[3:dimensions]) == 1
        and fields["datatype"] in _PLAIN_TYPES
        and fields["sform_code"] != 0
        and HEADER_BYTES + 4 <= fields["vox_offset"] <= LARGEST_EXTENSION_BYTES
    )


def is_start(start: bytes) -> bool:
    """Whether a file that begins like this can be a NIfTI file, perhaps in gzip."""
    return start.startswith(GZIP_MAGIC) or _header_size(start) is not None


def open_voxels(file: BinaryIO) -> tuple[Header, Stream]:
    """Read and check the header; the stream is left at its end.

    A FileFormatError is raised if it is not a NIfTI header, or of a kind that no label
    map has. A DamagedFileError is raised if the file ends within its header.
    """
    is_packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    stream = SizedGzipStream(file) if is_packed else PlainStream(file)
    content = stream.read(HEADER_BYTES)
    size = _header_size(content)
    if size is None:
        kind = kind_of(content)
        problem = f"it is {kind}" if kind else "it is not a NIfTI file"
        if content.startswith(GZIP_MAGIC):
            problem = "it is compressed by gzip twice"
        raise FileFormatError("", problem)
    content += stream.read(size - HEADER_BYTES)
    if len(content) < size:
        raise DamagedFileError("", "it ends within its header")
    return plain_header(content) or any_header(content), stream


def plain_header(content: bytes) -> Header | None:
    """The header up to its extensions, if it is an ordinary one without a fault.

    A FileFormatError is raised if its positions are not finite, or far beyond any
    patient.
    """
    if len(content) != HEADER_BYTES:
        return None
    # Numbers of Python: those of NumPy take longer to be looked at.
    values = np.frombuffer(content, _FIELDS).tolist()[0]
    fields = dict(zip(_FIELDS.names, values, strict=True))
    if not _is_ordinary(fields):
        return None
    slope, intercept = fields["scl_slope"], fields["scl_inter"]
    if slope == 0 or not math.isfinite(slope):
        slope, intercept = 1.0, 0.0
    if not math.isfinite(intercept):
        return None
    count, *sizes = fields["dim"].tolist()
    width, height, depth = (*sizes[: min(count, 3)], 1, 1)[:3]
    spacing = map(abs, fields["pixdim"][1:4].tolist())
    return Header(
        grid=make_grid(
            (depth, height, width),
            spacing,
            fields["sform"].tolist(),
            unit=unit_of(fields["xyzt_units"]),
        ),
        dtype=np.dtype(_PLAIN_TYPES[fields["datatype"]]),
        slope=slope,
        intercept=intercept,
        voxel_offset=int(fields["vox_offset"]) - HEADER_BYTES,
    )


def any_header(content: bytes) -> Header:
    """The header of any file as nibabel reads it; an error says what is wrong."""
    import nibabel as nib
    from nibabel.spatialimages import HeaderDataError

    size = len(content)
    kind: Any = nib.Nifti1Header if size == HEADER_BYTES else nib.Nifti2Header
    header = kind(content, check=False)
    if not bytes(header["magic"]).ljust(4, b"\0").startswith(_MAGIC[size]):
        raise FileFormatError("", "it is not a NIfTI file with its voxels inside")
    try:
        slope, intercept = header.get_slope_inter()
    except HeaderDataError as error:
        raise FileFormatError("", "its header has an impossible scl_inter") from error
    if slope is None:
        slope, intercept = 1, 0
    count, *sizes = header["dim"].tolist()
    shape = check_sizes(sizes[:count] if 0 < count <= 7 else [])
    try:
        affine = header.get_best_affine()[:3].astype(np.float64)
    except (HeaderDataError, ValueError) as error:
        raise FileFormatError("", "its header has an impossible orientation") from error
    offset, smallest = float(header["vox_offset"]), size + 4
    if not smallest <= offset <= smallest + LARGEST_EXTENSION_BYTES:
        raise FileFormatError("", f"its voxels cannot begin at byte {offset:.0f}")
    # As the official scripts take it: pixdim alone, and nibabel makes it positive.
    spacing = np.abs(header["pixdim"][1:4].astype(np.float64))
    return Header(
        grid=make_grid(shape, spacing, affine, unit=unit_of(header["xyzt_units"])),
        dtype=_dtype(header),
        slope=float(slope),
        intercept=float(intercept),
        voxel_offset=int(offset) - size,
    )


def unit_of(units: Any) -> str:
    """The unit of lengths in the field `xyzt_units`; empty if it is mm or unknown."""
    return _UNITS.get(int(units) & 7, "")


def write_label_map(path: Path, labels: Labels, grid: Grid) -> None:
    """Write labels of shape (Z, Y, X) as .nii.gz; equal input gives equal bytes."""
    import nibabel as nib

    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    image = nib.Nifti1Image(labels.transpose(2, 1, 0), affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    nib.save(image, path)


def _header_size(start: bytes) -> int | None:
    """The size of the header that begins like this, if it can be one of NIfTI."""
    sizes = {int.from_bytes(start[:4], order) for order in ("little", "big")}
    return next(iter(sizes & _MAGIC.keys()), None)


def _dtype(header: Any) -> np.dtype[Any]:
    """The stored type: whole or floating-point numbers of at most eight bytes."""
    from nibabel.spatialimages import HeaderDataError

    unknown = f"its voxels have the unknown type {int(header['datatype'])}"
    try:
        dtype: np.dtype[Any] = header.get_data_dtype()
    except (HeaderDataError, KeyError) as error:
        raise FileFormatError("", unknown) from error
    if not dtype.itemsize:
        raise FileFormatError("", unknown)
    check_type(dtype)
    return dtype
