"""Where the voxels of a label map are, how two grids differ, and what to do then."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

COPY_HEADER = (
    "Copy the CT's header: mask.CopyInformation(ct) in SimpleITK,"
    " nibabel.Nifti1Image(array, ct.affine) in nibabel. Then look at both in a viewer."
)
RESAMPLE = "Resample it to the CT's grid with nearest neighbours."
TURN_BACK = (
    "If it fits the CT in a viewer, resample it to the CT with nearest neighbours; if"
    " not, only its header is wrong: copy the CT's."
)
TRANSPOSE = (
    "Save array.transpose(2, 1, 0) with the CT's header: SimpleITK takes (z, y, x),"
    " nibabel (x, y, z)."
)
PAD = "If it was cropped, pad it back to the size of the CT."
TURN_SPACING = "Save the array spacing in the reverse order."


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


# --- How a prediction's grid differs from its reference's -------------------------


class Misplacement(NamedTuple):
    """How a grid differs from what was expected."""

    text: str
    remedy: str = ""
    """What to do in this case; empty for the usual advice."""


def compare_sizes(found: Grid, expected: Grid) -> Misplacement | None:
    """What is wrong if the numbers of voxels differ; None if they do not."""
    if found.shape == expected.shape:
        return None
    text = f"size is {found.size_text} voxels, expected {expected.size_text}"
    if _same_place(found, expected):
        if found.axes == expected.axes:
            return Misplacement(text, RESAMPLE)
        turned = f"axes point to {found.axes}, expected {expected.axes}"
        return Misplacement(f"{text}; {turned}", TURN_BACK)
    if found.shape == expected.shape[::-1]:
        return Misplacement(f"{text}: its axes are reversed", TRANSPOSE)
    is_smaller = all(a <= b for a, b in zip(found.shape, expected.shape, strict=True))
    is_equal = np.allclose(found.voxel_size, expected.voxel_size, rtol=1e-3, atol=0)
    return Misplacement(text, PAD if is_smaller and is_equal else "")


def compare_positions(
    found: Grid, expected: Grid, tolerance_mm: float
) -> Misplacement | None:
    """What is wrong if a grid of the right size lies elsewhere; None if it does not.

    Of a file that does not say where it lies, only the spacing is compared.
    """
    if not (found.is_placed and expected.is_placed):
        return _compare_spacings(found, expected, tolerance_mm)
    shift = found.corner_shift(expected)
    if shift <= tolerance_mm:
        return None
    text, remedy = _difference(found, expected)
    return Misplacement(f"it lies up to {shift:.4g} mm off: {text}", remedy)


def _compare_spacings(
    found: Grid, expected: Grid, tolerance_mm: float
) -> Misplacement | None:
    """What is wrong if voxel sizes differ by so much that a corner lies elsewhere."""
    steps = np.array(found.shape) - 1
    sizes = np.array(found.spacing), np.array(expected.spacing)
    shift = math.hypot(*((sizes[0] - sizes[1]) * steps))
    if shift <= tolerance_mm:
        return None
    has, wanted = (_numbers(size[::-1], " x ") for size in sizes)
    text = f"voxel size is {has} mm, expected {wanted} mm"
    if math.hypot(*((sizes[0][::-1] - sizes[1]) * steps)) <= tolerance_mm:
        turned = ": its spacing is in the reverse order"
        return Misplacement(text + turned, TURN_SPACING)
    return Misplacement(text)


def _difference(found: Grid, expected: Grid) -> Misplacement:
    """What makes two grids of one size different."""
    if np.array_equal(found.voxel_size, (1, 1, 1)) and not found.origin.any():
        return Misplacement("its header was lost (voxel size 1, origin 0)", COPY_HEADER)
    if found.axes != expected.axes:
        text = f"axes point to {found.axes}, expected {expected.axes}"
        if _same_place(found, expected):
            return Misplacement(f"it was reoriented, {text}", TURN_BACK)
        return Misplacement(text)
    # What moves the corners most is told.
    shift = found.corner_shift(expected)
    steps = np.array(found.shape[::-1]) - 1
    by_size = math.hypot(*((found.voxel_size - expected.voxel_size) * steps))
    by_origin = math.hypot(*(found.origin - expected.origin))
    if by_size >= max(by_origin, shift / 3):
        sizes = [_numbers(grid.voxel_size, " x ") for grid in (found, expected)]
        return Misplacement(f"voxel size is {sizes[0]} mm, expected {sizes[1]} mm")
    if by_origin >= shift / 3:
        has, wanted = (_numbers(grid.origin, ", ") for grid in (found, expected))
        return Misplacement(f"RAS origin is ({has}) mm, expected ({wanted}) mm")
    return Misplacement("it is rotated")


def _same_place(found: Grid, expected: Grid) -> bool:
    """Whether two grids fill the same box, to a voxel, in whatever order."""
    first, second = (grid.corners(reach=0.5).T for grid in (found, expected))
    apart = np.linalg.norm(first[:, np.newaxis] - second, axis=2)
    largest_voxel = max(found.voxel_size.max(), expected.voxel_size.max())
    return bool(apart.min(axis=1).max() <= largest_voxel / 2)


def _numbers(values: npt.NDArray[np.float64], separator: str) -> str:
    """Numbers, of shape (n,), for a message, to six digits."""
    return separator.join(f"{value:.6g}" for value in values)
