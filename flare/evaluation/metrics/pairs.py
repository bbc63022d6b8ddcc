"""The pairs that metrics compare: two label maps of a case, and an organ in both.

A `MapPair` is made once for a case. A `LabelPair` is cut out of it for each organ, and
is all that a metric gets. Here alone it is decided whether the kernel counts, or NumPy.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from flare.evaluation.metrics.arrays import (
    EMPTY,
    WHOLE,
    Labels,
    Mask,
    Spacing,
    box_around,
)
from flare.evaluation.metrics.kernel import kernel_problem
from flare.evaluation.metrics.packed import WIDEST, PackedMap, PackedPair
from flare.evaluation.metrics.plain import PlainMap, PlainPair
from flare.evaluation.metrics.tally import LabelPair, VoxelMap


def empty_map(shape: tuple[int, int, int]) -> VoxelMap:
    """A label map that is to be filled row by row."""
    if kernel_problem() or shape[2] > WIDEST or 0 in shape:
        return PlainMap(shape)
    return PackedMap(shape)


def map_of(labels: Labels) -> VoxelMap:
    """The map of an array of labels."""
    depth, height, width = labels.shape
    voxels = empty_map((depth, height, width))
    for plane in labels if labels.size else ():
        voxels.add(plane.reshape(-1))
    return voxels


class MapPair(NamedTuple):
    """Two label maps on the same grid; they are never modified."""

    reference: VoxelMap
    prediction: VoxelMap
    spacing: Spacing
    """Voxel size in mm along z, y, x: the order of the array axes."""

    def cut(self, labels: Collection[int], slices: slice = WHOLE) -> LabelPair:
        """The organ with some labels, 1 to 255, in both maps or in `slices` of them."""
        reference, prediction, spacing = self
        assert reference.shape == prediction.shape
        z, y, x = box_around(reference.box(labels), prediction.box(labels))
        start, stop, _ = slices.indices(reference.shape[0])
        z = slice(max(z.start, start), min(z.stop, stop))
        box = (z, y, x) if z.start < z.stop else EMPTY
        if isinstance(reference, PackedMap) and isinstance(prediction, PackedMap):
            return PackedPair((reference, prediction), (*labels,), spacing, box)
        return PlainPair((reference, prediction), (*labels,), spacing, box)


def pair_of_masks(reference: Mask, prediction: Mask, spacing: Spacing) -> LabelPair:
    """Two masks as label 1 of a pair."""
    masks = map(np.ascontiguousarray, (reference, prediction))
    first, second = (map_of(mask.view(np.uint8)) for mask in masks)
    return MapPair(first, second, spacing).cut((1,))
