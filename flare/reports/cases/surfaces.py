"""Measures the errors of an organ: how far surfaces are, components, worst slices.

The weight of a wrong voxel is its volume times its distance from the surface that it is
on the wrong side of. A distance counts up to a limit: else a speck far away would weigh
more than half an organ that was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from scipy.spatial import cKDTree

from flare.evaluation.metrics.finder import Mask, Spacing
from flare.evaluation.metrics.surfels import Surface

Weights = npt.NDArray[np.float64]
"""Of slices, shape (slices,)."""


FAR_MM = 10.0
"""A piece that is nearer belongs to what surrounds the organ."""

_TOUCHING = np.ones((3, 3, 3), dtype=np.bool_)
"""Voxels that have a face, an edge or a corner in common are of one piece."""

FARTHEST_MM = 10.0
"""A distance counts up to here."""

MOST_VOXELS = 20_000
"""Of the wrong voxels of an organ, so many are weighed, evenly taken; more would change
no choice of a slice, and take long where everything is wrong."""


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

    @property
    def area(self) -> float:
        """Of both surfaces, in mm2."""
        return self.reference.area + self.prediction.area

    @property
    def area_beyond(self) -> float:
        """What of both is beyond the tolerance, in mm2."""
        return self.reference.area_beyond + self.prediction.area_beyond

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A piece that shares no voxel with the other label map's organ."""

    voxels: int
    distance: float
    """From the other label map's organ, in mm."""


def far_components(
    mask: Mask,
    other: Mask,
    before: tuple[int, int, int],
    surface: Surface,
    distances: npt.NDArray[np.float64],
) -> tuple[Component, ...]:
    """Find component pieces of an organ, the largest first.

    Parameters
    ----------
    mask, other : ndarray of bool
        The organ in this label map and in the other one, cut to where either is.
    before : tuple of int
        How many voxels lie before that part along z, y, x.
    surface : Surface
        Of `mask`.
    distances : ndarray of float
        Of the surfels that are beyond the tolerance, from the other's surface, in mm.
    """
    is_far = distances > FAR_MM
    if not is_far.any() or not other.any():
        return ()
    pieces, count = ndimage.label(mask, _TOUCHING)
    shared = np.zeros(count + 1, dtype=np.bool_)
    shared[np.unique(pieces[other])] = True
    nearest = np.full(count + 1, np.inf)
    around = _piece_at(pieces, surface.corners - before)
    np.minimum.at(nearest, around[surface.is_beyond], distances)
    nearest[around[~surface.is_beyond]] = 0.0
    voxels = np.bincount(pieces.reshape(-1), minlength=count + 1)
    return tuple(
        sorted(
            (
                Component(voxels=int(voxels[piece]), distance=float(nearest[piece]))
                for piece in range(1, count + 1)
                if not shared[piece] and FAR_MM < nearest[piece] < np.inf
            ),
            key=lambda component: (-component.voxels, -component.distance),
        )
    )


def _piece_at(
    pieces: npt.NDArray[np.int32], corners: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Of which piece the surfel at each corner is: one of the eight voxels tells it."""
    padded = np.pad(pieces, 1)
    found = np.zeros(len(corners), dtype=padded.dtype)
    for shift in np.ndindex(2, 2, 2):
        z, y, x = (corners + shift).T
        np.maximum(found, padded[z, y, x], out=found)
    return found


def add_weights(
    weights: Sequence[Weights],
    masks: tuple[Mask, Mask],
    before: tuple[int, int, int],
    nearest: Sequence[Nearest],
    spacing: Spacing,
) -> None:
    """Add what the errors of one organ weigh in each slice.

    Parameters
    ----------
    weights : tuple of ndarray of float
        Of the slices along z, y, x, in mm4; they are changed.
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
        far = np.minimum(other.distances(voxels + 0.5, limit=FARTHEST_MM), FARTHEST_MM)
        for axis, along in enumerate(weights):
            along += np.bincount(voxels[:, axis], far * (volume * step), along.size)
