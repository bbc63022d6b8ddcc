"""The HD95: how far 95 % of each surface are from the other one at most."""

from __future__ import annotations

from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.metrics.comparison import Agreement, distance_of_masks
from flare.evaluation.metrics.pairs import Array
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
    return distance_of_masks(hausdorff_95, reference, prediction, spacing)
