"""Lists where the surfels of one label are, with those that NSD counts as beyond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels, Occupancy, ReusedMemory, Spacing
from flare.evaluation.metrics.surfaces import (
    Nearness,
    find_marked,
    is_surfel,
    masks_of,
    surfaces_of,
)
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.windows import Window, ball_rows, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The surfels of one mask."""

    corners: npt.NDArray[np.int32]
    """Shape (n, 3): the corners of the grid where they are, along z, y, x. Corner
    (z, y, x) is before voxel (z, y, x) on all axes."""
    areas: npt.NDArray[np.float64]
    """Shape (n,), in mm2."""
    is_beyond: npt.NDArray[np.bool_]
    """Shape (n,): farther than the tolerance from the other surface?"""

    @property
    def area(self) -> float:
        """Of all surfels, in mm2."""
        return math.fsum(self.areas)

    @property
    def area_beyond(self) -> float:
        """Of the surfels that are beyond the tolerance, in mm2."""
        return math.fsum(self.areas[self.is_beyond])


NO_SURFELS = Surface(
    corners=np.zeros((0, 3), dtype=np.int32),
    areas=np.zeros(0),
    is_beyond=np.zeros(0, dtype=np.bool_),
)


def locate_surfels(
    reference: Labels,
    prediction: Labels,
    spacing: Spacing,
    tolerance: float,
    occupancy: Occupancy,
    memory: ReusedMemory,
) -> tuple[Surface, Surface]:
    """List the surfels that an NSD is made of.

    Parameters
    ----------
    reference, prediction : ndarray of uint8, shape (Z, Y, X)
        Label maps on the same grid. Never modified.
    spacing : tuple of float
        Voxel size in mm along z, y, x.
    tolerance : float
        In mm.
    occupancy : Occupancy
        Where either map has the label.
    memory : ReusedMemory
        Is overwritten.

    Returns
    -------
    pair of Surface
        Those of the reference, and of the prediction. One minus the share of the area
        that is beyond is the NSD of `flare.evaluation.metrics.dsc_nsd.compare_labels`.
    """
    areas = surfel_areas(spacing)
    ball = ball_rows(spacing, tolerance, occupancy.extent)
    found = [NO_SURFELS], [NO_SURFELS]
    for window in windows(occupancy, ball, memory):
        masks = masks_of(reference, prediction, occupancy.label, window)
        pair = surfaces_of(masks, window)
        near = Nearness(pair, ball)
        either = find_marked(pair.border, window)
        codes = pair.codes_at(either)
        for number, other in ((0, 1), (1, 0)):
            is_own = is_surfel(codes[number])
            where = either.compress(is_own)
            beyond = near.find_beyond(where, other)
            is_beyond = np.zeros(where.size, dtype=np.bool_)
            is_beyond[np.searchsorted(where, beyond)] = True
            surface = Surface(
                corners=_corners(where, window),
                areas=areas[codes[number].compress(is_own)],
                is_beyond=is_beyond,
            )
            found[number].append(surface)
    return _joined(found[0]), _joined(found[1])


def _corners(where: npt.NDArray[np.intp], window: Window) -> npt.NDArray[np.int32]:
    """Corners of the whole grid, from indices of flat buffers: shape (n, 3)."""
    places = np.unravel_index(where, window.shape)
    zs, ys, xs = window.box
    before = (zs.start - window.first_slice, ys.start, xs.start)
    corners = np.empty((where.size, 3), dtype=np.int32)
    for axis in range(3):
        np.add(places[axis], before[axis], out=corners[:, axis], casting="unsafe")
    return corners


def _joined(parts: Sequence[Surface]) -> Surface:
    """One surface from its parts."""
    return Surface(
        corners=np.concatenate([part.corners for part in parts]),
        areas=np.concatenate([part.areas for part in parts]),
        is_beyond=np.concatenate([part.is_beyond for part in parts]),
    )
