"""Distances from each surfel of one mask of a label to the nearest of the other.

Most surfels of an organ lie where the other mask has one, or a few voxels away: the
corners of the grid around them are looked up, the nearest first. What is left are parts
that one mask alone has. A few of those surfels are looked for in a tree; if they are
many, distances within each slice are computed first, and then those along z, some rows
at a time. So memory is bounded, whatever a file holds; and so is the work for a corner,
which may look at each slice once, but never at all surfels.

Nothing is approximated. Surfels, their areas, and their places on the corners of the
grid are those of the NSD.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Bytes, Indices, Mask, Spacing
from flare.evaluation.metrics.pairs import LabelPair
from flare.evaluation.metrics.surfaces import (
    HALVES,
    SurfacePair,
    codes_of,
    find_marked,
    find_surfaces,
    is_surfel,
)
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.tally import COUNTED_BYTES
from flare.evaluation.metrics.tolerance import BallRow
from flare.evaluation.metrics.windows import CHUNK_BYTES, Window

NEAR = 4096
"""About so many corners around a surfel are looked up,"""

LOOK_UPS = 2**22
"""and at most so many for all surfels of a window, four for each of its corners."""

VAIN = 100
"""If fewer than one of so many finds another, the look-up ends. It does so only where
surfels are too many to be remembered: among equal distances, the tree and the planes
may choose one whose last bit differs."""

AT_ONCE = 2**14
"""So many places are looked up together: calls of NumPy take a while."""

VERY_FEW = 16
"""At most so many surfels are compared with all of the other mask."""

SAMPLE, LEAF = 8, 4
"""In the middle of a sphere, a surfel has to look at all of a tree. So many are asked
how many are farther than the nearest by so many voxels at most;"""

CROWD, BEARABLE = 2, 2**25
"""if that is more than so many for each corner, and for all, planes take less time."""

FEW, TREE = 2**14, 2**20
"""At most so many surfels are looked for in a tree, which has at most so many."""

KEPT = 2**20
"""At most so many surfels are remembered, and their areas summed one by one."""

PLANE_BYTES = 2**26
"""Of distances within slices that are known at once."""

STRIP, SLICES = 2**12, 8
"""So many corners of so many slices are looked at together: they stay in cache."""

DENSE = 4
"""If more than one corner of so many is looked for, all of a slice are computed."""

BINS = 2**12
"""Into so many the distances are put, to find those that are the farthest."""

FARTHEST = 0.05
"""The part of a surface that lies beyond its 95th percentile."""

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]
_Found = tuple[Indices, Bytes]
"""Places of surfels, and their codes; of shape (n,)."""

_HERE = (BallRow(z=0, y=0, half_width=0),)

_SURFEL = np.uint8(1), np.uint8(2)
"""Marks of a corner: it is a surfel of this mask,"""

_BOTH = np.uint8(3)
"""of both,"""

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
    slices end in zeros: so an offset is one constant shift.
    """

    def __init__(self, pair: LabelPair) -> None:
        self._pair, self._memory = pair, pair.memory
        self._spacing, self._areas = pair.spacing, surfel_areas(pair.spacing)
        spans = pair.occupancy.box
        self._start = tuple(span.start for span in spans)
        self._corners = tuple(span.stop - span.start + 1 for span in spans)
        self._ring = ring_of(pair.spacing, pair.occupancy.extent)
        depth, height, width = self._corners
        reach_z, reach_y, reach_x = np.abs(self._ring.offsets).max(axis=0, initial=0)
        self._row = int(width + reach_x)
        self._plane = int(height + reach_y) * self._row
        self._first = int(reach_z * self._plane + reach_y * self._row + reach_x)
        self._marks = pair.memory.take("marks", depth * self._plane + 2 * self._first)
        self._marks[:] = 0
        self._shifts = self._ring.offsets @ (self._plane, self._row, 1)
        self._totals = np.zeros((2, 256), dtype=np.int64)
        self._pieces: list[_Piece] | None = []
        self._fours = np.zeros(0, dtype=np.uint8)

    def add(self, pair: SurfacePair) -> None:
        """Mark the surfels of a window, unless there are so many already."""
        if self._pieces is None:
            return
        piece = self._piece(pair)
        self._marks[piece.places] = piece.marks
        for total, codes in zip(self._totals, piece.codes, strict=True):
            total[1:255] += np.bincount(codes, minlength=256)[1:255]
        self._pieces.append(piece)
        if self._totals.sum() > KEPT:
            self._pieces = None  # all are found again, once

    def distances(self) -> Sides:
        """The distances of both surfaces, after the last window."""
        if self._pieces is None:
            self._mark_all()
            self._count_all()
        return self._side(0), self._side(1)

    def _piece(self, pair: SurfacePair) -> _Piece:
        """The surfels of a window."""
        window = pair.window
        found = find_marked(pair.surfels, window)
        codes = pair.codes_at(found)
        z, rest = np.divmod(found, window.plane)
        y, x = np.divmod(rest, window.row)
        first_z, first_y, first_x = self._first_of(window)
        z += first_z
        y += first_y
        x += first_x
        return _Piece(
            places=z * self._plane + y * self._row + x + self._first,
            marks=is_surfel(codes[0]) * _SURFEL[0] | is_surfel(codes[1]) * _SURFEL[1],
            codes=codes,
        )

    def _first_of(self, window: Window) -> tuple[int, int, int]:
        """Where the first corner of a window's buffers is in the label's box."""
        zs, ys, xs = window.box
        firsts = zs.start - window.first_slice, ys.start, xs.start
        z, y, x = (at - start for at, start in zip(firsts, self._start, strict=True))
        return z, y, x

    def _mark_all(self) -> None:
        """Mark the surfels of the whole box, and keep what their codes are made of."""
        if self._fours.size:
            return
        rows = self._plane // self._row
        self._fours = self._memory.take("fours", self._box.size + self._plane)
        self._fours[:] = 0
        fours = self._fours[self._plane :].reshape(-1, rows, self._row)
        marks = self._box.reshape(-1, rows, self._row)
        for window in self._pair.windows(_HERE):
            pair = find_surfaces(self._pair.masks(window), window)
            z, y, x = self._first_of(window)
            depth, height, width = window.shape
            margin = window.margin
            box = (
                slice(z + margin, z + depth - margin),
                slice(y, y + height),
                slice(x, x + width),
            )
            # Rows and slices of a window end in zeros, of which the box has fewer.
            _, height, width = marks[box].shape
            inside = slice(margin, depth - margin), slice(height), slice(width)
            fours[box] = pair.fours.reshape(window.shape)[inside]
            border = pair.surfels.reshape(window.shape)[inside]
            for mark, half in zip(_SURFEL, HALVES, strict=True):
                marks[box] |= ((border & half) != 0) * mark

    def _count_all(self) -> None:
        """Count the surfels of the whole box by their codes."""
        self._totals[:] = 0
        for part in _parts(self._box.size, COUNTED_BYTES):
            for own, total in enumerate(self._totals):
                total += np.bincount(self._codes(part, own), minlength=256)
        self._totals[:, [0, 255]] = 0

    def _surfels(self, own: int) -> Iterator[tuple[Indices, Bytes, Bytes]]:
        """Places, marks and codes: window by window, or part by part of the box."""
        for piece in self._pieces or ():
            yield piece.places, piece.marks, piece.codes[own]
        if self._pieces is None:
            for part in _parts(self._box.size, CHUNK_BYTES):
                marks = self._box[part]
                here = np.flatnonzero((marks & _SURFEL[own]) != 0)
                codes = self._codes(part, own).take(here)
                places = here + (part.start + self._first)
                yield places, marks.take(here) & _BOTH, codes

    @property
    def _box(self) -> Bytes:
        """The marks of all slices, without the zeros before and behind."""
        return self._marks[self._first : self._marks.size - self._first]

    def _codes(self, part: slice, own: int) -> Bytes:
        """The codes of one mask in a part of the box, once all is marked."""
        behind = self._fours[part.start + self._plane : part.stop + self._plane]
        return codes_of(self._fours[part], behind, own)

    def _axes(self, places: Indices) -> Indices:
        """Which corners are at some places: shape (3, n), along z, y, x."""
        z, rest = np.divmod(places - self._first, self._plane)
        return np.stack((z, *np.divmod(rest, self._row)))

    def _side(self, own: int) -> Side:
        """The distances of the surfels of one mask."""
        other = 1 - own
        near = np.zeros(256, dtype=np.int64)
        far: list[_Found] = []
        number = 0
        for places, marks, codes in self._surfels(own):
            shared = codes.compress(marks == _BOTH)
            near = _added(near, np.bincount(shared))
            is_alone = marks == _SURFEL[own]
            alone = places.compress(is_alone), codes.compress(is_alone)
            keys, rest = self._look_up(*alone, other)
            near = _added(near, np.bincount(keys))
            self._marks[rest[0]] |= _FAR[own]
            number += rest[0].size
            if number <= FEW:
                far.append(rest)
        farther: Iterable[tuple[_Floats, Bytes]] = ()
        if number > FEW or (number and self._totals[other].sum() > TREE):
            farther = self._by_planes(own)
        elif number:
            farther = self._by_tree(far, own)
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
            number, is_left = places.size, ~is_near
            places, codes = places.compress(is_left), codes.compress(is_left)
            start = stop
            if self._pieces is None and (number - places.size) * VAIN < number:
                break
        return np.concatenate(keys), (places, codes)

    def _by_tree(
        self, far: Sequence[_Found], mask: int
    ) -> Iterator[tuple[_Floats, Bytes]]:
        """Distances and codes of a few surfels."""
        other = 1 - mask
        places, codes = (np.concatenate(part) for part in zip(*far, strict=True))
        points = self._axes(np.flatnonzero(self._marks & _SURFEL[other]))
        own = self._axes(places)
        if places.size <= VERY_FEW:
            apart = (_length(self._spacing, points - at[:, np.newaxis]) for at in own.T)
            yield np.array([lengths.min() for lengths in apart]), codes
            return
        from scipy.spatial import cKDTree  # which takes longer than most cases

        spacing = np.array(self._spacing)
        tree = cKDTree(points.T * spacing, balanced_tree=False)
        targets = own.T * spacing
        some = targets[:: -(-places.size // SAMPLE)]
        reach = tree.query(some)[0] + LEAF * spacing.max()
        crowd = tree.query_ball_point(some, reach, return_length=True).mean()
        if crowd * places.size > max(CROWD * self._box.size, BEARABLE):
            yield from self._by_planes(mask)
            return
        _, nearest = tree.query(targets)
        yield _length(self._spacing, points[:, nearest] - own), codes

    def _by_planes(self, own: int) -> Iterator[tuple[_Floats, Bytes]]:
        """Distances and codes of many surfels, some rows of all slices at a time."""
        self._mark_all()
        depth = self._corners[0]
        marks = self._box.reshape(depth, -1, self._row)
        slices = np.array(
            [z for z in range(depth) if (marks[z] & _SURFEL[1 - own]).any()]
        )
        is_far = [(plane & _FAR[own]).any(axis=1) for plane in marks]
        ys = np.flatnonzero(np.any(is_far, axis=0))
        step = max(1, PLANE_BYTES // (8 * slices.size * self._row))
        for start in range(ys[0], ys[-1] + 1, step):
            rows = slice(start, min(start + step, ys[-1] + 1))
            planes = np.empty((slices.size, rows.stop - rows.start, self._row))
            for z, plane in zip(slices, planes, strict=True):
                self._fill(plane, (marks[z] & _SURFEL[1 - own]) != 0, rows)
            flat = planes.reshape(slices.size, -1)
            for part in _parts(flat.shape[1], STRIP):
                strip, first = flat[:, part], start * self._row
                here = slice(first + part.start, first + part.stop)
                for zs in _parts(depth, SLICES):
                    yield self._through(strip, slices, zs, here, own)

    def _fill(self, plane: _Floats, is_there: Mask, rows: slice) -> None:
        """Squares of the distances within a slice of corners, in some of its rows."""
        from scipy.ndimage import distance_transform_edt

        _, size_y, size_x = self._spacing
        ys = np.flatnonzero(is_there.any(axis=1))
        first = min(ys[0], rows.start)
        nearest = distance_transform_edt(
            ~is_there[first : max(ys[-1] + 1, rows.stop)],
            sampling=(size_y, size_x),
            return_distances=False,
            return_indices=True,
        )
        near_y, near_x = nearest[:, rows.start - first : rows.stop - first]
        y, x = np.ogrid[rows, : self._row]
        np.subtract(near_x, x, out=plane)
        np.square(np.multiply(plane, size_x, out=plane), out=plane)
        plane += np.square((near_y + first - y) * size_y)

    def _through(
        self, strip: _Floats, slices: Indices, zs: slice, part: slice, own: int
    ) -> tuple[_Floats, Bytes]:
        """Distances and codes in a part of some slices.

        Given are squares of the distances within all slices that have the other mask:
        of shape (slices.size, n), and of each the same n corners.
        """
        is_far = (self._box.reshape(-1, self._plane)[zs, part] & _FAR[own]) != 0
        number = np.count_nonzero(is_far)
        if not number:
            return np.zeros(0), np.zeros(0, dtype=np.uint8)
        steps = slices[:, np.newaxis] - np.arange(zs.start, zs.stop)
        along_z = np.square(steps * self._spacing[0])
        least = along_z.min(axis=1)
        is_dense = number * DENSE > is_far.size
        all_of_both: tuple[Any, Any] = np.s_[:, np.newaxis], np.s_[:]
        z, x = all_of_both if is_dense else np.nonzero(is_far)
        shape = is_far.shape if is_dense else (number,)
        best, squares = np.full((2, *shape), np.inf)
        for turn, other in enumerate(np.argsort(least, kind="stable")):
            if turn % 4 == 0 and least[other] >= best.max():
                break
            np.add(strip[other][x], along_z[other][z], out=squares)
            np.minimum(best, squares, out=best)
        fours = self._fours.reshape(-1, self._plane)
        behind = fours[zs.start + 1 : zs.stop + 1, part]
        codes = codes_of(fours[zs, part], behind, own)[is_far]
        return np.sqrt(best[is_far] if is_dense else best), codes

    def _sorted(
        self,
        own: int,
        counts: _Counts,
        farther: Iterable[tuple[_Floats, Bytes]],
    ) -> Side:
        """All distances; near ones are counted by 256 times the rank and the code."""
        used = counts.nonzero()[0]
        area = math.fsum(self._totals[own] * self._areas)
        far = _Farthest(area)
        for distances, codes in farther:
            far.add(distances, self._areas.take(codes))
        distances, areas = far.all()
        times = np.concatenate((counts[used], np.ones(areas.size, dtype=np.int64)))
        distances = np.concatenate((self._ring.distances[used >> 8], distances))
        areas = np.concatenate((self._areas[used & 255], areas))
        order = np.lexsort(
            (areas, distances) if distances.size <= KEPT else (distances,)
        )
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


def _parts(size: int, step: int) -> Iterator[slice]:
    """From 0 to a size, in steps."""
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _added(counts: _Counts, more: _Counts) -> _Counts:
    """The sum of two arrays of numbers, one of which may be shorter."""
    short, long = sorted((counts, more), key=len)
    long[: short.size] += short
    return long


class _Farthest:
    """The distances of a surface of some mm2, of which the smallest are left out."""

    def __init__(self, area: float) -> None:
        self._decisive = area * FARTHEST * (1 + 1e-9)
        self._least = 0.0
        self._parts = [(np.zeros(0), np.zeros(0))]
        self._number, self._most = 0, KEPT
        self.left_out = self.moment = 0.0

    def add(self, distances: _Floats, areas: _Floats) -> None:
        """Remember the distances and areas of surfels: shape (n,)."""
        self._add(distances, areas)
        if self._number > self._most:
            self._add(*self._cut())
            self._most = max(KEPT, 2 * self._number)

    def all(self) -> tuple[_Floats, _Floats]:
        """What is left of the distances and areas."""
        if self._number > KEPT:
            self._add(*self._cut())
        distances, areas = zip(*self._parts, strict=True)
        return np.concatenate(distances), np.concatenate(areas)

    def _add(self, distances: _Floats, areas: _Floats) -> None:
        """Remember those that may decide the percentile; of the others, the sums."""
        is_large = distances >= self._least
        small = np.where(is_large, 0.0, areas)
        self.left_out += float(np.sum(small))
        self.moment += float(np.sum(small * distances))
        self._parts.append((distances[is_large], areas[is_large]))
        self._number += int(np.count_nonzero(is_large))

    def _cut(self) -> tuple[_Floats, _Floats]:
        """Return all that is remembered, and forget it; raise the least that decides.

        The farthest are looked for to a four-thousandth of the largest distance.
        """
        distances, areas = map(np.concatenate, zip(*self._parts, strict=True))
        self._parts, self._number = [], 0
        bins = (distances * (BINS / distances.max())).astype(np.intp)
        beyond = np.cumsum(np.bincount(bins, weights=areas)[::-1])
        # As long as they have too little area to decide, nearer ones decide, too.
        if beyond[-1] >= self._decisive:
            last = beyond.size - 1 - int(np.searchsorted(beyond, self._decisive))
            self._least = max(self._least, float(distances[bins >= last].min()))
        return distances, areas
