"""What the header of a label map promises, and how two grids differ.

Whatever would change the meaning of the voxels, and is not known here, is refused.
Readers do not know what their file is called: their errors name none, and `named` lets
their caller fill it in.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.common.errors import FileError
from flare.evaluation.errors import DamagedFileError, FileFormatError

ONE_VOLUME = (
    "Take the argmax over the classes if these are probabilities, and save one 3-D"
    " label map for each case."
)

LARGEST_MM = 1e9
"""No spacing and no position is farther than this; sums of what is could overflow."""

LPS = np.array([-1.0, -1.0, 1.0])
"""What turns a position in LPS (to the left, back and top), as SimpleITK writes it,
into one in RAS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where voxels are."""

    shape: tuple[int, int, int]
    """Number of voxels along z, y, x."""
    spacing: tuple[float, float, float]
    """Voxel size in mm along z, y, x, as the header's pixdim tells it, not rounded."""
    affine: tuple[tuple[float, float, float, float], ...]
    """Three rows that turn voxel (x, y, z, 1) into mm to the right, front and top."""
    is_placed: bool = True
    """Whether its file says where it lies, and not its spacing alone."""

    @property
    def size_text(self) -> str:
        """Numbers of voxels as people write them: along x, y, z."""
        return " x ".join(str(count) for count in reversed(self.shape))

    @property
    def spacing_problem(self) -> str:
        """Why nothing can be measured on it; empty if its voxels have a size."""
        least = min(self.spacing)
        if least == 0:
            return "its header has a voxel size of 0"
        return "its header has a negative voxel size" if least < 0 else ""

    def corner_shift(self, other: Grid) -> float:
        """How far in mm the eight corner voxels lie from those of another grid.

        Grids are compared in this way because a tolerance in mm means the same for
        every size and orientation: headers of one grid that were written by nibabel
        and by SimpleITK differ by 1e-4 in their direction, and by 0.03 mm at a corner.
        """
        if (self.shape, self.affine) == (other.shape, other.affine):
            return 0.0  # as mostly, and then there is nothing to compute
        return float(np.linalg.norm(self.corners() - other.corners(), axis=0).max())

    def corners(self, reach: float = 0.0) -> npt.NDArray[np.float64]:
        """Positions in mm of the eight corners, shape (3, 8).

        Of the corner voxels' centres, or `reach` voxels further out.
        """
        ends = [(-reach, count - 1 + reach) for count in reversed(self.shape)]
        voxels = np.array([(*corner, 1) for corner in itertools.product(*ends)])
        corners: npt.NDArray[np.float64] = np.array(self.affine) @ voxels.T
        return corners

    @property
    def voxel_size(self) -> npt.NDArray[np.float64]:
        """Voxel size in mm along x, y, z, as the affine tells it: shape (3,)."""
        steps = np.array(self.affine)[:, :3]
        size: npt.NDArray[np.float64] = np.linalg.norm(steps, axis=0)
        return size

    @property
    def origin(self) -> npt.NDArray[np.float64]:
        """Position of the first voxel in mm, in RAS: shape (3,)."""
        return np.array(self.affine)[:, 3]

    @property
    def axes(self) -> str:
        """Where the axes x, y, z point to, such as LPS: left, back (posterior), top."""
        import nibabel as nib  # not at the top: only messages need it, and it is large

        affine = np.vstack([np.array(self.affine), (0, 0, 0, 1)])
        return "".join(code or "?" for code in nib.orientations.aff2axcodes(affine))


# --- What all readers check alike --------------------------------------------------


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


def check_sizes(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Numbers of voxels along z, y, x, from those in the order of the file.

    Further axes must have a length of 1, and missing ones count as such.

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


def make_unplaced_grid(
    shape: tuple[int, int, int], spacing_xyz: Iterable[float]
) -> Grid:
    """A grid of what tells its spacing alone, and not where it lies.

    Parameters and errors are those of `make_grid`.
    """
    spacing = np.array(tuple(spacing_xyz))
    affine = np.column_stack([np.diag(spacing), np.zeros(3)])
    return make_grid(shape, spacing, affine, is_placed=False)


# --- Images in memory -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayImage:
    """An array of labels, of which nobody says where it lies."""

    values: npt.NDArray[Any]
    """Expected to be of shape (Z, Y, X)."""
    spacing: tuple[float, float, float]
    """Voxel size in mm along z, y, x."""


def _is_simpleitk(value: object) -> bool:
    """Whether something is an image of SimpleITK, which takes half a second to load."""
    return hasattr(value, "GetPixelIDTypeAsString")


def is_image(value: object) -> bool:
    """Whether something is an image of nibabel or SimpleITK."""
    return _is_simpleitk(value) or hasattr(value, "dataobj")


def image_header(image: Any) -> Header:
    """What the header of an image of nibabel or SimpleITK would promise, in a file.

    So would that of an `ArrayImage`.

    Raises
    ------
    FileFormatError
        If it is of a kind that no label map has.
    """
    if isinstance(image, ArrayImage):
        return _array_header(image)
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


def _array_header(image: ArrayImage) -> Header:
    """The same of an array."""
    shape = image.values.shape
    if len(shape) != 3:
        problem = f"its shape is {shape}, expected three axes (z, y, x)"
        raise FileFormatError("", problem, ONE_VOLUME)
    grid = make_unplaced_grid(check_sizes(shape[::-1]), image.spacing[::-1])
    dtype = image_values(image).dtype
    check_type(dtype)
    return Header(grid=grid, dtype=dtype)


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
    if isinstance(image, ArrayImage):
        is_mask = image.values.dtype == np.bool_
        return image.values.view(np.uint8) if is_mask else image.values
    if _is_simpleitk(image):
        import SimpleITK as sitk  # which is loaded already

        return np.asarray(sitk.GetArrayViewFromImage(image))
    data = image.dataobj
    try:
        return np.asarray(getattr(data, "get_unscaled", lambda: data)()).T
    except (OSError, EOFError, ValueError, zlib.error) as error:
        problem = "its voxels cannot be read from its file"
        raise DamagedFileError("", problem) from error


# --- How a prediction's grid differs from its reference's -------------------------


def compare_sizes(found: Grid, expected: Grid) -> str:
    """How the numbers of voxels differ; empty if they do not."""
    if found.shape == expected.shape:
        return ""
    text = f"size is {found.size_text} voxels, expected {expected.size_text}"
    if _same_place(found, expected):
        is_turned = found.axes != expected.axes
        return text + is_turned * f"; {_axes_text(found, expected)}"
    is_reversed = found.shape == expected.shape[::-1]
    return text + is_reversed * ": its axes are reversed"


def compare_positions(found: Grid, expected: Grid, tolerance_mm: float) -> str:
    """How a grid of the right size lies elsewhere; empty if it does not.

    Of a file that does not say where it lies, only the spacing is compared.
    """
    if not (found.is_placed and expected.is_placed):
        return _compare_spacings(found, expected, tolerance_mm)
    shift = found.corner_shift(expected)
    if shift <= tolerance_mm:
        return ""
    return f"it lies up to {shift:.4g} mm off: {_difference(found, expected)}"


def _compare_spacings(found: Grid, expected: Grid, tolerance_mm: float) -> str:
    """How voxel sizes differ, if by so much that a corner lies elsewhere."""
    steps = np.array(found.shape) - 1
    sizes = np.array(found.spacing), np.array(expected.spacing)
    if math.hypot(*((sizes[0] - sizes[1]) * steps)) <= tolerance_mm:
        return ""
    has, wanted = (_numbers(size[::-1], " x ") for size in sizes)
    shift = math.hypot(*((sizes[0][::-1] - sizes[1]) * steps))
    turned = ": its spacing is in the reverse order" * (shift <= tolerance_mm)
    return f"voxel size is {has} mm, expected {wanted} mm{turned}"


def _difference(found: Grid, expected: Grid) -> str:
    """What makes two grids of one size different."""
    if np.array_equal(found.voxel_size, (1, 1, 1)) and not found.origin.any():
        return "its header was lost (voxel size 1, origin 0)"
    if found.axes != expected.axes:
        reoriented = "it was reoriented, " * _same_place(found, expected)
        return reoriented + _axes_text(found, expected)
    # What moves the corners most is told.
    shift = found.corner_shift(expected)
    steps = np.array(found.shape[::-1]) - 1
    by_size = math.hypot(*((found.voxel_size - expected.voxel_size) * steps))
    by_origin = math.hypot(*(found.origin - expected.origin))
    if by_size >= max(by_origin, shift / 3):
        has, wanted = (_numbers(grid.voxel_size, " x ") for grid in (found, expected))
        return f"voxel size is {has} mm, expected {wanted} mm"
    if by_origin >= shift / 3:
        has, wanted = (_numbers(grid.origin, ", ") for grid in (found, expected))
        return f"RAS origin is ({has}) mm, expected ({wanted}) mm"
    return "it is rotated"


def _axes_text(found: Grid, expected: Grid) -> str:
    """Where the axes of two grids point to."""
    return f"axes point to {found.axes}, expected {expected.axes}"


def _same_place(found: Grid, expected: Grid) -> bool:
    """Whether two grids fill the same box, to a voxel, in whatever order."""
    first, second = (grid.corners(reach=0.5).T for grid in (found, expected))
    apart = np.linalg.norm(first[:, np.newaxis] - second, axis=2)
    largest_voxel = max(found.voxel_size.max(), expected.voxel_size.max())
    return bool(apart.min(axis=1).max() <= largest_voxel / 2)


def _numbers(values: npt.NDArray[np.float64], separator: str) -> str:
    """Numbers, of shape (n,), for a message, to six digits."""
    return separator.join(f"{value:.6g}" for value in values)
