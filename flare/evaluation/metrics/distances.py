"""Distances from each surfel of one mask of a label to the nearest of the other.

Most surfels of an organ lie where the other mask has one, or a few voxels away: the
corners of the grid around them are looked up, the nearest first. What remains are parts
that one mask alone has; `flare.evaluation.metrics.far_surfels` measures them. So memory
is bounded, whatever a file holds; and so is the work for a corner, which may look at
each slice once, but never at all surfels.

Nothing is approximated. Surfels, their areas, and their places on the corners of the
grid are those of the NSD.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flare.evaluation.metrics.arrays import Counts, Indices
from flare.evaluation.metrics.far_surfels import FarSurfels
from flare.evaluation.metrics.marks import (
    BOTH,
    FAR,
    SURFEL,
    Marks,
    PlacedSurfels,
    select,
)
from flare.evaluation.metrics.pairs import LabelPair
from flare.evaluation.metrics.ring import ring_of
from flare.evaluation.metrics.sides import Measured, Side, Sides, side_of
from flare.evaluation.metrics.surfaces import PREDICTION, REFERENCE, SurfacePair
from flare.evaluation.metrics.surfels import surfel_areas

LOOK_UPS = 2**22
"""At most this many places are looked up for a window: four for each of its corners."""

VAIN = 100
"""If fewer than one surfel of this many finds another, the look-up ends. It does so
only where surfels are too many to be remembered: among equal distances, the tree and
the planes may choose one whose last bit differs."""

AT_ONCE = 2**14
"""How many places are looked up together: calls of NumPy take a while."""

FEW = 2**14
"""At most this many surfels are looked for in a tree."""

TREE = 2**20
"""At most this many surfels are put into a tree."""


class DistanceFinder:
    """Finds the distances of both surfaces of a label, which are added in windows.

    The memory of the pair is overwritten.
    """

    def __init__(self, pair: LabelPair) -> None:
        self._areas = surfel_areas(pair.spacing)
        self._ring = ring_of(pair.spacing, pair.occupancy.extent)
        self._marks = Marks(pair, self._ring.reach)
        self._shifts = self._marks.shifts(self._ring.offsets)

    def add(self, surfaces: SurfacePair) -> None:
        """Take note of the surfels of a window."""
        self._marks.add(surfaces)

    def finish(self) -> Sides:
        """The distances of both surfaces, after the last window."""
        self._marks.finish()
        reference = self._measure(REFERENCE, PREDICTION)
        return reference, self._measure(PREDICTION, REFERENCE)

    def _measure(self, side: int, other_side: int) -> Side:
        """The distances of the surfels of one mask to those of the other.

        Near surfels are counted by a key: 256 times the rank of the distance, plus the
        code. So a million surfels are a few thousand numbers.
        """
        counts = np.zeros(256, dtype=np.int64)
        far: list[PlacedSurfels] = []
        far_number = 0
        for surfels, marks in self._marks.surfels(side):
            shared_codes = surfels.codes.compress(marks == BOTH)
            counts = _add_counts(counts, np.bincount(shared_codes))
            # The mask has no name: a name would keep its memory through the loop.
            unshared = select(surfels, marks == SURFEL[side])
            keys, far_surfels = self._look_up(unshared, other_side)
            counts = _add_counts(counts, np.bincount(keys))
            self._marks.flat[far_surfels.places] |= FAR[side]
            far_number += far_surfels.places.size
            if far_number <= FEW:
                far.append(far_surfels)
        measured: Iterable[Measured] = ()
        is_tree_too_large = self._marks.totals[other_side].sum() > TREE
        if far_number > FEW or (far_number and is_tree_too_large):
            measured = FarSurfels(self._marks, side, other_side).by_planes()
        elif far_number:
            measured = FarSurfels(self._marks, side, other_side).by_tree(far)
        keys = counts.nonzero()[0]
        codes = (keys & 255).astype(np.uint8)
        near = Measured(self._ring.distances[keys >> 8], codes)
        totals = self._marks.totals[side]
        return side_of(near, counts[keys], measured, self._areas, totals)

    def _look_up(
        self, surfels: PlacedSurfels, other_side: int
    ) -> tuple[Indices, PlacedSurfels]:
        """Look up the corners around surfels, until one is a surfel of the other mask.

        Corners are looked up in the order of their distance, for as many surfels at
        once as are left; those that have found one leave. The search is given up where
        it has cost more than the distances of all corners, or is in vain.

        Returns the keys of those that are near, and the surfels that are far.
        """
        mark = SURFEL[other_side]
        start, look_ups = 0, 0
        keys = [np.zeros(0, dtype=np.intp)]
        while surfels.places.size and start < len(self._shifts) and look_ups < LOOK_UPS:
            number = surfels.places.size
            stop = start + max(1, AT_ONCE // number)
            shifts = self._shifts[start:stop, np.newaxis]
            marks = self._marks.flat.take(surfels.places + shifts)
            look_ups += marks.size
            is_near = (np.bitwise_or.reduce(marks, axis=0) & mark) != 0
            nearest = (marks.compress(is_near, axis=1) & mark).argmax(axis=0)
            ranks = self._ring.ranks.take(nearest + start)
            keys.append(ranks * 256 + surfels.codes.compress(is_near))
            surfels = select(surfels, ~is_near)
            start = stop
            near_number = number - surfels.places.size
            if not self._marks.are_remembered and near_number * VAIN < number:
                break
        return np.concatenate(keys), surfels


def _add_counts(counts: Counts, more_counts: Counts) -> Counts:
    """The sum of two arrays of numbers, one of which may be shorter."""
    short, long = sorted((counts, more_counts), key=len)
    long[: short.size] += short
    return long
