"""What a header promises, in a file or in memory, and what all readers check alike.

Whatever would change the meaning of the voxels, and is not known here, is refused.
Readers do not know what their file is called: their errors name none, and `named` lets
their caller fill it in.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from flare.common.errors import FileError
from flare.common.text import safe
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import Grid

ONE_VOLUME = (
    "Take the argmax over the classes if these are probabilities, and save one 3-D"
    " label map for each case."
)

ONE_LAYER = (
    "In 3D Slicer, export the segmentation as a binary label map in one layer, with the"
    " labels of the challenge."
)

FEW_LAYERS = 4
"""Segments of 3D Slicer that overlap are spread over a few layers."""

LARGEST_MM = 1e9
"""No spacing and no position is farther than this; sums of what is could overflow."""

SIZE_DIGITS = 10
"""A number of voxels has fewer; Python would refuse to read one with thousands."""

LINE_BYTES = 2**14
"""Longest line of a header that is text."""

LINES = 1000
"""Most lines of such a header."""

LPS = np.array([-1.0, -1.0, 1.0])
"""What turns a position in LPS (to the left, back and top), as SimpleITK writes it,
into one in RAS."""


@contextmanager
def named(name: str) -> Iterator[None]:
    """Let an error of a reader, whose file is "", become one that names the file."""
    try:
        yield
    except FileError as error:
        raise type(error)(name, error.problem, error.remedy) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file promises."""

    grid: Grid
    dtype: np.dtype[Any]
    """Stored type, in the file's byte order."""
    slope: float = 1.0
    intercept: float = 0.0
    """With the slope, what turns stored values into labels."""
    voxel_offset: int = 0
    """Bytes between the end of the header and the first voxel."""

    @property
    def voxels(self) -> int:
        """Number of voxels."""
        return math.prod(self.grid.shape)

    @property
    def promised_bytes(self) -> int:
        """What follows the header, up to the last voxel."""
        return self.voxel_offset + self.voxels * self.dtype.itemsize

    @property
    def is_scaled(self) -> bool:
        """Whether stored values are not the labels themselves."""
        return (self.slope, self.intercept) != (1, 0)


def check_sizes(
    sizes: Sequence[int], *, may_have_layers: bool = False
) -> tuple[int, int, int]:
    """Numbers of voxels along z, y, x, from those in the order of the file.

    Further axes must have a length of 1, and missing ones count as such. In formats
    that 3D Slicer writes, the first of four axes may be that of its layers.

    Raises
    ------
    FileFormatError
        If there are none, one is not positive, or there are more than three axes.
    """
    if not 1 <= len(sizes) <= 7 or min(sizes) < 1:
        raise FileFormatError("", "its header has impossible numbers of voxels")
    if math.prod(sizes[3:]) > 1:
        shape = " x ".join(str(size) for size in sizes)
        problem = f"it has {len(sizes)} dimensions ({shape}), expected 3"
        if may_have_layers and sizes[0] <= FEW_LAYERS < min(sizes[1:]):
            raise FileFormatError(
                "", f"{problem}: the first are layers of 3D Slicer", ONE_LAYER
            )
        raise FileFormatError("", problem, ONE_VOLUME)
    width, height, depth = [*sizes, 1, 1][:3]
    return depth, height, width


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuse what is not a whole or floating-point number of at most eight bytes.

    Raises
    ------
    FileFormatError
        If it is not.
    """
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise FileFormatError(
            "", f"its voxels are of type {dtype.newbyteorder('=')}, expected numbers"
        )


def make_grid(
    shape: tuple[int, int, int],
    spacing_xyz: Iterable[float],
    affine: Iterable[Iterable[float]],
    *,
    is_placed: bool = True,
) -> Grid:
    """A grid from what a file says.

    Parameters
    ----------
    shape : tuple of int
        Numbers of voxels along z, y, x.
    spacing_xyz : iterable of float
        Voxel size in mm along x, y, z.
    affine : iterable of iterable of float, shape (3, 4)
        What turns voxel (x, y, z, 1) into a position in mm, in RAS.
    is_placed : bool
        Whether the file says where it lies.

    Raises
    ------
    FileFormatError
        If a number is not finite, or is far beyond any patient.
    """
    # Numbers of Python: a call of NumPy takes longer than to look at all of them.
    size_x, size_y, size_z = sizes = tuple(map(float, spacing_xyz))
    rows = tuple(tuple(map(float, row)) for row in affine)
    numbers = (*sizes, *itertools.chain.from_iterable(rows))
    if not all(map(math.isfinite, numbers)):
        raise FileFormatError("", "its header has positions that are not finite")
    if max(map(abs, numbers)) > LARGEST_MM:
        raise FileFormatError("", "its header has impossible positions")
    return Grid(
        shape=shape,
        spacing=(size_z, size_y, size_x),
        affine=rows,  # type: ignore[arg-type]
        is_placed=is_placed,
    )


def make_placed_grid(
    shape: tuple[int, int, int],
    axes: npt.NDArray[np.float64],
    spacing: npt.NDArray[np.float64],
    origin: npt.NDArray[np.float64],
    to_ras: npt.NDArray[np.float64],
) -> Grid:
    """A grid of a file that has any number of axes, and steps along each of them.

    Parameters
    ----------
    shape : tuple of int
        Numbers of voxels along z, y, x.
    axes : ndarray of float, shape (n, n)
        From a voxel to the next one along x, y, z, ..., in mm: a row for each axis.
    spacing, origin : ndarray of float, shape (n,)
        Voxel size and position of the first voxel in mm, along x, y, z, ...; missing
        ones are 1 and 0.
    to_ras : ndarray of float, shape (3,)
        1 or -1 for each direction of the file's space, such as `LPS`.

    Raises
    ------
    FileFormatError
        As `make_grid`.
    """
    affine = np.eye(3, 4)
    count = min(len(axes), 3)
    affine[:count, :count] = axes[:count, :count].T
    affine[:count, 3] = origin[:count]
    sizes = [*spacing, 1, 1][:3]
    return make_grid(shape, sizes, affine * to_ras[:, np.newaxis])


# --- Headers that are text: lines of "key, separator, value" ----------------------


def read_line(file: BinaryIO, lines: int) -> str:
    """The next line of a header that has had so many, without its end."""
    line = file.readline(LINE_BYTES)
    if len(line) == LINE_BYTES or lines >= LINES:
        raise FileFormatError("", "its header is too long")
    if not line.endswith(b"\n"):
        raise DamagedFileError("", "it ends within its header")
    return line.decode("latin-1").rstrip("\r\n")


def read_sizes(text: str) -> list[int]:
    """Numbers of voxels in the order of the file; 0 for a word that is not one."""
    words = text.split()
    return [int(w) if w.isdecimal() and len(w) < SIZE_DIGITS else 0 for w in words]


def read_numbers(text: str) -> list[float]:
    """The numbers in a value."""
    try:
        return [float(word) for word in text.split()]
    except ValueError as error:
        raise FileFormatError(
            "", f"its header has {safe(text[:40])} where numbers should be"
        ) from error


def read_vector(
    fields: Mapping[str, str],
    keys: Sequence[str],
    default: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Numbers under the first of several keys that is there; else the default.

    Both are of shape (n,), in the order of the file.
    """
    for key in keys:
        if fields.get(key):
            numbers = read_numbers(fields[key])
            if len(numbers) != default.size:
                raise FileFormatError(
                    "",
                    f"its header has {len(numbers)} numbers for {key},"
                    f" expected {default.size}",
                )
            return np.array(numbers)
    return default


def stored_type(kind: str | None, found: str, order: str) -> np.dtype[Any]:
    """A stored type in its byte order; what was found is told if it is None."""
    if kind is None:
        raise FileFormatError(
            "", f"its voxels are of type {safe(found[:40])}, expected numbers"
        )
    return np.dtype(order + kind)


# --- Images in memory -------------------------------------------------------------


def _is_simpleitk(value: object) -> bool:
    """Whether something is an image of SimpleITK, which takes half a second to load."""
    return hasattr(value, "GetPixelIDTypeAsString")


def is_image(value: object) -> bool:
    """Whether something is an image of nibabel or SimpleITK."""
    return _is_simpleitk(value) or hasattr(value, "dataobj")


def image_header(image: Any) -> Header:
    """What the header of an image of nibabel or SimpleITK would promise, in a file.

    Raises
    ------
    FileFormatError
        If it is of a kind that no label map has.
    """
    if _is_simpleitk(image):
        return _simpleitk_header(image)
    header = image.header
    spacing = np.array(header.get_zooms(), dtype=np.float64)
    if "pixdim" in getattr(header, "keys", tuple)():  # as `nifti` takes it
        spacing = np.abs(header["pixdim"][1:4].astype(np.float64))
    affine = header.get_best_affine() if image.affine is None else image.affine
    steps = np.array(affine[:3], dtype=np.float64)
    shape = check_sizes(image.shape)
    grid = make_placed_grid(shape, steps[:, :3].T, spacing, steps[:, 3], np.ones(3))
    data = image.dataobj
    check_type(data.dtype)
    slope, intercept = getattr(data, "slope", 1), getattr(data, "inter", 0)
    return Header(
        grid=grid, dtype=data.dtype, slope=float(slope), intercept=float(intercept)
    )


def _simpleitk_header(image: Any) -> Header:
    """The same of SimpleITK, whose positions are in LPS."""
    kind = image.GetPixelIDTypeAsString()
    if image.GetNumberOfComponentsPerPixel() != 1:
        raise FileFormatError("", "its voxels have several channels", ONE_VOLUME)
    if kind.startswith("label"):  # to look at its voxels would end the whole program
        raise FileFormatError(
            "",
            f"its voxels are of type {kind}, expected numbers",
            "Use SimpleITK.LabelMapToLabel first.",
        )
    spacing, origin = np.array(image.GetSpacing()), np.array(image.GetOrigin())
    turn = np.array(image.GetDirection()).reshape(spacing.size, spacing.size)
    # Each column of the direction is where an axis of the voxels points.
    axes = turn.T * spacing[:, np.newaxis]
    grid = make_placed_grid(check_sizes(image.GetSize()), axes, spacing, origin, LPS)
    dtype = image_values(image).dtype
    check_type(dtype)
    return Header(grid=grid, dtype=dtype)


def image_values(image: Any) -> npt.NDArray[Any]:
    """The stored values of an image, of shape (Z, Y, X).

    Raises
    ------
    DamagedFileError
        If nibabel, which reads them when they are needed, cannot do so.
    """
    if _is_simpleitk(image):
        import SimpleITK as sitk  # which is loaded already

        return np.asarray(sitk.GetArrayViewFromImage(image))
    data = image.dataobj
    try:
        return np.asarray(getattr(data, "get_unscaled", lambda: data)()).T
    except (OSError, EOFError, ValueError, zlib.error) as error:
        problem = "its voxels cannot be read from its file"
        raise DamagedFileError("", problem) from error
