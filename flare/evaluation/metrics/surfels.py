"""Counts the voxels and surfels of one label in two label maps, exactly and fast.

NSD compares surfaces that are made of *surfels*. A surfel sits on a corner of the
voxel grid, in the middle of eight voxels; which of the eight belong to the organ (its
*code*, 0 to 255) decides how large the surfel is. The official scripts compute a
distance transform of each surface, and ask of every surfel whether the other surface
is within the tolerance. That question has a cheaper answer: the surface of one mask,
widened by a ball whose radius is the tolerance, either covers a surfel of the other
mask or does not. Widening is a few shifted ORs, because a ball is a stack of straight
rows. Nothing is approximated: which offsets belong to the ball is decided by the very
expression that the distance transform evaluates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.finder import (
    Ball,
    Labels,
    Occupancy,
    ReusedMemory,
    Spacing,
    Window,
    ball_rows,
    windows,
)
from flare.evaluation.metrics.surfaces import (
    HALVES,
    Bytes,
    Nearness,
    SurfacePair,
    find_marked,
    is_surfel,
    masks_of,
    surfaces_of,
)

_Counts = npt.NDArray[np.int64]

DENSE = 8
"""If more than one of so many corners is a surfel, all are looked at, and not those."""

COUNTED_BYTES = 2**15
"""How many codes are counted at once: as NumPy's integers they fit into the cache."""


def dice_of_counts(first: int, second: int, shared: int) -> float:
    """Dice coefficient from the numbers of voxels of either mask, and of both."""
    return 2 * shared / (first + second) if first + second else 1.0


def tally(
    maps: tuple[Labels, Labels],
    occupancy: Occupancy,
    ball: Ball,
    memory: ReusedMemory,
    smallest_dsc: float,
    add: Callable[[SurfacePair], object] | None = None,
) -> tuple[tuple[int, int, int], _Counts]:
    """Count the voxels of one label, and its surfels unless its DSC is too small.

    Until it is known, a window waits for as long as the voxels that were counted so far
    have too small a DSC. Organs that agree have none that waits, or a few at one end.

    Parameters
    ----------
    maps : pair of ndarray of uint8, shape (Z, Y, X)
        Reference and prediction on the same grid. Never modified.
    occupancy : Occupancy
        Where either has the label.
    ball : tuple of BallRow
        All that is within the tolerance of a corner.
    memory : ReusedMemory
        Is overwritten.
    smallest_dsc : float
        Where the DSC is smaller, no surfel is counted.
    add : callable, optional
        Gets the surfaces of each window, whatever the DSC is.

    Returns
    -------
    tuple of int
        Voxels of the reference, of the prediction, and of both.
    ndarray of int, shape (2, 256)
        By code, the surfels of both masks, and those of them that are farther than the
        tolerance from the other surface. All 0 if the DSC is too small.
    """
    voxels = (0, 0, 0)
    counts = np.zeros((2, 256), dtype=np.int64)
    waiting = []
    for window in windows(occupancy, ball, memory):
        masks = masks_of(*maps, occupancy.label, window)
        more = _count_voxels(masks, window)
        voxels = voxels[0] + more[0], voxels[1] + more[1], voxels[2] + more[2]
        is_waiting = dice_of_counts(*voxels) < smallest_dsc
        if is_waiting:
            waiting.append(window)
        if add or not is_waiting:
            pair = surfaces_of(masks, window)
            if add:
                add(pair)
            if not is_waiting:
                counts += _count_surfels(pair, ball)
    if dice_of_counts(*voxels) < smallest_dsc:
        counts[:], waiting = 0, []
    for window in waiting:
        masks = masks_of(*maps, occupancy.label, window)
        counts += _count_surfels(surfaces_of(masks, window), ball)
    # Corners that are surfels of the other mask alone were counted as well.
    counts[:, [0, 255]] = 0
    return voxels, counts


def _count_voxels(masks: tuple[Bytes, Bytes], window: Window) -> tuple[int, int, int]:
    """Count the voxels of the first flat buffer, of the second, and of both."""
    first, second = (mask[window.inner].view(np.bool_) for mask in masks)
    both = window.buffer("scratch")[window.inner].view(np.bool_)
    np.logical_and(first, second, out=both)
    return (
        int(np.count_nonzero(first)),
        int(np.count_nonzero(second)),
        int(np.count_nonzero(both)),
    )


def _count_surfels(pair: SurfacePair, ball: Ball) -> _Counts:
    """Count the surfels of a window by code: shape (2, 256), all and beyond."""
    window = pair.window
    number = np.count_nonzero(pair.border[window.inner])
    count = _count_many if number * DENSE > window.size else _count_few
    return count(pair, Nearness(pair, ball))


def _count_few(pair: SurfacePair, near: Nearness) -> _Counts:
    """Count surfels one by one: shape (2, 256), all and beyond the tolerance.

    A surfel of both masks is near to itself, so only the others are looked for.
    """
    surfels, beyond = counts = np.zeros((2, 256), dtype=np.int64)
    where = find_marked(pair.border, pair.window)
    codes = pair.codes_at(where)
    are_own = [is_surfel(own) for own in codes]
    for own, other in ((0, 1), (1, 0)):
        surfels += np.bincount(codes[own], minlength=256)
        alone = where.compress(are_own[own] > are_own[other])
        found = near.find_beyond(alone, other)
        beyond += np.bincount(pair.codes_at(found)[own], minlength=256)
    return counts


def _count_many(pair: SurfacePair, near: Nearness) -> _Counts:
    """Count them by looking at all corners, if there are many: shape (2, 256)."""
    surfels, beyond = counts = np.zeros((2, 256), dtype=np.int64)
    window = pair.window
    for own, other in ((0, 1), (1, 0)):
        if not pair.is_there[own]:
            continue
        marks = pair.border
        if pair.is_there[other]:
            marks = np.bitwise_and(marks, HALVES[own], out=window.buffer("scratch"))
        if np.count_nonzero(marks[window.inner]) * DENSE <= marks.size:
            where = find_marked(marks, window)
            surfels += np.bincount(pair.codes_at(where)[own], minlength=256)
            found = near.find_beyond(where, other)
            beyond += np.bincount(pair.codes_at(found)[own], minlength=256)
            continue
        all_own = _count_all(pair, own)
        surfels += all_own
        beyond += all_own
        if pair.is_there[other]:
            beyond -= _count_near(pair, near.mark_near(other), own)
    return counts


def _count_near(pair: SurfacePair, is_near: Bytes, own: int) -> _Counts:
    """Count the surfels of one mask where a flat buffer is 1: shape (256,)."""
    if np.count_nonzero(is_near[pair.window.inner]) * DENSE > is_near.size:
        return _count_all(pair, own, is_near)
    where = find_marked(is_near, pair.window)
    return np.bincount(pair.codes_at(where)[own], minlength=256)


def _count_all(pair: SurfacePair, own: int, marks: Bytes | None = None) -> _Counts:
    """Count them at all corners, or where a flat buffer is 1: shape (256,)."""
    counts = np.zeros(256, dtype=np.int64)
    inner = pair.window.inner
    for start in range(inner.start, inner.stop, COUNTED_BYTES):
        part = slice(start, min(start + COUNTED_BYTES, inner.stop))
        codes = pair.codes_in(part, own)
        if marks is not None:
            codes *= marks[part]
        counts += np.bincount(codes, minlength=256)
    return counts


@lru_cache(maxsize=256)
def surfel_areas(spacing: Spacing) -> npt.NDArray[np.float64]:
    """Area of the surfel of each of the 256 codes.

    Parameters
    ----------
    spacing : tuple of float
        Voxel size in mm along z, y, x.

    Returns
    -------
    ndarray of float, shape (256,)
        In mm2; 0 for codes 0 and 255, which are no surfels.

    Notes
    -----
    Equals ``create_table_neighbour_code_to_surface_area`` of surface-distance, whose
    loops take 2 ms for every new spacing, a twentieth of the time of a case.
    """
    codes, normals = surfel_normals()
    size_z, size_y, size_x = spacing
    scaled = normals * (size_y * size_x, size_z * size_x, size_z * size_y)
    areas = np.zeros(256)
    np.add.at(areas, codes, np.sqrt((scaled**2).sum(axis=1)))
    return areas


@cache
def surfel_normals() -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """All triangles that make up surfels: the code of each, and its normal for 1 mm.

    Of shape (n,) and (n, 3), in mm2 along z, y, x. The file of the tables is loaded
    without its package, which would import SciPy: a quarter of a second.
    """
    package = find_spec("surface_distance")
    if package is None or package.origin is None:
        raise ImportError("the surface-distance package is not installed")
    spec = spec_from_file_location(
        "surface_distance.lookup_tables",
        Path(package.origin).with_name("lookup_tables.py"),
    )
    if spec is None or spec.loader is None:
        raise ImportError("the surface-distance package has no lookup_tables")
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    of_codes = tables._NEIGHBOUR_CODE_TO_NORMALS
    codes = np.repeat(np.arange(256), [len(normals) for normals in of_codes])
    return codes, np.array([normal for normals in of_codes for normal in normals])


# --- Where surfels are ------------------------------------------------------------


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
