"""The voxels and surfels of a label, counted in NumPy: the definition, in plain steps.

It is what ``kernel.c`` is compared with, and is used where that has not been compiled.
All arrays are of the whole box around a label.

A surfel, an element of a surface, sits on a corner of the voxel grid, in the middle of
eight voxels. The code of a corner tells which of the eight belong to the organ. If all
do, or none does, the corner is inside or outside (codes 255 and 0), and no surfel. One
slice of 4 x 4 voxels, and the codes of its 5 x 5 corners before it::

    . # # .        0 1 3 2 0        8 | 4      what each of the four voxels
    # # # #        1 7 F B 2        --+--      behind a corner counts for it;
    # # # #        5 F F F A        2 | 1      one before it, 16 times that
    . # # .        4 D F E 8
                   0 4 C 8 0

Examples
--------
>>> organ = np.array([[list(".##."), list("####"), list("####"), list(".##.")]]) == "#"
>>> for row in codes_of(organ)[0]:
...     print(*(f"{code:X}" for code in row))
0 1 3 2 0
1 7 F B 2
5 F F F A
4 D F E 8
0 4 C 8 0
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import Protocol

import numpy as np

from flare.evaluation.metrics.arrays import (
    EMPTY,
    Box,
    Bytes,
    Labels,
    Mask,
    Spacing,
    ends_of,
)
from flare.evaluation.metrics.ring import Ring, ring_of
from flare.evaluation.metrics.tally import Near, Surfels, Tally, Voxels
from flare.evaluation.metrics.tolerance import Ball

AT_ONCE = 2**14
"""How many places are looked up together: calls of NumPy take a while."""


class PlainMap:
    """A label map as an array, which is filled from its first row to its last."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self._labels: Labels = np.empty(shape, dtype=np.uint8)
        self._filled = 0

    def add(self, voxels: Bytes) -> None:
        """Take the next voxels: shape (n,)."""
        end = self._filled + voxels.size
        self._labels.reshape(-1)[self._filled : end] = voxels
        self._filled = end

    def slices(self, part: slice) -> Labels:
        """The labels of some slices."""
        return self._labels[part]

    def box(self, label: int) -> Box:
        """The smallest box around a label."""
        return self._boxes.get(label, EMPTY)

    @cached_property
    def present(self) -> tuple[int, ...]:
        """The labels that it has, without 0."""
        return tuple(self._boxes)

    @cached_property
    def _boxes(self) -> dict[int, Box]:
        from scipy.ndimage import find_objects  # which takes a while to load

        boxes = enumerate(find_objects(self._labels), start=1)
        return {label: box for label, box in boxes if box}


class PlainPair:
    """Two label maps of one shape, whose labels are counted from arrays."""

    def __init__(self, first: SlicedMap, second: SlicedMap) -> None:
        self._maps = first, second

    def tally(self, label: int, box: Box, ball: Ball) -> Tally:
        """Count the voxels and surfels of a label in a box."""
        reference, prediction = masks_of(self._maps, label, box)
        pair = self.surfels(label, box, ball)
        first, second = pair
        codes = np.concatenate((first.codes, second.codes))
        are_beyond = np.concatenate((first.is_beyond, second.is_beyond))
        numbers = map(np.count_nonzero, (reference, prediction, reference & prediction))
        return Tally(
            voxels=Voxels(*map(int, numbers)),
            surfels=np.bincount(codes, minlength=256),
            beyond=np.bincount(codes[are_beyond], minlength=256),
        )

    def surfels(self, label: int, box: Box, ball: Ball) -> tuple[Surfels, Surfels]:
        """List the surfels of a label in a box, of both maps."""
        first_codes, second_codes = map(codes_of, masks_of(self._maps, label, box))
        first, second = is_surfel(first_codes), is_surfel(second_codes)
        return (
            _listed(first_codes, first, find_beyond(first, second, ball), box),
            _listed(second_codes, second, find_beyond(second, first, ball), box),
        )

    def near(
        self, label: int, box: Box, spacing: Spacing, room: int
    ) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other; `room` far ones."""
        first, second = map(codes_of, masks_of(self._maps, label, box))
        ring = ring_of(spacing)
        far = _near(second, first, ring, room, box)
        return _near(first, second, ring, room, box), far


class SlicedMap(Protocol):
    """A label map of which slices can be had."""

    def slices(self, part: slice) -> Labels:
        """The labels of some slices."""


def masks_of(
    maps: tuple[SlicedMap, SlicedMap], label: int, box: Box
) -> tuple[Mask, Mask]:
    """The masks of a label in a box of two maps."""
    z, y, x = box
    first, second = (label_map.slices(z)[:, y, x] == label for label_map in maps)
    return first, second


def _listed(codes: Bytes, is_listed: Mask, is_beyond: Mask, box: Box) -> Surfels:
    corners = np.argwhere(is_listed) + ends_of(box)[0]
    return Surfels(corners.astype(np.int32), codes[is_listed], is_beyond[is_listed])


def _near(first: Bytes, second: Bytes, ring: Ring, room: int, box: Box) -> Near:
    """Look the corners of a ring up, the nearest first, around those that are left."""
    is_left, reach = is_surfel(first), np.abs(ring.offsets).max(axis=0)
    is_other = np.pad(is_surfel(second), np.column_stack((reach, reach)))
    counts = np.zeros((ring.distances.size + 1, 256), dtype=np.int64)
    corners, codes = np.argwhere(is_left), first[is_left]
    start = 0
    while codes.size and start < len(ring.ranks):
        # The fewer are left, the more places are looked up together.
        part = slice(start, start + max(1, AT_ONCE // codes.size))
        places = corners[:, np.newaxis] + (ring.offsets[part] + reach)
        is_hit = is_other[places[..., 0], places[..., 1], places[..., 2]]
        is_near = is_hit.any(axis=1)
        ranks = ring.ranks[part][is_hit[is_near].argmax(axis=1)]
        np.add.at(counts, (ranks, codes[is_near]), 1)
        corners, codes = corners[~is_near], codes[~is_near]
        start = part.stop
    counts[-1] = np.bincount(codes, minlength=256)
    is_far = np.zeros_like(is_left)
    is_far[tuple(corners[:room].T)] = True
    return Near(counts, _listed(first, is_far, is_far, box))


def codes_of(mask: Mask) -> Bytes:
    """The code of each corner of a mask: one more than voxels along each axis."""
    codes: Bytes = np.pad(mask, 1).astype(np.uint8)
    shift_x, shift_y, shift_z = np.array([1, 2, 4], dtype=np.uint8)
    codes = codes[..., 1:] | codes[..., :-1] << shift_x
    codes = codes[:, 1:] | codes[:, :-1] << shift_y
    codes = codes[1:] | codes[:-1] << shift_z
    return np.ascontiguousarray(codes)


def is_surfel(codes: Bytes) -> Mask:
    """The corners that some of their eight voxels belong to the mask, and some not."""
    is_mixed: Mask = (codes != 0) & (codes != 255)
    return is_mixed


def find_beyond(first: Mask, second: Mask, ball: Ball) -> Mask:
    """The surfels of a first mask that have none of the second in the ball around."""
    is_beyond = first & ~second
    left = np.argwhere(is_beyond)
    reach = np.abs(np.reshape(ball, (-1, 3))[:, :2]).max(axis=0, initial=0)
    margins = (*zip(reach, reach, strict=True), (0, 0))
    for half_width, rows in groupby(ball, key=lambda row: row.half_width):
        if not len(left):
            break
        widened = np.pad(widen(second, half_width), margins)
        for row in rows:
            places = left + np.array([reach[0] + row.z, reach[1] + row.y, 0])
            left = left[~widened[tuple(places.T)]]
    is_beyond[:] = False
    is_beyond[tuple(left.T)] = True
    return is_beyond


def widen(mask: Mask, places: int) -> Mask:
    """A mask widened along x, by some places on both sides."""
    widened: Mask = mask.copy()
    for step in range(1, min(places, mask.shape[2] - 1) + 1):
        widened[..., step:] |= mask[..., :-step]
        widened[..., :-step] |= mask[..., step:]
    return widened
