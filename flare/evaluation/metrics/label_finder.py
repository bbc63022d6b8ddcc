"""Finds each label of a label map that is filled piece by piece.

A row of a label map is mostly as the row above it. Down each column of a slice, a label
begins and ends where rows differ, or at an end of the slice; so what is there tells the
first and the last row and column of all of it, and differences are cheap to find.
Looking for each label in turn would read the whole label map once per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels, Occupancy

PIECE_BYTES = 2**19
"""How many voxels are compared with those above at once: they stay in cache."""

BATCH = 2**14
"""So many differences are taken together: calls of NumPy take a while."""

DENSE = 4
"""If more than one of so many cells is not as the one above, whole rows are looked at
instead: that takes the same time, whatever a file holds."""

_Indices = npt.NDArray[np.intp]


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
