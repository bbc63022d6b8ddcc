"""Cuts the box around a label into windows that stay in the CPU's cache.

The margins of a window hold a ball of the tolerance, so that no surfel of it has to be
looked up anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flare.evaluation.metrics.arrays import Bytes, ReusedMemory
from flare.evaluation.metrics.occupancy import Occupancy
from flare.evaluation.metrics.tolerance import Ball

CHUNK_BYTES = 2**20
"""Masks are built in pieces of about this size, to stay in the CPU's cache."""


class Window(NamedTuple):
    """The part of the maps that decides about the surfels of a few corner slices.

    It is looked at in flat buffers: arrays of shape (size,), in the order z, y, x. Rows
    and slices end in zeros there, so that each neighbour, along every axis, is one
    constant shift of the whole buffer.
    """

    box: tuple[slice, slice, slice]
    """Voxels to look at: those of the corners, and those within reach of them."""
    first_slice: int
    """Slice of the buffer where the box begins."""
    shape: tuple[int, int, int]
    """Shape of the buffer: the box and the zeros that end its rows and slices."""
    margin: int
    """Slices at either end of the buffer whose corners are not counted."""
    memory: ReusedMemory
    """The owner of the flat buffers."""

    @property
    def row(self) -> int:
        """From a corner to its neighbour along y, in the flat buffer."""
        return self.shape[2]

    @property
    def plane(self) -> int:
        """From a corner to its neighbour along z."""
        return self.shape[1] * self.shape[2]

    @property
    def size(self) -> int:
        """Length of a flat buffer."""
        return self.shape[0] * self.plane

    def buffer(self, name: str) -> Bytes:
        """A flat buffer with any content, the same for all windows by its name."""
        return self.memory.take(name, self.size)

    @property
    def inner(self) -> slice:
        """The part of the flat buffer whose corners are counted in this window."""
        return slice(self.margin * self.plane, self.size - self.margin * self.plane)


def cut_windows(
    occupancy: Occupancy, ball: Ball, memory: ReusedMemory
) -> Iterator[Window]:
    """Cut the box of a label along z; corner slice z is before voxel z.

    Margins are computed again in the next window. So a window has at least four times
    as many slices as a margin, even if it does not stay in the cache then. Its rows and
    columns are those that its slices need, unless it has all of the label anyway.
    """
    reach_z, reach_y = max(row.z for row in ball), max(row.y for row in ball)
    reach_x = ball[0].half_width
    margin = reach_z + 1
    span_z, *whole_yx = occupancy.box
    height, width = (span.stop - span.start for span in whole_yx)
    step = max(4 * margin, CHUNK_BYTES // max(1, height * width))
    for start in range(span_z.start, span_z.stop + 1, step):
        stop = min(start + step, span_z.stop + 1)
        first, end = start - margin, stop + reach_z
        zs = slice(max(first, 0), min(end, occupancy.depth))
        is_whole = zs.start <= span_z.start and span_z.stop <= zs.stop
        ys, xs = whole_yx if is_whole else occupancy.span_yx(zs)
        if ys.start == ys.stop:
            continue
        row = xs.stop - xs.start + 1 + reach_x
        yield Window(
            box=(zs, ys, xs),
            first_slice=zs.start - first,
            shape=(
                stop - start + 2 * margin,
                ys.stop - ys.start + 1 + reach_y,
                row + -row % 8,  # whole groups of eight
            ),
            margin=margin,
            memory=memory,
        )
