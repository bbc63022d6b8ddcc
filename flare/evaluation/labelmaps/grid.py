"""What the header of a label map says: its grid, and how voxels are stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.evaluation.labelmaps.errors import NamelessFormatError

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

LPS = np.array([-1.0, -1.0, 1.0])
"""What turns a position in LPS (to the left, back and top) into one in RAS."""


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
        """Voxel size in mm along x, y, z, as the affine tells it."""
        steps = np.array(self.affine)[:, :3]
        size: npt.NDArray[np.float64] = np.linalg.norm(steps, axis=0)
        return size

    @property
    def origin(self) -> npt.NDArray[np.float64]:
        """Position of the first voxel in mm."""
        return np.array(self.affine)[:, 3]

    @property
    def axes(self) -> str:
        """Where the axes x, y, z point to, such as LPS: left, back (posterior), top."""
        import nibabel as nib  # not at the top: only messages need it, and it is large

        affine = np.vstack([np.array(self.affine), (0, 0, 0, 1)])
        return "".join(code or "?" for code in nib.orientations.aff2axcodes(affine))


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
    NamelessFormatError
        If there are none, one is not positive, or there are more than three axes.
    """
    if not 1 <= len(sizes) <= 7 or min(sizes) < 1:
        raise NamelessFormatError("its header has impossible numbers of voxels")
    if math.prod(sizes[3:]) > 1:
        shape = " x ".join(str(size) for size in sizes)
        problem = f"it has {len(sizes)} dimensions ({shape}), expected 3"
        if may_have_layers and sizes[0] <= FEW_LAYERS < min(sizes[1:]):
            problem += ": the first are layers of 3D Slicer"
            raise NamelessFormatError(problem, ONE_LAYER)
        raise NamelessFormatError(problem, ONE_VOLUME)
    width, height, depth = [*sizes, 1, 1][:3]
    return depth, height, width


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuse what is no whole or floating-point number of at most eight bytes.

    Raises
    ------
    NamelessFormatError
        If it is not.
    """
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise NamelessFormatError(
            f"its voxels are of type {dtype.newbyteorder('=')}, expected numbers"
        )


def make_grid(
    shape: tuple[int, int, int],
    spacing_xyz: Iterable[float],
    affine: Iterable[Iterable[float]],
    *,
    is_placed: bool = True,
) -> Grid:
    """A grid from the spacing and the affine of a file, of shape (3, 4), in RAS.

    Raises
    ------
    NamelessFormatError
        If a number is not finite, or is far beyond any patient.
    """
    # Numbers of Python: a call of NumPy takes longer than to look at all of them.
    size_x, size_y, size_z = sizes = tuple(map(float, spacing_xyz))
    rows = tuple(tuple(map(float, row)) for row in affine)
    numbers = (*sizes, *itertools.chain.from_iterable(rows))
    if not all(map(math.isfinite, numbers)):
        raise NamelessFormatError("its header has positions that are not finite")
    if max(map(abs, numbers)) > LARGEST_MM:
        raise NamelessFormatError("its header has impossible positions")
    return Grid(
        shape=shape,
        spacing=(size_z, size_y, size_x),
        affine=rows,  # type: ignore[arg-type]
        is_placed=is_placed,
    )


def first_three(
    values: npt.NDArray[np.float64], fill: float
) -> npt.NDArray[np.float64]:
    """The first three values; missing ones are `fill`."""
    return np.append(values, [fill] * 3)[:3]


def make_affine(
    axes: npt.NDArray[np.float64],
    origin: npt.NDArray[np.float64],
    to_ras: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """An affine of shape (3, 4), in RAS, from steps along each axis, as rows."""
    affine = np.eye(3, 4)
    count = min(len(axes), 3)
    affine[:count, :count] = axes[:count, :count].T
    affine[:, 3] = first_three(origin, 0.0)
    return affine * to_ras[:, np.newaxis]
