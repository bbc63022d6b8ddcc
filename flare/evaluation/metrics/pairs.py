"""The pairs that metrics compare: two label maps of a case, and an organ in both.

A `MapPair` is made once for a case, or for two masks of a Python user. A `LabelPair` is
cut out of it for each organ, and is all that a metric gets. Here alone it is decided
whether the kernel counts, or NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flare.evaluation.labelmaps.grid import LARGEST_MM
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


class Array(Protocol):
    """A NumPy array, or an object that ``numpy.asarray`` turns into one: a tensor."""

    def __array__(self) -> npt.NDArray[Any]:
        """Its values."""


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
        check_shapes(reference, prediction)
        z, y, x = box_around(reference.box(labels), prediction.box(labels))
        start, stop, _ = slices.indices(reference.shape[0])
        z = slice(max(z.start, start), min(z.stop, stop))
        box = (z, y, x) if z.start < z.stop else EMPTY
        if isinstance(reference, PackedMap) and isinstance(prediction, PackedMap):
            return PackedPair((reference, prediction), (*labels,), spacing, box)
        return PlainPair((reference, prediction), (*labels,), spacing, box)


def pair_of_masks(reference: Array, prediction: Array, spacing: Spacing) -> LabelPair:
    """Check two masks and a spacing, and make the masks label 1 of a pair."""
    first, second = (
        map_of(np.ascontiguousarray(mask).view(np.uint8))
        for mask in check_masks(reference, prediction)
    )
    return MapPair(first, second, three_lengths(spacing)).cut((1,))


# --- Checks -----------------------------------------------------------------------


def check_masks(reference: Array, prediction: Array) -> tuple[Mask, Mask]:
    """Two masks as bool arrays of one three-dimensional shape; all else is refused."""
    masks = _mask(reference), _mask(prediction)
    check_shapes(*masks)
    return masks


def _mask(value: Array) -> Mask:
    """An array of 0 and 1, of any type, as an array of bool."""
    if not hasattr(value, "__array__"):
        # Callers may pass anything, as they need not check types themselves.
        raise TypeError(
            "a mask must be an array of 0 and 1, along z, y, x,"
            f" not {type(value).__name__}"
        )
    values = np.asarray(value)
    if values.dtype == np.bool_:
        return values
    if values.dtype.kind not in "iuf":
        raise TypeError(f"a mask must be an array of 0 and 1, not of {values.dtype}")
    mask: Mask = values != 0
    is_other = values != mask  # true for all but 0 and 1, so for NaN, too
    if is_other.any():
        raise ValueError(
            "a mask must have the values 0 and 1 alone,"
            f" not {values[is_other][0]:g}: use labels == organ"
        )
    return mask


def check_shapes(reference: VoxelMap | Mask, prediction: VoxelMap | Mask) -> None:
    """Refuse what is not three-dimensional, or differs in shape."""
    if len(reference.shape) != 3 or reference.shape != prediction.shape:
        raise ValueError(
            f"expected one 3-D shape, found {reference.shape} and {prediction.shape}"
        )


def three_lengths(spacing: object) -> Spacing:
    """A spacing as three floats, from a sequence of real numbers of any type."""
    text = f"spacing must be 3 numbers, in mm along z, y, x: {spacing!r}"
    try:
        lengths: tuple[object, ...] = tuple(spacing)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(text) from error
    if len(lengths) != 3:
        raise ValueError(text)
    z, y, x = (length_of(length, text) for length in lengths)
    if max(z, y, x) > LARGEST_MM:
        raise ValueError(f"spacing must be at most {LARGEST_MM:g} mm: {spacing!r}")
    return z, y, x


def length_of(value: object, text: str) -> float:
    """A positive and finite length in mm; `text` says what it must be: a number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(text)
    length = float(value)
    if not (0 < length < math.inf):
        raise ValueError(f"spacing and tolerance must be positive and finite: {value}")
    return length
