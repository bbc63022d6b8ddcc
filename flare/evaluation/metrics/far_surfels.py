"""How far the surfels of one mask are that have none of the other mask nearby.

A few are looked for in a tree of the other mask's surfels. A tree takes long for many,
and for surfels in the middle of a sphere, to which a large part of the tree is equally
far. Then all is done slice by slice: the nearest surfel within each slice first, for
all corners at once, and then the nearest along z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flare.evaluation.metrics.arrays import Floats, Indices, Mask
from flare.evaluation.metrics.marks import FAR, SURFEL, Marks, PlacedSurfels, parts_of
from flare.evaluation.metrics.ring import lengths_of
from flare.evaluation.metrics.sides import Measured

VERY_FEW = 16
"""At most this many surfels are compared with all of the other mask."""

SAMPLE = 8
"""For about this many surfels it is asked how much of a tree they have to look at."""

LEAF = 4
"""They look at what is farther than the nearest by this many voxels at most."""

CROWD = 2
"""If all surfels look at more than this much for each corner of the box,"""

BEARABLE = 2**25
"""and at more than this, slices take less time than the tree."""

PLANE_BYTES = 2**26
"""Size of the distances within slices that are in memory at once."""

STRIP = 2**12
"""This many corners of a slice are looked at together: they stay in cache."""

SLICES = 8
"""Corners of this many slices are looked at together."""

DENSE = 4
"""If more than one corner of this many is looked for, all of a slice are computed."""


class FarSurfels:
    """The surfels of one mask that are marked as far from the other mask."""

    def __init__(self, marks: Marks, side: int, other_side: int) -> None:
        self._marks, self._side = marks, side
        self._spacing = marks.pair.spacing
        self._far, self._target = FAR[side], SURFEL[other_side]

    def by_tree(self, surfels: Sequence[PlacedSurfels]) -> Iterator[Measured]:
        """Distances and codes of a few surfels, all that are far."""
        corners = self._marks.axes(np.concatenate([part.places for part in surfels]))
        codes = np.concatenate([part.codes for part in surfels])
        targets = self._marks.axes(np.flatnonzero(self._marks.flat & self._target))
        if codes.size <= VERY_FEW:
            distances = [
                lengths_of(targets - corner[:, np.newaxis], self._spacing).min()
                for corner in corners.T
            ]
            yield Measured(np.array(distances), codes)
            return
        from scipy.spatial import cKDTree  # which takes longer than most cases

        spacing = np.array(self._spacing)
        tree = cKDTree(targets.T * spacing, balanced_tree=False)
        points = corners.T * spacing
        if self._is_crowd(tree, points):
            yield from self.by_planes()
            return
        _, nearest = tree.query(points)
        yield Measured(lengths_of(targets[:, nearest] - corners, self._spacing), codes)

    def _is_crowd(self, tree: Any, points: Floats) -> bool:
        """Whether the surfels have to look at so much of the tree that slices win.

        A search ends when no branch of the tree can have anything nearer. So it looks
        at about what is as far as the nearest, and a leaf of the tree more.
        """
        sample = points[:: -(-len(points) // SAMPLE)]
        reach = tree.query(sample)[0] + LEAF * max(self._spacing)
        crowd = tree.query_ball_point(sample, reach, return_length=True).mean()
        limit = max(CROWD * self._marks.box.size, BEARABLE)
        return bool(crowd * len(points) > limit)

    def by_planes(self) -> Iterator[Measured]:
        """Distances and codes of many surfels, some rows of all slices at a time.

        Squares of the distances within a slice need eight bytes for each corner. As
        many rows are done together as `PLANE_BYTES` has room for, and of those as many
        corners as the cache has.
        """
        self._marks.mark_all()
        depth, row = self._marks.depth, self._marks.row
        marks = self._marks.box.reshape(depth, -1, row)
        slices = np.array([z for z in range(depth) if (marks[z] & self._target).any()])
        has_far_rows = [(plane & self._far).any(axis=1) for plane in marks]
        ys = np.flatnonzero(np.any(has_far_rows, axis=0))
        step = max(1, PLANE_BYTES // (8 * slices.size * row))
        for start in range(ys[0], ys[-1] + 1, step):
            rows = slice(start, min(start + step, ys[-1] + 1))
            planes = np.empty((slices.size, rows.stop - rows.start, row))
            for z, plane in zip(slices, planes, strict=True):
                self._fill(plane, (marks[z] & self._target) != 0, rows)
            squares = planes.reshape(slices.size, -1)
            for part in parts_of(squares.shape[1], STRIP):
                first = start * row
                corners = slice(first + part.start, first + part.stop)
                for zs in parts_of(depth, SLICES):
                    yield self._along_z(squares[:, part], slices, zs, corners)

    def _fill(self, plane: Floats, is_target: Mask, rows: slice) -> None:
        """Squares of the distances within a slice of corners, in some of its rows."""
        from scipy.ndimage import distance_transform_edt

        _, size_y, size_x = self._spacing
        ys = np.flatnonzero(is_target.any(axis=1))
        first = min(ys[0], rows.start)
        nearest = distance_transform_edt(
            ~is_target[first : max(ys[-1] + 1, rows.stop)],
            sampling=(size_y, size_x),
            return_distances=False,
            return_indices=True,
        )
        near_y, near_x = nearest[:, rows.start - first : rows.stop - first]
        y, x = np.ogrid[rows, : self._marks.row]
        np.subtract(near_x, x, out=plane)
        np.square(np.multiply(plane, size_x, out=plane), out=plane)
        plane += np.square((near_y + first - y) * size_y)

    def _along_z(
        self, squares: Floats, slices: Indices, zs: slice, corners: slice
    ) -> Measured:
        """Distances and codes of the far surfels among some corners of some slices.

        The nearest surfel is the least of the squares within a slice plus the square of
        the way to that slice. Slices are tried from the nearest on, so the search ends
        where the way along z alone is longer than all that was found.

        Parameters
        ----------
        squares : ndarray of float, shape (slices.size, n)
            Squares of the distances within each slice that has the other mask.
        slices : ndarray of int
            These slices.
        zs, corners : slice
            The slices to measure, and n corners of each.
        """
        marks = self._marks.box.reshape(-1, self._marks.plane)
        is_far = (marks[zs, corners] & self._far) != 0
        number = np.count_nonzero(is_far)
        if not number:
            return Measured(np.zeros(0), np.zeros(0, dtype=np.uint8))
        steps = slices[:, np.newaxis] - np.arange(zs.start, zs.stop)
        along_z = np.square(steps * self._spacing[0])
        least = along_z.min(axis=1)
        is_dense = number * DENSE > is_far.size
        all_corners: tuple[Any, Any] = np.s_[:, np.newaxis], np.s_[:]
        z, x = all_corners if is_dense else np.nonzero(is_far)
        shape = is_far.shape if is_dense else (number,)
        best, sums = np.full((2, *shape), np.inf)
        for turn, place in enumerate(np.argsort(least, kind="stable")):
            # The largest is looked for in each fourth turn: it takes as long as one.
            if turn % 4 == 0 and least[place] >= best.max():
                break
            np.add(squares[place][x], along_z[place][z], out=sums)
            np.minimum(best, sums, out=best)
        codes = self._marks.codes_in_slices(zs, corners, self._side)[is_far]
        return Measured(np.sqrt(best[is_far] if is_dense else best), codes)
