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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels, ReusedMemory
from flare.evaluation.metrics.occupancy import Occupancy
from flare.evaluation.metrics.tolerance_ball import Ball

_Bytes = npt.NDArray[np.uint8]
_Indices = npt.NDArray[np.intp]
_Counts = npt.NDArray[np.int64]

CHUNK_BYTES = 2**20
"""Masks are built in pieces of about this size, to stay in the CPU's cache."""

DENSE = 8
"""If more than one of so many corners is a surfel, all are looked at, and not those."""

COUNTED_BYTES = 2**15
"""How many codes are counted at once: as NumPy's integers they fit into the cache."""


NAMES = ("first", "second")
"""What the two masks are called among the buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of the maps that decides about the surfels of a few corner slices."""

    box: tuple[slice, slice, slice]
    """Voxels to look at: those of the corners, and those within reach of them."""
    first_slice: int
    """Slice of the buffer where the box begins."""
    shape: tuple[int, int, int]
    """Shape of the buffer: the box and the zeros that end its rows and slices."""
    margin: int
    """Slices at either end of the buffer whose corners are not counted."""

    @property
    def row(self) -> int:
        """From a corner to its neighbour along y, in the flat buffer."""
        return self.shape[2]

    @property
    def plane(self) -> int:
        """From a corner to its neighbour along z."""
        return self.shape[1] * self.shape[2]

    @property
    def size(self) -> int:
        """Of the flat buffer."""
        return self.shape[0] * self.plane

    @property
    def inner(self) -> slice:
        """The part of the flat buffer whose corners are counted in this window."""
        return slice(self.margin * self.plane, self.size - self.margin * self.plane)


def windows(occupancy: Occupancy, ball: Ball) -> Iterator[Window]:
    """Cut the box of a label along z; corner slice z is before voxel z."""
    reach_z, reach_y = max(row.z for row in ball), max(row.y for row in ball)
    reach_x = ball[0].half_width
    _, height, width = occupancy.extent
    step = max(4 * (reach_z + 1), CHUNK_BYTES // max(1, height * width))
    span_z = occupancy.span_z
    for start in range(span_z.start, span_z.stop + 1, step):
        stop = min(start + step, span_z.stop + 1)
        zs = slice(max(start - reach_z - 1, 0), min(stop + reach_z, occupancy.depth))
        ys, xs = occupancy.span_yx(zs)
        if ys.start == ys.stop:
            continue
        yield Window(
            box=(zs, ys, xs),
            first_slice=zs.start - (start - reach_z - 1),
            shape=(
                stop - start + 2 * (reach_z + 1),
                ys.stop - ys.start + 1 + reach_y,
                -(-(xs.stop - xs.start + 1 + reach_x) // 8) * 8,
            ),
            margin=reach_z + 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What one label's voxels and surfels come to."""

    reference_voxels: int
    prediction_voxels: int
    shared_voxels: int
    surfels: npt.NDArray[np.int64]
    """Both masks' surfels by code; shape (256,)."""
    beyond: npt.NDArray[np.int64]
    """Those of them that are farther than the tolerance from the other surface."""


def tally(
    reference: Labels,
    prediction: Labels,
    occupancy: Occupancy,
    ball: Ball,
    memory: ReusedMemory,
) -> Tally:
    """Count the voxels and surfels of one label."""
    voxels = np.zeros(3, dtype=np.int64)
    surfels = np.zeros(256, dtype=np.int64)
    beyond = np.zeros(256, dtype=np.int64)
    for window in windows(occupancy, ball):
        buffers = Buffers(memory, window.size)
        masks = [
            mask_of(labels, occupancy.label, window, buffers[name])
            for labels, name in zip((reference, prediction), NAMES, strict=True)
        ]
        are_filled = [np.count_nonzero(mask.view(np.bool_)) > 0 for mask in masks]
        inner = [mask[window.inner] for mask in masks]
        voxels[:2] += [np.count_nonzero(mask.view(np.bool_)) for mask in inner]
        if all(are_filled):
            both = np.bitwise_and(
                inner[0], inner[1], out=buffers["scratch"][window.inner]
            )
            voxels[2] += np.count_nonzero(both.view(np.bool_))
        borders = {
            name: border_of(
                codes_of(mask, window, buffers["scratch"]), buffers[f"{name} border"]
            )
            for mask, name, is_filled in zip(masks, NAMES, are_filled, strict=True)
            if is_filled
        }
        for codes, name, other in zip(masks, NAMES, reversed(NAMES), strict=True):
            if name in borders:
                own, near = borders[name], borders.get(other)
                counts = _count(codes, own, near, ball, window, buffers)
                surfels += counts[0]
                beyond += counts[1]
    first_total, second_total, shared = (int(count) for count in voxels)
    return Tally(
        reference_voxels=first_total,
        prediction_voxels=second_total,
        shared_voxels=shared,
        surfels=surfels,
        beyond=beyond,
    )


class Buffers:
    """The flat buffers of a window, by name, all of one size and with any content."""

    def __init__(self, memory: ReusedMemory, size: int) -> None:
        self._memory, self._size = memory, size

    def __getitem__(self, name: str) -> _Bytes:
        return self._memory.take(name, self._size)


def mask_of(labels: Labels, label: int, window: Window, buffer: _Bytes) -> _Bytes:
    """Voxels of one label as 0 and 1, zero-padded."""
    buffer[:] = 0
    box = labels[window.box]
    depth, height, width = box.shape
    start = window.first_slice
    voxels = buffer.reshape(window.shape)
    voxels[start : start + depth, :height, :width] = box
    np.equal(buffer, label, out=buffer.view(np.bool_))
    return buffer


def codes_of(mask: _Bytes, window: Window, scratch: _Bytes) -> _Bytes:
    """Which of the eight voxels around each corner belong to the mask, as bits.

    Overwrites `mask`. Corner (z, y, x) is the one before voxel (z, y, x) on all axes.
    """
    for weight, shift in ((2, 1), (4, window.row), (16, window.plane)):
        before = np.multiply(mask[:-shift], weight, out=scratch[:-shift])
        mask[shift:] |= before
    return mask


def border_of(codes: _Bytes, buffer: _Bytes) -> _Bytes:
    """1 where a corner has voxels inside and outside of the mask: a surfel."""
    np.add(codes, 1, out=buffer)  # code 255 becomes 0
    np.greater(buffer, 1, out=buffer.view(np.bool_))
    return buffer


def find_surfels(border: _Bytes, window: Window) -> _Indices:
    """Indices of the surfels that are counted in this window, if they are few.

    So eight corners at a time are looked at first.
    """
    eights = border[window.inner].view(np.uint64)
    occupied = np.flatnonzero(eights != 0)
    where = np.flatnonzero(eights[occupied].view(np.bool_))
    found: _Indices = window.inner.start + occupied[where >> 3] * 8 + (where & 7)
    return found


def probes_of(ball: Ball, window: Window) -> Iterator[tuple[int, int]]:
    """All that has to be looked up to know what the ball around a corner holds.

    Yields pairs of a level, which is an index of what `_widened` returns, and a shift
    of the flat buffer. The widest border that is not wider than a row shows all of it,
    if it is looked up at both of the row's ends.
    """
    for row in ball:
        level = row.half_width.bit_length()
        rest = row.half_width - (1 << level >> 1)
        for x in {-rest, rest}:
            yield level, row.z * window.plane + row.y * window.row + x


def find_beyond(
    where: _Indices,
    border: _Bytes,
    probes: Sequence[tuple[int, int]],
    window: Window,
    buffers: Buffers,
) -> _Indices:
    """Which of the few corners `where` have no surfel of `border` near enough."""
    widened = _widened(border, probes[0][0], buffers)
    for level, shift in probes:
        where = where.compress(widened[level][where + shift] == 0)
    return where


def _count(
    codes: _Bytes,
    own: _Bytes,
    other: _Bytes | None,
    ball: Ball,
    window: Window,
    buffers: Buffers,
) -> tuple[_Counts, _Counts]:
    """Count one mask's surfels by code: all, and those that are beyond the tolerance.

    Where the other mask has no border at all, all are beyond.
    """
    number = np.count_nonzero(own[window.inner].view(np.bool_))
    if number * DENSE > own.size:
        surfels = _count_all(codes, window)
        if other is None:
            return surfels, surfels
        covered = _covered(own, other, ball, window, buffers)
        return surfels, surfels - _count_marked(codes, covered, window, buffers)
    where = find_surfels(own, window)
    surfels = np.bincount(codes[where], minlength=256)
    if other is None or not number:
        return surfels, surfels
    probes = tuple(probes_of(ball, window))
    where = find_beyond(where, other, probes, window, buffers)
    return surfels, np.bincount(codes[where], minlength=256)


def _count_marked(
    codes: _Bytes, marks: _Bytes, window: Window, buffers: Buffers
) -> _Counts:
    """How many of the corners that are marked by 1 have each code."""
    number = np.count_nonzero(marks[window.inner].view(np.bool_))
    if number * DENSE <= marks.size:
        return np.bincount(codes[find_surfels(marks, window)], minlength=256)
    return _count_all(np.multiply(codes, marks, out=buffers["scratch"]), window)


def _count_all(codes: _Bytes, window: Window) -> _Counts:
    """How many corners have each code, but 0 and 255, which are no surfels."""
    counts = np.zeros(256, dtype=np.int64)
    inner = codes[window.inner]
    for start in range(0, inner.size, COUNTED_BYTES):
        counts += np.bincount(inner[start : start + COUNTED_BYTES], minlength=256)
    counts[[0, 255]] = 0
    return counts


def _covered(
    own: _Bytes, other: _Bytes, ball: Ball, window: Window, buffers: Buffers
) -> _Bytes:
    """1 at each corner of `own` that has a surfel of `other` near enough.

    Only rows within reach of such surfels are looked at: of a mask that fills
    everything, an organ is near to a few.
    """
    probes = tuple(probes_of(ball, window))
    widened = _widened(other, probes[0][0], buffers)
    eights = other.view(np.uint64).reshape(window.shape[0], window.shape[1], -1)
    rows = np.flatnonzero(np.bitwise_or.reduce(eights, axis=0).any(axis=1))
    reach = max(row.y for row in ball)
    near = slice(max(int(rows[0]) - reach, 0), int(rows[-1]) + reach + 1)
    covered, inner = buffers["covered"], window.inner
    covered[:] = 0
    shape = (-1, *window.shape[1:])
    target = covered[inner].reshape(shape)[:, near]
    for level, shift in probes:
        moved = widened[level][inner.start + shift : inner.stop + shift]
        target |= moved.reshape(shape)[:, near]
    covered &= own
    return covered


def _widened(border: _Bytes, levels: int, buffers: Buffers) -> list[_Bytes]:
    """The border, widened along x by 0, 1, 2, 4, 8, ... corners to either side."""
    widened = [border]
    for level in range(1, levels + 1):
        step = max(1, 1 << level >> 2)
        wider = buffers[f"widened {level}"]
        wider[:step] = wider[-step:] = 0  # no probe sees them: they are in the margin
        np.bitwise_or(
            widened[-1][: -2 * step], widened[-1][2 * step :], out=wider[step:-step]
        )
        if level == 1:  # from level 2 on, the two halves meet
            wider |= border
        widened.append(wider)
    return widened
