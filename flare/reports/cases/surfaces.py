"""Measures the errors of an organ: how far surfaces are, components, worst slices.

The weight of a wrong voxel is its volume times its distance from the surface that it is
on the wrong side of. A distance counts up to a limit: else a speck far away would weigh
more than half an organ that was missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from scipy.spatial import cKDTree

from flare.evaluation.metrics.arrays import Mask, Spacing, start_of
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.tally import Surfels

Weights = npt.NDArray[np.float64]
"""A weight for each slice; shape (slices,)."""

Place = tuple[int, int, int]
"""A slice of each plane, along z, y, x."""

SLACK = 1e-9
"""Slices whose weights differ by a smaller share weigh the same: the first is taken."""

FAR_MM = 10.0
"""A piece nearer than this counts as a part of the organ, whose border is wrong."""

_TOUCHING = np.ones((3, 3, 3), dtype=np.bool_)
"""Voxels that have a face, an edge or a corner in common are of one piece."""

FARTHEST_MM = 10.0
"""A larger distance counts like this one."""

MOST_VOXELS = 20_000
"""At most this many wrong voxels of an organ are weighed, in even steps: more would
change no choice of a slice, and take long where everything is wrong."""


@dataclass(frozen=True, slots=True)
class Component:
    """A piece that shares no voxel with the other label map's organ."""

    voxels: int
    distance: float
    """The distance in mm from the other label map's organ."""
    place: Place
    """The slices that hold most of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The surface of an organ in one label map, beside that in the other one."""

    surfels: Surfels
    area: float
    """The area of all surfels, in mm2."""
    area_beyond: float
    """The area of the surfels that are beyond the tolerance, in mm2."""
    distances: npt.NDArray[np.float64]
    """The distances in mm of its surfels that are beyond the tolerance; infinite if the
    other label map lacks the organ."""
    pieces: tuple[Component, ...] = ()
    """Pieces that lie far from the organ of the other label map, the largest first."""


@dataclass(frozen=True, slots=True)
class OrganSurfaces:
    """The two surfaces of one organ, as its NSD compares them."""

    reference: Side
    prediction: Side

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
        both = np.concatenate([self.reference.distances, self.prediction.distances])
        return float(both.max()) if both.size else None


def compare_surfaces(
    surfels: tuple[Surfels, Surfels],
    masks: tuple[Mask, Mask],
    box: tuple[slice, slice, slice],
    spacing: Spacing,
    weights: Sequence[Weights],
    *,
    has_pieces: bool,
) -> OrganSurfaces:
    """Compare the surfaces of an organ, and add the weights of its errors to slices.

    Surfels and masks are the reference's and the prediction's; masks are cut to the box
    around both. Weights are those of slices along z, y, x, in mm4. Pieces far away are
    not looked for where only some slices have surfels: then `has_pieces` is false.
    """
    box_start = np.array([part.start for part in box])
    measures = [_distance_function(surface, spacing) for surface in surfels]
    area_of_code, sides = surfel_areas(spacing), []
    for number, opposite in ((0, 1), (1, 0)):
        surface, mask, measure = surfels[number], masks[number], measures[opposite]
        distances = measure(surface.corners[surface.is_beyond], np.inf)
        is_wrong = mask & ~masks[opposite]
        _add_weights(weights, is_wrong, box_start, measure, spacing)
        pieces: tuple[Component, ...] = ()
        if has_pieces:
            pieces = _far_pieces(mask, masks[opposite], box_start, surface, distances)
        areas = area_of_code[surface.codes]
        side = Side(
            surfels=surface,
            area=math.fsum(areas),
            area_beyond=math.fsum(areas[surface.is_beyond]),
            distances=distances,
            pieces=pieces,
        )
        sides.append(side)
    return OrganSurfaces(*sides)


DistanceFunction = Callable[[npt.NDArray[Any], float], npt.NDArray[np.float64]]
"""A function of points, in voxels along z, y, x, and of a limit in mm: the distances of
the points in mm; infinite beyond the limit."""


def _distance_function(surface: Surfels, spacing: Spacing) -> DistanceFunction:
    if not surface.codes.size:
        return lambda points, _: np.full(len(points), np.inf)
    corners = surface.corners * np.array(spacing)
    # A tree of this kind is built in no time.
    tree = cKDTree(corners, balanced_tree=False, compact_nodes=False)

    def distances(points: npt.NDArray[Any], limit: float) -> npt.NDArray[np.float64]:
        nearest, _ = tree.query(points * np.array(spacing), distance_upper_bound=limit)
        return np.asarray(nearest)

    return distances


def _far_pieces(
    mask: Mask,
    other: Mask,
    box_start: npt.NDArray[np.integer],
    surface: Surfels,
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
    # A surfel belongs to the piece of the voxels that meet at its corner.
    padded = np.pad(pieces, 1)
    piece_of_surfel = np.zeros(len(surface.corners), dtype=padded.dtype)
    for shift in np.ndindex(2, 2, 2):
        z, y, x = (surface.corners - box_start + shift).T
        np.maximum(piece_of_surfel, padded[z, y, x], out=piece_of_surfel)
    # Each piece gets the smallest of its distances, or 0 if a surfel is not beyond.
    np.minimum.at(nearest, piece_of_surfel[surface.is_beyond], distances)
    nearest[piece_of_surfel[~surface.is_beyond]] = 0.0
    voxels = np.bincount(pieces.reshape(-1), minlength=count + 1)
    components = []
    for piece, piece_box in enumerate(ndimage.find_objects(pieces), start=1):
        distance = float(nearest[piece])
        if not shared[piece] and FAR_MM < distance < np.inf:
            place = heaviest_slices(slice_sizes(pieces[piece_box] == piece))
            z, y, x = (box_start + start_of(piece_box) + place).tolist()
            size = int(voxels[piece])
            components.append(Component(size, distance, (z, y, x)))
    components.sort(key=lambda component: (-component.voxels, -component.distance))
    return tuple(components)


def slice_sizes(mask: npt.NDArray[Any]) -> tuple[Weights, Weights, Weights]:
    """The number of voxels in each slice, along z, y, x."""
    return (
        np.count_nonzero(mask, axis=(1, 2)).astype(np.float64),
        np.count_nonzero(mask, axis=(0, 2)).astype(np.float64),
        np.count_nonzero(mask, axis=(0, 1)).astype(np.float64),
    )


def heaviest_slices(weights: Sequence[Weights]) -> Place:
    """The slice of each axis that weighs the most."""
    z, y, x = (int((w >= w.max() * (1 - SLACK)).argmax()) for w in weights)
    return z, y, x


def _add_weights(
    weights: Sequence[Weights],
    is_wrong: Mask,
    box_start: npt.NDArray[np.integer],
    measure: DistanceFunction,
    spacing: Spacing,
) -> None:
    """Add the weights of wrong voxels of one organ to those of their slices.

    `measure` tells how far they are from the surface that they are on the wrong side
    of.
    """
    places = np.flatnonzero(is_wrong)
    step = max(1, math.ceil(places.size / MOST_VOXELS))
    places_in_box = np.unravel_index(places[::step], is_wrong.shape)
    voxels = np.column_stack(places_in_box) + box_start
    distances = np.minimum(measure(voxels + 0.5, FARTHEST_MM), FARTHEST_MM)
    # Each voxel stands for all that its step leaves out.
    voxel_weights = distances * (float(np.prod(spacing)) * step)
    for axis, sums in enumerate(weights):
        sums += np.bincount(voxels[:, axis], voxel_weights, sums.size)
