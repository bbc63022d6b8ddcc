"""Finds the surfels of both masks of a label at once: half a byte is about each.

Codes of eight voxels need a byte for each mask, but those of the four voxels that a
corner has in one slice need only half of one. So a pass over the bytes of a window is
one for both masks, and the codes of eight are put together where there are surfels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.metrics.windows import Buffers, Window

Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]

AT_ONCE = 2**12
"""So many groups of eight corners are looked at together."""

HALVES = np.uint8(0x0F), np.uint8(0xF0)
"""The bits of a byte that are about the first mask, and about the second."""

MASKS = ("first", "second")
"""What the two masks are called among the buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfacePair:
    """The surfaces of the two masks of a label in one window."""

    window: Window
    buffers: Buffers
    fours: Bytes
    """Which of the four voxels behind each corner, along z, belong to each mask."""
    border: Bytes
    """In each mask's half: not 0 where a corner is a surfel of it."""
    is_there: tuple[bool, bool]
    """Whether the masks have any voxel in this window."""

    def codes_at(self, where: Indices) -> tuple[Bytes, Bytes]:
        """Which of the eight voxels around some corners each mask has."""
        before, behind = self.fours[where - self.window.plane], self.fours[where]
        return codes_of_first(before, behind), codes_of_second(before, behind)

    def codes_in(self, part: slice, own: int) -> Bytes:
        """Those of one mask at all corners of a part of the window."""
        plane = self.window.plane
        before = self.fours[part.start - plane : part.stop - plane]
        codes_of = codes_of_second if own else codes_of_first
        return codes_of(before, self.fours[part])


def masks_of(
    reference: Labels, prediction: Labels, label: int, window: Window, buffers: Buffers
) -> tuple[Bytes, Bytes]:
    """Voxels of one label as 0 and 1, zero-padded."""
    first, second = (buffers[name] for name in MASKS)
    start = window.first_slice
    for labels, mask in ((reference, first), (prediction, second)):
        box = labels[window.box]
        depth, height, width = box.shape
        mask[:] = 0
        voxels = mask.reshape(window.shape)
        voxels[start : start + depth, :height, :width] = box
        np.equal(mask, label, out=mask.view(np.bool_))
    return first, second


def surfaces_of(
    masks: tuple[Bytes, Bytes], window: Window, buffers: Buffers
) -> SurfacePair:
    """Find the surfels of both masks, which are overwritten.

    Corner (z, y, x) is the one before voxel (z, y, x) on all axes. It is no surfel if
    the four voxels behind it and the four before it all are as that voxel.
    """
    first, second = masks
    is_there = bool(first.view(np.bool_).any()), bool(second.view(np.bool_).any())
    scratch, border = buffers["scratch"], buffers["border"]
    np.multiply(second, 16, out=second)
    fours = np.bitwise_or(first, second, out=first)
    alike = np.multiply(fours, 15, out=second)
    for weight, shift in ((2, 1), (4, window.row)):
        before = np.multiply(fours[:-shift], weight, out=scratch[:-shift])
        fours[shift:] |= before
    np.bitwise_xor(fours, alike, out=border)
    plane = window.plane
    before = np.bitwise_xor(fours[:-plane], alike[plane:], out=scratch[plane:])
    border[plane:] |= before
    return SurfacePair(
        window=window, buffers=buffers, fours=fours, border=border, is_there=is_there
    )


def codes_of_first(before: Bytes, behind: Bytes) -> Bytes:
    """Codes of the first mask, from those of four voxels before and behind corners."""
    low, _ = HALVES
    codes: Bytes = (before & low) * np.uint8(16) | behind & low
    return codes


def codes_of_second(before: Bytes, behind: Bytes) -> Bytes:
    """The same of the second mask."""
    _, high = HALVES
    codes: Bytes = before & high | behind >> np.uint8(4)
    return codes


def is_surfel(codes: Bytes) -> npt.NDArray[np.bool_]:
    """Whether there are voxels inside and outside of the mask."""
    return codes + np.uint8(1) > 1  # code 255 becomes 0


def find_marked(marks: Bytes, window: Window) -> Iterator[Indices]:
    """Indices of the corners that are counted in this window, and not 0, if few.

    So eight corners at a time are looked at first. Yields as many at once as stay in
    the CPU's cache.
    """
    words = marks.view(np.uint64)
    eights = (
        window.inner.start // 8
        + (marks[window.inner].view(np.uint64) != 0).nonzero()[0]
    )
    for start in range(0, eights.size, AT_ONCE):
        some = eights[start : start + AT_ONCE]
        where = (words[some].view(np.uint8) != 0).nonzero()[0]
        yield (some * 8).take(where >> 3) + (where & 7)
