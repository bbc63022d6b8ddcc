"""The header of a label map, the grid that it promises, and how two grids differ.

An entry of a header that is not known here is refused if it would change the meaning of
the voxels. Readers do not know the name of their file: their errors have no name, and
`named` lets their caller fill it in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.challenge.formats import ALL_SUFFIXES, suffix_of
from flare.common.errors import FileError
from flare.common.streams import GZIP_MAGIC
from flare.evaluation.errors import FileFormatError

ONE_VOLUME = (
    "Take the argmax over the classes if these are probabilities, and save one 3-D"
    " label map for each case."
)

LARGEST_MM = 1e9
"""No spacing or position is larger than this; sums of larger ones could overflow."""

SAME_SIZE = 1e-3
"""Two voxel sizes of one header are the same up to this share: they were rounded."""

LPS = np.array([-1.0, -1.0, 1.0])
"""The factors that turn a position in LPS (to the left, back and top), as SimpleITK
writes it, into one in RAS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The places of voxels."""

    shape: tuple[int, int, int]
    """Number of voxels along z, y, x."""
    spacing: tuple[float, float, float]
    """Voxel size in mm along z, y, x, not rounded. In every format its numbers count as
    mm, even if a header names another unit."""
    affine: tuple[tuple[float, float, float, float], ...]
    """Three rows that turn voxel (x, y, z, 1) into mm to the right, front and top."""
    is_placed: bool = True
    """Whether its file says where it lies, and not its spacing alone."""
    unit: str = ""
    """The unit that its header names, if it is another one than mm."""

    @property
    def size_text(self) -> str:
        """Numbers of voxels as people write them: along x, y, z."""
        return " x ".join(map(str, reversed(self.shape)))

    @property
    def spacing_problem(self) -> str:
        """Why nothing can be measured on it; empty if its voxels have a size."""
        least = min(self.spacing)
        if least < 0:
            return "its header has a negative voxel size"
        if least == 0:
            return "its header has a voxel size of 0"
        return ""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Tell what may be wrong with its header, and what counts; the kind first."""
        doubts = []
        spacing = np.array(self.spacing[::-1])
        if self.is_placed and not np.allclose(
            spacing, self.voxel_size, rtol=SAME_SIZE, atol=0
        ):
            first, second = _numbers(spacing, " x "), _numbers(self.voxel_size, " x ")
            doubts.append(
                f"its header has two voxel sizes: {first} mm (pixdim) counts in scores,"
                f" {second} mm (sform or qform) only in where it lies"
            )
        elif self.is_placed and self.is_lost:
            doubts.append(
                "its header looks lost: voxel size 1, origin 0; 1 mm counts, unless you"
                " write it with the header of its CT"
            )
        if self.unit:
            doubts.append(self.unit_text)
        return tuple(doubts)

    @property
    def is_lost(self) -> bool:
        """Whether it is as programs write it that have lost a header."""
        return np.array_equal(self.voxel_size, (1, 1, 1)) and not self.origin.any()

    @property
    def unit_text(self) -> str:
        """A sentence about a unit that is not mm."""
        return (
            f"its header says {self.unit}: every number is taken for mm; write it in mm"
        )

    def corner_shift(self, other: Grid) -> float:
        """How far in mm the eight corner voxels lie from those of another grid.

        Grids are compared in this way because a tolerance in mm means the same for
        every size and orientation: headers of one grid that were written by nibabel
        and by SimpleITK differ by 1e-4 in their direction, and by 0.03 mm at a corner.
        """
        if (self.shape, self.affine) == (other.shape, other.affine):
            return 0.0  # so it is mostly, and then there is nothing to compute
        return float(np.linalg.norm(self.corners() - other.corners(), axis=0).max())

    def corners(self, reach: float = 0.0) -> npt.NDArray[np.float64]:
        """Positions in mm of the eight corners, shape (3, 8).

        They are those of the corner voxels' centres, or `reach` voxels further out.
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
        """Directions of the axes x, y, z, such as LPS: left, back (posterior), top."""
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
    """The promises of a file about its voxels."""

    grid: Grid
    dtype: np.dtype[Any]
    """Stored type, in the file's byte order."""
    slope: float = 1.0
    intercept: float = 0.0
    """It turns stored values into labels, together with the slope."""
    is_rounded: bool = False
    """Whether values that scaling has left near whole numbers are taken for these."""
    voxel_offset: int = 0
    """Bytes between the end of the header and the first voxel."""

    @property
    def voxels(self) -> int:
        """Number of voxels."""
        return math.prod(self.grid.shape)

    @property
    def promised_bytes(self) -> int:
        """The number of bytes behind the header, up to the last voxel."""
        return self.voxel_offset + self.voxels * self.dtype.itemsize

    @property
    def is_scaled(self) -> bool:
        """Whether stored values are not the labels themselves."""
        return (self.slope, self.intercept) != (1, 0)


def check_sizes(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Numbers of voxels along z, y, x, from those in the order of the file.

    Further axes must have a length of 1, and missing ones count as such. A
    FileFormatError is raised if there is no number, one is not positive, or there are
    more than three axes.
    """
    if not 1 <= len(sizes) <= 7 or min(sizes) < 1:
        raise FileFormatError("", "its header has impossible numbers of voxels")
    if math.prod(sizes[3:]) > 1:
        shape = " x ".join(map(str, sizes))
        problem = f"it has {len(sizes)} dimensions ({shape}), expected 3"
        raise FileFormatError("", problem, ONE_VOLUME)
    width, height, depth = [*sizes, 1, 1][:3]
    return depth, height, width


_KINDS = (
    (b"bzh", "a bzip2 file"),
    (b"\xfd7zxz", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (GZIP_MAGIC, "a gzip file"),
    (b"pk\x03\x04", "a zip file"),
    (b"rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"<!doctype html", "a web page (HTML)"),
    (b"<html", "a web page (HTML)"),
)
"""What files of other kinds are called, by their first bytes in small letters."""


def kind_of(start: bytes) -> str:
    """The kind of a foreign file that begins like this; empty if it is unknown."""
    if start[257:262] == b"ustar":
        return "a tar archive"
    text = start.lstrip().lower()
    return next((kind for magic, kind in _KINDS if text.startswith(magic)), "")


def is_link_text(start: bytes) -> bool:
    """Whether a file that begins like this has the path of a label map in it alone."""
    text = start.decode("utf-8", "replace")
    return text.isprintable() and bool(suffix_of(text, ALL_SUFFIXES))


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuse all types but whole and floating-point numbers of up to eight bytes."""
    if dtype.names:
        problem = f"its voxels are colours ({''.join(dtype.names)}), expected numbers"
        raise FileFormatError("", problem)
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
    unit: str = "",
) -> Grid:
    """A grid from the numbers of a file.

    `shape` has the numbers of voxels along z, y, x, and `spacing_xyz` the voxel size in
    mm along x, y, z. The three rows of `affine` turn a voxel (x, y, z, 1) into a
    position in mm, in RAS. `is_placed` is whether the file says where it lies, and
    `unit` the one that it names, if that is another one than mm. A FileFormatError is
    raised if a number is not finite, or is far beyond any patient.
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
        unit=unit,
    )


def make_placed_grid(
    shape: tuple[int, int, int],
    axes: npt.NDArray[np.float64],
    spacing: npt.NDArray[np.float64],
    origin: npt.NDArray[np.float64],
    to_ras: npt.NDArray[np.float64],
    unit: str = "",
) -> Grid:
    """A grid of a file that has any number of axes, and steps along each of them.

    `axes`, of shape (n, n), has a row for each of x, y, z, ...: the way from a voxel to
    the next one, in mm. `spacing` and `origin`, of shape (n,), are voxel size and
    position of the first voxel in mm; missing ones are 1 and 0. `to_ras` is 1 or -1 for
    each direction of the file's space, such as `LPS`. All else is as in `make_grid`.
    """
    affine = np.eye(3, 4)
    count = min(len(axes), 3)
    affine[:count, :count] = axes[:count, :count].T
    affine[:count, 3] = origin[:count]
    sizes = [*spacing, 1, 1][:3]
    return make_grid(shape, sizes, affine * to_ras[:, np.newaxis], unit=unit)


def make_unplaced_grid(
    shape: tuple[int, int, int], spacing_xyz: Iterable[float]
) -> Grid:
    """A grid of something that tells its spacing, and not its place.

    Parameters and errors are those of `make_grid`.
    """
    spacing = np.array(tuple(spacing_xyz))
    affine = np.column_stack([np.diag(spacing), np.zeros(3)])
    return make_grid(shape, spacing, affine, is_placed=False)


# --- How a prediction's grid differs from its reference's -------------------------


def compare_sizes(grid: Grid, expected: Grid) -> str:
    """How the numbers of voxels differ; empty if they do not."""
    if grid.shape == expected.shape:
        return ""
    text = f"size is {grid.size_text} voxels, expected {expected.size_text}"
    if _is_same_place(grid, expected):
        if grid.axes != expected.axes:
            text += f"; {_axes_text(grid, expected)}"
    elif grid.shape == expected.shape[::-1]:
        text += ": its axes are reversed"
    return text


def compare_positions(grid: Grid, expected: Grid, tolerance_mm: float) -> str:
    """How a grid of the right size lies elsewhere; empty if it does not.

    If one of both does not say where it lies, only the spacings are compared.
    """
    if not (grid.is_placed and expected.is_placed):
        return _compare_spacings(grid, expected, tolerance_mm)
    shift = grid.corner_shift(expected)
    if shift <= tolerance_mm:
        return ""
    unit = f"; {grid.unit_text}" if grid.unit else ""
    return f"it lies up to {shift:.4g} mm off: {_difference(grid, expected)}{unit}"


def _compare_spacings(grid: Grid, expected: Grid, tolerance_mm: float) -> str:
    """How voxel sizes differ; empty if no corner lies elsewhere because of it."""
    spacing, expected_spacing = np.array(grid.spacing), np.array(expected.spacing)
    steps = np.array(grid.shape) - 1
    if math.hypot(*((spacing - expected_spacing) * steps)) <= tolerance_mm:
        return ""
    text = _voxel_size_text(spacing[::-1], expected_spacing[::-1])
    reversed_shift = math.hypot(*((spacing[::-1] - expected_spacing) * steps))
    if reversed_shift <= tolerance_mm:
        text += ": its spacing is in the reverse order"
    return text


def _difference(grid: Grid, expected: Grid) -> str:
    """The reason why two grids of one size lie in different places.

    A program that loses the header is told first, and one that reorders the axes. If
    both are right, the voxel size or the origin is told, whichever moves the corners
    more; a rotation, if neither explains a third of their shift.
    """
    if grid.is_lost:
        return "its header was lost (voxel size 1, origin 0)"
    if grid.axes != expected.axes:
        text = _axes_text(grid, expected)
        is_reoriented = _is_same_place(grid, expected)
        return f"it was reoriented, {text}" if is_reoriented else text
    shift = grid.corner_shift(expected)
    steps = np.array(grid.shape[::-1]) - 1
    shift_by_size = math.hypot(*((grid.voxel_size - expected.voxel_size) * steps))
    shift_by_origin = math.hypot(*(grid.origin - expected.origin))
    if shift_by_size >= max(shift_by_origin, shift / 3):
        return _voxel_size_text(grid.voxel_size, expected.voxel_size)
    if shift_by_origin >= shift / 3:
        origin = _numbers(grid.origin, ", ")
        return (
            f"RAS origin is ({origin}) mm, expected"
            f" ({_numbers(expected.origin, ', ')}) mm"
        )
    return "it is rotated"


def _voxel_size_text(
    size: npt.NDArray[np.float64], expected_size: npt.NDArray[np.float64]
) -> str:
    """Two voxel sizes along x, y, z, of shape (3,), for a message."""
    return (
        f"voxel size is {_numbers(size, ' x ')} mm, expected"
        f" {_numbers(expected_size, ' x ')} mm"
    )


def _axes_text(grid: Grid, expected: Grid) -> str:
    return f"axes point to {grid.axes}, expected {expected.axes}"


def _is_same_place(grid: Grid, expected: Grid) -> bool:
    """Whether two grids fill the same box, to half a voxel, in any order of the axes.

    Each corner of one box has to be near some corner of the other.
    """
    corners, expected_corners = grid.corners(reach=0.5).T, expected.corners(reach=0.5).T
    distances = np.linalg.norm(corners[:, np.newaxis] - expected_corners, axis=2)
    largest_voxel = max(grid.voxel_size.max(), expected.voxel_size.max())
    return bool(distances.min(axis=1).max() <= largest_voxel / 2)


def _numbers(values: npt.NDArray[np.float64], separator: str) -> str:
    """Numbers, of shape (n,), for a message, to six digits."""
    return separator.join(f"{value + 0.0:.6g}" for value in values)  # 0 for -0
