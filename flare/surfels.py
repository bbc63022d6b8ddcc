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

Every mask is held in a flat buffer whose rows and slices end in zeros, so that each
neighbour, along every axis, is one constant shift of the whole buffer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.arrays import Labels, Mask, Spacing

_Bytes = npt.NDArray[np.uint8]

CHUNK_BYTES = 2**19
"""Masks are built in pieces of about this size, to stay in the CPU's cache."""


# --- Where a label is -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Where one label is, in either map. A slab is a fixed number of slices."""

    label: int
    depth: int
    """Slices of the whole maps."""
    slab_depth: int
    rows: Mask
    """Shape (slabs, Y): is the label anywhere in row y of the slab's slices?"""
    columns: Mask
    """Shape (slabs, X): the same for column x."""

    @property
    def span_z(self) -> slice:
        """Slices of all slabs that hold the label."""
        slabs = _span(self.rows.any(axis=1))
        stop = min(slabs.stop * self.slab_depth, self.depth)
        return slice(slabs.start * self.slab_depth, stop)

    def span_yx(self, zs: slice) -> tuple[slice, slice]:
        """Rows and columns outside which the slices `zs` do not hold the label."""
        slabs = slice(zs.start // self.slab_depth, -(-zs.stop // self.slab_depth))
        return (
            _span(self.rows[slabs].any(axis=0)),
            _span(self.columns[slabs].any(axis=0)),
        )

    @property
    def extent(self) -> tuple[int, int, int]:
        """Size in voxels of the box around the label."""
        spans = (self.span_z, *self.span_yx(slice(0, self.depth)))
        depth, height, width = (span.stop - span.start for span in spans)
        return depth, height, width


def find_labels(
    reference: Labels, prediction: Labels, labels: tuple[int, ...]
) -> dict[int, Occupancy]:
    """Note which rows and columns each label occupies, slab by slab."""
    depth, height, width = reference.shape
    ys, xs = _find_plane(reference, prediction)
    plane = (ys.stop - ys.start, xs.stop - xs.start)
    plane_size = plane[0] * plane[1]
    slab_depth = max(1, min(depth, CHUNK_BYTES // max(1, plane_size)))
    slabs = -(-depth // slab_depth)
    rows = np.zeros((len(labels), slabs, height), dtype=np.bool_)
    columns = np.zeros((len(labels), slabs, width), dtype=np.bool_)

    buffers = np.empty((4, slab_depth, *plane), dtype=np.uint8)
    for slab in range(slabs if plane_size else 0):
        zs = slice(slab * slab_depth, min((slab + 1) * slab_depth, depth))
        first, second, is_first, is_second = buffers[:, : zs.stop - zs.start]
        first[:], second[:] = reference[zs, ys, xs], prediction[zs, ys, xs]
        for index, label in enumerate(labels):
            np.equal(first, label, out=is_first.view(np.bool_))
            np.equal(second, label, out=is_second.view(np.bool_))
            np.bitwise_or(is_first, is_second, out=is_first)
            shadow = np.bitwise_or.reduce(is_first, axis=0)
            rows[index, slab, ys] = shadow.any(axis=1)
            columns[index, slab, xs] = shadow.any(axis=0)

    return {
        label: Occupancy(
            label=label,
            depth=depth,
            slab_depth=slab_depth,
            rows=rows[index],
            columns=columns[index],
        )
        for index, label in enumerate(labels)
    }


def _find_plane(reference: Labels, prediction: Labels) -> tuple[slice, slice]:
    """Rows and columns outside which both maps are background in every slice."""
    shadow = np.bitwise_or.reduce(reference, axis=0)
    shadow |= np.bitwise_or.reduce(prediction, axis=0)
    return _span(shadow.any(axis=1)), _span(shadow.any(axis=0))


def _span(occupied: npt.NDArray[np.bool_] | np.bool_) -> slice:
    """From the first to the last True, or an empty slice."""
    where = np.flatnonzero(occupied)
    return slice(int(where[0]), int(where[-1]) + 1) if where.size else slice(0, 0)


# --- Surfels ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A row of the tolerance ball: corners -half_width to +half_width along x."""

    z: int
    y: int
    half_width: int


@lru_cache(maxsize=256)
def ball_runs(
    spacing: Spacing, tolerance: float, extent: tuple[int, int, int]
) -> tuple[Run, ...]:
    """Rows of the ball of radius `tolerance`, narrow ones first.

    No offset needs to be longer than the `extent` of the surfaces. Squares are added
    in the order x, y, z, as SciPy's distance transform adds them for the official
    scripts' (x, y, z) arrays, so that a distance of exactly the tolerance is decided
    alike.
    """
    reach = [
        min(math.floor(tolerance / size) + 1, longest)
        for size, longest in zip(spacing, extent, strict=True)
    ]
    z, y = np.ogrid[-reach[0] : reach[0] + 1, -reach[1] : reach[1] + 1]
    widths = np.zeros(np.broadcast_shapes(z.shape, y.shape), dtype=np.int64)
    for x in range(reach[2] + 1):
        in_plane = (x * spacing[2]) ** 2 + (y * spacing[1]) ** 2
        widths += np.sqrt(in_plane + (z * spacing[0]) ** 2) <= tolerance
    runs = [
        Run(z=int(z) - reach[0], y=int(y) - reach[1], half_width=int(widths[z, y]) - 1)
        for z, y in np.argwhere(widths)
    ]
    return tuple(sorted(runs, key=lambda run: run.half_width))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The part of the maps that decides about the surfels of a few corner slices."""

    box: tuple[slice, slice, slice]
    """Voxels to look at: those of the corners, and those within reach of them."""
    first_slice: int
    """Slice of the buffer where the box begins."""
    shape: tuple[int, int, int]
    """Shape of the buffer: the box and the zeros that end its rows and slices."""
    inner: slice
    """Slices of the buffer whose corners are counted in this window."""

    @property
    def flat_inner(self) -> slice:
        """The same as elements of the flat buffer."""
        plane = self.shape[1] * self.shape[2]
        return slice(self.inner.start * plane, self.inner.stop * plane)


def _windows(occupancy: Occupancy, runs: tuple[Run, ...]) -> Iterator[_Window]:
    """Cut the box of a label along z; corner slice z is before voxel z."""
    reach_z, reach_y = max(run.z for run in runs), max(run.y for run in runs)
    reach_x = runs[-1].half_width
    _, height, width = occupancy.extent
    step = max(4 * (reach_z + 1), CHUNK_BYTES // max(1, height * width))
    span_z = occupancy.span_z
    for start in range(span_z.start, span_z.stop + 1, step):
        stop = min(start + step, span_z.stop + 1)
        zs = slice(max(start - reach_z - 1, 0), min(stop + reach_z, occupancy.depth))
        ys, xs = occupancy.span_yx(zs)
        if ys.start == ys.stop:
            continue
        yield _Window(
            box=(zs, ys, xs),
            first_slice=zs.start - (start - reach_z - 1),
            shape=(
                stop - start + 2 * (reach_z + 1),
                ys.stop - ys.start + 1 + reach_y,
                -(-(xs.stop - xs.start + 1 + reach_x) // 8) * 8,
            ),
            inner=slice(reach_z + 1, reach_z + 1 + stop - start),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one label's voxels and surfels come to."""

    reference_voxels: int
    prediction_voxels: int
    shared_voxels: int
    surfels: npt.NDArray[np.int64]
    """Both masks' surfels by code; shape (2, 256): beyond and within the tolerance."""


def tally(
    reference: Labels,
    prediction: Labels,
    occupancy: Occupancy,
    runs: tuple[Run, ...],
) -> Tally:
    """Count the voxels and surfels of one label."""
    voxels = np.zeros(3, dtype=np.int64)
    surfels = np.zeros((2, 256), dtype=np.int64)
    for window in _windows(occupancy, runs):
        first = _mask(reference, occupancy.label, window)
        second = _mask(prediction, occupancy.label, window)
        inner = first[window.inner], second[window.inner]
        voxels += [
            np.count_nonzero(mask.view(np.bool_))
            for mask in (*inner, inner[0] & inner[1])
        ]
        first_codes, second_codes = _codes(first), _codes(second)
        first_border, second_border = _border(first_codes), _border(second_codes)
        surfels += _count(
            first_codes, first_border, _cover(second_border, runs, window), window
        )
        surfels += _count(
            second_codes, second_border, _cover(first_border, runs, window), window
        )
    first_total, second_total, shared = (int(count) for count in voxels)
    return Tally(
        reference_voxels=first_total,
        prediction_voxels=second_total,
        shared_voxels=shared,
        surfels=surfels,
    )


def _mask(labels: Labels, label: int, window: _Window) -> _Bytes:
    """Voxels of one label as 0 and 1, in the window's zero-padded buffer."""
    voxels = np.zeros(window.shape, dtype=np.uint8)
    box = labels[window.box]
    depth, height, width = box.shape
    start = window.first_slice
    voxels[start : start + depth, :height, :width] = box.copy() == label
    return voxels


def _codes(mask: _Bytes) -> _Bytes:
    """Which of the eight voxels around each corner belong to the mask, as bits.

    Overwrites `mask`. Corner (z, y, x) is the one before voxel (z, y, x) on all axes.
    """
    codes = mask.ravel()
    for weight, shift in ((2, 1), (4, mask.shape[2]), (16, mask[0].size)):
        before = np.multiply(codes[:-shift], weight)
        codes[shift:] |= before
    return codes


def _border(codes: _Bytes) -> _Bytes:
    """1 where a corner has voxels inside and outside of the mask: a surfel."""
    return (codes + np.uint8(1) > 1).view(np.uint8)


def _cover(border: _Bytes, runs: tuple[Run, ...], window: _Window) -> _Bytes:
    """1 for every inner corner of the window within reach of a surfel in `border`."""
    row, plane = window.shape[2], window.shape[1] * window.shape[2]
    start, stop = window.inner.start * plane, window.inner.stop * plane
    covered = np.zeros(stop - start, dtype=np.uint8)
    widened, half_width = border.copy(), 0
    for run in runs:
        while half_width < run.half_width:
            half_width += 1
            widened[half_width:] |= border[:-half_width]
            widened[:-half_width] |= border[half_width:]
        shift = run.z * plane + run.y * row
        covered |= widened[start + shift : stop + shift]
    return covered


def _count(
    codes: _Bytes, border: _Bytes, covered: _Bytes, window: _Window
) -> npt.NDArray[np.int64]:
    """Surfels of the window's inner corners by code, beyond and within the tolerance.

    Surfels are few, so eight corners at a time are looked at, and left out where none
    of the eight is a surfel; a corner beside a surfel adds to code 0 or 255.
    """
    inner = window.flat_inner
    where = np.flatnonzero(border[inner].view(np.uint64) != 0)
    keys = covered.view(np.uint64)[where].view(np.uint8).astype(np.uint16)
    keys <<= 8
    keys |= codes[inner].view(np.uint64)[where].view(np.uint8)
    return np.bincount(keys, minlength=512).reshape(2, 256)
