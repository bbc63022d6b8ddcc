"""The pairs that metrics compare: two label maps of a case, and one label in both.

A `MapPair` is made once for a case, or for two masks of a Python user. A `LabelPair` is
cut out of it for each label, and is all that a metric gets: the two label maps, the
places of the label, and the voxel size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Bytes, Labels, Mask, ReusedMemory, Spacing
from flare.evaluation.metrics.occupancy import Occupancy, find_labels
from flare.evaluation.metrics.tolerance import Ball
from flare.evaluation.metrics.windows import Window, cut_windows


class Array(Protocol):
    """A NumPy array, or an object that ``numpy.asarray`` turns into one: a tensor."""

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
    """The places of each label in reference and prediction; None to look for them."""

    def __post_init__(self) -> None:
        """Refuse maps of different shapes, and a spacing that is not three lengths."""
        _check_shapes(self.reference, self.prediction)
        three_lengths(self.spacing)

    def cut(
        self, labels: Iterable[int], slices: Mapping[int, slice], memory: ReusedMemory
    ) -> Iterator[LabelPair]:
        """A pair for each label: both maps whole, or the label's `slices` of them."""
        labels = tuple(labels)
        spacing = three_lengths(self.spacing)
        if self.occupied:
            in_reference, in_prediction = self.occupied
        else:
            in_reference = find_labels(self.reference, labels)
            in_prediction = find_labels(self.prediction, labels)
        for label in labels:
            part = slices.get(label, slice(None))
            occupancy = in_reference[label] | in_prediction[label]
            yield LabelPair(
                reference=self.reference[part],
                prediction=self.prediction[part],
                spacing=spacing,
                occupancy=occupancy.within(part),
                memory=memory,
            )


class LabelPair(NamedTuple):
    """One label in two label maps on the same grid, or in some slices of them."""

    reference: Labels
    prediction: Labels
    spacing: Spacing
    occupancy: Occupancy
    """The places where either map has the label."""
    memory: ReusedMemory
    """The owner of all buffers; it is overwritten."""

    def windows(self, ball: Ball) -> Iterator[Window]:
        """The windows in which the label is compared, with room for the ball."""
        return cut_windows(self.occupancy, ball, self.memory)

    def masks(self, window: Window) -> tuple[Bytes, Bytes]:
        """Voxels of the label in a window.

        Returns flat buffers of reference and prediction: 1 where the label is, else 0.
        """
        masks = window.buffer("first"), window.buffer("second")
        label_maps = self.reference, self.prediction
        box_start = window.first_slice
        for label_map, mask in zip(label_maps, masks, strict=True):
            box = label_map[window.box]
            depth, height, width = box.shape
            mask[:] = 0
            voxels = mask.reshape(window.shape)
            voxels[box_start : box_start + depth, :height, :width] = box
            # The mask overwrites the labels, which spares a second buffer.
            np.equal(mask, self.occupancy.label, out=mask.view(np.bool_))
        return masks


def pair_of_masks(reference: Array, prediction: Array, spacing: Spacing) -> LabelPair:
    """Check two masks, and make them label 1 of a pair."""
    masks = check_masks(reference, prediction)
    label_maps = [np.ascontiguousarray(mask).view(np.uint8) for mask in masks]
    pair = MapPair(reference=label_maps[0], prediction=label_maps[1], spacing=spacing)
    return next(pair.cut(labels=(1,), slices={}, memory=ReusedMemory()))


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


def _check_shapes(
    reference: npt.NDArray[np.generic], prediction: npt.NDArray[np.generic]
) -> None:
    """Refuse arrays that are not three-dimensional, or differ in shape."""
    if reference.ndim != 3 or reference.shape != prediction.shape:
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
