"""Distances from each surfel of one mask of a label to the nearest of the other.

Most surfels of an organ lie where the other mask has one, or a few voxels away: the
corners of the grid around them are looked up, the nearest first. What is left are parts
that one mask alone has. A few of those surfels are looked for in a tree; if they are
many, distances within each slice are computed first, and then those along z, some rows
at a time. So work and memory are bounded, whatever a file holds.

Nothing is approximated. Surfels, their areas, and their places on the corners of the
grid are those of the NSD.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.finder import (
    BallRow,
    Labels,
    Occupancy,
    ReusedMemory,
    Spacing,
    windows,
)
from flare.evaluation.metrics.surfaces import (
    Bytes,
    Indices,
    SurfacePair,
    find_marked,
    is_surfel,
    masks_of,
    surfaces_of,
)
from flare.evaluation.metrics.surfels import surfel_areas

NEAR = 4096
"""About so many corners around a surfel are looked up,"""

LOOK_UPS = 2**22
"""and at most so many for all surfels of a window, four for each of its corners."""

AT_ONCE = 2**14
"""So many places are looked up together: calls of NumPy take a while."""

FEW, TREE = 2**14, 2**20
"""At most so many surfels are looked for in a tree, which has at most so many."""

KEPT = 2**20
"""At most so many surfels are remembered, and their areas summed one by one."""

PLANE_BYTES = 2**26
"""Of distances within slices that are known at once."""

DENSE = 4
"""If more than one corner of so many is looked for, all of a slice are computed."""

FARTHEST = 0.05
"""The part of a surface that lies beyond its 95th percentile."""

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]
_Found = tuple[Indices, Bytes]
"""Places of surfels, and their codes; of shape (n,)."""

_HERE = (BallRow(z=0, y=0, half_width=0),)

_SURFEL = np.uint8(1), np.uint8(2)
"""Marks of a corner: it is a surfel of this mask,"""

_FAR = np.uint8(4), np.uint8(8)
"""and one that is far from the other's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The distances of the surfels of one mask to the nearest of the other."""

    distances: _Floats
    """In mm, the smallest first; shape (n,)."""
    areas: _Floats
    """Of the surfels at these distances, in mm2; shape (n,)."""
    area: float
    """Of the whole surface."""
    left_out: float = 0.0
    """The area of surfels that are not among these, as all of them are nearer,"""
    moment: float = 0.0
    """and the sum of their distances times areas."""

    def within(self, share: float) -> float:
        """The smallest distance within which a share of the surface is, 0.95 or more.

        Sums are made in the order of ``compute_robust_hausdorff`` of surface-distance.
        """
        reached = (self.left_out + np.cumsum(self.areas)) / self.area
        place = int(np.searchsorted(reached, share))
        return float(self.distances[min(place, len(reached) - 1)])

    @property
    def sum(self) -> float:
        """All distances times their areas, in mm3."""
        return self.moment + float(np.sum(self.distances * self.areas))


Sides = tuple[Side, Side]
"""From the reference to the prediction, and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """The corners around a corner, the nearest first."""

    offsets: Indices
    """Shape (n, 3): along z, y, x."""
    ranks: Indices
    """Which of the distances each has; shape (n,)."""
    distances: _Floats
    """In mm; the first is 0, which no other corner has."""


@lru_cache(maxsize=256)
def ring_of(spacing: Spacing, extent: tuple[int, int, int]) -> Ring:
    """About `NEAR` corners around a corner, no farther than an extent in voxels."""
    radius = float(np.cbrt(NEAR * 3 / (4 * math.pi)) * math.prod(np.cbrt(spacing)))
    reach = [
        min(int(radius / size), longest)
        for size, longest in zip(spacing, extent, strict=True)
    ]
    axes = np.ogrid[tuple(slice(-length, length + 1) for length in reach)]
    distances = _length(spacing, axes)
    offsets = np.argwhere((distances <= radius) & (distances > 0)) - reach
    found = _length(spacing, offsets.T)
    order = np.argsort(found, kind="stable")
    known, ranks = np.unique([0.0, *found[order]], return_inverse=True)
    return Ring(offsets=offsets[order], ranks=ranks[1:], distances=known)


def _length(spacing: Spacing, offsets: Iterable[Indices]) -> _Floats:
    """Of offsets in voxels, in mm.

    Squares are added as SciPy adds them for the official scripts' (x, y, z) arrays.
    """
    z, y, x = (np.square(n * mm) for n, mm in zip(offsets, spacing, strict=True))
    length: _Floats = np.sqrt(x + y + z)
    return length


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """The surfels of a window."""

    places: Indices
    """Where they are among the marks; shape (n,)."""
    marks: Bytes
    """Of which mask they are."""
    codes: tuple[Bytes, Bytes]
    """Of both masks."""


class Surfels:
    """The surfels of a label in both masks, which are added window by window.

    They are marked in one flat array of the corners of the label's box, where rows and
    slices end in zeros: so an offset is one constant shift. Parameters are those of
    `compare_labels`; memory is overwritten.
    """

    def __init__(
        self,
        maps: tuple[Labels, Labels],
        spacing: Spacing,
        occupancy: Occupancy,
        memory: ReusedMemory,
    ) -> None:
        self._maps, self._occupancy, self._memory = maps, occupancy, memory
        self._spacing, self._areas = spacing, surfel_areas(spacing)
        spans = occupancy.span_z, *occupancy.span_yx(slice(None))
        self._start = tuple(span.start for span in spans)
        self._corners = tuple(span.stop - span.start + 1 for span in spans)
        self._ring = ring_of(spacing, occupancy.extent)
        depth, height, width = self._corners
        reach_z, reach_y, reach_x = np.abs(self._ring.offsets).max(axis=0, initial=0)
        self._row = int(width + reach_x)
        self._plane = int(height + reach_y) * self._row
        self._first = int(reach_z * self._plane + reach_y * self._row + reach_x)
        self._marks = memory.take("marks", depth * self._plane + 2 * self._first)
        self._marks[:] = 0
        self._shifts = self._ring.offsets @ (self._plane, self._row, 1)
        self._totals = np.zeros((2, 256), dtype=np.int64)
        self._pieces: list[_Piece] | None = []

    def add(self, pair: SurfacePair) -> None:
        """Mark the surfels of a window."""
        piece = self._piece(pair)
        self._marks[piece.places] = piece.marks
        for total, codes in zip(self._totals, piece.codes, strict=True):
            total[1:255] += np.bincount(codes, minlength=256)[1:255]
        if self._pieces is not None:
            self._pieces.append(piece)
            if self._totals.sum() > KEPT:
                self._pieces = None  # they are found again

    def distances(self) -> Sides:
        """The distances of both surfaces, after the last window."""
        return self._side(0), self._side(1)

    def _piece(self, pair: SurfacePair) -> _Piece:
        """The surfels of a window."""
        window = pair.window
        found = find_marked(pair.border, window)
        codes = pair.codes_at(found)
        z, rest = np.divmod(found, window.plane)
        y, x = np.divmod(rest, window.row)
        zs, ys, xs = window.box
        z += zs.start - window.first_slice - self._start[0]
        y += ys.start - self._start[1]
        x += xs.start - self._start[2]
        return _Piece(
            places=z * self._plane + y * self._row + x + self._first,
            marks=is_surfel(codes[0]) * _SURFEL[0] | is_surfel(codes[1]) * _SURFEL[1],
            codes=codes,
        )

    def _all(self) -> Iterable[_Piece]:
        """The surfels of all windows."""
        if self._pieces is not None:
            return self._pieces
        found = windows(self._occupancy, _HERE, self._memory)
        label = self._occupancy.label
        return (
            self._piece(surfaces_of(masks_of(*self._maps, label, window), window))
            for window in found
        )

    def _axes(self, places: Indices) -> Indices:
        """Which corners are at some places: shape (3, n), along z, y, x."""
        z, rest = np.divmod(places - self._first, self._plane)
        return np.stack((z, *np.divmod(rest, self._row)))

    def _slice(self, z: int) -> Bytes:
        """The marks of a slice of corners: shape (Y, X)."""
        _, height, width = self._corners
        start = self._first + z * self._plane
        rows = self._marks[start : start + height * self._row]
        return rows.reshape(height, self._row)[:, :width]

    def _side(self, own: int) -> Side:
        """The distances of the surfels of one mask."""
        other, both = 1 - own, _SURFEL[0] | _SURFEL[1]
        near: list[_Counts] = []
        far: list[_Found] = []
        number = 0
        for piece in self._all():
            codes = piece.codes[own]
            shared = codes.compress(piece.marks == both)
            near.append(np.bincount(shared, minlength=256))
            is_alone = piece.marks == _SURFEL[own]
            alone = piece.places.compress(is_alone), codes.compress(is_alone)
            keys, rest = self._look_up(*alone, other)
            near.append(np.bincount(keys))
            self._marks[rest[0]] |= _FAR[own]
            number += rest[0].size
            if number <= FEW:
                far.append(rest)
        farther: Iterable[tuple[_Floats, Bytes]] = ()
        if number > FEW or (number and self._totals[other].sum() > TREE):
            farther = self._by_planes(own)
        elif number:
            farther = [self._by_tree(far, other)]
        return self._sorted(own, near, farther)

    def _look_up(
        self, places: Indices, codes: Bytes, other: int
    ) -> tuple[Indices, _Found]:
        """Look up the corners around surfels, until one is a surfel of mask `other`.

        Returns 256 times the rank of the distance and the code; and what is not found.
        """
        mark, start, left = _SURFEL[other], 0, LOOK_UPS
        keys = [np.zeros(0, dtype=np.intp)]
        while places.size and start < len(self._shifts) and left > 0:
            stop = start + max(1, AT_ONCE // places.size)
            there = self._marks.take(places + self._shifts[start:stop, np.newaxis])
            left -= there.size
            is_near = (np.bitwise_or.reduce(there, axis=0) & mark) != 0
            nearest = (there.compress(is_near, axis=1) & mark).argmax(axis=0)
            ranks = self._ring.ranks.take(nearest + start)
            keys.append(ranks * 256 + codes.compress(is_near))
            is_left = ~is_near
            places, codes = places.compress(is_left), codes.compress(is_left)
            start = stop
        return np.concatenate(keys), (places, codes)

    def _by_tree(self, far: Sequence[_Found], other: int) -> tuple[_Floats, Bytes]:
        """Distances and codes of a few surfels."""
        from scipy.spatial import cKDTree  # which takes longer than most cases

        places, codes = (np.concatenate(part) for part in zip(*far, strict=True))
        found = np.flatnonzero(self._marks & _SURFEL[other])
        points, own = (self._axes(each) for each in (found, places))
        spacing = np.array(self._spacing)
        tree = cKDTree(points.T * spacing, balanced_tree=False)
        _, nearest = tree.query(own.T * spacing)
        return _length(self._spacing, points[:, nearest] - own), codes

    def _by_planes(self, own: int) -> Iterator[tuple[_Floats, Bytes]]:
        """Distances and codes of many surfels, some rows of all slices at a time."""
        other, (depth, height, width) = _SURFEL[1 - own], self._corners
        slices = [z for z in range(depth) if (self._slice(z) & other).any()]
        step = max(1, PLANE_BYTES // (8 * len(slices) * width))
        for start in range(0, height, step):
            rows = slice(start, min(start + step, height))
            planes = {z: self._plane_of(z, other, rows) for z in slices}
            for piece in self._all():
                is_far = (self._marks[piece.places] & _FAR[own]) != 0
                z, y, x = self._axes(piece.places[is_far])
                is_here = (y >= rows.start) & (y < rows.stop)
                place = ((y - start) * width + x)[is_here]
                distances = self._through(planes, z[is_here], place)
                yield distances, piece.codes[own][is_far][is_here]

    def _plane_of(self, z: int, other: np.uint8, rows: slice) -> _Floats:
        """Squares of the distances in some rows of a slice of corners; shape (n,)."""
        from scipy.ndimage import distance_transform_edt

        _, size_y, size_x = self._spacing
        nearest = distance_transform_edt(
            (self._slice(z) & other) == 0,
            sampling=(size_y, size_x),
            return_distances=False,
            return_indices=True,
        )
        y, x = np.ogrid[rows, : nearest.shape[2]]
        squares: _Floats = np.square((nearest[1, rows] - x) * size_x)
        squares += np.square((nearest[0, rows] - y) * size_y)
        return squares.reshape(-1)

    def _through(
        self, planes: Mapping[int, _Floats], zs: Indices, places: Indices
    ) -> _Floats:
        """The distances of corners, given those within all slices; shape (n,)."""
        distances = np.empty(zs.size)
        plane_size = next(iter(planes.values())).size
        for z in np.unique(zs):
            is_here = zs == z
            place = places[is_here]
            is_dense = place.size * DENSE > plane_size
            where = slice(None) if is_dense else place
            best, squares = np.full((2, plane_size if is_dense else place.size), np.inf)
            for other in sorted(planes, key=lambda plane: abs(plane - z)):
                along_z = np.square((other - z) * self._spacing[0])
                if along_z >= best.max():
                    break
                np.add(planes[other][where], along_z, out=squares)
                np.minimum(best, squares, out=best)
            distances[is_here] = np.sqrt(best[place] if is_dense else best)
        return distances

    def _sorted(
        self,
        own: int,
        near: Sequence[_Counts],
        farther: Iterable[tuple[_Floats, Bytes]],
    ) -> Side:
        """All distances: near are numbers by 256 times the rank and the code."""
        counts = np.zeros(max(each.size for each in near), dtype=np.int64)
        for each in near:
            counts[: each.size] += each
        used = counts.nonzero()[0]
        area = math.fsum(self._totals[own] * self._areas)
        far = _Farthest(area)
        for distances, codes in farther:
            far.add(distances, self._areas[codes])
        distances = np.concatenate((self._ring.distances[used >> 8], far.distances))
        areas = np.concatenate((self._areas[used & 255], far.areas))
        times = np.concatenate((counts[used], np.ones(far.areas.size, dtype=np.int64)))
        order = np.lexsort((areas, distances))
        distances, areas, times = distances[order], areas[order], times[order]
        if self._totals[own].sum() > KEPT:
            areas = areas * times
        else:
            distances, areas = distances.repeat(times), areas.repeat(times)
            area = float(np.sum(areas))
        return Side(
            distances=distances,
            areas=areas,
            area=area,
            left_out=far.left_out,
            moment=far.moment,
        )


class _Farthest:
    """The distances of a surface of some mm2, of which the smallest are left out."""

    def __init__(self, area: float) -> None:
        self._decisive = area * FARTHEST * (1 + 1e-9)
        self._least = 0.0
        self.distances, self.areas = np.zeros((2, 0))
        self.left_out = self.moment = 0.0

    def add(self, distances: _Floats, areas: _Floats) -> None:
        """Remember the distances and areas of surfels: shape (n,)."""
        more = self._large(distances, areas)
        self.distances, self.areas = (
            np.concatenate(pair)
            for pair in zip((self.distances, self.areas), more, strict=True)
        )
        if self.distances.size > KEPT:
            order = np.argsort(self.distances)[::-1]
            beyond = np.cumsum(self.areas[order])
            last = int(np.searchsorted(beyond, self._decisive))
            self._least = self.distances[order[min(last, order.size - 1)]]
            self.distances, self.areas = self._large(self.distances, self.areas)

    def _large(self, distances: _Floats, areas: _Floats) -> tuple[_Floats, _Floats]:
        """Those that may decide the percentile; only sums are kept of the others."""
        is_large = distances >= self._least
        small = areas[~is_large]
        self.left_out += float(np.sum(small))
        self.moment += float(np.sum(small * distances[~is_large]))
        return distances[is_large], areas[is_large]


class Measured(Protocol):
    """An `Agreement`."""

    @property
    def distances(self) -> Sides | None:
        """Of both surfaces."""


def hausdorff_95(found: Measured) -> float | None:
    """The larger of both percentiles; None if a mask is empty."""
    sides = found.distances
    return max(side.within(1 - FARTHEST) for side in sides) if sides else None


def average_distance(found: Measured) -> float | None:
    """The mean over both surfaces, weighted by area; None if a mask is empty."""
    area = sum(side.area for side in found.distances or ())
    return sum(side.sum for side in found.distances or ()) / area if area else None
