"""Measures the errors of an organ: how far surfaces are, components, worst slices.

The weight of a wrong voxel is its volume times its distance from the surface that it is
on the wrong side of. A distance counts up to a limit: else a speck far away would weigh
more than half an organ that was missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
class Component:
    """A piece that shares no voxel with the other label map's organ."""

    voxels: int
    distance: float
    """From the other label map's organ, in mm."""


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
    false_positives: tuple[Component, ...] = ()
    """Pieces of the prediction that lie far from the reference."""
    false_negatives: tuple[Component, ...] = ()
    """Pieces of the reference that lie far from the prediction."""

    @property
    def nsd(self) -> float | None:
        """The share of both that is within; None if there is no surface."""
        area = self.reference.area + self.prediction.area
        beyond = self.reference.area_beyond + self.prediction.area_beyond
        return 1 - beyond / area if area else None

    @property
    def farthest(self) -> float | None:
        """The largest distance in mm; None if none is beyond the tolerance.

        It is infinite if one surface is not there.
        """
        both = np.concatenate([self.to_prediction, self.to_reference])
        return float(both.max()) if both.size else None


def compare_surfaces(
    surfels: tuple[Surface, Surface],
    masks: tuple[Mask, Mask],
    box: tuple[slice, slice, slice],
    spacing: Spacing,
    weights: Sequence[Weights],
    *,
    has_pieces: bool,
) -> OrganSurfaces:
    """Compare the surfaces of an organ, and add what its errors weigh in each slice.

    Parameters
    ----------
    surfels : pair of Surface
        Of the reference and of the prediction.
    masks : pair of ndarray of bool
        The same, cut to the box around both.
    box : tuple of slice
        That part of the label maps, along z, y, x.
    spacing : tuple of float
        In mm along z, y, x.
    weights : sequence of ndarray of float
        Of the slices along z, y, x, in mm4; they are changed.
    has_pieces : bool
        Whether pieces far away are looked for.
    """
    reference, prediction = surfels
    before = np.array([part.start for part in box])
    near = [_distances_to(surface, spacing) for surface in surfels]
    to_prediction = near[1](reference.corners[reference.is_beyond], np.inf)
    to_reference = near[0](prediction.corners[prediction.is_beyond], np.inf)
    _add_weights(weights, masks, before, near, spacing)
    pieces: list[tuple[Component, ...]] = [(), ()]
    if has_pieces:  # else they may lie where there are no surfels
        first, second = masks
        pieces = [
            _far_pieces(second, first, before, prediction, to_reference),
            _far_pieces(first, second, before, reference, to_prediction),
        ]
    return OrganSurfaces(
        reference=reference,
        prediction=prediction,
        to_prediction=to_prediction,
        to_reference=to_reference,
        false_positives=pieces[0],
        false_negatives=pieces[1],
    )


Distances = Callable[[npt.NDArray[Any], float], npt.NDArray[np.float64]]
"""Of points, in voxels along z, y, x: in mm, infinite beyond a limit."""


def _distances_to(surface: Surface, spacing: Spacing) -> Distances:
    """How far points are from a surface."""
    if not surface.areas.size:
        return lambda points, _: np.full(len(points), np.inf)
    tree = cKDTree(  # of this kind, it is built in no time
        surface.corners * np.array(spacing), balanced_tree=False, compact_nodes=False
    )
    return lambda points, limit: np.asarray(
        tree.query(points * np.array(spacing), distance_upper_bound=limit)[0]
    )


def _far_pieces(
    mask: Mask,
    other: Mask,
    before: npt.NDArray[np.integer],
    surface: Surface,
    distances: npt.NDArray[np.float64],
) -> tuple[Component, ...]:
    """Find pieces of a mask that lie far from the other one, the largest first.

    `distances` are those of its surfels that are beyond the tolerance.
    """
    is_far = distances > FAR_MM
    if not is_far.any() or not other.any():
        return ()
    pieces, count = ndimage.label(mask, _TOUCHING)
    shared = np.zeros(count + 1, dtype=np.bool_)
    shared[np.unique(pieces[other])] = True
    nearest = np.full(count + 1, np.inf)
    # One of the eight voxels at the corner of a surfel tells its piece.
    padded = np.pad(pieces, 1)
    around = np.zeros(len(surface.corners), dtype=padded.dtype)
    for shift in np.ndindex(2, 2, 2):
        z, y, x = (surface.corners - before + shift).T
        np.maximum(around, padded[z, y, x], out=around)
    np.minimum.at(nearest, around[surface.is_beyond], distances)
    nearest[around[~surface.is_beyond]] = 0.0
    voxels = np.bincount(pieces.reshape(-1), minlength=count + 1)
    found = [
        Component(voxels=int(voxels[piece]), distance=float(nearest[piece]))
        for piece in range(1, count + 1)
        if not shared[piece] and FAR_MM < nearest[piece] < np.inf
    ]
    return tuple(sorted(found, key=lambda own: (-own.voxels, -own.distance)))


def _add_weights(
    weights: Sequence[Weights],
    masks: tuple[Mask, Mask],
    before: npt.NDArray[np.integer],
    near: Sequence[Distances],
    spacing: Spacing,
) -> None:
    """Add what the errors of one organ weigh in each slice."""
    volume = float(np.prod(spacing))
    reference, prediction = masks
    for wrong, other in (
        (reference & ~prediction, near[1]),  # missed: outside of the prediction
        (prediction & ~reference, near[0]),
    ):
        where = np.flatnonzero(wrong)
        step = -(-where.size // MOST_VOXELS) or 1
        voxels = np.column_stack(np.unravel_index(where[::step], wrong.shape)) + before
        far = np.minimum(other(voxels + 0.5, FARTHEST_MM), FARTHEST_MM)
        for axis, along in enumerate(weights):
            along += np.bincount(voxels[:, axis], far * (volume * step), along.size)
