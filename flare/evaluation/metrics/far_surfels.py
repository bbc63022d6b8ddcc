"""How far the surfels of one mask are that have none of the other mask nearby.

A few are looked for in a tree of the other mask's surfels. A tree takes long for many,
and for surfels in the middle of a sphere, to which a large part of the tree is equally
far. Then all is done slice by slice: the nearest surfel within each slice first, for
all corners at once, and then the nearest along z.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from flare.evaluation.metrics.arrays import Bytes, Floats, Mask, Spacing, extent_of
from flare.evaluation.metrics.plain import codes_of, is_surfel
from flare.evaluation.metrics.ring import lengths_of
from flare.evaluation.metrics.tally import LabelPair, Surfels

SAMPLE = 8
"""For about this many surfels it is asked how much of a tree they have to look at."""

LEAF = 4
"""They look at what is farther than the nearest by this many voxels at most."""

CROWD = 2
"""Slices win if all surfels look at more than this for each corner of the box."""

BEARABLE = 2**25
"""The tree wins, however small the box is, if they look at no more than this."""

PLANE_BYTES = 2**26
"""Size of the distances within slices that are in memory at once."""

STRIP = 2**12
"""This many corners of a slice are looked at together: they stay in cache."""

SLICES = 8
"""Corners of this many slices are looked at together."""

DENSE = 4
"""If more than one corner of this many is looked for, all of a slice are computed."""


class Measured(NamedTuple):
    """Surfels of one mask, and how far they are from the other; of shape (n,)."""

    distances: Floats
    """In mm."""
    codes: Bytes


def by_tree(pair: LabelPair, side: int, far: Surfels) -> list[Measured] | None:
    """Distances and codes of a few far surfels; None if slices take less time."""
    from scipy.spatial import cKDTree  # which takes longer than most cases

    targets = pair.surfels(tolerance=0.0)[1 - side].corners
    tree = cKDTree(targets * pair.spacing, compact_nodes=False, balanced_tree=False)
    points = far.corners * np.array(pair.spacing)
    if _is_crowd(tree, points, pair):
        return None
    _, nearest = tree.query(points)
    steps = (targets[nearest] - far.corners).T
    return [Measured(lengths_of(steps, pair.spacing), far.codes)]


def _is_crowd(tree: Any, points: Floats, pair: LabelPair) -> bool:
    """Whether surfels have to look at so much of the tree that slices win.

    A search ends when no branch of the tree can have anything nearer. So it looks at
    about what is as far as the nearest, and a leaf of the tree more.
    """
    sample = points[:: -(-len(points) // SAMPLE)]
    reach = tree.query(sample)[0] + LEAF * max(pair.spacing)
    crowd = tree.query_ball_point(sample, reach, return_length=True).mean()
    corners = np.prod(np.add(extent_of(pair.box), 1))
    return bool(crowd * len(points) > max(CROWD * corners, BEARABLE))


def by_planes(pair: LabelPair, side: int) -> Iterator[Measured]:
    """Distances and codes of all surfels of a mask, some rows of all slices at a time.

    Squares of the distances within a slice need eight bytes for each corner. As many
    rows are done together as `PLANE_BYTES` has room for, and of those as many corners
    as the cache has.
    """
    all_codes, is_target = _corners(pair, side)
    slices = np.flatnonzero(is_target.any(axis=(1, 2)))
    ys = np.flatnonzero([is_surfel(plane).any() for plane in all_codes.swapaxes(0, 1)])
    depth, _, row = all_codes.shape
    step = max(1, PLANE_BYTES // (8 * slices.size * row))
    for start in range(int(ys[0]), int(ys[-1]) + 1, step):
        rows = slice(start, min(start + step, int(ys[-1]) + 1))
        planes = np.empty((slices.size, rows.stop - rows.start, row))
        for z, plane in zip(slices, planes, strict=True):
            plane[:] = _within_slice(is_target[z], rows, pair.spacing)
        squares = planes.reshape(slices.size, -1)
        codes = all_codes[:, rows].reshape(depth, -1)
        starts = range(0, squares.shape[1], STRIP), range(0, depth, SLICES)
        for first, first_z in product(*starts):
            part, zs = slice(first, first + STRIP), slice(first_z, first_z + SLICES)
            steps = slices[:, np.newaxis] - np.arange(depth)[zs]
            along_z = np.square(steps * pair.spacing[0])
            yield _along_z(squares[:, part], along_z, codes[zs, part])


def _corners(pair: LabelPair, side: int) -> tuple[Bytes, Mask]:
    """The codes of one mask, and where the other one has surfels: of all corners."""
    zs = pair.box[0]
    depth, height, width = extent_of(pair.box)
    shape = depth + 1, height + 1, width + 1
    all_codes: Bytes = np.empty(shape, dtype=np.uint8)
    is_target: Mask = np.empty(shape, dtype=np.bool_)
    for z in range(shape[0]):
        # A plane of corners lies between two slices of voxels.
        slices = slice(max(zs.start + z - 1, zs.start), min(zs.start + z + 1, zs.stop))
        codes = [codes_of(mask)[min(z, 1)] for mask in pair.masks(slices)]
        all_codes[z], is_target[z] = codes[side], is_surfel(codes[1 - side])
    return all_codes, is_target


def _within_slice(is_target: Mask, rows: slice, spacing: Spacing) -> Floats:
    """Squares of the distances within a slice of corners, in some of its rows."""
    from scipy.ndimage import distance_transform_edt

    _, size_y, size_x = spacing
    ys = np.flatnonzero(is_target.any(axis=1))
    first = min(ys[0], rows.start)
    nearest = distance_transform_edt(
        ~is_target[first : max(ys[-1] + 1, rows.stop)],
        sampling=(size_y, size_x),
        return_distances=False,
        return_indices=True,
    )
    near_y, near_x = nearest[:, rows.start - first : rows.stop - first]
    y, x = np.ogrid[rows, : is_target.shape[1]]
    squares: Floats = np.square((near_x - x) * size_x)
    squares += np.square((near_y + first - y) * size_y)
    return squares


def _along_z(squares: Floats, along_z: Floats, codes: Bytes) -> Measured:
    """Distances and codes of the surfels among some corners of some slices.

    The nearest surfel is the least of the squares within a slice plus the square of the
    way to that slice, `squares` of shape (n, corners) and `along_z` of (n, slices) for
    the n slices that have the other mask. Slices are tried from the nearest on, so the
    search ends where the way along z alone is longer than all that was found. `codes`
    have the shape (slices, corners); not all are surfels.
    """
    is_listed = is_surfel(codes)
    number = np.count_nonzero(is_listed)
    if not number:
        return Measured(np.zeros(0), np.zeros(0, dtype=np.uint8))
    least = along_z.min(axis=1)
    is_dense = number * DENSE > is_listed.size
    all_corners: tuple[Any, Any] = np.s_[:, np.newaxis], np.s_[:]
    z, x = all_corners if is_dense else np.nonzero(is_listed)
    shape = is_listed.shape if is_dense else (number,)
    best, sums = np.full((2, *shape), np.inf)
    for turn, place in enumerate(np.argsort(least, kind="stable")):
        # The largest is looked for in each fourth turn: it takes as long as one.
        if turn % 4 == 0 and least[place] >= best.max():
            break
        np.add(squares[place][x], along_z[place][z], out=sums)
        np.minimum(best, sums, out=best)
    return Measured(np.sqrt(best[is_listed] if is_dense else best), codes[is_listed])
