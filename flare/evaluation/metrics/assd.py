"""The ASSD: how far two surfaces are from each other on average."""

from __future__ import annotations

from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.metrics.comparison import Agreement, distance_of_masks
from flare.evaluation.metrics.pairs import Array


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
    return distance_of_masks(average_distance, reference, prediction, spacing)
