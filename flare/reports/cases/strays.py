"""Finds pieces of an organ that lie far from where the other label map has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from flare.evaluation.metrics.arrays import Mask
from flare.evaluation.metrics.surfel_places import Surface

FAR_MM = 10.0
"""A piece that is nearer belongs to what surrounds the organ."""

_TOUCHING = np.ones((3, 3, 3), dtype=np.bool_)
"""Voxels that have a face, an edge or a corner in common are of one piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A piece that shares no voxel with the other label map's organ."""

    voxels: int
    distance: float
    """From the other label map's organ, in mm."""


def find_strays(
    mask: Mask,
    other: Mask,
    before: tuple[int, int, int],
    surface: Surface,
    distances: npt.NDArray[np.float64],
) -> tuple[Stray, ...]:
    """Find stray pieces of an organ, the largest first.

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
                Stray(voxels=int(voxels[piece]), distance=float(nearest[piece]))
                for piece in range(1, count + 1)
                if not shared[piece] and FAR_MM < nearest[piece] < np.inf
            ),
            key=lambda stray: (-stray.voxels, -stray.distance),
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
