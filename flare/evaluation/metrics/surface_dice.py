"""The NSD: how much of two surfaces lies within the tolerance of the other one."""

from __future__ import annotations

import math

from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.metrics.pairs import Array, length_of, pair_of_masks
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.tally import Tally


def surface_dice(counts: Tally, spacing: Spacing) -> float:
    """The NSD of what was counted of an organ.

    Surfels of one code have one area, so a sum over codes is that over all surfels.
    """
    voxels = counts.voxels
    codes = counts.surfels.nonzero()[0]  # the others add nothing
    if not (voxels.reference and voxels.prediction and codes.size):
        return float(voxels.reference == voxels.prediction == 0)
    areas = surfel_areas(spacing)[codes]
    surfels, beyond = counts.surfels[codes], counts.beyond[codes]
    within = math.fsum(((surfels - beyond) * areas).tolist())
    return within / math.fsum((surfels * areas).tolist())


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

    >>> import numpy as np
    >>> reference = np.zeros((8, 8, 8), dtype=bool)
    >>> reference[2:6, 2:6, 2:6] = True
    >>> prediction = reference.copy()
    >>> prediction[5] = False
    >>> round(normalized_surface_dice(reference, prediction, (2.5, 0.8, 0.8), 1.0), 4)
    0.9101
    """
    length = length_of(tolerance, f"tolerance must be a number, in mm: {tolerance!r}")
    pair = pair_of_masks(reference, prediction, spacing)
    return surface_dice(pair.tally(length), pair.spacing)
