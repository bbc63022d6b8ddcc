"""The corners around a corner, the nearest first: how a near surfel is looked up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flare.evaluation.metrics.arrays import Floats, Indices, Spacing

NEAR = 4096
"""About this many corners around a surfel are looked up."""

MOST_STEPS = 63
"""No more along any axis: where voxels are much thinner on one, the ball is smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """The corners around a corner, the nearest first."""

    offsets: Indices
    """Shape (n, 3): along z, y, x; the first is the corner itself."""
    ranks: Indices
    """The place of the distance of each among `distances`; shape (n,)."""
    distances: Floats
    """In mm, each once, in ascending order; the first is 0."""


@lru_cache(maxsize=64)
def ring_of(spacing: Spacing) -> Ring:
    """About `NEAR` corners around a corner, for a voxel size in mm.

    Examples
    --------
    In slices of thin rows, the neighbours along y are the nearest:

    >>> ring = ring_of((5.0, 0.5, 1.0))
    >>> ring.offsets.tolist()[:4], ring.ranks.tolist()[:4]
    ([[0, 0, 0], [0, -1, 0], [0, 1, 0], [0, -2, 0]], [0, 1, 1, 2])
    """
    radius = float(np.cbrt(NEAR * 3 / (4 * math.pi)) * math.prod(np.cbrt(spacing)))
    radius = min(radius, MOST_STEPS * min(spacing))
    reach = [int(radius / size) for size in spacing]
    axes = np.ogrid[tuple(slice(-length, length + 1) for length in reach)]
    lengths = lengths_of(axes, spacing)
    offsets = np.argwhere(lengths <= radius) - reach
    distances = lengths_of(offsets.T, spacing)
    order = np.argsort(distances, kind="stable")
    steps, ranks = np.unique(distances[order], return_inverse=True)
    return Ring(offsets=offsets[order], ranks=ranks, distances=steps)


def lengths_of(offsets: Iterable[Indices], spacing: Spacing) -> Floats:
    """Lengths in mm of offsets in voxels, which are along z, y, x.

    Squares are added as SciPy adds them for the official scripts' (x, y, z) arrays.
    """
    z, y, x = (np.square(n * mm) for n, mm in zip(offsets, spacing, strict=True))
    lengths: Floats = np.sqrt(x + y + z)
    return lengths
