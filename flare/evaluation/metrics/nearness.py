"""Decides which surfels of one mask have one of the other mask within the tolerance.

The surface of a mask, widened by a ball whose radius is the tolerance, either covers a
surfel of the other mask or does not. A ball is a stack of straight rows, so widening is
a few shifted ORs; if only a few surfels are in question, the rows around each of them
are looked up instead.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from flare.evaluation.metrics.arrays import Bytes, Indices
from flare.evaluation.metrics.surfaces import HALVES, SurfacePair
from flare.evaluation.metrics.tolerance import Ball
from flare.evaluation.metrics.windows import Window

AT_ONCE = 2**13
"""How many places are looked up together: calls of NumPy take a while."""

LOOK_UP = 64
"""Looking up a place takes as long as marking this many corners that lie in a row."""


class Nearness:
    """The corners within the tolerance of both surfaces of a window."""

    def __init__(self, surfaces: SurfacePair, ball: Ball) -> None:
        self._surfaces, self._ball = surfaces, ball
        self._shifts = _shifts_by_level(ball, surfaces.window)
        self._reach_y = max(row.y for row in ball)
        self._widened = [surfaces.surfels]
        self._rows_by_side: dict[int, slice] = {}

    def find_beyond(self, corners: Indices, side: int) -> Indices:
        """The corners that have no surfel of the mask `side` near.

        Corners are indices of flat buffers, of shape (n,). Most surfels of an organ
        find one of the other mask in one of the first rows of the ball, the widest and
        nearest, and leave. A prediction may be made so that they do not. So once as
        many places as the window has were looked up, it is asked again and again
        whether marking all that is near is less work for those that remain.
        """
        if not self._surfaces.has_voxels[side] or not corners.size:
            return corners
        self._widen()
        looked_up = 0
        for level, shifts in self._shifts.items():
            start = 0
            while start < len(shifts) and corners.size:
                is_late = looked_up > self._surfaces.window.size
                if is_late and self._is_marking_quicker(corners, side):
                    return corners.compress(self.mark_near(side)[corners] == 0)
                stop = start + max(1, AT_ONCE // corners.size)
                near = self._look_up(level, shifts[start:stop], corners)
                looked_up += corners.size * (stop - start)
                corners = corners.compress(near & HALVES[side] == 0)
                start = stop
        return corners

    def _look_up(self, level: int, shifts: Indices, corners: Indices) -> Bytes:
        """All surfels at some shifts from each corner: bits of both, of shape (n,)."""
        widened = self._widened[level]
        if shifts.size == 1:
            near: Bytes = widened[corners + shifts[0]]
        else:
            near = np.bitwise_or.reduce(widened[corners + shifts[:, np.newaxis]])
        return near

    def _is_marking_quicker(self, corners: Indices, side: int) -> bool:
        """Whether to mark all that is near to a mask is less than to look up."""
        rows, window = self._rows_near(side), self._surfaces.window
        slices = window.shape[0] - 2 * window.margin
        marked: int = slices * (rows.stop - rows.start) * window.row
        return corners.size * LOOK_UP > marked

    def mark_near(self, side: int) -> Bytes:
        """A flat buffer: 1 at each corner that has a surfel of the mask `side` near.

        The surfels are moved to each row of the ball, widened as the row is, and all
        put together. Only rows of the window within reach of such surfels are looked
        at: of a mask that fills everything, an organ is near to a few.
        """
        window = self._surfaces.window
        near, rows_near = window.buffer("near"), self._rows_near(side)
        near[:] = 0
        self._widen()
        inner = window.inner
        shape = (-1, *window.shape[1:])
        target = near[inner].reshape(shape)[:, rows_near]
        for half_width, rows in groupby(self._ball, key=lambda row: row.half_width):
            widened = self._widened_by(half_width)
            for row in rows:
                shift = row.z * window.plane + row.y * window.row
                moved = widened[inner.start + shift : inner.stop + shift]
                target |= moved.reshape(shape)[:, rows_near]
        near &= HALVES[side]
        np.not_equal(near, 0, out=near.view(np.bool_))
        return near

    def _widened_by(self, half_width: int) -> Bytes:
        """The surfels as a flat buffer, widened along x to either side."""
        level, offset = _level_of(half_width)
        widened = self._widened[level]
        if not offset:
            return widened
        wider = self._surfaces.window.buffer("scratch")
        np.bitwise_or(
            widened[: -2 * offset], widened[2 * offset :], out=wider[offset:-offset]
        )
        return wider

    def _rows_near(self, side: int) -> slice:
        """Rows of each slice outside which no surfel of the mask `side` is near."""
        if side not in self._rows_by_side:
            window = self._surfaces.window
            surfels = window.buffer("scratch")
            np.bitwise_and(self._surfaces.surfels, HALVES[side], out=surfels)
            words = surfels.view(np.uint64).reshape(*window.shape[:2], -1)
            rows = np.flatnonzero(np.bitwise_or.reduce(words, axis=0).any(axis=1))
            rows_near = slice(0, 0)
            if rows.size:
                start, stop = int(rows[0]) - self._reach_y, int(rows[-1]) + 1
                rows_near = slice(max(start, 0), stop + self._reach_y)
            self._rows_by_side[side] = rows_near
        return self._rows_by_side[side]

    def _widen(self) -> None:
        """Widen the surfels along x by 0, 1, 2, 4, 8, ... corners to either side."""
        for level in range(len(self._widened), max(self._shifts) + 1):
            step = max(1, 1 << level >> 2)
            wider = self._surfaces.window.buffer(f"widened {level}")
            # No shift reaches its ends: they are in the margin.
            wider[:step] = wider[-step:] = 0
            last = self._widened[-1]
            np.bitwise_or(last[: -2 * step], last[2 * step :], out=wider[step:-step])
            if level == 1:  # from level 2 on, the two halves meet
                wider |= last
            self._widened.append(wider)


def _level_of(half_width: int) -> tuple[int, int]:
    """The level of widening to look up for a row of the ball, and how far from it.

    Levels are widened by 0, 1, 2, 4, 8, ... corners. A row that reaches 5 corners to
    either side is seen in level 3, widened by 4, one corner off its middle either way:

    >>> [_level_of(half_width) for half_width in (0, 1, 2, 3, 5)]
    [(0, 0), (1, 0), (2, 0), (2, 1), (3, 1)]
    """
    level = half_width.bit_length()
    return level, half_width - (1 << level >> 1)


def _shifts_by_level(ball: Ball, window: Window) -> dict[int, Indices]:
    """All that has to be looked up to know what the ball around a corner holds.

    For each level, which is an index of what was widened, shifts of the flat buffer,
    the widest level first. What was widened as much as the row is wide, or a little
    less, shows all of the row if it is looked up near both of the row's ends.
    """
    shifts: dict[int, list[int]] = {}
    for row in ball:
        level, offset = _level_of(row.half_width)
        middle = row.z * window.plane + row.y * window.row
        for end in {-offset, offset}:
            shifts.setdefault(level, []).append(middle + end)
    return {level: np.array(values, dtype=np.intp) for level, values in shifts.items()}
