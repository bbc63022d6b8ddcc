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

from flare.evaluation.metrics.arrays import Mask, Spacing
from flare.evaluation.metrics.surfels import Surface

Weights = npt.NDArray[np.float64]
"""A weight for each slice; shape (slices,)."""


FAR_MM = 10.0
"""A piece that is nearer belongs to what surrounds the organ."""

_TOUCHING = np.ones((3, 3, 3), dtype=np.bool_)
"""Voxels that have a face, an edge or a corner in common are of one piece."""

FARTHEST_MM = 10.0
"""A distance counts up to here."""

MOST_VOXELS = 20_000
"""How many of the wrong voxels of an organ are weighed, evenly taken; more would change
no choice of a slice, and take long where everything is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A piece that shares no voxel with the other label map's organ."""

    voxels: int
    distance: float
    """The distance in mm from the other label map's organ."""


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
        """The share of both that is within the tolerance; None without any surface."""
        area = self.reference.area + self.prediction.area
        beyond = self.reference.area_beyond + self.prediction.area_beyond
        return 1 - beyond / area if area else None

    @property
    def farthest(self) -> float | None:
        """The largest distance in mm; None if all are within the tolerance.

        It is infinite if one label map lacks the organ.
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
    in_reference, in_prediction = masks
    box_start = np.array([part.start for part in box])
    reference_distances = _distances_to(reference, spacing)
    prediction_distances = _distances_to(prediction, spacing)
    to_prediction = prediction_distances(reference.corners[reference.is_beyond], np.inf)
    to_reference = reference_distances(prediction.corners[prediction.is_beyond], np.inf)
    is_missed, is_added = in_reference & ~in_prediction, in_prediction & ~in_reference
    _add_weights(weights, is_missed, box_start, prediction_distances, spacing)
    _add_weights(weights, is_added, box_start, reference_distances, spacing)
    false_positives: tuple[Component, ...] = ()
    false_negatives: tuple[Component, ...] = ()
    if has_pieces:  # else they may lie where there are no surfels
        false_positives = _far_pieces(
            in_prediction, in_reference, box_start, prediction, to_reference
        )
        false_negatives = _far_pieces(
            in_reference, in_prediction, box_start, reference, to_prediction
        )
    return OrganSurfaces(
        reference=reference,
        prediction=prediction,
        to_prediction=to_prediction,
        to_reference=to_reference,
        false_positives=false_positives,
        false_negatives=false_negatives,
    )


Distances = Callable[[npt.NDArray[Any], float], npt.NDArray[np.float64]]
"""A function from points, in voxels along z, y, x, to mm; infinite beyond a limit."""


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
    box_start: npt.NDArray[np.integer],
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
        z, y, x = (surface.corners - box_start + shift).T
        np.maximum(around, padded[z, y, x], out=around)
    np.minimum.at(nearest, around[surface.is_beyond], distances)
    nearest[around[~surface.is_beyond]] = 0.0
    voxels = np.bincount(pieces.reshape(-1), minlength=count + 1)
    components = []
    for piece in range(1, count + 1):
        distance = float(nearest[piece])
        if not shared[piece] and FAR_MM < distance < np.inf:
            components.append(Component(voxels=int(voxels[piece]), distance=distance))
    components.sort(key=lambda component: (-component.voxels, -component.distance))
    return tuple(components)


def _add_weights(
    weights: Sequence[Weights],
    is_wrong: Mask,
    box_start: npt.NDArray[np.integer],
    distances: Distances,
    spacing: Spacing,
) -> None:
    """Add what wrong voxels of one organ weigh in each slice.

    `distances` are those from the surface that the voxels are on the wrong side of.
    """
    volume = float(np.prod(spacing))
    places = np.flatnonzero(is_wrong)
    step = -(-places.size // MOST_VOXELS) or 1
    inside = np.unravel_index(places[::step], is_wrong.shape)
    voxels = np.column_stack(inside) + box_start
    far = np.minimum(distances(voxels + 0.5, FARTHEST_MM), FARTHEST_MM)
    for axis, along in enumerate(weights):
        along += np.bincount(voxels[:, axis], far * (volume * step), along.size)
