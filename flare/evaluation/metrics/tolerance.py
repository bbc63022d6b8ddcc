"""The tolerance of the NSD: a ball of corners, in which a surfel counts as near.

A surfel of one mask is near to the other mask if that has a surfel at most the
tolerance away; a distance of exactly the tolerance counts. The ball holds the steps, in
corners of the grid, that are no longer than the tolerance. It is a stack of straight
rows along x, and a row is known by its half width. These are the five rows of one slice
of the ball of 2 mm, with voxels of 1 mm:

>>> ball = ball_rows((1.0, 1.0, 1.0), 2.0, extent=(0, 9, 9))
>>> for _, y, half_width in sorted(ball.tolist()):
...     print(f"y = {y:2}", ("#" * (2 * half_width + 1)).center(5), half_width)
y = -2   #   0
y = -1  ###  1
y =  0 ##### 2
y =  1  ###  1
y =  2   #   0

The metrics take a tolerance as they get it. A rule for the tolerance of an organ
belongs to `organ_tolerances` of ``flare/evaluation/scoring/case.py``, from which scores
and pages of cases have it; `ball_rows` decides the shape of the ball alone. Only the
corner itself is in every ball: both ways of counting begin with it, without a ball.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.metrics.ring import lengths_of

Ball = npt.NDArray[np.int32]
"""Its rows, the widest first: shape (n, 3), of z, y and half width each. A
row has the corners from -half width to +half width along x."""


def ball_rows(spacing: Spacing, tolerance: float, extent: tuple[int, int, int]) -> Ball:
    """Rows of the ball of radius `tolerance`, the widest first.

    No offset needs to be longer than the `extent` of the surfaces. Organs that are
    wider than the tolerance have one ball, whatever their extents are. Lengths are
    SciPy's to the last bit, so a distance of exactly the tolerance is decided as by the
    official scripts.
    """
    reach = (
        min(math.floor(tolerance / size) + 1, longest)
        for size, longest in zip(spacing, extent, strict=True)
    )
    return _rows_within(spacing, tolerance, *reach)


@lru_cache(maxsize=256)
def _rows_within(
    spacing: Spacing, tolerance: float, reach_z: int, reach_y: int, reach_x: int
) -> Ball:
    """The rows of a ball, as far as it may reach."""
    z, y = np.ogrid[-reach_z : reach_z + 1, -reach_y : reach_y + 1]
    widths = np.zeros((2 * reach_z + 1, 2 * reach_y + 1), dtype=np.int64)
    for x in range(reach_x + 1):
        widths += lengths_of((z, y, np.array(x)), spacing) <= tolerance
    places = np.argwhere(widths)
    half_widths = widths[tuple(places.T)] - 1
    rows = np.column_stack((places - (reach_z, reach_y), half_widths))
    ball: Ball = rows[np.argsort(-half_widths, kind="stable")].astype(np.int32)
    ball.setflags(write=False)  # it is used for many organs
    return ball
