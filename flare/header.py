"""What the header of a label map says: its grid, and how its voxels are stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt

from flare.errors import FileFormatError


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


def check_sizes(sizes: Sequence[int], name: str) -> tuple[int, int, int]:
    """Numbers of voxels along z, y, x, from those in the order of the file.

    Further axes must have a length of 1, and missing ones count as such.

    Raises
    ------
    FileFormatError
        If there are none, one is not positive, or there are more than three axes.
    """
    if not 1 <= len(sizes) <= 7 or min(sizes) < 1:
        raise FileFormatError(name, "its header has impossible numbers of voxels")
    if math.prod(sizes[3:]) > 1:
        shape = " x ".join(str(size) for size in sizes)
        problem = f"it has {len(sizes)} dimensions ({shape}), expected 3"
        raise FileFormatError(name, problem)
    width, height, depth = [*sizes, 1, 1][:3]
    return depth, height, width


def make_grid(
    shape: tuple[int, int, int],
    spacing_xyz: npt.NDArray[np.float64],
    affine: npt.NDArray[np.float64],
    name: str,
) -> Grid:
    """A grid from the spacing and the affine of a file, of shape (3, 4), in RAS.

    Raises
    ------
    FileFormatError
        If a number is not finite.
    """
    if not (np.isfinite(affine).all() and np.isfinite(spacing_xyz).all()):
        raise FileFormatError(name, "its header has positions that are not finite")
    size_x, size_y, size_z = (float(size) for size in spacing_xyz)
    return Grid(
        shape=shape,
        spacing=(size_z, size_y, size_x),
        affine=tuple(tuple(float(value) for value in row) for row in affine),  # type: ignore[misc]
    )


def _numbers(values: npt.NDArray[np.float64], separator: str) -> str:
    """Numbers for a message: two decimals, no needless zeros."""
    return separator.join(f"{value:.2f}".rstrip("0").rstrip(".") for value in values)
