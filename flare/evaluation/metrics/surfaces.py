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

from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.metrics.windows import Ball, Buffers, Window

Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]

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


def find_marked(marks: Bytes, window: Window) -> Indices:
    """Indices of the corners that are counted in this window, and not 0."""
    words = marks[window.inner].view(np.uint64)
    eights = (words != 0).nonzero()[0]
    where = (words[eights].view(np.uint8) != 0).nonzero()[0]
    found: Indices = (eights * 8 + window.inner.start).take(where >> 3) + (where & 7)
    return found


AT_ONCE = 2**13
"""So many places are looked up together: calls of NumPy take a while."""

LOOK_UP = 64
"""Looking up a place takes as long as marking so many corners that lie in a row."""


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

        Surfels of an organ find one after a few rows of the ball. Where as many places
        as the window has were looked up, and not in vain, it is weighed whether the
        rest is quicker found by marking all that is near.
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
        """1 at each corner that has a surfel of mask `other` near.

        Only rows within reach of such surfels are looked at: of a mask that fills
        everything, an organ is near to a few.
        """
        pair, window = self._pair, self._pair.window
        near, within = pair.buffers["near"], self._rows_near(other)
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
        """The borders, widened along x to either side."""
        level, rest = _level_of(half_width)
        widened = self._widened[level]
        if not rest:
            return widened
        wide = self._pair.buffers["scratch"]
        np.bitwise_or(widened[: -2 * rest], widened[2 * rest :], out=wide[rest:-rest])
        return wide

    def _rows_near(self, other: int) -> slice:
        """Rows of each slice outside which no surfel of mask `other` is near."""
        if other not in self._rows:
            pair, window = self._pair, self._pair.window
            scratch = pair.buffers["scratch"]
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
            wider = self._pair.buffers[f"widened {level}"]
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
