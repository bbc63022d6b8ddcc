"""The pairs that metrics compare: two label maps of a case, and one label in both.

A `MapPair` is made once for a case, or for two masks of a Python user. A `LabelPair` is
cut out of it for each label, and is all that a metric gets. Here alone it is decided
whether the kernel counts, or NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics import packed
from flare.evaluation.metrics.arrays import (
    EMPTY,
    Box,
    Labels,
    Mask,
    Spacing,
    box_of,
    ends_of,
    extent_of,
)
from flare.evaluation.metrics.packed import PackedMap, PackedPair
from flare.evaluation.metrics.plain import PlainMap, PlainPair
from flare.evaluation.metrics.tally import Near, Surfels, Tally
from flare.evaluation.metrics.tolerance import Ball, ball_rows

VoxelMap: TypeAlias = PackedMap | PlainMap
"""The voxels of a label map, as they are held while it is compared."""


class Array(Protocol):
    """A NumPy array, or an object that ``numpy.asarray`` turns into one: a tensor."""

    def __array__(self) -> npt.NDArray[Any]:
        """Its values."""


def empty_map(shape: tuple[int, int, int]) -> VoxelMap:
    """A label map that is to be filled row by row."""
    if packed.kernel_problem() or shape[2] > packed.WIDEST:
        return PlainMap(shape)
    return PackedMap(shape)


def map_of(labels: Labels) -> VoxelMap:
    """The map of an array of labels."""
    depth, height, width = labels.shape
    voxels = empty_map((depth, height, width))
    for plane in labels:
        voxels.add(plane.reshape(-1))
    return voxels


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPair:
    """Two label maps on the same grid; they are never modified.

    A TypeError is raised if the spacing is not made of numbers. A ValueError is raised
    if the maps are not three-dimensional, their shapes differ, or a spacing is not
    positive and finite.
    """

    reference: VoxelMap
    prediction: VoxelMap
    spacing: Spacing
    """Voxel size in mm along z, y, x: the order of the array axes."""

    def __post_init__(self) -> None:
        """Refuse maps of different shapes, and a spacing that is not three lengths."""
        _check_shapes(self.reference, self.prediction)
        three_lengths(self.spacing)

    def cut(
        self, labels: Iterable[int], slices: Mapping[int, slice]
    ) -> Iterator[LabelPair]:
        """A pair for each label: both maps whole, or the label's `slices` of them."""
        maps, spacing = (self.reference, self.prediction), three_lengths(self.spacing)
        for label in labels:
            box = box_around(maps[0].box(label), maps[1].box(label))
            starts, stops = ends_of(box)
            part = slices.get(label, slice(None))
            start, stop, _ = part.indices(maps[0].shape[0])
            starts[0], stops[0] = max(starts[0], start), min(stops[0], stop)
            yield LabelPair(maps, label, spacing, box_of(starts, stops))


def box_around(first: Box, second: Box) -> Box:
    """The smallest box around two boxes; one of them may be empty."""
    if EMPTY in (first, second):
        return second if first == EMPTY else first
    ends, second_ends = ends_of(first), ends_of(second)
    starts = np.minimum(ends[0], second_ends[0])
    return box_of(starts, np.maximum(ends[1], second_ends[1]))


class LabelPair(NamedTuple):
    """One label in two label maps on the same grid, or in some slices of them."""

    maps: tuple[VoxelMap, VoxelMap]
    label: int
    spacing: Spacing
    box: Box
    """The part of the grid that has the label in either map."""

    def tally(self, tolerance: float) -> Tally:
        """Count voxels and surfels; those beyond a tolerance in mm are told apart."""
        return self._pair.tally(self.label, self.box, self._ball(tolerance))

    def surfels(self, tolerance: float) -> tuple[Surfels, Surfels]:
        """List the surfels of both maps; those beyond a tolerance in mm are marked."""
        return self._pair.surfels(self.label, self.box, self._ball(tolerance))

    def near(self, room: int) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other.

        Of those that are not near, at most `room` are listed.
        """
        return self._pair.near(self.label, self.box, self.spacing, room)

    def masks(self, slices: slice) -> tuple[Mask, Mask]:
        """The masks of the label in some slices of the box."""
        _, y, x = self.box
        first, second = (
            label_map.slices(slices)[:, y, x] == self.label for label_map in self.maps
        )
        return first, second

    @property
    def _pair(self) -> PackedPair | PlainPair:
        first, second = self.maps
        if isinstance(first, PackedMap) and isinstance(second, PackedMap):
            return PackedPair(first, second)
        assert isinstance(first, PlainMap)
        assert isinstance(second, PlainMap)
        return PlainPair(first, second)

    def _ball(self, tolerance: float) -> Ball:
        """The ball of a tolerance in mm, as far as it may reach."""
        return ball_rows(self.spacing, tolerance, extent_of(self.box))


def pair_of_masks(reference: Array, prediction: Array, spacing: Spacing) -> LabelPair:
    """Check two masks, and make them label 1 of a pair."""
    first, second = (
        map_of(np.ascontiguousarray(mask).view(np.uint8))
        for mask in check_masks(reference, prediction)
    )
    pair = MapPair(reference=first, prediction=second, spacing=spacing)
    return next(pair.cut(labels=(1,), slices={}))


# --- Checks -----------------------------------------------------------------------


def check_masks(reference: Array, prediction: Array) -> tuple[Mask, Mask]:
    """Two masks as bool arrays of one three-dimensional shape; all else is refused."""
    masks = _mask(reference), _mask(prediction)
    _check_shapes(*masks)
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


def _check_shapes(reference: VoxelMap | Mask, prediction: VoxelMap | Mask) -> None:
    """Refuse what is not three-dimensional, or differs in shape."""
    if len(reference.shape) != 3 or reference.shape != prediction.shape:
        raise ValueError(
            f"expected one 3-D shape, found {reference.shape} and {prediction.shape}"
        )


def three_lengths(spacing: object) -> Spacing:
    """A spacing as three floats, from a sequence of real numbers of any type."""
    text = f"spacing must be 3 numbers, in mm along z, y, x: {spacing!r}"
    try:
        lengths: tuple[Any, ...] = tuple(spacing)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(text) from error
    if not all(map(is_number, lengths)):
        raise TypeError(text)
    if len(lengths) != 3:
        raise ValueError(text)
    z, y, x = map(float, lengths)
    check_lengths((z, y, x))
    return z, y, x


def check_lengths(lengths: Iterable[float]) -> None:
    """Refuse lengths that are not positive and finite, in mm."""
    for length in lengths:
        if not (0 < length < math.inf):
            raise ValueError(
                f"spacing and tolerance must be positive and finite: {length}"
            )


def is_number(value: object) -> bool:
    """Whether a value is a real number, of Python or of NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)
