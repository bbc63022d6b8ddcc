"""What is counted of one label in two label maps, and the lists of its surfels.

``kernel.c`` counts, or `flare.evaluation.metrics.plain` where that is not compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Bytes, Counts, Mask


class Voxels(NamedTuple):
    """How many voxels two masks have."""

    reference: int
    prediction: int
    shared: int

    @property
    def dsc(self) -> float:
        """The Dice coefficient: 1 if both masks are empty."""
        total = self.reference + self.prediction
        return 2 * self.shared / total if total else 1.0


class Surfels(NamedTuple):
    """Surfels of one mask, in the order of the grid."""

    corners: npt.NDArray[np.int32]
    """Shape (n, 3): the corners of the grid that they sit on, along z, y, x. Corner
    (z, y, x) is before voxel (z, y, x) on all axes."""
    codes: Bytes
    """Shape (n,): which of the eight voxels around the corner the mask has."""
    is_beyond: Mask
    """Shape (n,): has the other mask none within the tolerance?"""


class Near(NamedTuple):
    """How far the surfels of one mask are from the other mask."""

    counts: Counts
    """Shape (distances + 1, 256): how many there are, by the distance's place in the
    ring of `flare.evaluation.metrics.ring`, and by code; behind those that are near,
    all that are far."""
    far: Surfels
    """Those that are far; the first of many."""


class Tally(NamedTuple):
    """What is counted of a label."""

    voxels: Voxels
    surfels: Counts
    """Numbers by code, of both masks together: shape (256,)."""
    beyond: Counts
    """Of those that have none of the other mask within the tolerance."""
