"""The DSC: how much of two volumes is shared."""

from __future__ import annotations

from flare.evaluation.metrics.pairs import Array, check_masks
from flare.evaluation.metrics.plain import count_voxels


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
    return count_voxels(*check_masks(reference, prediction)).dsc
