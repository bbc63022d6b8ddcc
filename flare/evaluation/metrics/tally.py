"""Counts the voxels and surfels of one label in two label maps, exactly and fast.

NSD compares surfaces that are made of surfels, see `flare.evaluation.metrics.surfaces`.
The official scripts compute a distance transform of each surface, and ask of every
surfel whether the other surface is within the tolerance. That question has a cheaper
answer, see `flare.evaluation.metrics.nearness`. Nothing is approximated: which offsets
belong to the ball is decided by the very expression that the distance transform
evaluates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flare.evaluation.metrics.arrays import Bytes, Counts
from flare.evaluation.metrics.dice import Voxels
from flare.evaluation.metrics.nearness import Nearness
from flare.evaluation.metrics.pairs import LabelPair
from flare.evaluation.metrics.surfaces import (
    DIRECTIONS,
    HALVES,
    PREDICTION,
    REFERENCE,
    SurfacePair,
    find_marked,
    find_surfaces,
    is_surfel,
)
from flare.evaluation.metrics.tolerance import Ball
from flare.evaluation.metrics.windows import Window

DENSE = 8
"""If more than one of this many corners is a surfel, all corners are looked at."""

COUNTED_BYTES = 2**15
"""How many codes are counted at once: as NumPy's integers they fit into the cache."""


class Tally(NamedTuple):
    """What was counted of one label in two label maps."""

    voxels: Voxels
    surfels: Counts
    """Shape (256,): by code, the surfels of both masks; all 0 if the DSC is too small.
    """
    beyond: Counts
    """Shape (256,): those of them that are farther than the tolerance from the other
    surface."""


def tally(
    pair: LabelPair,
    ball: Ball,
    smallest_dsc: float = 0.0,
    visit: Callable[[SurfacePair], object] | None = None,
) -> Tally:
    """Count the voxels of one label, and its surfels unless its DSC is too small.

    The DSC is known after the last window. Until then, a window is postponed for as
    long as the voxels that were counted so far have too small a DSC. Organs that agree
    have no such window, or a few at one end. Where the DSC is below `smallest_dsc`, no
    surfel is counted. `visit` gets the surfaces of each window, whatever the DSC is.
    """
    voxels = Voxels(0, 0, 0)
    counts = np.zeros((2, 256), dtype=np.int64)
    postponed: list[Window] = []
    for window in pair.windows(ball):
        masks = pair.masks(window)
        voxels = voxels.plus(_count_voxels(masks, window))
        is_postponed = voxels.dsc < smallest_dsc
        if is_postponed:
            postponed.append(window)
        if visit or not is_postponed:
            surfaces = find_surfaces(masks, window)
            if visit:
                visit(surfaces)
            if not is_postponed:
                counts += _count_surfels(surfaces, ball)
    if voxels.dsc < smallest_dsc:
        counts[:] = 0
        postponed.clear()
    for window in postponed:
        counts += _count_surfels(find_surfaces(pair.masks(window), window), ball)
    # Corners that are surfels of the other mask alone were counted as well.
    counts[:, [0, 255]] = 0
    return Tally(voxels=voxels, surfels=counts[0], beyond=counts[1])


def _count_voxels(masks: tuple[Bytes, Bytes], window: Window) -> Voxels:
    """Count the voxels of two flat buffers that lie in the inner part of a window."""
    reference, prediction = (mask[window.inner].view(np.bool_) for mask in masks)
    shared = window.buffer("scratch")[window.inner].view(np.bool_)
    np.logical_and(reference, prediction, out=shared)
    return Voxels(
        int(np.count_nonzero(reference)),
        int(np.count_nonzero(prediction)),
        int(np.count_nonzero(shared)),
    )


def _count_surfels(surfaces: SurfacePair, ball: Ball) -> Counts:
    """Count the surfels of a window by code: shape (2, 256), all and beyond."""
    window = surfaces.window
    number = np.count_nonzero(surfaces.surfels[window.inner])
    nearness = Nearness(surfaces, ball)
    if number * DENSE > window.size:
        return _count_many(surfaces, nearness)
    return _count_few(surfaces, nearness)


def _count_few(surfaces: SurfacePair, nearness: Nearness) -> Counts:
    """Count surfels one by one: shape (2, 256), all and beyond the tolerance.

    A surfel of both masks is near to itself, so only those of one mask are looked up.
    """
    surfels, beyond = counts = np.zeros((2, 256), dtype=np.int64)
    corners = find_marked(surfaces.surfels, surfaces.window)
    codes = surfaces.codes_at(corners)
    are_surfels = is_surfel(codes[REFERENCE]), is_surfel(codes[PREDICTION])
    for side, other_side in DIRECTIONS:
        surfels += np.bincount(codes[side], minlength=256)
        unshared = corners.compress(are_surfels[side] > are_surfels[other_side])
        far_corners = nearness.find_beyond(unshared, other_side)
        beyond += np.bincount(surfaces.codes_at(far_corners)[side], minlength=256)
    return counts


def _count_many(surfaces: SurfacePair, nearness: Nearness) -> Counts:
    """Count them by looking at all corners, if there are many: shape (2, 256).

    An index of a surfel is eight bytes, and looking it up takes as long as passing by
    many corners. So codes are counted for all corners: first as if all surfels were
    beyond, then those that are near to the other mask are subtracted. A mask that has
    few surfels in the window is counted as in `_count_few`; and a mask without a voxel
    in it has none.
    """
    surfels, beyond = counts = np.zeros((2, 256), dtype=np.int64)
    window = surfaces.window
    for side, other_side in DIRECTIONS:
        if not surfaces.has_voxels[side]:
            continue
        marks = surfaces.surfels
        if surfaces.has_voxels[other_side]:
            scratch = window.buffer("scratch")
            marks = np.bitwise_and(surfaces.surfels, HALVES[side], out=scratch)
        if np.count_nonzero(marks[window.inner]) * DENSE <= marks.size:
            corners = find_marked(marks, window)
            surfels += np.bincount(surfaces.codes_at(corners)[side], minlength=256)
            far_corners = nearness.find_beyond(corners, other_side)
            beyond += np.bincount(surfaces.codes_at(far_corners)[side], minlength=256)
            continue
        counts_of_side = _count_everywhere(surfaces, side)
        surfels += counts_of_side
        beyond += counts_of_side
        if surfaces.has_voxels[other_side]:
            beyond -= _count_near(surfaces, nearness.mark_near(other_side), side)
    return counts


def _count_near(surfaces: SurfacePair, is_near: Bytes, side: int) -> Counts:
    """Count the surfels of one mask where a flat buffer is 1: shape (256,)."""
    if np.count_nonzero(is_near[surfaces.window.inner]) * DENSE > is_near.size:
        return _count_everywhere(surfaces, side, is_near)
    corners = find_marked(is_near, surfaces.window)
    return np.bincount(surfaces.codes_at(corners)[side], minlength=256)


def _count_everywhere(
    surfaces: SurfacePair, side: int, marks: Bytes | None = None
) -> Counts:
    """Count them at all corners, or where a flat buffer is 1: shape (256,)."""
    counts = np.zeros(256, dtype=np.int64)
    inner = surfaces.window.inner
    for start in range(inner.start, inner.stop, COUNTED_BYTES):
        part = slice(start, min(start + COUNTED_BYTES, inner.stop))
        codes = surfaces.codes_in(part, side)
        if marks is not None:
            codes *= marks[part]
        counts += np.bincount(codes, minlength=256)
    return counts
