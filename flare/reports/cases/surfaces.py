"""Finds how far each part of two surfaces is from the other one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.metrics.surfel_places import Surface


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganSurfaces:
    """The two surfaces of one organ, as its NSD compares them."""

    reference: Surface
    prediction: Surface
    to_prediction: npt.NDArray[np.float64]
    """In mm, of each surfel of the reference that is beyond the tolerance; infinite if
    nothing was predicted."""
    to_reference: npt.NDArray[np.float64]
    """Likewise, of the prediction."""
    area: float
    """Of both surfaces, in mm2."""
    area_beyond: float
    """What of both is beyond the tolerance, in mm2."""

    @property
    def nsd(self) -> float | None:
        """The share that is within; None if there is no surface."""
        return 1 - self.area_beyond / self.area if self.area else None

    @property
    def farthest(self) -> float | None:
        """The largest distance in mm; None if none is beyond the tolerance.

        It is infinite if one surface is not there.
        """
        both = np.concatenate([self.to_prediction, self.to_reference])
        return float(both.max()) if both.size else None


class Nearest:
    """Tells how far points are from a surface."""

    def __init__(self, surface: Surface, spacing: Spacing) -> None:
        self._spacing = np.array(spacing)
        self._tree = None
        if surface.areas.size:  # a tree of this kind is built in no time
            self._tree = cKDTree(
                surface.corners * self._spacing,
                balanced_tree=False,
                compact_nodes=False,
            )

    def distances(
        self, points: npt.NDArray[np.floating | np.integer], limit: float = np.inf
    ) -> npt.NDArray[np.float64]:
        """Of points, in voxels along z, y, x, in mm; infinite beyond the limit."""
        if self._tree is None or not len(points):
            return np.full(len(points), np.inf)
        found, _ = self._tree.query(points * self._spacing, distance_upper_bound=limit)
        return np.asarray(found, dtype=np.float64)


def measured(
    surfaces: tuple[Surface, Surface], nearest: tuple[Nearest, Nearest]
) -> OrganSurfaces:
    """Two surfaces, of reference and prediction, with the distances between them."""
    reference, prediction = surfaces
    to_reference, to_prediction = nearest
    return OrganSurfaces(
        reference=reference,
        prediction=prediction,
        to_prediction=to_prediction.distances(reference.corners[reference.is_beyond]),
        to_reference=to_reference.distances(prediction.corners[prediction.is_beyond]),
        area=reference.area + prediction.area,
        area_beyond=reference.area_beyond + prediction.area_beyond,
    )
