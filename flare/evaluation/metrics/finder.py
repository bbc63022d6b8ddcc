"""Finds each label of a label map that is filled piece by piece, and cuts it out.

A row of a label map is mostly as the row above it. Down each column of a slice, a label
begins and ends where rows differ, or at an end of the slice; so what is there tells the
first and the last row and column of all of it, and differences are cheap to find.
Looking for each label in turn would read the whole label map once per label. Then the
box around a label is cut into windows that stay in the CPU's cache, whose margins hold
a ball of the tolerance.

Arrays are in order z, y, x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

PIECE_BYTES = 2**19
"""How many voxels are compared with those above at once: they stay in cache."""

BATCH = 2**14
"""So many differences are taken together: calls of NumPy take a while."""

DENSE = 4
"""If more than one of so many groups of eight voxels is not as the one above, a label
counts as anywhere in its slices: that takes the same time, whatever a file holds."""

CHUNK_BYTES = 2**20
"""Masks are built in pieces of about this size, to stay in the CPU's cache."""

Labels = npt.NDArray[np.uint8]
"""Labels of shape (Z, Y, X)."""

Mask = npt.NDArray[np.bool_]
"""A mask of shape (Z, Y, X)."""

Spacing = tuple[float, float, float]
"""Voxel size in mm along z, y, x."""

_Indices = npt.NDArray[np.intp]


class ReusedMemory:
    """Memory that is used again, for one case after the other.

    The kernel hands out fresh memory by pages of 4 KiB, which takes longer than what is
    then done with them: that was a third of the time of a case.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[np.uint8]] = {}

    def take(self, name: str, size: int) -> npt.NDArray[np.uint8]:
        """An array of shape (size,) with any content.

        The next that is taken by the same name has the same place: it overwrites it.
        """
        if name not in self._arrays or size > self._arrays[name].size:
            self._arrays.pop(name, None)  # never hold both
            self._arrays[name] = np.empty(size, dtype=np.uint8)
        return self._arrays[name][:size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Where one label is, in one label map or in either of two."""

    label: int
    rows: Mask
    """Shape (Z, Y): is the label anywhere in the row? In each slice, only the first and
    the last True count: no row outside them has the label. A slice has one True at
    least if it has the label, and none if it has not."""
    columns: Mask
    """Shape (Z, X): the same for the columns of each slice."""

    def __or__(self, other: Occupancy) -> Occupancy:
        """Where the label is in either label map."""
        return Occupancy(
            label=self.label,
            rows=self.rows | other.rows,
            columns=self.columns | other.columns,
        )

    def within(self, zs: slice) -> Occupancy:
        """The same for some slices of the label map alone."""
        return Occupancy(label=self.label, rows=self.rows[zs], columns=self.columns[zs])

    @property
    def depth(self) -> int:
        """Slices of the whole label map."""
        return len(self.rows)

    @property
    def span_z(self) -> slice:
        """Slices from the first to the last that hold the label."""
        return _span(self.rows.any(axis=1))

    def span_yx(self, zs: slice) -> tuple[slice, slice]:
        """Rows and columns outside which the slices `zs` do not hold the label."""
        return _span(self.rows[zs].any(axis=0)), _span(self.columns[zs].any(axis=0))

    @property
    def extent(self) -> tuple[int, int, int]:
        """Size in voxels of the box around the label."""
        spans = (self.span_z, *self.span_yx(slice(None)))
        depth, height, width = (span.stop - span.start for span in spans)
        return depth, height, width


def _span(occupied: npt.NDArray[np.bool_] | np.bool_) -> slice:
    """From the first to the last True of an array of shape (n,), or an empty slice."""
    content = occupied.tobytes()  # which Python searches quicker than NumPy begins to
    return slice(max(content.find(1), 0), content.rfind(1) + 1)


class LabelFinder:
    """Finds labels in a label map that is filled piece by piece.

    Each piece is looked at while it is still in the CPU's cache.

    Parameters
    ----------
    labels : ndarray of uint8, shape (Z * Y * X,)
        The label map, which need not be filled yet.
    shape : tuple of int
        Z, Y, X.
    wanted : sequence of int
        The labels to find, from 1 to 255.
    """

    def __init__(
        self, labels: Labels, shape: tuple[int, int, int], wanted: Sequence[int]
    ) -> None:
        depth, height, width = self._shape = shape
        self._labels = labels
        self._wanted = tuple(wanted)
        # One more than the wanted labels: where all others are noted, for nobody.
        self._slots = np.full(256, len(wanted))
        self._slots[list(wanted)] = np.arange(len(wanted))
        self._rows = np.zeros((len(wanted) + 1, depth, height), dtype=np.bool_)
        self._columns = np.zeros((len(wanted) + 1, depth, width), dtype=np.bool_)
        self._first_row = self._slots * depth * height
        self._first_column = self._slots * depth * width
        self._next = width
        self._differs = np.empty(-(-PIECE_BYTES // 8) * 8, dtype=np.uint8)
        self._found: list[tuple[_Indices, Labels, Labels]] = []
        self._waiting = 0
        self._known = bytes({0, *wanted})
        self._first_unknown = min(set(range(257)) - set(self._known))
        self.unwanted: set[int] = set()
        """Labels that are there, but not wanted; complete once it is finished."""

    def add(self, stop: int) -> None:
        """Look at the next voxels, up to `stop`, which have been filled."""
        while self._next < stop:
            start = self._next
            self._next = min(start + PIECE_BYTES, stop)
            self._add_piece(start, self._next)

    def finish(self) -> dict[int, Occupancy]:
        """Where each wanted label is, after the last voxel was added."""
        self._note_waiting()
        self._note_ends()
        return {
            label: Occupancy(label=label, rows=rows, columns=columns)
            for label, rows, columns in zip(
                self._wanted, self._rows[:-1], self._columns[:-1], strict=True
            )
        }

    def _add_piece(self, start: int, stop: int) -> None:
        """Find the voxels that differ from those above, from `start` to `stop`."""
        size, width = stop - start, self._shape[2]
        here, above = self._labels[start:stop], self._labels[start - width :][:size]
        if width % 8 or size % 8:
            differs = self._differs[: -(-size // 8) * 8]
            differs[size:] = 0
            np.bitwise_xor(here, above, out=differs[:size])
            words = differs.view(np.uint64)
            eights = (words != 0).nonzero()[0]
            words = words[eights]
        else:  # quicker
            both = here.view(np.uint64), above.view(np.uint64)
            eights = np.not_equal(*both).nonzero()[0]
            words = both[0][eights] ^ both[1][eights]
        if eights.size * DENSE > size // 8:
            self._note_all(start - width, stop)
            return
        where = (words.view(np.uint8) != 0).nonzero()[0]
        index = (eights * 8).take(where >> 3) + (where & 7)
        self._found.append((index + start, here[index], above[index]))
        self._waiting += index.size
        if self._waiting >= BATCH:
            self._note_waiting()

    def _note_waiting(self) -> None:
        """Take note of the differences that were found, voxel by voxel."""
        if not self._found:
            return
        parts = list(zip(*self._found, strict=True))
        index, here, above = (np.concatenate(part) for part in parts)
        self._found.clear()
        self._waiting = 0
        _, height, width = self._shape
        row = index // width
        self._note_rows(row, here)
        self._note_columns(row // height * width + index - row * width, here)
        self._note_rows(row - 1, above)  # its column was noted where it began

    def _note_ends(self) -> None:
        """Take note of the first and the last row of each slice."""
        depth, height, width = self._shape
        labels = self._labels.reshape(self._shape)
        step = max(1, BATCH // width)
        for y, z, x in product(
            {0, height - 1}, range(0, depth, step), range(0, width, BATCH)
        ):
            end = np.ascontiguousarray(labels[z : z + step, y, x : x + BATCH])
            where = (end.reshape(-1) != 0).nonzero()[0]
            if where.size:
                zs, xs = np.divmod(where, end.shape[1])
                zs += z
                found = end.reshape(-1).take(where)
                self._note_rows(zs * height + y, found)
                self._note_columns(zs * width + x + xs, found)

    def _note_rows(self, rows: _Indices, labels: Labels) -> None:
        """Take note of voxels' labels and rows, of shape (n,), through all slices."""
        if labels.max(initial=0) >= self._first_unknown:
            self.unwanted.update(labels.tobytes().translate(None, self._known))
        self._rows.reshape(-1)[self._first_row.take(labels) + rows] = True

    def _note_columns(self, columns: _Indices, labels: Labels) -> None:
        """Take note of voxels' columns, of shape (n,), counted through all slices."""
        self._columns.reshape(-1)[self._first_column.take(labels) + columns] = True

    def _note_all(self, start: int, stop: int) -> None:
        """Take each label of a slice as anywhere in it: then windows are larger."""
        _, height, width = self._shape
        area = height * width
        for z in range(start // area, -(-stop // area)):
            part = self._labels[max(start, z * area) : min(stop, (z + 1) * area)]
            labels = np.flatnonzero(np.bincount(part, minlength=256)).astype(np.uint8)
            self._note_rows(np.full(len(labels), z * height), labels)
            slots = self._slots[labels]
            self._rows[slots, z] = self._columns[slots, z] = True


def find_labels(labels: Labels, wanted: Sequence[int]) -> dict[int, Occupancy]:
    """Find each wanted label of a label map of shape (Z, Y, X)."""
    depth, height, width = labels.shape
    flat = np.ascontiguousarray(labels).reshape(-1)
    finder = LabelFinder(flat, (depth, height, width), wanted)
    finder.add(flat.size)
    return finder.finish()


# --- Windows ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BallRow:
    """A row of the tolerance ball: corners -half_width to +half_width along x."""

    z: int
    y: int
    half_width: int


Ball = tuple[BallRow, ...]
"""Its rows, the widest and nearest first."""


@lru_cache(maxsize=256)
def ball_rows(spacing: Spacing, tolerance: float, extent: tuple[int, int, int]) -> Ball:
    """Rows of the ball of radius `tolerance`, the widest and nearest first.

    No offset needs to be longer than the `extent` of the surfaces. Squares are added
    in the order x, y, z, as SciPy's distance transform adds them for the official
    scripts' (x, y, z) arrays, and are products, as there: a power is another function,
    whose last bit may differ. So a distance of exactly the tolerance is decided alike.
    """
    reach = [
        min(math.floor(tolerance / size) + 1, longest)
        for size, longest in zip(spacing, extent, strict=True)
    ]
    z, y = np.ogrid[-reach[0] : reach[0] + 1, -reach[1] : reach[1] + 1]
    widths = np.zeros(np.broadcast_shapes(z.shape, y.shape), dtype=np.int64)
    for x in range(reach[2] + 1):
        in_plane = np.square(x * spacing[2]) + np.square(y * spacing[1])
        widths += np.sqrt(in_plane + np.square(z * spacing[0])) <= tolerance
    rows = [
        BallRow(
            z=int(z) - reach[0], y=int(y) - reach[1], half_width=int(widths[z, y]) - 1
        )
        for z, y in np.argwhere(widths)
    ]
    return tuple(sorted(rows, key=lambda row: -row.half_width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of the maps that decides about the surfels of a few corner slices.

    It is looked at in flat buffers: arrays of shape (size,), in the order z, y, x. Rows
    and slices end in zeros there, so that each neighbour, along every axis, is one
    constant shift of the whole buffer.
    """

    box: tuple[slice, slice, slice]
    """Voxels to look at: those of the corners, and those within reach of them."""
    first_slice: int
    """Slice of the buffer where the box begins."""
    shape: tuple[int, int, int]
    """Shape of the buffer: the box and the zeros that end its rows and slices."""
    margin: int
    """Slices at either end of the buffer whose corners are not counted."""
    memory: ReusedMemory
    """Where the flat buffers are."""

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
        """Of a flat buffer."""
        return self.shape[0] * self.plane

    def buffer(self, name: str) -> npt.NDArray[np.uint8]:
        """A flat buffer with any content, the same for all windows by its name."""
        return self.memory.take(name, self.size)

    @property
    def inner(self) -> slice:
        """The part of the flat buffer whose corners are counted in this window."""
        return slice(self.margin * self.plane, self.size - self.margin * self.plane)


def windows(occupancy: Occupancy, ball: Ball, memory: ReusedMemory) -> Iterator[Window]:
    """Cut the box of a label along z; corner slice z is before voxel z."""
    reach_z, reach_y = max(row.z for row in ball), max(row.y for row in ball)
    reach_x = ball[0].half_width
    span_z, whole = occupancy.span_z, occupancy.span_yx(slice(None))
    height, width = (span.stop - span.start for span in whole)
    step = max(4 * (reach_z + 1), CHUNK_BYTES // max(1, height * width))
    for start in range(span_z.start, span_z.stop + 1, step):
        stop = min(start + step, span_z.stop + 1)
        zs = slice(max(start - reach_z - 1, 0), min(stop + reach_z, occupancy.depth))
        is_all = zs.start <= span_z.start and span_z.stop <= zs.stop
        ys, xs = whole if is_all else occupancy.span_yx(zs)
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
            memory=memory,
        )
