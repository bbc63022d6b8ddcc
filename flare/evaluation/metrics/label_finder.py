"""Finds each label of a label map that is filled piece by piece.

Along a row, a label map is a few runs of equal labels, so the first and the last voxel
of every run tell all of it. They are where neighbours differ, which is cheap to find;
looking for each label in turn would read the whole label map once per label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.metrics.occupancy import Occupancy

PIECE_BYTES = 2**19
"""How many voxels are compared with their neighbours at once: they stay in cache."""

BATCH = 2**15
"""So many ends of runs, and rows, are taken together: calls of NumPy take a while."""

DENSE = 4
"""If a run ends in more than one of so many groups of eight voxels, whole rows are
looked at instead: that takes the same time, whatever a file holds."""

_BITS = 8
"""How many labels are looked for at once, in whole rows: a bit of a byte for each."""

_BACKGROUND, _UNKNOWN = -1, -2
"""What stands for label 0, and for one that is not wanted, where others are counted."""

_Indices = npt.NDArray[np.intp]
_Words = npt.NDArray[np.uint64]
_Bytes = npt.NDArray[np.uint8]


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
        self._order = np.full(256, _UNKNOWN)
        self._order[0] = _BACKGROUND
        self._order[list(wanted)] = np.arange(len(wanted))
        self._rows = np.zeros((len(wanted), depth, height), dtype=np.bool_)
        self._columns = np.zeros((len(wanted), depth, width), dtype=np.bool_)
        self._differs = np.empty(min(PIECE_BYTES, labels.size), dtype=np.bool_)
        self._ends: list[tuple[_Indices, _Words, _Words]] = []
        self._waiting = 0
        self._known = {0, *wanted}
        self._first_unknown = min(set(range(257)) - self._known)
        self.unwanted: set[int] = set()
        """Labels that are there, but not wanted; complete once it is finished."""

    def add(self, start: int, stop: int) -> None:
        """Look at voxels `start` to `stop`, the next ones; `start` is one of 8 n."""
        whole = stop - (stop - start) % 8
        for begin in range(start, whole, PIECE_BYTES):
            self._add_piece(begin, min(begin + PIECE_BYTES, whole))
        if whole < stop:
            self._note_waiting(whole)
            self._note_voxels(whole, stop)

    def finish(self) -> dict[int, Occupancy]:
        """Where each wanted label is, after the last voxel was added."""
        self._note_waiting(self._labels.size - self._labels.size % 8)
        return {
            label: Occupancy(label=label, rows=rows, columns=columns)
            for label, rows, columns in zip(
                self._wanted, self._rows, self._columns, strict=True
            )
        }

    def _add_piece(self, start: int, stop: int) -> None:
        """Find the groups of eight voxels in which a run begins.

        A run begins where a voxel differs from the last, and with each piece.
        """
        piece = self._labels[start:stop]
        differs = self._differs[: piece.size]
        np.not_equal(piece[1:], piece[:-1], out=differs[1:])
        differs[0] = True
        eights = differs.view(np.uint64)
        occupied = (eights != 0).nonzero()[0]
        if occupied.size * DENSE > eights.size:
            self._note_waiting(start)
            self._note_all(start, stop)
            return
        words = piece.view(np.uint64)
        self._ends.append((occupied + start // 8, eights[occupied], words[occupied]))
        self._waiting += occupied.size + piece.size // self._shape[2]
        if self._waiting >= BATCH:
            self._note_waiting(stop)

    def _note_waiting(self, stop: int) -> None:
        """Take note of the runs that were found and end before voxel `stop`."""
        if not self._ends:
            return
        parts = list(zip(*self._ends, strict=True))
        occupied, differs, words = (np.concatenate(part) for part in parts)
        self._ends.clear()
        self._waiting = 0
        where = differs.view(np.bool_).nonzero()[0]
        starts = occupied[where >> 3] * 8 + (where & 7)
        stops = np.append(starts[1:], stop)
        self._note(starts, stops, words.view(np.uint8)[where])

    def _note_voxels(self, start: int, stop: int) -> None:
        """Take note of some voxels, as if each was a run."""
        if not self._labels[start:stop].any():
            return
        voxels = np.arange(start, stop)
        self._note(voxels, voxels + 1, self._labels[start:stop])

    def _note(self, starts: _Indices, stops: _Indices, labels: Labels) -> None:
        """Take note of some runs and their labels."""
        index = self._order.take(labels)
        if index.min(initial=0) == _UNKNOWN:
            self.unwanted.update(np.unique(labels[index == _UNKNOWN]).tolist())
        is_wanted = index >= 0
        starts, stops = starts.compress(is_wanted), stops.compress(is_wanted)
        index = index.compress(is_wanted)
        depth, height, width = self._shape
        row = starts // width
        first = starts - row * width
        last = first + (stops - starts) - 1
        if last.max(initial=0) >= width:
            number, row, first, last = _cut_at_rows(row, first, last, width)
            index = index[number]
        slices = (index * depth + row // height) * width
        self._rows.reshape(-1)[index * (depth * height) + row] = True
        columns = self._columns.reshape(-1)
        columns[slices + first] = True
        columns[slices + last] = True

    def _note_all(self, start: int, stop: int) -> None:
        """Take note of all voxels from `start` to `stop`, row by row."""
        width = self._shape[2]
        first, last = -(-start // width), stop // width  # whole rows
        self._note_voxels(start, min(first * width, stop))
        self._note_voxels(max(last * width, start), stop)
        if first >= last:
            return
        content = self._labels[first * width : last * width].tobytes()
        if self._labels[start:stop].max() >= self._first_unknown:
            rest = content.translate(None, bytes(self._known))
            counts = np.bincount(np.frombuffer(rest or b"\0", dtype=np.uint8))
            self.unwanted.update(set(np.flatnonzero(counts).tolist()) - self._known)
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
    finder.add(0, flat.size)
    return finder.finish()


def _cut_at_rows(
    row: _Indices, first: _Indices, last: _Indices, width: int
) -> tuple[_Indices, _Indices, _Indices, _Indices]:
    """Cut runs that go on in the next rows into one for each row.

    A run is from voxel `first` of a row to voxel `last`, counted from the row's begin.
    Yields the number of the run that each piece is of, its row, and its ends.
    """
    counts = last // width + 1
    number = np.repeat(np.arange(row.size), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    step = np.arange(number.size) - before  # rows from the run's first
    begins = np.where(step == 0, first[number], 0)
    ends = np.minimum(last[number] - step * width, width - 1)
    return number, row[number] + step, begins, ends
