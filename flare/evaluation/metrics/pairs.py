"""What metrics compare: two label maps of a case, and one label in both.

A `MapPair` is made once for a case, or for two masks of a Python user. A `LabelPair` is
cut out of it for each label, and is all that a metric gets: the two label maps, where
the label is, and the voxel size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import (
    Bytes,
    Labels,
    Mask,
    ReusedMemory,
    Spacing,
)
from flare.evaluation.metrics.occupancy import Occupancy, find_labels
from flare.evaluation.metrics.tolerance import Ball
from flare.evaluation.metrics.windows import Window, cut_windows


class Array(Protocol):
    """An array of NumPy, or what ``numpy.asarray`` makes one of, such as a tensor."""

    def __array__(self) -> npt.NDArray[Any]:
        """Its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPair:
    """Two label maps on the same grid, of shape (Z, Y, X); they are never modified.

    Raises
    ------
    TypeError
        If the spacing is not made of numbers.
    ValueError
        If the maps are not three-dimensional, their shapes differ, or a spacing is not
        positive and finite.
    """

    reference: Labels
    prediction: Labels
    spacing: Spacing
    """Voxel size in mm along z, y, x: the order of the array axes."""
    occupied: tuple[Mapping[int, Occupancy], Mapping[int, Occupancy]] | None = None
    """Where the labels are in reference and prediction, if that is known already."""

    def __post_init__(self) -> None:
        """Refuse two shapes, and a spacing without three lengths."""
        _check_shapes(self.reference, self.prediction)
        three_lengths(self.spacing)

    def cut(
        self, labels: Iterable[int], slices: Mapping[int, slice], memory: ReusedMemory
    ) -> Iterator[LabelPair]:
        """Each label in both maps, or in those `slices` in which it is compared."""
        labels, spacing = tuple(labels), three_lengths(self.spacing)
        in_reference, in_prediction = self.occupied or (
            find_labels(self.reference, labels),
            find_labels(self.prediction, labels),
        )
        for label in labels:
            part = slices.get(label, slice(None))
            yield LabelPair(
                reference=self.reference[part],
                prediction=self.prediction[part],
                spacing=spacing,
                occupancy=(in_reference[label] | in_prediction[label]).within(part),
                memory=memory,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPair:
    """One label in two label maps on the same grid, or in some slices of them."""

    reference: Labels
    prediction: Labels
    spacing: Spacing
    occupancy: Occupancy
    """The places where either map has the label."""
    memory: ReusedMemory
    """The owner of all buffers; it is overwritten."""

    def windows(self, ball: Ball) -> Iterator[Window]:
        """The windows in which the label is compared, with margins for a ball."""
        return cut_windows(self.occupancy, ball, self.memory)

    def masks(self, window: Window) -> tuple[Bytes, Bytes]:
        """Voxels of the label in a window.

        Returns flat buffers of reference and prediction: 1 where the label is, else 0.
        """
        first, second = window.buffer("first"), window.buffer("second")
        start = window.first_slice
        for label_map, mask in ((self.reference, first), (self.prediction, second)):
            box = label_map[window.box]
            depth, height, width = box.shape
            mask[:] = 0
            voxels = mask.reshape(window.shape)
            voxels[start : start + depth, :height, :width] = box
            np.equal(mask, self.occupancy.label, out=mask.view(np.bool_))
        return first, second


def pair_of_masks(reference: Array, prediction: Array, spacing: Spacing) -> LabelPair:
    """Two masks as label 1 of two label maps; errors are those of the metrics."""
    masks = check_masks(reference, prediction)
    first, second = (np.ascontiguousarray(mask).view(np.uint8) for mask in masks)
    pair = MapPair(reference=first, prediction=second, spacing=spacing)
    return next(pair.cut((1,), {}, ReusedMemory()))


# --- Checks -----------------------------------------------------------------------


def check_masks(reference: Array, prediction: Array) -> tuple[Mask, Mask]:
    """Two masks as volumes of bool of one shape; anything else is refused."""
    masks = _mask(reference), _mask(prediction)
    _check_shapes(*masks)
    return masks


def _mask(value: Array) -> Mask:
    """Make an array of 0 and 1, whatever its type, one of bool."""
    if not hasattr(value, "__array__"):
        # They may be anything: callers need not check types.
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
    is_odd = values != mask  # NaN is unlike anything
    if is_odd.any():
        raise ValueError(
            "a mask must have the values 0 and 1 alone,"
            f" not {values[is_odd][0]:g}: use labels == organ"
        )
    return mask


def _check_shapes(
    reference: npt.NDArray[np.generic], prediction: npt.NDArray[np.generic]
) -> None:
    """Refuse arrays that are not volumes of one shape."""
    if reference.ndim != 3 or reference.shape != prediction.shape:
        raise ValueError(
            f"expected one 3-D shape, found {reference.shape} and {prediction.shape}"
        )


def three_lengths(spacing: object) -> Spacing:
    """Make a spacing, of whatever kind of numbers and of sequence, one of floats."""
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
    """Whether a value is a real number, also one of numpy's."""
    return isinstance(value, Real) and not isinstance(value, bool)
