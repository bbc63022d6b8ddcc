"""The voxels and surfels of an organ, counted in NumPy: the definition, in plain steps.

It is what ``kernel.c`` is compared with, and is used where that has not been compiled.
All arrays are of the whole box around an organ.

A surfel, an element of a surface, sits on a corner of the voxel grid, in the middle of
eight voxels. The code of a corner tells which of the eight belong to the organ. If all
do, or none does, the corner is inside or outside (codes 255 and 0), and no surfel. One
slice of 4 x 4 voxels, and the codes of its 5 x 5 corners before it:

>>> organ = np.array([[list(".##."), list("####"), list("####"), list(".##.")]]) == "#"
>>> for row in codes_of(organ)[0]:
...     print(*(f"{code:X}" for code in row))
0 1 3 2 0
1 7 F B 2
5 F F F A
4 D F E 8
0 4 C 8 0

Each of the four voxels behind a corner counts for it; one before it, 16 times that::

    8 | 4
    --+--
    2 | 1
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from flare.evaluation.metrics.arrays import Bytes, Counts, Labels, Mask, start_of
from flare.evaluation.metrics.ring import Ring, ring_of
from flare.evaluation.metrics.tally import (
    LabelPair,
    Near,
    Surfels,
    Tally,
    VoxelMap,
    Voxels,
)
from flare.evaluation.metrics.tolerance import Ball

IN_A_ROW = 32
"""Looking up a place somewhere takes about as long as so many that lie in a row."""

LOOK_UPS = 2**25
"""So many places are looked up for near surfels; what is left then counts as far."""


class PlainMap(VoxelMap):
    """A label map as an array."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__(shape)
        self._labels: Labels = np.empty(shape, dtype=np.uint8)
        self._filled = 0

    def add(self, voxels: Bytes) -> None:
        """Take the next whole rows: shape (rows * width,)."""
        filled, self._filled = self._filled, self._filled + voxels.size
        self._labels.reshape(-1)[filled : self._filled] = voxels
        # The boxes grow by runs of equal voxels, which are fewer: by both ends of each.
        is_last = np.ones(voxels.size, dtype=np.bool_)
        is_last[:-1] = voxels[1:] != voxels[:-1]
        is_last[self.shape[2] - 1 :: self.shape[2]] = True
        last = np.flatnonzero(is_last)
        first, labels = np.append(0, last[:-1] + 1), voxels[last]
        starts, stops = (
            np.unravel_index(filled + n, self.shape) for n in (first, last)
        )
        for axis in range(3):
            np.minimum.at(self._boxes[:, 0, axis], labels, starts[axis])
            np.maximum.at(self._boxes[:, 1, axis], labels, stops[axis] + 1)

    def slices(self, part: slice) -> Labels:
        """The labels of some slices."""
        return self._labels[part]


@dataclass(frozen=True, slots=True)
class PlainPair(LabelPair):
    """An organ in two label maps, counted from arrays."""

    def tally(self, tolerance: float) -> Tally:
        """Count its voxels and surfels."""
        first, second = self.surfels(tolerance)
        codes = np.concatenate((first.codes, second.codes))
        are_beyond = np.concatenate((first.is_beyond, second.is_beyond))
        return Tally(
            voxels=count_voxels(*self.masks(self.box[0])),
            surfels=np.bincount(codes, minlength=256),
            beyond=np.bincount(codes[are_beyond], minlength=256),
        )

    def surfels(self, tolerance: float) -> tuple[Surfels, Surfels]:
        """List its surfels of both maps."""
        codes, other_codes = map(codes_of, self.masks(self.box[0]))
        first, second = is_surfel(codes), is_surfel(other_codes)
        corner, ball = np.array(start_of(self.box)), self.ball(tolerance)
        return (
            _listed(codes, first, find_beyond(first, second, ball), corner),
            _listed(other_codes, second, find_beyond(second, first, ball), corner),
        )

    def near(self, room: int) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other; `room` far ones."""
        ring = ring_of(self.spacing)
        reach = ring.offsets.max(axis=0)
        margins = np.column_stack((reach, reach))
        corner = start_of(self.box) - reach
        masks = (np.pad(mask, margins) for mask in self.masks(self.box[0]))
        first, second = map(codes_of, masks)
        search = ring, room, corner
        return _near(first, second, *search), _near(second, first, *search)


def count_voxels(reference: Mask, prediction: Mask) -> Voxels:
    """Count the voxels of two masks, and those that both have."""
    masks = reference, prediction, reference & prediction
    return Voxels(*(int(np.count_nonzero(mask)) for mask in masks))


def _listed(codes: Bytes, is_listed: Mask, is_beyond: Mask, corner: Counts) -> Surfels:
    """Surfels of a box whose first corner is given."""
    places = np.flatnonzero(is_listed)
    corners = np.column_stack(np.unravel_index(places, codes.shape)) + corner
    codes, is_beyond = codes.reshape(-1)[places], is_beyond.reshape(-1)[places]
    return Surfels(corners.astype(np.int32), codes, is_beyond)


def _near(first: Bytes, second: Bytes, ring: Ring, room: int, corner: Counts) -> Near:
    """Look the corners of a ring up, the nearest first, around those that are left."""
    codes, is_other = first.reshape(-1), is_surfel(second).reshape(-1)
    _, height, width = first.shape
    counts = np.zeros((ring.distances.size + 1, 256), dtype=np.int64)
    left, look_ups = np.flatnonzero(is_surfel(codes)), 0
    for (z, y, x), rank in zip(ring.offsets, ring.ranks, strict=True):
        look_ups += left.size
        if not left.size or look_ups > LOOK_UPS:
            break
        is_near = is_other[left + (z * height + y) * width + x]
        counts[rank] += np.bincount(codes[left[is_near]], minlength=256)
        left = left[~is_near]
    counts[-1] = np.bincount(codes[left], minlength=256)
    is_far = np.zeros(first.shape, dtype=np.bool_)
    is_far.reshape(-1)[left[:room]] = True
    return Near(counts, _listed(first, is_far, is_far, corner))


def codes_of(mask: Mask) -> Bytes:
    """The code of each corner of a mask: one more than voxels along each axis."""
    codes: Bytes = np.pad(mask, 1).view(np.uint8)
    codes = codes[..., 1:] + 2 * codes[..., :-1]
    codes = codes[:, 1:] + 4 * codes[:, :-1]
    return codes[1:] + 16 * codes[:-1]


def is_surfel(codes: Bytes) -> Mask:
    """The corners that some of their eight voxels belong to the mask, and some not."""
    is_mixed: Mask = (codes != 0) & (codes != 255)
    return is_mixed


def find_beyond(first: Mask, second: Mask, ball: Ball) -> Mask:
    """The surfels of a first mask that have none of the second in the ball around."""
    reach_z, reach_y, reach_x = ball.max(axis=0, initial=0)
    # Empty places end each row, so no row is widened into the next one.
    margins = ((reach_z, reach_z), (reach_y, reach_y), (0, reach_x))
    is_beyond, second = np.pad(first, margins), np.pad(second, margins)
    is_beyond &= ~second
    _, height, width = second.shape
    inner = tuple(map(slice, first.shape))
    surfels = is_beyond[reach_z:, reach_y:][inner]  # a view, which changes with it
    for half_width, rows in groupby(ball.tolist(), key=lambda row: row[2]):
        left = np.flatnonzero(is_beyond)
        if not left.size:
            break
        is_near = widen(second, half_width)
        if left.size * IN_A_ROW > is_beyond.size:
            for z, y, _ in rows:
                surfels &= ~is_near[reach_z + z :, reach_y + y :][inner]
        else:
            for z, y, _ in rows:
                left = left[~is_near.reshape(-1)[left + (z * height + y) * width]]
            is_beyond[:] = False
            is_beyond.reshape(-1)[left] = True
    return surfels


def widen(mask: Mask, places: int) -> Mask:
    """A mask widened along x, by some places on both sides; so many end its rows."""
    widened = mask.copy()
    flat, flat_widened = mask.reshape(-1), widened.reshape(-1)
    for step in range(1, places + 1):
        flat_widened[step:] |= flat[:-step]
        flat_widened[:-step] |= flat[step:]
    return widened
