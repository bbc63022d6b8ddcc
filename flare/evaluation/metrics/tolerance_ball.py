"""Lists the rows of a ball whose radius is the tolerance of an NSD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flare.evaluation.metrics.arrays import Spacing


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
