"""Distances from each surfel of one mask of an organ to the nearest of the other.

Most surfels of an organ lie where the other mask has one, or a few voxels away: they
are counted by distance, see `flare.evaluation.metrics.ring`. What remains are parts
that one mask alone has; `flare.evaluation.metrics.far_surfels` measures them. So memory
and work are bounded, whatever a file holds.

Nothing is approximated. Surfels, their areas, and their places on the corners of the
grid are those of the NSD.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flare.evaluation.metrics.far_surfels import by_planes, by_tree
from flare.evaluation.metrics.ring import ring_of
from flare.evaluation.metrics.sides import Measured, Side, Sides, side_of
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.tally import LabelPair, Near

FEW = 2**14
"""At most this many surfels are looked for in a tree."""

TREE = 2**20
"""At most this many surfels are put into a tree."""


def sides_of(pair: LabelPair) -> Sides:
    """The distances of both surfaces of an organ, neither of which is empty."""
    first, second = pair.near(room=FEW)
    return _side(pair, 0, first, second), _side(pair, 1, second, first)


def _side(pair: LabelPair, side: int, near: Near, targets: Near) -> Side:
    """The distances of the surfels of one mask to those of the other."""
    areas, totals = surfel_areas(pair.spacing), near.counts.sum(axis=0)
    far_number = near.counts[-1].sum()
    far: Iterable[Measured] | None = () if far_number == 0 else None
    if 0 < far_number <= FEW and targets.counts.sum() <= TREE:
        far = by_tree(pair, side, near.far)
    counts = near.counts[:-1]
    if far is None:
        far, counts = by_planes(pair, side), np.zeros_like(counts)
    ranks, codes = counts.nonzero()
    measured = Measured(ring_of(pair.spacing).distances[ranks], codes.astype(np.uint8))
    return side_of(measured, counts[ranks, codes], far, areas, totals)
