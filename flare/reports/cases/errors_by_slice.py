"""Weighs the errors of each slice, to find the worst slice of each plane.

The weight of a wrong voxel is its volume times its distance from the surface that it is
on the wrong side of. A distance counts up to a limit: else a speck far away would weigh
more than half an organ that was missed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Mask, Spacing
from flare.reports.cases.surfaces import Nearest

FARTHEST_MM = 10.0
"""A distance counts up to here."""

MOST_VOXELS = 20_000
"""Of the wrong voxels of an organ, so many are weighed, evenly taken; more would change
no choice of a slice, and take long where everything is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What the errors of each slice weigh, in mm4, along the three axes z, y, x."""

    along: tuple[
        npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]
    ]

    def add(
        self,
        masks: tuple[Mask, Mask],
        before: tuple[int, int, int],
        nearest: tuple[Nearest, Nearest],
        spacing: Spacing,
    ) -> None:
        """Add the errors of one organ.

        Parameters
        ----------
        masks : pair of ndarray of bool
            Reference and prediction, cut to where either is.
        before : tuple of int
            How many voxels lie before that part along z, y, x.
        nearest : pair of Nearest
            Of their surfaces.
        spacing : tuple of float
            In mm along z, y, x.
        """
        volume = float(np.prod(spacing))
        reference, prediction = masks
        for wrong, other in (
            (reference & ~prediction, nearest[1]),  # missed: outside of the prediction
            (prediction & ~reference, nearest[0]),
        ):
            where = np.flatnonzero(wrong)
            step = -(-where.size // MOST_VOXELS) or 1
            voxels = np.column_stack(np.unravel_index(where[::step], wrong.shape))
            voxels += before
            far = np.minimum(
                other.distances(voxels + 0.5, limit=FARTHEST_MM), FARTHEST_MM
            )
            for axis, weights in enumerate(self.along):
                weights += np.bincount(
                    voxels[:, axis], far * (volume * step), weights.size
                )


def no_errors(shape: tuple[int, int, int]) -> Weights:
    """Weights of label maps without any error so far."""
    z, y, x = (np.zeros(size) for size in shape)
    return Weights(along=(z, y, x))
