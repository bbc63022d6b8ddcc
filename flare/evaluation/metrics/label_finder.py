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

PIECE_BYTES = 2**18
"""How many voxels are compared with their neighbours at once: they stay in cache."""

BATCH = 2**13
"""So many runs and rows are taken together: each call of NumPy takes a while."""

DENSE = 4
"""If a run ends in more than one of so many groups of eight voxels, whole rows are
looked at instead: that takes the same time, whatever a file holds."""

_BITS = 8
"""How many labels are looked for at once, in whole rows: a bit of a byte for each."""

_UNKNOWN = -1
"""What stands for a label that is not wanted, where others are counted."""

_Indices = npt.NDArray[np.intp]
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
        self._wanted = wanted
        self._order = np.full(256, _UNKNOWN)
        self._order[list(wanted)] = np.arange(len(wanted))
        self._rows = np.zeros((len(wanted), depth, height), dtype=np.bool_)
        self._columns = np.zeros((len(wanted), depth, width), dtype=np.bool_)
        self._differs = np.empty(min(PIECE_BYTES, labels.size), dtype=np.bool_)
        self._runs: list[tuple[_Indices, _Indices, Labels]] = []
        self._waiting = 0
        self._known = {0, *wanted}
        self._first_unknown = min(set(range(257)) - self._known)
        self.unwanted: set[int] = set()
        """Labels that are there, but not wanted; complete once it is finished."""

    def add(self, start: int, stop: int) -> None:
        """Look at voxels `start` to `stop`."""
        for begin in range(start, stop, PIECE_BYTES):
            self._add_piece(begin, min(begin + PIECE_BYTES, stop))

    def finish(self) -> dict[int, Occupancy]:
        """Where each wanted label is, after the last voxel was added."""
        self._note_runs()
        return {
            label: Occupancy(label=label, rows=rows, columns=columns)
            for label, rows, columns in zip(
                self._wanted, self._rows, self._columns, strict=True
            )
        }

    def _add_piece(self, start: int, stop: int) -> None:
        """Find the runs of a piece: a run begins where a voxel differs from the last.

        Eight voxels are looked at together. What begins with the piece is a run, too.
        """
        piece = self._labels[start:stop]
        whole = piece.size - piece.size % 8
        differs = self._differs[:whole]
        np.not_equal(piece[1:whole], piece[: max(whole - 1, 0)], out=differs[1:])
        differs[:1] = True
        eights = differs.view(np.uint64)
        occupied = np.flatnonzero(eights != 0)
        if occupied.size * DENSE > eights.size:
            self._look_at_all(start, stop)
            return
        where = np.flatnonzero(eights[occupied].view(np.bool_))
        starts = occupied[where >> 3] * 8 + (where & 7)
        if whole < piece.size:
            starts = np.append(starts, np.arange(whole, piece.size))
        self._take_runs(starts, np.append(starts[1:], piece.size), start, stop)

    def _take_runs(
        self, starts: _Indices, stops: _Indices, start: int, stop: int
    ) -> None:
        """Keep the runs of a piece that are no background, until there are many."""
        labels = self._labels[start:stop][starts]
        is_organ = labels != 0
        starts, stops = starts.compress(is_organ), stops.compress(is_organ)
        self._runs.append((starts + start, stops + start, labels.compress(is_organ)))
        self._waiting += starts.size + (stop - start) // self._shape[2]
        if self._waiting >= BATCH:
            self._note_runs()

    def _note_runs(self) -> None:
        """Take note of the runs that were kept."""
        if not self._runs:
            return
        starts, stops, labels = (
            np.concatenate(parts) for parts in zip(*self._runs, strict=True)
        )
        self._runs.clear()
        self._waiting = 0
        index = self._order.take(labels)
        if index.min(initial=0) == _UNKNOWN:
            self.unwanted.update(np.unique(labels[index == _UNKNOWN]).tolist())
            is_wanted = index != _UNKNOWN
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

    def _look_at_all(self, start: int, stop: int) -> None:
        """Note the labels of all voxels from `start` to `stop`, row by row."""
        _, height, width = self._shape
        first, last = -(-start // width), stop // width  # whole rows
        for begin, end in (
            (start, min(first * width, stop)),
            (max(last * width, start), stop),
        ):
            voxels = np.arange(end - begin)
            self._take_runs(voxels, voxels + 1, begin, end)
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
