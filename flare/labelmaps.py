"""Reads and writes one label map; what is read is verified down to its checksum.

nibabel explains the header, because SimpleITK refuses some good files (a sheared
orientation) and rescales others. The voxels are taken from a stream that is
decompressed once, verified, and bounded by what the header promises; each piece is
turned into labels while it is in the CPU's cache. This is the only module that knows
image files, and the one place where the order of axes turns: files are (x, y, z),
everything else in this program is (z, y, x).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt
from nibabel.spatialimages import HeaderDataError

from flare.errors import (
    DamagedFileError,
    FileFormatError,
    FractionError,
    InputError,
    safe,
)
from flare.gzipstream import MAGIC, PIECE_BYTES, DamagedGzipError, GzipReader
from flare.surfels import Labels

SUFFIX = ".nii.gz"

OTHER_SUFFIXES = (
    *(".nii", ".hdr", ".img", ".img.gz", ".mha", ".mhd", ".nrrd", ".nhdr"),
    *(".mgz", ".mgh", ".mnc", ".dcm", ".tif", ".tiff", ".npy", ".npz"),
)
"""Image files all the same: they are named in an error instead of being ignored."""

LARGEST_EXTENSION_BYTES = 2**26
"""More than this between the header and the voxels is no header extension."""

UNKNOWN_LABELS_LIMIT = 20
"""So many different unknown labels of a file are kept, for its message."""

_HEADERS: dict[int, tuple[type[Any], bytes]] = {
    348: (nib.Nifti1Header, b"n+1\0"),
    540: (nib.Nifti2Header, b"n+2\0"),
}
"""Kind of header and magic number of a single-file NIfTI, by the header's size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where voxels are."""

    shape: tuple[int, int, int]
    """Number of voxels along z, y, x."""
    spacing: tuple[float, float, float]
    """Voxel size in mm along z, y, x, as the header's pixdim tells it, not rounded."""
    affine: tuple[tuple[float, float, float, float], ...]
    """Three rows that turn voxel (x, y, z, 1) into mm to the right, front and top."""

    @property
    def size_text(self) -> str:
        """Numbers of voxels as people write them: along x, y, z."""
        return " x ".join(str(count) for count in reversed(self.shape))

    def corner_shift(self, other: Grid) -> float:
        """How far in mm the eight corner voxels lie from those of another grid.

        Grids are compared in this way because a tolerance in mm means the same for
        every size and orientation: headers of one grid that were written by nibabel
        and by SimpleITK differ by 1e-4 in their direction, and by 0.03 mm at a corner.
        """
        return float(np.linalg.norm(self._corners() - other._corners(), axis=0).max())

    def difference(self, other: Grid) -> str:
        """Say in words what makes this grid another one than `other`."""
        (size, axes, origin), (other_size, other_axes, other_origin) = (
            grid._voxel_size_axes_origin() for grid in (self, other)
        )
        if not np.allclose(size, other_size, rtol=1e-3, atol=0):
            found, expected = (_numbers(values, " x ") for values in (size, other_size))
            return f"voxel size is {found} mm, expected {expected} mm"
        if axes != other_axes:
            return f"axes point to {axes}, expected {other_axes}"
        found, expected = (_numbers(values, ", ") for values in (origin, other_origin))
        if found != expected:
            return f"RAS origin is ({found}) mm, expected ({expected}) mm"
        return "it is rotated"

    def _corners(self) -> npt.NDArray[np.float64]:
        """Positions of the eight corner voxels in mm, shape (3, 8)."""
        ends = [(0, count - 1) for count in reversed(self.shape)]
        voxels = np.array([(*corner, 1) for corner in itertools.product(*ends)])
        corners: npt.NDArray[np.float64] = np.array(self.affine) @ voxels.T
        return corners

    def _voxel_size_axes_origin(
        self,
    ) -> tuple[npt.NDArray[np.float64], str, npt.NDArray[np.float64]]:
        """Voxel size along x, y, z; where the axes point; position of voxel 0."""
        affine = np.array(self.affine)
        codes = nib.orientations.aff2axcodes(np.vstack([affine, (0, 0, 0, 1)]))
        size = np.linalg.norm(affine[:, :3], axis=0)
        return size, "".join(code or "?" for code in codes), affine[:, 3]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMap:
    """The labels of one file."""

    grid: Grid
    labels: Labels
    """Shape (Z, Y, X); 0 also where the file has an unknown label."""
    unknown: tuple[int, ...]
    """Labels in the file that are not known, smallest first; the first few of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """What a file promises."""

    grid: Grid
    dtype: np.dtype[Any]
    """Stored type, in the file's byte order."""
    slope: float
    intercept: float
    voxel_offset: int
    """Bytes between the end of the header and the first voxel."""

    @property
    def voxels(self) -> int:
        return math.prod(self.grid.shape)


def case_name(path: Path) -> str | None:
    """The name of the case that a file is for; None if it is no label map.

    Examples
    --------
    >>> case_name(Path("team/validation_001.nii.gz"))
    'validation_001'
    """
    is_label_map = path.name.lower().endswith(SUFFIX)
    return path.name[: -len(SUFFIX)] if is_label_map else None


def read_grid(path: Path, name: str) -> Grid:
    """Read the grid of a label map from its header.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        What the file is called in an error.

    Raises
    ------
    FileFormatError
        If it is no NIfTI file, or of a kind that no label map has.
    DamagedFileError
        If it ends within its header.
    InputError
        If the file cannot be opened.
    """
    with _opened(path, name) as stream:
        return _read_header(stream, name).grid


def read_label_map(path: Path, name: str, known: Collection[int]) -> LabelMap:
    """Read a whole label map and verify it.

    Parameters
    ----------
    path : Path
        The file. Its header decides how much memory this takes: look at it first.
    name : str
        What the file is called in an error.
    known : collection of int
        The labels, from 1 to 255, that may be there beside 0.

    Raises
    ------
    FileFormatError, InputError
        As `read_grid`.
    DamagedFileError
        If the file is truncated, its checksum is wrong, or it holds more or less than
        its header promises.
    FractionError
        If a voxel is not a whole number.
    """
    with _opened(path, name) as stream:
        header = _read_header(stream, name)
        labels = np.empty(header.voxels, dtype=np.uint8)
        sorter = _LabelSorter(known)
        found = stream.skip(header.voxel_offset)
        if found == header.voxel_offset:
            found += _read_voxels(stream, header, labels, sorter)
        promised = header.voxel_offset + header.voxels * header.dtype.itemsize
        if found < promised or stream.read(1):
            more = "more" if found == promised else "fewer"
            text = f"it holds {more} voxels than its header says"
            raise DamagedFileError(name, text)
    if sorter.fraction is not None:
        text = f"voxels are not whole numbers (found {sorter.fraction:.6g})"
        if header.slope != 1:
            text += f" after scaling by scl_slope {header.slope:.6g}"
        raise FractionError(name, text)
    return LabelMap(
        grid=header.grid,
        labels=labels.reshape(header.grid.shape),
        unknown=tuple(sorted(sorter.unknown)),
    )


def write_label_map(path: Path, labels: Labels, grid: Grid) -> None:
    """Write labels of shape (Z, Y, X) as .nii.gz; equal input gives equal bytes."""
    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    image = nib.Nifti1Image(labels.transpose(2, 1, 0), affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    nib.save(image, path)


# --- From stream to labels --------------------------------------------------------


@contextmanager
def _opened(path: Path, name: str) -> Iterator[GzipReader]:
    """Open a file; turn what is wrong with it into an error that names it."""
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
            if start != MAGIC:
                if not start:
                    raise DamagedFileError(name, "the file is empty")
                raise FileFormatError(name, "it is not compressed by gzip")
            file.seek(0)
            yield GzipReader(file)
    except DamagedGzipError as error:
        raise DamagedFileError(name, str(error)) from error
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        problem = f"{safe(name)}: it cannot be read ({reason})"
        raise InputError(problem) from error


def _read_header(stream: GzipReader, name: str) -> _Header:
    """Read and check the header; the stream is left at its end."""
    smallest = min(_HEADERS)
    content = stream.read(smallest)
    sizes = {int.from_bytes(content[:4], order) for order in ("little", "big")}
    size = next(iter(sizes & _HEADERS.keys()), None)
    if size is None:
        raise FileFormatError(name, "it is not a NIfTI file")
    content += stream.read(size - smallest)
    if len(content) < size:
        raise DamagedFileError(name, "it ends within its header")
    kind, magic = _HEADERS[size]
    header = kind(content, check=False)
    if not bytes(header["magic"]).ljust(4, b"\0").startswith(magic):
        raise FileFormatError(name, "it is not a NIfTI file with its voxels inside")
    slope, intercept = _scaling(header, name)
    return _Header(
        grid=_grid(header, name),
        dtype=_dtype(header, name),
        slope=slope,
        intercept=intercept,
        voxel_offset=_voxel_offset(header, size, name),
    )


def _grid(header: Any, name: str) -> Grid:
    """Shape, spacing and position."""
    count, *sizes = (int(size) for size in header["dim"])
    sizes = [*sizes[: max(0, count)], 1, 1, 1]
    if not 1 <= count <= 7 or min(sizes) < 1:
        raise FileFormatError(name, "its header has impossible numbers of voxels")
    if math.prod(sizes[3:]) > 1:
        shape = " x ".join(str(size) for size in sizes[:count])
        raise FileFormatError(name, f"it has {count} dimensions ({shape}), expected 3")
    try:
        affine = header.get_best_affine()[:3].astype(np.float64)
    except (HeaderDataError, ValueError) as error:
        text = "its header has an impossible orientation"
        raise FileFormatError(name, text) from error
    # As the official scripts take it: pixdim alone, and nibabel makes it positive.
    spacing = np.abs(header["pixdim"][1:4].astype(np.float64))
    if not (np.isfinite(affine).all() and np.isfinite(spacing).all()):
        raise FileFormatError(name, "its header has positions that are not finite")
    width, height, depth = sizes[:3]
    return Grid(
        shape=(depth, height, width),
        spacing=(float(spacing[2]), float(spacing[1]), float(spacing[0])),
        affine=tuple(tuple(float(value) for value in row) for row in affine),  # type: ignore[misc]
    )


def _dtype(header: Any, name: str) -> np.dtype[Any]:
    """The stored type: whole or floating-point numbers of at most eight bytes."""
    try:
        dtype: np.dtype[Any] = header.get_data_dtype()
    except (HeaderDataError, KeyError) as error:
        text = f"its voxels have the unknown type {int(header['datatype'])}"
        raise FileFormatError(name, text) from error
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        text = f"its voxels are of type {dtype.newbyteorder('=')}, expected numbers"
        raise FileFormatError(name, text)
    return dtype


def _scaling(header: Any, name: str) -> tuple[float, float]:
    """Slope and intercept that turn stored values into labels; mostly 1 and 0."""
    try:
        slope, intercept = header.get_slope_inter()
    except HeaderDataError as error:
        text = "its header has an impossible scl_inter"
        raise FileFormatError(name, text) from error
    return (1.0, 0.0) if slope is None else (float(slope), float(intercept))


def _voxel_offset(header: Any, size: int, name: str) -> int:
    """Bytes to skip after the header; an offset of 0 means none, as for nibabel."""
    smallest = size + 4
    offset = float(header["vox_offset"]) or smallest
    if not smallest <= offset <= smallest + LARGEST_EXTENSION_BYTES:
        raise FileFormatError(name, f"its voxels cannot begin at byte {offset:.0f}")
    return int(offset) - size


def _read_voxels(
    stream: GzipReader, header: _Header, labels: Labels, sorter: _LabelSorter
) -> int:
    """Fill `labels`; the number of bytes read is smaller only if the stream ends."""
    is_plain = header.dtype == np.uint8 and (header.slope, header.intercept) == (1, 0)
    step = PIECE_BYTES // header.dtype.itemsize
    scratch = np.empty(step, dtype=header.dtype)
    read = 0
    for start in range(0, header.voxels, step):
        piece = labels[start : start + step]
        values = piece if is_plain else scratch[: piece.size]
        count = stream.readinto(values.view(np.uint8).data)
        read += count
        if count < values.nbytes:
            break
        if not is_plain:
            piece[:] = sorter.narrow(values, header.slope, header.intercept)
        sorter.sort_out(piece)
    return read


class _LabelSorter:
    """Turns stored values into known labels, and remembers what was not one."""

    def __init__(self, known: Collection[int]) -> None:
        self.unknown: set[int] = set()
        self.fraction: float | None = None
        self._known = np.zeros(256, dtype=np.uint8)
        labels = [0, *known]
        self._known[labels] = labels
        self._first_unknown = next(
            (label for label in range(256) if self._known[label] != label), 256
        )

    def sort_out(self, labels: Labels) -> None:
        """Replace unknown labels by 0."""
        if int(labels.max()) < self._first_unknown:
            return
        present = np.flatnonzero(np.bincount(labels, minlength=256))
        self._remember(present[self._known[present] != present])
        labels[:] = self._known[labels]

    def narrow(
        self, values: npt.NDArray[Any], slope: float, intercept: float
    ) -> npt.NDArray[Any]:
        """Values as labels of one byte; what fits into none becomes 0."""
        if (slope, intercept) != (1, 0):
            with np.errstate(over="ignore", invalid="ignore"):
                values = values.astype(np.float64) * slope + intercept
        if values.min() >= 0 and values.max() <= 255:  # False if there is a NaN
            labels = values.astype(np.uint8)
            if values.dtype.kind != "f" or np.array_equal(labels, values):
                return labels
        if values.dtype.kind == "f":
            is_fraction = ~(np.isfinite(values) & (np.rint(values) == values))
            if is_fraction.any():
                if self.fraction is None:
                    self.fraction = float(values[is_fraction][0])
                values = np.where(is_fraction, 0, values)
        fits = (values >= 0) & (values <= 255)
        self._remember(np.unique(values[~fits]))
        return np.where(fits, values, 0)

    def _remember(self, unknown: npt.NDArray[Any]) -> None:
        room = UNKNOWN_LABELS_LIMIT - len(self.unknown)
        self.unknown.update(int(label) for label in unknown[: max(0, room)])


def _numbers(values: npt.NDArray[np.float64], separator: str) -> str:
    """Numbers for a message: two decimals, no needless zeros."""
    return separator.join(f"{value:.2f}".rstrip("0").rstrip(".") for value in values)
