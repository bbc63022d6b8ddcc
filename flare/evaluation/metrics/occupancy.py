"""Finds which rows and columns each label of a label map occupies, slice by slice.

Along a row, a label map is a few runs of equal labels, so the first and the last voxel
of every run tell all of it. They are where neighbours differ, which is cheap to find;
looking for each label in turn would read the whole label map once per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels, Mask

PIECE_BYTES = 2**19
"""How many voxels are compared with their neighbours at once: they stay in cache."""

BATCH = 2**12
"""How many groups of eight voxels with a run's end are taken together at least."""

DENSE = 4
"""If a run ends in more than one of so many groups of eight voxels, whole rows are
looked at for each label: that has a bound, whatever a file holds."""

_BACKGROUND, _UNKNOWN = -1, -2
"""What stands for label 0, and for one that is not wanted, where others are counted."""

_Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Where one label is, in one label map or in either of two."""

    label: int
    rows: Mask
    """Shape (Z, Y): is the label anywhere in the row?"""
    columns: Mask
    """Shape (Z, X): is the label in the column of the slice? Right at both ends of what
    is occupied, which is all that counts; between them it may be False."""

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
        The labels to find.
    """

    def __init__(
        self, labels: Labels, shape: tuple[int, int, int], wanted: Sequence[int]
    ) -> None:
        depth, height, width = self._shape = shape
        self._labels = labels
        self._wanted = wanted
        self._order = np.full(256, _UNKNOWN)
        self._order[0] = _BACKGROUND
        self._order[list(wanted)] = np.arange(len(wanted))
        self._rows = np.zeros((len(wanted), depth, height), dtype=np.bool_)
        self._columns = np.zeros((len(wanted), depth, width), dtype=np.bool_)
        self._differs = np.empty(PIECE_BYTES, dtype=np.bool_)
        self._eights: list[_Indices] = []
        self.unwanted: set[int] = set()
        """Labels that are there, but not wanted; complete once it is finished."""

    def add(self, start: int, stop: int) -> None:
        """Look at voxels `start` to `stop`; `start` is a multiple of eight."""
        whole = stop - (stop - start) % 8
        if whole < stop:
            rest = slice(max(whole - 1, 0), stop)
            self._note(np.arange(rest.start, stop), self._labels[rest])
        for begin in range(start, whole, PIECE_BYTES):
            self._compare(begin, min(begin + PIECE_BYTES, whole))

    def finish(self) -> dict[int, Occupancy]:
        """Where each wanted label is, after the last voxel was added."""
        self._look_closer()
        width = self._shape[2]
        for column in {0, width - 1}:
            ends = self._labels[column::width]
            self._note(np.arange(ends.size) * width + column, ends)
        return {
            label: Occupancy(label=label, rows=rows, columns=columns)
            for label, rows, columns in zip(
                self._wanted, self._rows, self._columns, strict=True
            )
        }

    def _compare(self, start: int, stop: int) -> None:
        """Find the groups of eight voxels in which a voxel differs from the last."""
        differs = self._differs[: stop - start]
        first = max(start, 1)  # nothing is before voxel 0
        differs[0] = False
        np.not_equal(
            self._labels[first:stop],
            self._labels[first - 1 : stop - 1],
            out=differs[first - start :],
        )
        is_end = differs.view(np.uint64) != 0
        if np.count_nonzero(is_end) * DENSE > is_end.size:
            self._look_at_all(start, stop)
            return
        eights = np.flatnonzero(is_end) + start // 8
        self._eights.append(eights)
        if sum(map(len, self._eights)) >= BATCH:
            self._look_closer()

    def _look_at_all(self, start: int, stop: int) -> None:
        """Note the labels of all voxels from `start` to `stop`."""
        _, height, width = self._shape
        first, last = -(-start // width), stop // width  # whole rows
        for begin, end in (
            (max(start - 1, 0), min(first * width, stop)),  # a run may end before them
            (max(last * width, start), stop),
        ):
            self._note(np.arange(begin, end), self._labels[begin:end])
        if first >= last:
            return
        rows = self._labels[first * width : last * width].reshape(-1, width)
        counts = np.bincount(rows.reshape(-1), minlength=256)
        found = np.flatnonzero(counts)
        index = self._order.take(found)
        self.unwanted.update(found[index == _UNKNOWN].tolist())
        starts = np.arange(-(-first // height) * height, last, height) - first
        starts = np.unique(np.append(0, starts))  # of slices, among these rows
        for label, number in zip(found, index, strict=True):
            if number < 0:
                continue
            here = np.equal(rows, label)
            in_rows = self._rows[number].reshape(-1)
            in_rows[first:last] |= here.any(axis=1)
            columns = np.logical_or.reduceat(here, starts, axis=0)
            for row, column in zip(starts, columns, strict=True):
                self._columns[number, (first + row) // height] |= column

    def _look_closer(self) -> None:
        """Note the voxels that differ from the last, and those last ones."""
        if not self._eights:
            return
        eights = np.concatenate(self._eights)
        self._eights.clear()
        whole = self._labels[: self._labels.size // 8 * 8]
        labels = whole.view(np.uint64)[eights].view(np.uint8)
        first_before = whole[np.maximum(eights * 8 - 1, 0)]
        before = np.column_stack([first_before, labels.reshape(-1, 8)[:, :-1]]).ravel()
        where = np.flatnonzero(labels != before)
        voxels = eights[where >> 3] * 8 + (where & 7)
        self._note(voxels, labels[where])
        self._note(voxels - 1, before[where])

    def _note(self, voxels: _Indices, labels: Labels) -> None:
        """Take note of some voxels and their labels."""
        index = self._order.take(labels)
        if index.min(initial=0) == _UNKNOWN:
            self.unwanted.update(np.unique(labels[index == _UNKNOWN]).tolist())
        is_wanted = index >= 0
        where, index = voxels.compress(is_wanted), index.compress(is_wanted)
        depth, height, width = self._shape
        row = where // width
        column = (index * depth + row // height) * width + where - row * width
        self._rows.reshape(-1)[index * (depth * height) + row] = True
        self._columns.reshape(-1)[column] = True


def find_labels(labels: Labels, wanted: Sequence[int]) -> dict[int, Occupancy]:
    """Find each wanted label of a label map of shape (Z, Y, X)."""
    depth, height, width = labels.shape
    flat = np.ascontiguousarray(labels).reshape(-1)
    finder = LabelFinder(flat, (depth, height, width), wanted)
    finder.add(0, flat.size)
    return finder.finish()


def _span(occupied: npt.NDArray[np.bool_] | np.bool_) -> slice:
    """From the first to the last True, or an empty slice."""
    where = np.flatnonzero(occupied)
    return slice(int(where[0]), int(where[-1]) + 1) if where.size else slice(0, 0)
