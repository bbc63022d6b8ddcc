"""The arrays that metrics work on; those of voxels are in order z, y, x."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.uint8]
"""Labels of shape (Z, Y, X)."""

Mask = npt.NDArray[np.bool_]
"""A mask of shape (Z, Y, X)."""

Spacing = tuple[float, float, float]
"""Voxel size in mm along z, y, x."""

Box = tuple[slice, slice, slice]
"""A part of the grid, along z, y, x."""

EMPTY: Box = (slice(0, 0), slice(0, 0), slice(0, 0))
"""The box of an organ that is nowhere."""

WHOLE = slice(None)
"""All slices of a map."""

Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def mask_of(voxels: Labels, labels: Iterable[int]) -> Mask:
    """The voxels that have one of some labels, in an array of any shape."""
    mask: Mask = np.zeros(voxels.shape, dtype=np.bool_)
    for label in labels:
        mask |= voxels == label
    return mask


def box_of(starts: Iterable[int], stops: Iterable[int]) -> Box:
    """The box between two corners; `EMPTY` if there is nothing between them."""
    z, y, x = map(slice, starts, stops)
    if z.start >= z.stop or y.start >= y.stop or x.start >= x.stop:
        return EMPTY
    return z, y, x


def start_of(box: Box) -> tuple[int, int, int]:
    """The first voxel of a box, along z, y, x."""
    z, y, x = box
    return z.start, y.start, x.start


def stop_of(box: Box) -> tuple[int, int, int]:
    """The first place behind a box on each axis, along z, y, x."""
    z, y, x = box
    return z.stop, y.stop, x.stop


def box_around(first: Box, second: Box) -> Box:
    """The smallest box around two boxes; one of them may be empty."""
    if EMPTY in (first, second):
        return second if first == EMPTY else first
    starts = map(min, start_of(first), start_of(second))
    return box_of(starts, map(max, stop_of(first), stop_of(second)))


def extent_of(box: Box) -> tuple[int, int, int]:
    """The size of a box, in voxels."""
    z, y, x = box
    return z.stop - z.start, y.stop - y.start, x.stop - x.start
