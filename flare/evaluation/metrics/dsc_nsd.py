"""DSC and NSD of masks and of label maps: arrays in, numbers out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.finder import (
    Labels,
    Mask,
    Occupancy,
    ReusedMemory,
    Spacing,
    ball_rows,
    find_labels,
)
from flare.evaluation.metrics.surfels import dice_of_counts, surfel_areas, tally

if TYPE_CHECKING:
    from flare.evaluation.metrics.distances import Sides


class Array(Protocol):
    """An array of NumPy, or what ``numpy.asarray`` makes one of, such as a tensor."""

    def __array__(self) -> npt.NDArray[Any]:
        """Its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well one label of a prediction agrees with the reference."""

    reference_voxels: int
    prediction_voxels: int
    dsc: float
    nsd: float
    distances: Sides | None = None
    """Of both surfaces, if they were asked for and both have the label."""


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

    >>> reference = np.array([[[True, True, False]]])
    >>> prediction = np.array([[[False, True, True]]])
    >>> dice(reference, prediction)
    0.5
    """
    first, second = _masks(reference, prediction)
    return dice_of_counts(
        int(np.count_nonzero(first)),
        int(np.count_nonzero(second)),
        int(np.count_nonzero(first & second)),
    )


def normalized_surface_dice(
    reference: Array, prediction: Array, spacing: Spacing, tolerance: float
) -> float:
    """Share of both surfaces that lies within `tolerance` of the other surface.

    Parameters
    ----------
    reference, prediction : array, shape (Z, Y, X)
        Masks of one organ on the same grid: bool, or 0 and 1 of any type, in an array
        of NumPy or what has ``__array__``, as a tensor on the CPU. Never modified.
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
        If a mask is no array of numbers, but an image or a list; if `spacing` or
        `tolerance` is not made of numbers.
    ValueError
        If a mask has other values than 0 and 1, is not three-dimensional, or has
        another shape than the other; if `spacing` is not 3 numbers, or `spacing` or
        `tolerance` is not positive and finite.

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

    >>> reference = np.zeros((8, 8, 8), dtype=bool)
    >>> reference[2:6, 2:6, 2:6] = True
    >>> prediction = reference.copy()
    >>> prediction[5] = False
    >>> round(normalized_surface_dice(reference, prediction, (2.5, 0.8, 0.8), 1.0), 4)
    0.9101
    """
    if not _is_number(tolerance):
        raise TypeError(f"tolerance must be a number, in mm: {tolerance!r}")
    return _compare_masks(reference, prediction, spacing, tolerance).nsd


def hd95(reference: Array, prediction: Array, spacing: Spacing) -> float:
    """Distance within which 95 % of the area of each surface are from the other one.

    Parameters
    ----------
    reference, prediction : array, shape (Z, Y, X)
        Masks of one organ on the same grid: bool, or 0 and 1 of any type, in an array
        of NumPy or what has ``__array__``, as a tensor on the CPU. Never modified.
    spacing : tuple of float
        Voxel size in mm along z, y, x: the order of the array axes.

    Returns
    -------
    float
        In mm, from 0 (best). 0 if both masks are empty; if one is, the diagonal of the
        grid.

    Raises
    ------
    TypeError, ValueError
        As `normalized_surface_dice`.

    Notes
    -----
    The larger of the two directions, from the surfels of the NSD: equals
    ``compute_robust_hausdorff`` of the surface-distance package at 95 %.

    Examples
    --------
    A cube loses its last slice, 2.5 mm thick:

    >>> reference = np.zeros((8, 8, 8), dtype=bool)
    >>> reference[2:6, 2:6, 2:6] = True
    >>> prediction = reference.copy()
    >>> prediction[5] = False
    >>> hd95(reference, prediction, (2.5, 0.8, 0.8))
    2.5
    """
    from flare.evaluation.metrics.distances import hausdorff_95

    return _distance(hausdorff_95, reference, prediction, spacing)


def assd(reference: Array, prediction: Array, spacing: Spacing) -> float:
    """Mean distance of both surfaces from each other, weighted by area.

    Parameters, errors, and the values for empty masks are those of `hd95`.

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

    >>> reference = np.zeros((1, 1, 6), dtype=bool)
    >>> reference[0, 0, 0] = True
    >>> assd(reference, reference[:, :, ::-1], (1, 1, 1))
    4.5
    """
    from flare.evaluation.metrics.distances import average_distance

    return _distance(average_distance, reference, prediction, spacing)


def _distance(
    metric: Callable[[Agreement], float | None],
    reference: Array,
    prediction: Array,
    spacing: Spacing,
) -> float:
    """A distance of two masks."""
    found = _compare_masks(reference, prediction, spacing, 1.0, has_distances=True)
    value = metric(found)
    if value is not None:
        return value
    if not found.reference_voxels and not found.prediction_voxels:
        return 0.0
    shape = np.asarray(reference).shape
    return math.hypot(*(n * mm for n, mm in zip(shape, spacing, strict=True)))


def _compare_masks(
    reference: Array,
    prediction: Array,
    spacing: Spacing,
    tolerance: float,
    *,
    has_distances: bool = False,
) -> Agreement:
    """How two masks agree, as the only label of two label maps."""
    first, second = (
        np.ascontiguousarray(mask).view(np.uint8)
        for mask in _masks(reference, prediction)
    )
    tolerances = {1: tolerance}
    return compare_labels(
        first, second, spacing, tolerances, has_distances=has_distances
    )[1]


def compare_labels(
    reference: Labels,
    prediction: Labels,
    spacing: Spacing,
    tolerances: Mapping[int, float],
    *,
    occupied: tuple[Mapping[int, Occupancy], Mapping[int, Occupancy]] | None = None,
    crops: Mapping[int, Callable[[slice], slice]] | None = None,
    memory: ReusedMemory | None = None,
    smallest_dsc: float = 0.0,
    has_distances: bool = False,
) -> dict[int, Agreement]:
    """Compare several labels of two label maps, each as a mask of its own.

    Parameters
    ----------
    reference, prediction : ndarray of uint8, shape (Z, Y, X)
        Label maps on the same grid. Never modified.
    spacing : tuple of float
        Voxel size in mm along z, y, x: the order of the array axes.
    tolerances : mapping of int to float
        For each label to compare, 1 to 255, its NSD tolerance in mm.
    occupied : pair of mappings of int to Occupancy, optional
        Where the labels are in reference and prediction, if that is known already.
    crops : mapping of int to callable, optional
        For labels that are compared in some slices alone: which ones, given those from
        the first to the last that hold the label in the reference, if there are any.
    memory : ReusedMemory, optional
        To be used again, when many label maps are compared.
    smallest_dsc : float
        Where the DSC is smaller, no surfel is counted, and NSD is 0.
    has_distances : bool
        Whether distances of surfaces are computed as well, whatever the DSC is.

    Returns
    -------
    dict of int to Agreement
        As `dice` and `normalized_surface_dice` of the label's two masks.

    Raises
    ------
    TypeError
        If `spacing` is not made of numbers.
    ValueError
        If the maps are not three-dimensional, their shapes differ, or a spacing or
        tolerance is not positive and finite.
    """
    if has_distances:  # not at the top: its module is loaded where they are asked for
        from flare.evaluation.metrics.distances import Surfels

    _check_shapes(reference, prediction)
    spacing = three_lengths(spacing)
    _check_lengths(tolerances.values())
    in_reference, in_prediction = occupied or (
        find_labels(labels, tuple(tolerances)) for labels in (reference, prediction)
    )
    agreements = {}
    memory = memory or ReusedMemory()
    for label, tolerance in tolerances.items():
        zs = slice(None)
        slices = in_reference[label].span_z
        if crops and label in crops and slices.stop > slices.start:
            zs = crops[label](slices)
        occupancy = (in_reference[label] | in_prediction[label]).within(zs)
        ball = ball_rows(spacing, tolerance, occupancy.extent)
        maps = reference[zs], prediction[zs]
        found = Surfels(maps, spacing, occupancy, memory) if has_distances else None
        add = found.add if found else None
        voxels, surfels = tally(maps, occupancy, ball, memory, smallest_dsc, add)
        agreement = _agreement(voxels, surfels, spacing)
        if found and voxels[0] and voxels[1]:
            agreement = replace(agreement, distances=found.distances())
        agreements[label] = agreement
    return agreements


def _masks(reference: Array, prediction: Array) -> tuple[Mask, Mask]:
    """Two masks as volumes of bool of one shape; refuse what is none."""
    first, second = _mask(reference), _mask(prediction)
    _check_shapes(first, second)
    return first, second


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


def three_lengths(spacing: object) -> Spacing:
    """Make a spacing, of whatever kind of numbers and of sequence, one of floats."""
    text = f"spacing must be 3 numbers, in mm along z, y, x: {spacing!r}"
    try:
        lengths: tuple[Any, ...] = tuple(spacing)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(text) from error
    if not all(map(_is_number, lengths)):
        raise TypeError(text)
    if len(lengths) != 3:
        raise ValueError(text)
    z, y, x = map(float, lengths)
    _check_lengths((z, y, x))
    return z, y, x


def _check_lengths(lengths: Iterable[float]) -> None:
    """Refuse what is no length in mm."""
    for length in lengths:
        if not (0 < length < math.inf):
            raise ValueError(
                f"spacing and tolerance must be positive and finite: {length}"
            )


def _is_number(value: object) -> bool:
    """Whether a value is a real number, also one of numpy's."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_shapes(
    reference: npt.NDArray[np.generic], prediction: npt.NDArray[np.generic]
) -> None:
    """Refuse arrays that are not volumes of one shape."""
    if reference.ndim != 3 or reference.shape != prediction.shape:
        raise ValueError(
            f"expected one 3-D shape, found {reference.shape} and {prediction.shape}"
        )


def _agreement(
    voxels: tuple[int, int, int], counts: npt.NDArray[np.int64], spacing: Spacing
) -> Agreement:
    """Turn what `tally` has counted, of shape (2, 256), into DSC and NSD."""
    first, second, _ = voxels
    codes = counts[0].nonzero()[0]  # the others add nothing
    areas, (surfels, beyond) = surfel_areas(spacing)[codes], counts[:, codes]
    within = math.fsum(((surfels - beyond) * areas).tolist())
    total = math.fsum((surfels * areas).tolist())
    nsd = within / total if first and second and codes.size else first == second == 0
    return Agreement(
        reference_voxels=first,
        prediction_voxels=second,
        dsc=dice_of_counts(*voxels),
        nsd=float(nsd),
    )


def volume_difference(found: Agreement) -> float:
    """How much larger the prediction is, relative to the reference.

    Where there is no reference to relate it to, a prediction is 1 too large.
    """
    first, second = found.reference_voxels, found.prediction_voxels
    return (second - first) / first if first else float(second > 0)
