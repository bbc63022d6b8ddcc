"""The tolerance of the NSD: a ball of corners, in which a surfel counts as near.

A surfel of one mask is near to the other mask if that has a surfel at most the
tolerance away; a distance of exactly the tolerance counts. The ball holds the steps, in
corners of the grid, that are no longer than the tolerance. It is a stack of straight
rows along x, and a row is known by its half width. With voxels of 1 mm, these are the
five rows of one slice of the ball of 2 mm::

    y = -2   . . # . .    half width 0
    y = -1   . # # # .    half width 1
    y =  0   # # # # #    half width 2
    y =  1   . # # # .    half width 1
    y =  2   . . # . .    half width 0

The metrics take a tolerance as they get it. A rule for the tolerance of an organ
belongs to `organ_tolerances` of ``flare/evaluation/scoring/case.py``, from which scores
and pages of cases have it; `ball_rows` decides the shape of the ball alone.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flare.evaluation.metrics.arrays import Spacing


class BallRow(NamedTuple):
    """A row of the tolerance ball: corners -half_width to +half_width along x."""

    z: int
    y: int
    half_width: int


Ball = tuple[BallRow, ...]
"""Its rows, the widest and nearest first."""


def ball_rows(spacing: Spacing, tolerance: float, extent: tuple[int, int, int]) -> Ball:
    """Rows of the ball of radius `tolerance`, the widest and nearest first.

    No offset needs to be longer than the `extent` of the surfaces. Organs that are
    wider than the tolerance have one ball, whatever their extents are. Squares are
    added in the order x, y, z, as SciPy's distance transform adds them for the official
    scripts' (x, y, z) arrays, and are products, as there: a power is another function,
    whose last bit may differ. So a distance of exactly the tolerance is decided alike.

    Examples
    --------
    The rows that are drawn above, sorted:

    >>> for row in ball_rows((1.0, 1.0, 1.0), 2.0, extent=(0, 9, 9)):
    ...     print(row)
    BallRow(z=0, y=0, half_width=2)
    BallRow(z=0, y=-1, half_width=1)
    BallRow(z=0, y=1, half_width=1)
    BallRow(z=0, y=-2, half_width=0)
    BallRow(z=0, y=2, half_width=0)
    """
    reach_z, reach_y, reach_x = (
        min(math.floor(tolerance / size) + 1, longest)
        for size, longest in zip(spacing, extent, strict=True)
    )
    return _rows_within(spacing, tolerance, (reach_z, reach_y, reach_x))


@lru_cache(maxsize=256)
def _rows_within(
    spacing: Spacing, tolerance: float, reach: tuple[int, int, int]
) -> Ball:
    """The rows of a ball, as far as it may reach."""
    reach_z, reach_y, reach_x = reach
    z, y = np.ogrid[-reach_z : reach_z + 1, -reach_y : reach_y + 1]
    widths = np.zeros(np.broadcast_shapes(z.shape, y.shape), dtype=np.int64)
    for x in range(reach_x + 1):
        in_plane = np.square(x * spacing[2]) + np.square(y * spacing[1])
        widths += np.sqrt(in_plane + np.square(z * spacing[0])) <= tolerance
    rows = [
        BallRow(
            z=int(row) - reach_z,
            y=int(column) - reach_y,
            half_width=int(widths[row, column]) - 1,
        )
        for row, column in np.argwhere(widths)
    ]
    return tuple(sorted(rows, key=lambda row: -row.half_width))
