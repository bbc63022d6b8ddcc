"""Cuts the box around a label into windows, whose margins hold a ball of the tolerance.

Windows stay in the CPU's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Occupancy, ReusedMemory, Spacing


@dataclass(frozen=True, slots=True, kw_only=True)
class BallRow:
    """A row of the tolerance ball: corners -half_width to +half_width along x."""

    z: int
    y: int
    half_width: int


Ball = tuple[BallRow, ...]
"""Its rows, the widest and nearest first."""


@lru_cache(maxsize=256)
def ball_rows(spacing: Spacing, tolerance: float, extent: tuple[int, int, int]) -> Ball:
    """Rows of the ball of radius `tolerance`, the widest and nearest first.

    No offset needs to be longer than the `extent` of the surfaces. Squares are added
    in the order x, y, z, as SciPy's distance transform adds them for the official
    scripts' (x, y, z) arrays, and are products, as there: a power is another function,
    whose last bit may differ. So a distance of exactly the tolerance is decided alike.
    """
    reach = [
        min(math.floor(tolerance / size) + 1, longest)
        for size, longest in zip(spacing, extent, strict=True)
    ]
    z, y = np.ogrid[-reach[0] : reach[0] + 1, -reach[1] : reach[1] + 1]
    widths = np.zeros(np.broadcast_shapes(z.shape, y.shape), dtype=np.int64)
    for x in range(reach[2] + 1):
        in_plane = np.square(x * spacing[2]) + np.square(y * spacing[1])
        widths += np.sqrt(in_plane + np.square(z * spacing[0])) <= tolerance
    rows = [
        BallRow(
            z=int(z) - reach[0], y=int(y) - reach[1], half_width=int(widths[z, y]) - 1
        )
        for z, y in np.argwhere(widths)
    ]
    return tuple(sorted(rows, key=lambda row: -row.half_width))


CHUNK_BYTES = 2**20
"""Masks are built in pieces of about this size, to stay in the CPU's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
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
    """Where the flat buffers are."""

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
        """Of a flat buffer."""
        return self.shape[0] * self.plane

    def buffer(self, name: str) -> npt.NDArray[np.uint8]:
        """A flat buffer with any content, the same for all windows by its name."""
        return self.memory.take(name, self.size)

    @property
    def inner(self) -> slice:
        """The part of the flat buffer whose corners are counted in this window."""
        return slice(self.margin * self.plane, self.size - self.margin * self.plane)


def windows(occupancy: Occupancy, ball: Ball, memory: ReusedMemory) -> Iterator[Window]:
    """Cut the box of a label along z; corner slice z is before voxel z."""
    reach_z, reach_y = max(row.z for row in ball), max(row.y for row in ball)
    reach_x = ball[0].half_width
    span_z, whole = occupancy.span_z, occupancy.span_yx(slice(None))
    height, width = (span.stop - span.start for span in whole)
    step = max(4 * (reach_z + 1), CHUNK_BYTES // max(1, height * width))
    for start in range(span_z.start, span_z.stop + 1, step):
        stop = min(start + step, span_z.stop + 1)
        zs = slice(max(start - reach_z - 1, 0), min(stop + reach_z, occupancy.depth))
        is_all = zs.start <= span_z.start and span_z.stop <= zs.stop
        ys, xs = whole if is_all else occupancy.span_yx(zs)
        if ys.start == ys.stop:
            continue
        yield Window(
            box=(zs, ys, xs),
            first_slice=zs.start - (start - reach_z - 1),
            shape=(
                stop - start + 2 * (reach_z + 1),
                ys.stop - ys.start + 1 + reach_y,
                -(-(xs.stop - xs.start + 1 + reach_x) // 8) * 8,
            ),
            margin=reach_z + 1,
            memory=memory,
        )
