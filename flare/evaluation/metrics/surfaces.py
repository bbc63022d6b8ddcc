"""Finds the surfels of both masks of a label at once, and which are near to others.

Codes of eight voxels need a byte for each mask, but those of the four voxels that a
corner has in one slice need only half of one. So a pass over the bytes of a window is
one for both masks, and the codes of eight are put together where there are surfels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.finder import Ball, Labels, Window

Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]

HALVES = np.uint8(0x0F), np.uint8(0xF0)
"""The bits of a byte that are about the first mask, and about the second."""

AT_ONCE = 2**13
"""So many places are looked up together: calls of NumPy take a while."""

LOOK_UP = 64
"""Looking up a place takes as long as marking so many corners that lie in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfacePair:
    """The surfaces of the two masks of a label in one window, in flat buffers."""

    window: Window
    fours: Bytes
    """Which of the four voxels behind each corner, along z, belong to each mask."""
    border: Bytes
    """In each mask's half: not 0 where a corner is a surfel of it."""
    is_there: tuple[bool, bool]
    """Whether the masks have any voxel in this window."""

    def codes_at(self, where: Indices) -> tuple[Bytes, Bytes]:
        """Which of the eight voxels around each corner of `where` each mask has.

        All are of shape (n,); corners are indices of the flat buffers.
        """
        before, behind = self.fours[where - self.window.plane], self.fours[where]
        return codes_of(before, behind, 0), codes_of(before, behind, 1)

    def codes_in(self, part: slice, own: int) -> Bytes:
        """Those of mask `own`, 0 or 1, at all corners of a part of the flat buffers."""
        plane = self.window.plane
        before = self.fours[part.start - plane : part.stop - plane]
        return codes_of(before, self.fours[part], own)


def codes_of(before: Bytes, behind: Bytes, own: int) -> Bytes:
    """Codes of mask `own`, from `fours` before corners and behind; shape (n,)."""
    half = HALVES[own]
    if own:
        return before & half | behind >> np.uint8(4)
    return (before & half) * np.uint8(16) | behind & half  # NumPy shifts more slowly


def masks_of(
    reference: Labels, prediction: Labels, label: int, window: Window
) -> tuple[Bytes, Bytes]:
    """Voxels of one label in a window.

    Parameters
    ----------
    reference, prediction : ndarray of uint8, shape (Z, Y, X)
        Label maps on the same grid. Never modified.
    label : int
        From 1 to 255.
    window : Window
        Where they are looked at.

    Returns
    -------
    pair of ndarray of uint8, shape (window.size,)
        Flat buffers of reference and prediction: 1 where the label is, else 0.
    """
    first, second = window.buffer("first"), window.buffer("second")
    start = window.first_slice
    for labels, mask in ((reference, first), (prediction, second)):
        box = labels[window.box]
        depth, height, width = box.shape
        mask[:] = 0
        voxels = mask.reshape(window.shape)
        voxels[start : start + depth, :height, :width] = box
        np.equal(mask, label, out=mask.view(np.bool_))
    return first, second


def surfaces_of(masks: tuple[Bytes, Bytes], window: Window) -> SurfacePair:
    """Find the surfels of both masks, flat buffers that are overwritten.

    Corner (z, y, x) is the one before voxel (z, y, x) on all axes. It is no surfel if
    the four voxels behind it and the four before it all are as that voxel.
    """
    first, second = masks
    is_there = bool(first.view(np.bool_).any()), bool(second.view(np.bool_).any())
    scratch, border = window.buffer("scratch"), window.buffer("border")
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
    return SurfacePair(window=window, fours=fours, border=border, is_there=is_there)


def is_surfel(codes: Bytes) -> npt.NDArray[np.bool_]:
    """Whether there are voxels inside and outside of the mask; of the codes' shape."""
    return codes + np.uint8(1) > 1  # code 255 becomes 0


def find_marked(marks: Bytes, window: Window) -> Indices:
    """The corners that are counted in this window, and not 0 in a flat buffer.

    Of shape (n,): indices of flat buffers, in their order.
    """
    words = marks[window.inner].view(np.uint64)
    eights = (words != 0).nonzero()[0]
    where = (words[eights].view(np.uint8) != 0).nonzero()[0]
    found: Indices = (eights * 8 + window.inner.start).take(where >> 3) + (where & 7)
    return found


class Nearness:
    """What is within the tolerance of both surfaces of a window.

    Parameters
    ----------
    pair : SurfacePair
        The surfaces.
    ball : tuple of BallRow
        All that is within the tolerance of a corner.
    """

    def __init__(self, pair: SurfacePair, ball: Ball) -> None:
        self._pair, self._ball = pair, ball
        self._shifts = _shifts_of(ball, pair.window)
        self._reach_y = max(row.y for row in ball)
        self._widened = [pair.border]
        self._rows: dict[int, slice] = {}

    def find_beyond(self, where: Indices, other: int) -> Indices:
        """Which of the corners `where` have no surfel of mask `other` near.

        Corners are indices of flat buffers, of shape (n,). Surfels of an organ find one
        after a few rows of the ball. Where as many places as the window has were looked
        up, and not in vain, it is weighed whether the rest is quicker found by marking
        all that is near.
        """
        if not self._pair.is_there[other] or not where.size:
            return where
        self._widen()
        half, looked_up = HALVES[other], 0
        for level, shifts in self._shifts.items():
            border, start = self._widened[level], 0
            while start < len(shifts) and where.size:
                if looked_up > self._pair.window.size and self._is_crowd(where, other):
                    return where.compress(self.mark_near(other)[where] == 0)
                stop = start + max(1, AT_ONCE // where.size)
                if stop - start == 1:
                    near = border[where + shifts[start]]
                else:
                    places = where + shifts[start:stop, np.newaxis]
                    near = np.bitwise_or.reduce(border[places])
                looked_up += where.size * (stop - start)
                where = where.compress(near & half == 0)
                start = stop
        return where

    def _is_crowd(self, where: Indices, other: int) -> bool:
        """Whether marking all that is near to mask `other` is less than to look up."""
        rows, window = self._rows_near(other), self._pair.window
        slices = window.shape[0] - 2 * window.margin
        marked: int = slices * (rows.stop - rows.start) * window.row
        return where.size * LOOK_UP > marked

    def mark_near(self, other: int) -> Bytes:
        """A flat buffer: 1 at each corner that has a surfel of mask `other` near.

        Only rows within reach of such surfels are looked at: of a mask that fills
        everything, an organ is near to a few.
        """
        window = self._pair.window
        near, within = window.buffer("near"), self._rows_near(other)
        near[:] = 0
        self._widen()
        inner = window.inner
        shape = (-1, *window.shape[1:])
        target = near[inner].reshape(shape)[:, within]
        for half_width, rows in groupby(self._ball, key=lambda row: row.half_width):
            wide = self._wide(half_width)
            for row in rows:
                shift = row.z * window.plane + row.y * window.row
                moved = wide[inner.start + shift : inner.stop + shift]
                target |= moved.reshape(shape)[:, within]
        near &= HALVES[other]
        np.not_equal(near, 0, out=near.view(np.bool_))
        return near

    def _wide(self, half_width: int) -> Bytes:
        """The borders as a flat buffer, widened along x to either side."""
        level, rest = _level_of(half_width)
        widened = self._widened[level]
        if not rest:
            return widened
        wide = self._pair.window.buffer("scratch")
        np.bitwise_or(widened[: -2 * rest], widened[2 * rest :], out=wide[rest:-rest])
        return wide

    def _rows_near(self, other: int) -> slice:
        """Rows of each slice outside which no surfel of mask `other` is near."""
        if other not in self._rows:
            pair, window = self._pair, self._pair.window
            scratch = window.buffer("scratch")
            np.bitwise_and(pair.border, HALVES[other], out=scratch)
            eights = scratch.view(np.uint64).reshape(*window.shape[:2], -1)
            rows = np.flatnonzero(np.bitwise_or.reduce(eights, axis=0).any(axis=1))
            reached = slice(0, 0)
            if rows.size:
                start, stop = int(rows[0]) - self._reach_y, int(rows[-1]) + 1
                reached = slice(max(start, 0), stop + self._reach_y)
            self._rows[other] = reached
        return self._rows[other]

    def _widen(self) -> None:
        """Widen the borders along x by 0, 1, 2, 4, 8, ... corners to either side."""
        for level in range(len(self._widened), max(self._shifts) + 1):
            step = max(1, 1 << level >> 2)
            wider = self._pair.window.buffer(f"widened {level}")
            # No probe sees its ends: they are in the margin.
            wider[:step] = wider[-step:] = 0
            last = self._widened[-1]
            np.bitwise_or(last[: -2 * step], last[2 * step :], out=wider[step:-step])
            if level == 1:  # from level 2 on, the two halves meet
                wider |= last
            self._widened.append(wider)


def _level_of(half_width: int) -> tuple[int, int]:
    """Which widened border to look up for a row of the ball, and how far from it."""
    level = half_width.bit_length()
    return level, half_width - (1 << level >> 1)


def _shifts_of(ball: Ball, window: Window) -> dict[int, Indices]:
    """All that has to be looked up to know what the ball around a corner holds.

    For each level, which is an index of what was widened, shifts of the flat buffer,
    the widest level first. The widest border that is not wider than a row of the ball
    shows all of it, if it is looked up at both of the row's ends.
    """
    shifts: dict[int, list[int]] = {}
    for row in ball:
        level, rest = _level_of(row.half_width)
        middle = row.z * window.plane + row.y * window.row
        shifts.setdefault(level, []).extend(middle + x for x in {-rest, rest})
    return {level: np.array(found, dtype=np.intp) for level, found in shifts.items()}
