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

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels, Occupancy, ReusedMemory, Spacing
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
from flare.evaluation.metrics.windows import Ball, Buffers, Window, windows

_Counts = npt.NDArray[np.int64]

DENSE = 8
"""If more than one of so many corners is a surfel, all are looked at, and not those."""

COUNTED_BYTES = 2**15
"""How many codes are counted at once: as NumPy's integers they fit into the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one label's voxels and surfels come to."""

    reference_voxels: int
    prediction_voxels: int
    dsc: float
    surfels: _Counts
    """Both masks' surfels by code; shape (256,). All 0 if the DSC is too small."""
    beyond: _Counts
    """Those of them that are farther than the tolerance from the other surface."""


def dice_of_counts(first: int, second: int, shared: int) -> float:
    """Dice coefficient from the numbers of voxels of either mask, and of both."""
    return 2 * shared / (first + second) if first + second else 1.0


def tally(
    reference: Labels,
    prediction: Labels,
    occupancy: Occupancy,
    ball: Ball,
    memory: ReusedMemory,
    smallest_dsc: float,
) -> Tally:
    """Count the voxels of one label, and its surfels unless its DSC is too small.

    Until it is known, a window waits for as long as the voxels that were counted so far
    have too small a DSC. Organs that agree have none that waits, or a few at one end.
    """
    voxels = (0, 0, 0)
    surfels, beyond = counts = np.zeros((2, 256), dtype=np.int64)
    waiting = []
    for window in windows(occupancy, ball):
        buffers = Buffers(memory, window.size)
        masks = masks_of(reference, prediction, occupancy.label, window, buffers)
        more = _count_voxels(masks, window, buffers)
        voxels = voxels[0] + more[0], voxels[1] + more[1], voxels[2] + more[2]
        if dice_of_counts(*voxels) < smallest_dsc:
            waiting.append(window)
        else:
            counts += _count_surfels(masks, window, buffers, ball)
    dsc = dice_of_counts(*voxels)
    if dsc < smallest_dsc:
        counts[:], waiting = 0, []
    for window in waiting:
        buffers = Buffers(memory, window.size)
        masks = masks_of(reference, prediction, occupancy.label, window, buffers)
        counts += _count_surfels(masks, window, buffers, ball)
    # Corners that are surfels of the other mask alone were counted as well.
    surfels[[0, 255]] = beyond[[0, 255]] = 0
    return Tally(
        reference_voxels=voxels[0],
        prediction_voxels=voxels[1],
        dsc=dsc,
        surfels=surfels,
        beyond=beyond,
    )


def _count_surfels(
    masks: tuple[Bytes, Bytes], window: Window, buffers: Buffers, ball: Ball
) -> _Counts:
    """Count the surfels of a window: shape (2, 256), all of them and those beyond."""
    pair = surfaces_of(masks, window, buffers)
    number = np.count_nonzero(pair.border[window.inner])
    count = _count_many if number * DENSE > window.size else _count_few
    return np.array(count(pair, Nearness(pair, ball)))


def _count_voxels(
    masks: tuple[Bytes, Bytes], window: Window, buffers: Buffers
) -> tuple[int, int, int]:
    """Count the voxels of the first mask, of the second, and of both."""
    first, second = (mask[window.inner].view(np.bool_) for mask in masks)
    both = buffers["scratch"][window.inner].view(np.bool_)
    np.logical_and(first, second, out=both)
    return (
        int(np.count_nonzero(first)),
        int(np.count_nonzero(second)),
        int(np.count_nonzero(both)),
    )


def _count_few(pair: SurfacePair, near: Nearness) -> tuple[_Counts, _Counts]:
    """Count surfels by code, all and beyond the tolerance, one by one.

    A surfel of both masks is near to itself, so only the others are looked for.
    """
    surfels, beyond = np.zeros((2, 256), dtype=np.int64)
    where = find_marked(pair.border, pair.window)
    codes = pair.codes_at(where)
    are_own = [is_surfel(own) for own in codes]
    for own, other in ((0, 1), (1, 0)):
        surfels += np.bincount(codes[own], minlength=256)
        alone = where.compress(are_own[own] > are_own[other])
        found = near.find_beyond(alone, other)
        beyond += np.bincount(pair.codes_at(found)[own], minlength=256)
    return surfels, beyond


def _count_many(pair: SurfacePair, near: Nearness) -> tuple[_Counts, _Counts]:
    """Count them by looking at all corners, if there are many of one mask at least."""
    surfels, beyond = np.zeros((2, 256), dtype=np.int64)
    inner = pair.window.inner
    for own, other in ((0, 1), (1, 0)):
        if not pair.is_there[own]:
            continue
        marks = pair.border
        if pair.is_there[other]:
            marks = np.bitwise_and(marks, HALVES[own], out=pair.buffers["scratch"])
        if np.count_nonzero(marks[inner]) * DENSE <= marks.size:
            where = find_marked(marks, pair.window)
            surfels += np.bincount(pair.codes_at(where)[own], minlength=256)
            found = near.find_beyond(where, other)
            beyond += np.bincount(pair.codes_at(found)[own], minlength=256)
            continue
        all_own = _count_all(pair, own)
        surfels += all_own
        beyond += all_own
        if pair.is_there[other]:
            beyond -= _count_near(pair, near.mark_near(other), own)
    return surfels, beyond


def _count_near(pair: SurfacePair, is_near: Bytes, own: int) -> _Counts:
    """Count the surfels of one mask at corners that are marked by 1."""
    if np.count_nonzero(is_near[pair.window.inner]) * DENSE > is_near.size:
        return _count_all(pair, own, is_near)
    where = find_marked(is_near, pair.window)
    return np.bincount(pair.codes_at(where)[own], minlength=256)


def _count_all(pair: SurfacePair, own: int, marks: Bytes | None = None) -> _Counts:
    """Count the surfels of one mask at all corners, or at those marked by 1."""
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

    The file of the tables is loaded without its package, which would import SciPy: a
    quarter of a second.
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
