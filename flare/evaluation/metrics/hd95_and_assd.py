"""The HD95 and the ASSD: how far two surfaces are from each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flare.challenge.metric import diagonal_mm
from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.metrics.comparison import Agreement, compare_organ
from flare.evaluation.metrics.pairs import Array, pair_of_masks
from flare.evaluation.metrics.sides import FARTHEST


def hausdorff_95(agreement: Agreement) -> float | None:
    """The larger of both percentiles; None if a mask is empty."""
    if not agreement.distances:
        return None
    return max(side.within(1 - FARTHEST) for side in agreement.distances)


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

    >>> import numpy as np
    >>> reference = np.zeros((8, 8, 8), dtype=bool)
    >>> reference[2:6, 2:6, 2:6] = True
    >>> prediction = reference.copy()
    >>> prediction[5] = False
    >>> hd95(reference, prediction, (2.5, 0.8, 0.8))
    2.5
    """
    return _distance(hausdorff_95, reference, prediction, spacing)


def average_distance(agreement: Agreement) -> float | None:
    """The mean over both surfaces, weighted by area; None if a mask is empty."""
    sides = agreement.distances or ()
    area = sum(side.area for side in sides)
    return sum(side.sum for side in sides) / area if area else None


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
    pair = pair_of_masks(reference, prediction, spacing)
    # The tolerance is for the NSD, which nobody reads here: no distance depends on it.
    agreement = compare_organ(pair, tolerance=1.0, has_distances=True)
    value = metric(agreement)
    if value is not None:
        return value
    if not agreement.reference_voxels and not agreement.prediction_voxels:
        return 0.0
    return diagonal_mm(np.asarray(reference).shape, spacing)
