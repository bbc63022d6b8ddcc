"""Distances from each surfel of one mask of an organ to the nearest of the other.

Most surfels of an organ lie where the other mask has one, or a few voxels away: they
are counted by distance, see `flare.evaluation.metrics.ring`. What remains are parts
that one mask alone has; `flare.evaluation.metrics.far_surfels` measures them. A surface
may have more surfels than memory is for. Then distances that are too small to decide
the 95th percentile are left out, and only their sums are remembered. So memory and work
are bounded, whatever a file holds.

Nothing is approximated. Surfels, their areas, and their places on the corners of the
grid are those of the NSD.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flare.evaluation.metrics.arrays import Floats
from flare.evaluation.metrics.far_surfels import Measured, by_planes, by_tree
from flare.evaluation.metrics.ring import ring_of
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.tally import LabelPair, Near

FEW = 2**14
"""At most this many surfels are looked for in a tree."""

TREE = 2**20
"""At most this many surfels are put into a tree."""

KEPT = 2**20
"""At most this many distances are remembered, and their areas summed one by one."""

BINS = 2**12
"""The number of bins that distances are put into, to find the farthest ones."""

FARTHEST = 0.05
"""The part of a surface that lies beyond its 95th percentile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The distances of the surfels of one mask to the nearest of the other."""

    distances: Floats
    """In mm, the smallest first; shape (n,)."""
    areas: Floats
    """The areas of the surfels at these distances, in mm2; shape (n,)."""
    area: float
    """The area of the whole surface."""
    left_out: float = 0.0
    """The area of surfels that are not among these, as all of them are nearer."""
    moment: float = 0.0
    """The sum of the distances times areas of those that are left out."""

    def within(self, share: float) -> float:
        """The smallest distance within which a share of the surface is, 0.95 or more.

        Sums are made in the order of ``compute_robust_hausdorff`` of surface-distance.
        """
        shares = (self.left_out + np.cumsum(self.areas)) / self.area
        place = int(np.searchsorted(shares, share))
        return float(self.distances[min(place, len(shares) - 1)])

    @property
    def sum(self) -> float:
        """All distances times their areas, in mm3."""
        return self.moment + float(np.sum(self.distances * self.areas))


Sides = tuple[Side, Side]
"""From the reference to the prediction, and back."""


def sides_of(pair: LabelPair) -> Sides:
    """The distances of both surfaces of an organ, neither of which is empty."""
    first, second = pair.near(room=FEW)
    return _side(pair, 0, first, second), _side(pair, 1, second, first)


def _side(pair: LabelPair, side: int, near: Near, targets: Near) -> Side:
    """The distances of the surfels of one mask to those of the other, sorted.

    Each surfel has an entry of its own, as in the official package, whose sums depend
    on their order; only a surface of more than `KEPT` has one entry for equal surfels.
    """
    counts, far = near.counts[:-1], _far(pair, side, near, targets)
    if far is None:
        # Slices measure all surfels, the near ones, too.
        counts, far = np.zeros_like(counts), by_planes(pair, side)
    area_of_code, numbers = surfel_areas(pair.spacing), near.counts.sum(axis=0)
    area = math.fsum(numbers * area_of_code)
    farthest = Farthest(area)
    for surfels in far:
        farthest.add(surfels.distances, area_of_code.take(surfels.codes))
    # Complex numbers are sorted by both of their parts: by distance, then by area.
    far_distances, far_areas = farthest.all()
    far_pairs = np.sort(far_distances + 1j * far_areas)
    ranks, codes = counts.nonzero()
    near_pairs = ring_of(pair.spacing).distances[ranks] + 1j * area_of_code[codes]
    order = np.argsort(near_pairs)
    near_pairs, near_sizes = near_pairs[order], counts[ranks, codes][order]
    places = np.searchsorted(far_pairs, near_pairs)
    pairs = np.insert(far_pairs, places, near_pairs)
    sizes = np.insert(np.ones(far_pairs.size, dtype=np.int64), places, near_sizes)
    distances, areas = pairs.real, pairs.imag
    if numbers.sum() > KEPT:
        areas = areas * sizes
    else:
        distances, areas = distances.repeat(sizes), areas.repeat(sizes)
        area = float(np.sum(areas))
    return Side(
        distances=distances,
        areas=areas,
        area=area,
        left_out=farthest.left_out,
        moment=farthest.moment,
    )


def _far(
    pair: LabelPair, side: int, near: Near, targets: Near
) -> Iterable[Measured] | None:
    """The surfels of one mask that are not near; None if slices have to measure all."""
    number = near.counts[-1].sum()
    if number == 0:
        return ()
    is_small = number <= FEW and targets.counts.sum() <= TREE
    return by_tree(pair, side, near.far) if is_small else None


class Farthest:
    """The distances of a surface of some mm2, of which the smallest are left out."""

    def __init__(self, area: float) -> None:
        self._decisive_area = area * FARTHEST * (1 + 1e-9)
        self._least = 0.0
        self._parts = [(np.zeros(0), np.zeros(0))]
        self._number, self._limit = 0, KEPT
        self.left_out = self.moment = 0.0

    def add(self, distances: Floats, areas: Floats) -> None:
        """Remember the distances and areas of surfels: shape (n,)."""
        self._add(distances, areas)
        if self._number > self._limit:
            self._cut()
            self._limit = max(KEPT, 2 * self._number)

    def all(self) -> tuple[Floats, Floats]:
        """The distances and areas that are not left out."""
        if self._number > KEPT:
            self._cut()
        return self._concatenate()

    def _add(self, distances: Floats, areas: Floats) -> None:
        """Remember those that may decide the percentile; of the others, the sums."""
        is_large = distances >= self._least
        small = np.where(is_large, 0.0, areas)
        self.left_out += float(np.sum(small))
        self.moment += float(np.sum(small * distances))
        self._parts.append((distances[is_large], areas[is_large]))
        self._number += int(np.count_nonzero(is_large))

    def _concatenate(self) -> tuple[Floats, Floats]:
        distances, areas = zip(*self._parts, strict=True)
        return np.concatenate(distances), np.concatenate(areas)

    def _cut(self) -> None:
        """Raise the least distance that decides, and forget what is below it.

        The farthest surfels, from the last bin down, are those that just have the
        decisive area. As long as all of them have less, nearer ones still to come may
        decide, too. The least is right to a four-thousandth of the largest distance.
        """
        distances, areas = self._concatenate()
        self._parts, self._number = [], 0
        bins = (distances * (BINS / (distances.max() or 1.0))).astype(np.intp)
        area_beyond = np.cumsum(np.bincount(bins, weights=areas)[::-1])
        if area_beyond[-1] >= self._decisive_area:
            place = int(np.searchsorted(area_beyond, self._decisive_area))
            is_decisive = bins >= area_beyond.size - 1 - place
            self._least = max(self._least, float(distances[is_decisive].min()))
        self._add(distances, areas)
