"""The metrics of two masks of one organ, for Python users.

Values are those of an evaluation, which `flare.evaluation.metrics` computes. Here is
what callers meet: the checks of what they pass, and the values for empty masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flare.challenge.metric import diagonal_mm
from flare.evaluation.labelmaps.grid import LARGEST_MM
from flare.evaluation.metrics.arrays import Mask, Spacing
from flare.evaluation.metrics.comparison import (
    Agreement,
    average_distance,
    compare_organ,
    hausdorff_95,
)
from flare.evaluation.metrics.pairs import pair_of_masks
from flare.evaluation.metrics.plain import count_voxels
from flare.evaluation.metrics.tally import LabelPair


class Array(Protocol):
    """A NumPy array, or an object that ``numpy.asarray`` turns into one: a tensor."""

    def __array__(self) -> npt.NDArray[Any]:
        """Its values."""


def dice(reference: Array, prediction: Array) -> float:
    """Twice the shared volume, divided by the sum of both volumes.

    Parameters
    ----------
    reference, prediction : array, shape (Z, Y, X)
        Masks of one organ on the same grid: bool, or 0 and 1 of any type, in an array
        of NumPy or what has ``__array__``, as a tensor on the CPU. Never modified.

    Returns
    -------
    float
        From 0 (worst) to 1 (best). 1.0 if both masks are empty, 0.0 if one is.

    Raises
    ------
    TypeError
        If a mask is no array of numbers, but an image or a list.
    ValueError
        If a mask has other values than 0 and 1, is not three-dimensional, or has
        another shape than the other.

    Notes
    -----
    Equals ``compute_dice_coefficient`` of FLARE21's official script [1]_, which leaves
    two empty masks to its caller: the caller scores them 1, as is done here.

    References
    ----------
    .. [1] https://github.com/JunMa11/FLARE2021, FLARE21/Evaluation, commit aad2cc2

    Examples
    --------
    Two of three voxels each, one of them shared:

    >>> import numpy as np
    >>> reference = np.array([[[True, True, False]]])
    >>> prediction = np.array([[[False, True, True]]])
    >>> dice(reference, prediction)
    0.5
    """
    return count_voxels(*_masks(reference, prediction)).dsc


def normalized_surface_dice(
    reference: Array, prediction: Array, spacing: Spacing, tolerance: float
) -> float:
    """Share of both surfaces that lies within `tolerance` of the other surface.

    Parameters
    ----------
    reference, prediction : array, shape (Z, Y, X)
        Masks of one organ on the same grid, as for `dice`. Never modified.
    spacing : tuple of float
        Voxel size in mm along z, y, x: the order of the array axes.
    tolerance : float
        Largest accepted distance in mm; a distance equal to it counts as within.

    Returns
    -------
    float
        From 0 (worst) to 1 (best). 1.0 if both masks are empty, 0.0 if one is.

    Raises
    ------
    TypeError
        As `dice`; if `spacing` or `tolerance` is not made of numbers.
    ValueError
        As `dice`; if `spacing` is not 3 numbers, or `spacing` or `tolerance` is not
        positive and finite.

    Notes
    -----
    Surfels of a 2 x 2 x 2 neighbourhood, weighted by area [1]_, as in FLARE's official
    scripts. Libraries that count border voxels mostly give lower values on the same
    masks, but higher ones where the sides of thick slices are wrong: a surfel there is
    large, and a voxel counts as one wherever it is.
    The time grows with the number of grid rows in a ball of the tolerance's radius.

    References
    ----------
    .. [1] Nikolov et al., J Med Internet Res 23(7), 2021, e26151. doi:10.2196/26151

    Examples
    --------
    A cube loses its last slice, 2.5 mm thick:

    >>> import numpy as np
    >>> reference = np.zeros((8, 8, 8), dtype=bool)
    >>> reference[2:6, 2:6, 2:6] = True
    >>> prediction = reference.copy()
    >>> prediction[5] = False
    >>> round(normalized_surface_dice(reference, prediction, (2.5, 0.8, 0.8), 1.0), 4)
    0.9101
    """
    length = length_of(tolerance, f"tolerance must be a number, in mm: {tolerance!r}")
    return compare_organ(_pair(reference, prediction, spacing), length).nsd


def hd95(reference: Array, prediction: Array, spacing: Spacing) -> float:
    """Distance within which 95 % of the area of each surface are from the other one.

    Masks, spacing and errors are those of `normalized_surface_dice`.

    Returns
    -------
    float
        In mm, from 0 (best). 0 if both masks are empty; if one is, the diagonal of the
        grid.

    Notes
    -----
    The larger of the two directions, from the surfels of the NSD: equals
    ``compute_robust_hausdorff`` of the surface-distance package at 95 %.

    Examples
    --------
    A cube loses its last slice, 2.5 mm thick:

    >>> import numpy as np
    >>> reference = np.zeros((8, 8, 8), dtype=bool)
    >>> reference[2:6, 2:6, 2:6] = True
    >>> prediction = reference.copy()
    >>> prediction[5] = False
    >>> hd95(reference, prediction, (2.5, 0.8, 0.8))
    2.5
    """
    return _distance(hausdorff_95, reference, prediction, spacing)


def assd(reference: Array, prediction: Array, spacing: Spacing) -> float:
    """Mean distance of both surfaces from each other, weighted by area.

    Masks, spacing, errors, and the values for empty masks are those of `hd95`.

    Returns
    -------
    float
        In mm, from 0 (best).

    Notes
    -----
    All surfels of both surfaces together: the two numbers of
    ``compute_average_surface_distance`` of the surface-distance package, each weighted
    by the area of its surface.

    Examples
    --------
    Two single voxels, five steps of 1 mm apart:

    >>> import numpy as np
    >>> reference = np.zeros((1, 1, 6), dtype=bool)
    >>> reference[0, 0, 0] = True
    >>> assd(reference, reference[:, :, ::-1], (1, 1, 1))
    4.5
    """
    return _distance(average_distance, reference, prediction, spacing)


def _distance(
    metric: Callable[[Agreement], float | None],
    reference: Array,
    prediction: Array,
    spacing: Spacing,
) -> float:
    """A distance of two masks; of an empty and a filled one, the grid's diagonal."""
    pair = _pair(reference, prediction, spacing)
    # The tolerance is for the NSD, which nobody reads here: no distance depends on it.
    agreement = compare_organ(pair, tolerance=1.0, has_distances=True)
    value = metric(agreement)
    if value is not None:
        return value
    if not any(agreement.voxels):
        return 0.0
    return diagonal_mm(pair.maps[0].shape, pair.spacing)


# --- Checks -----------------------------------------------------------------------


def _pair(reference: Array, prediction: Array, spacing: object) -> LabelPair:
    masks = _masks(reference, prediction)
    return pair_of_masks(*masks, three_lengths(spacing))


def _masks(reference: Array, prediction: Array) -> tuple[Mask, Mask]:
    """Two masks as bool arrays of one three-dimensional shape; all else is refused."""
    first, second = _mask(reference), _mask(prediction)
    if first.ndim != 3 or first.shape != second.shape:
        raise ValueError(
            f"expected one 3-D shape, found {first.shape} and {second.shape}"
        )
    return first, second


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
