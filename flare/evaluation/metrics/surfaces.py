"""The surfaces of both masks of a label: the corners of the grid that lie on them.

A surfel, an element of a surface, sits on a corner of the voxel grid, in the middle of
eight voxels: four in the slice before the corner, and four in the slice behind it. The
code of the corner, 0 to 255, tells which of the eight belong to the organ. If all do,
or none does, the corner is inside or outside (codes 255 and 0), and no surfel.

A code is made of two sums, called fours, as each is about four voxels of one slice. A
voxel counts 1 for the corner before it, 2 for the next corner along x, 4 for the next
along y, and 8 for the one that is next along both. So a corner gets 15 (F) in the
middle of four voxels of the organ. One slice of 4 x 4 voxels, and its 5 x 5 corners::

    voxels         fours of the corners

    . # # .        0 1 3 2 0        8 | 4      what each of the four voxels
    # # # #        1 7 F B 2        --+--      around a corner counts for it
    # # # #        5 F F F A        2 | 1
    . # # .        4 D F E 8
                   0 4 C 8 0

The code of a corner is 16 times its four of the slice before it, plus that of the slice
behind it. If the drawn slice is the only one that has the organ, each F is the code 0F
at its front, and F0 at its back. A four needs half a byte, so the other half has that
of the other mask: one pass over the bytes of a window is for both masks. Codes are put
together only where there are surfels: where the fours before and behind a corner are
neither both 0 nor both 15.

Examples
--------
The fours that are drawn above, as the program computes them:

>>> from flare.evaluation.metrics.pairs import pair_of_masks
>>> from flare.evaluation.metrics.tolerance import ball_rows
>>> organ = np.array([[list(".##."), list("####"), list("####"), list(".##.")]]) == "#"
>>> pair = pair_of_masks(organ, organ, spacing=(1.0, 1.0, 1.0))
>>> window = next(pair.windows(ball_rows(pair.spacing, 0.5, pair.occupancy.extent)))
>>> surfaces = find_surfaces(pair.masks(window), window)
>>> fours = surfaces.fours.reshape(window.shape)[window.first_slice, :5, :5]
>>> for row in fours & HALVES[REFERENCE]:
...     print(*(f"{four:X}" for four in row))
0 1 3 2 0
1 7 F B 2
5 F F F A
4 D F E 8
0 4 C 8 0

All 21 corners whose four is not 0 are surfels, at the front of the slice and at its
back. These are the codes of the first four at the front, as 0 is before them:

>>> corners = find_marked(surfaces.surfels, window)
>>> codes, codes_of_prediction = surfaces.codes_at(corners)
>>> codes.size, *(f"{code:02X}" for code in codes[:4])
(42, '01', '03', '02', '01')
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Bytes, Indices, bytes_in_groups
from flare.evaluation.metrics.windows import Window

REFERENCE, PREDICTION = 0, 1
"""The sides of a comparison: places in pairs, and halves of bytes."""

DIRECTIONS = (REFERENCE, PREDICTION), (PREDICTION, REFERENCE)
"""The side whose surfels are counted, and the side they are compared with."""

HALVES = np.uint8(0x0F), np.uint8(0xF0)
"""The bits of a byte that are about the reference, and about the prediction."""


class SurfacePair(NamedTuple):
    """The surfaces of both masks of a label in one window, in flat buffers."""

    window: Window
    fours: Bytes
    """Which of the four voxels behind each corner, along z, belong to each mask."""
    surfels: Bytes
    """In each mask's half: not 0 where a corner is a surfel of it."""
    has_voxels: tuple[bool, bool]
    """Whether the masks have any voxel in this window."""

    def codes_at(self, corners: Indices) -> tuple[Bytes, Bytes]:
        """Codes of both masks at some corners, indices of the flat buffers.

        All arrays are of shape (n,).
        """
        before = self.fours[corners - self.window.plane]
        behind = self.fours[corners]
        return (
            codes_of(before, behind, REFERENCE),
            codes_of(before, behind, PREDICTION),
        )

    def codes_in(self, part: slice, side: int) -> Bytes:
        """Codes of one mask at all corners of a part of the flat buffers."""
        plane = self.window.plane
        before = self.fours[part.start - plane : part.stop - plane]
        return codes_of(before, self.fours[part], side)


def codes_of(before: Bytes, behind: Bytes, side: int) -> Bytes:
    """Codes of one mask, from the fours before corners and behind; shape (n,)."""
    half = HALVES[side]
    if side == PREDICTION:
        return before & half | behind >> np.uint8(4)
    return (before & half) * np.uint8(16) | behind & half  # NumPy shifts more slowly


def find_surfaces(masks: tuple[Bytes, Bytes], window: Window) -> SurfacePair:
    """Find the surfels of both masks, flat buffers that are overwritten.

    Corner (z, y, x) is the one before voxel (z, y, x) on all axes. It is no surfel if
    the four voxels behind it and the four before it all are as that voxel: both fours
    are 15 then, or both are 0. All is done in place, on bytes that stay in the cache,
    as it is most of the time of an NSD.
    """
    reference, prediction = masks
    has_voxels = (
        bool(reference.view(np.bool_).any()),
        bool(prediction.view(np.bool_).any()),
    )
    scratch, surfels = window.buffer("scratch"), window.buffer("border")
    # Each byte is 1, 16 or 17 where the voxel belongs to one mask, or to both.
    np.multiply(prediction, 16, out=prediction)
    fours = np.bitwise_or(reference, prediction, out=reference)
    # What the fours would be if all four voxels were as the one behind the corner.
    alike = np.multiply(fours, 15, out=prediction)
    # First 2 for the voxel before along x; then 4 and 8, for both of the row before.
    for weight, shift in ((2, 1), (4, window.row)):
        before = np.multiply(fours[:-shift], weight, out=scratch[:-shift])
        fours[shift:] |= before
    np.bitwise_xor(fours, alike, out=surfels)
    plane = window.plane
    before = np.bitwise_xor(fours[:-plane], alike[plane:], out=scratch[plane:])
    surfels[plane:] |= before
    return SurfacePair(
        window=window, fours=fours, surfels=surfels, has_voxels=has_voxels
    )


def is_surfel(codes: Bytes) -> npt.NDArray[np.bool_]:
    """Whether there are voxels inside and outside of the mask; of the codes' shape."""
    return codes + np.uint8(1) > 1  # code 255 becomes 0


def find_marked(marks: Bytes, window: Window) -> Indices:
    """The corners that are counted in this window, and not 0 in a flat buffer.

    Returns indices of flat buffers in ascending order, of shape (n,).
    """
    words = marks[window.inner].view(np.uint64)
    groups = (words != 0).nonzero()[0]
    return bytes_in_groups(groups * 8 + window.inner.start, words[groups])
