"""Finds each label of a label map that is filled piece by piece.

A row of a label map is mostly as the row above it. Down each column of a slice, a label
begins and ends where rows differ, or at an end of the slice; so what is there tells the
first and the last row and column of all of it, and differences are cheap to find.
Looking for each label in turn would read the whole label map once per label.

Voxels are compared in cells: eight at once, if each row has a multiple of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.metrics.occupancy import Occupancy

PIECE_BYTES = 2**19
"""How many voxels are compared with those above at once: they stay in cache."""

BATCH = 2**14
"""So many differences are taken together: calls of NumPy take a while."""

DENSE = 16
"""If more than one of so many cells is not as the one above, whole rows are looked at
instead: that takes the same time, whatever a file holds."""

_BITS = 8
"""How many labels are looked for at once, in whole rows: a bit of a byte for each."""

_Indices = npt.NDArray[np.intp]
_Bytes = npt.NDArray[np.uint8]
_Cells = npt.NDArray[np.uint64] | _Bytes


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
        order = np.full(256, len(wanted))
        order[list(wanted)] = np.arange(len(wanted))
        self._rows = np.zeros((len(wanted) + 1, depth, height), dtype=np.bool_)
        self._columns = np.zeros((len(wanted) + 1, depth, width), dtype=np.bool_)
        self._first_row, self._first_column = (
            order * depth * height,
            order * depth * width,
        )
        self._cell = np.dtype(np.uint8 if width % 8 else np.uint64)
        self._cells: _Cells = labels.view(self._cell)
        self._next = self._row = width // self._cell.itemsize
        piece = min(PIECE_BYTES // self._cell.itemsize, self._cells.size)
        self._differs = np.empty(piece, dtype=np.bool_)
        self._found: list[tuple[_Indices, _Cells, _Cells]] = []
        self._waiting = 0
        self._known = bytes({0, *wanted})
        self._first_unknown = min(set(range(257)) - set(self._known))
        self.unwanted: set[int] = set()
        """Labels that are there, but not wanted; complete once it is finished."""

    def add(self, stop: int) -> None:
        """Look at the next voxels, up to `stop`, which have been filled."""
        stop //= self._cell.itemsize
        while self._next < stop:
            start = self._next
            self._next = min(start + self._differs.size, stop)
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
        """Find the cells that differ from those above, from `start` to `stop`."""
        here = self._cells[start:stop]
        above = self._cells[start - self._row : stop - self._row]
        differs = np.not_equal(here, above, out=self._differs[: here.size])
        size = self._cell.itemsize
        if np.count_nonzero(differs) * DENSE > here.size:
            self._note_all(
                (start - self._row) * size, min(start, stop - self._row) * size
            )
            self._note_all(start * size, stop * size)
            return
        index = differs.nonzero()[0]
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
        row = index // self._row
        size = self._cell.itemsize  # 1 or 8
        x = (index - row * self._row) * size
        differs = (here ^ above).view(np.uint8) != 0
        for cells, rows in ((here, row), (above, row - 1)):
            content = cells.view(np.uint8)
            where = (differs & (content != 0)).nonzero()[0]
            labels, cell = content.take(where), where >> size.bit_length() - 1
            self._note_rows(rows.take(cell), labels)
            if cells is here:  # where a label ends below, it has begun: noted by then
                columns = rows // self._shape[1] * self._shape[2] + x
                self._note_columns(columns.take(cell) + (where & size - 1), labels)

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
        """Take note of some voxels' labels, and of the rows that these are in."""
        if labels.max(initial=0) >= self._first_unknown:
            self.unwanted.update(labels.tobytes().translate(None, self._known))
        self._rows.reshape(-1)[self._first_row.take(labels) + rows] = True

    def _note_columns(self, columns: _Indices, labels: Labels) -> None:
        """Take note of the columns, counted through all slices, of some voxels."""
        self._columns.reshape(-1)[self._first_column.take(labels) + columns] = True

    def _note_all(self, start: int, stop: int) -> None:
        """Take note of all voxels from `start` to `stop`, row by row."""
        width = self._shape[2]
        first, last = -(-start // width), stop // width  # whole rows
        for part in (
            slice(start, min(first * width, stop)),
            slice(max(last * width, start), stop),
        ):
            row, x = np.divmod(np.arange(part.start, part.stop), width)
            self._note_rows(row, self._labels[part])
            columns = row // self._shape[1] * width + x
            self._note_columns(columns, self._labels[part])
        if first >= last:
            return
        voxels = self._labels[first * width : last * width]
        content = voxels.tobytes()
        if voxels.max() >= self._first_unknown:
            self.unwanted.update(content.translate(None, self._known))
        for number in range(0, len(self._wanted), _BITS):
            group = self._wanted[number : number + _BITS]
            table = bytearray(256)
            for bit, label in enumerate(group):
                table[label] = 1 << bit
            marks = np.frombuffer(content.translate(table), dtype=np.uint8)
            self._note_marks(marks.reshape(-1, width), first, number, len(group))

    def _note_marks(self, marks: _Bytes, first: int, number: int, count: int) -> None:
        """Take note of whole rows, from row `first` on, that have a bit for a label."""
        _, height, width = self._shape
        rows = np.bitwise_or.reduce(marks, axis=1)
        for bit in range(count):
            found = self._rows[number + bit].reshape(-1)[first : first + len(rows)]
            found |= (rows & (1 << bit)) != 0
        head = min(-first % height, len(rows))
        tail = len(rows) - (len(rows) - head) % height
        for begin, end in ((0, head), (head, tail), (tail, len(rows))):
            if begin == end:
                continue
            slices = marks[begin:end].reshape(-1, min(height, end - begin), width)
            columns = np.bitwise_or.reduce(slices, axis=1)
            z = (first + begin) // height
            for bit in range(count):
                found = self._columns[number + bit, z : z + len(columns)]
                found |= (columns & (1 << bit)) != 0


def find_labels(labels: Labels, wanted: Sequence[int]) -> dict[int, Occupancy]:
    """Find each wanted label of a label map of shape (Z, Y, X)."""
    depth, height, width = labels.shape
    flat = np.ascontiguousarray(labels).reshape(-1)
    finder = LabelFinder(flat, (depth, height, width), wanted)
    finder.add(flat.size)
    return finder.finish()
