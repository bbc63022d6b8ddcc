"""Finds where each label of a label map is, while the map is filled piece by piece.

A row of a label map is mostly as the row above it. Down each column of a slice, a label
begins and ends where rows differ, or at an end of the slice; so what is there tells the
first and the last row and column of all of it, and differences are cheap to find.
Looking for each label in turn would read the whole label map once per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Indices, Labels, Mask, bytes_in_groups

PIECE_BYTES = 2**19
"""How many voxels are compared with those above at once: they stay in cache."""

BATCH = 2**14
"""How many differences are noted at once: calls of NumPy take a while."""

DENSE = 4
"""If more than one of this many groups of eight voxels differs from the one above, a
label counts as anywhere in its slices: that takes the same time, whatever a file holds.
"""


class Occupancy(NamedTuple):
    """Where one label is, in one label map or in either of two."""

    label: int
    rows: Mask
    """Shape (Z, Y): is the label anywhere in the row? In each slice, only the first and
    the last True count: no row outside them has the label. A slice has one True at
    least if it has the label, and none if it has not."""
    columns: Mask
    """Shape (Z, X): the same for the columns of each slice."""

    def __or__(self, other: Occupancy) -> Occupancy:
        """The places that have the label in either label map."""
        return Occupancy(
            label=self.label,
            rows=self.rows | other.rows,
            columns=self.columns | other.columns,
        )

    def within(self, slices: slice) -> Occupancy:
        """The same for some slices of the label map alone."""
        return Occupancy(
            label=self.label, rows=self.rows[slices], columns=self.columns[slices]
        )

    @property
    def depth(self) -> int:
        """Number of slices of the whole label map."""
        return len(self.rows)

    @property
    def span_z(self) -> slice:
        """Slices from the first to the last that hold the label."""
        return _span(self.rows.any(axis=1))

    def span_yx(self, slices: slice) -> tuple[slice, slice]:
        """Rows and columns outside which `slices` do not hold the label."""
        rows = self.rows[slices].any(axis=0)
        columns = self.columns[slices].any(axis=0)
        return _span(rows), _span(columns)

    @property
    def box(self) -> tuple[slice, slice, slice]:
        """The smallest box around the label, along z, y, x."""
        return (self.span_z, *self.span_yx(slice(None)))

    @property
    def extent(self) -> tuple[int, int, int]:
        """Size of that box in voxels."""
        depth, height, width = (span.stop - span.start for span in self.box)
        return depth, height, width


def _span(is_occupied: npt.NDArray[np.bool_] | np.bool_) -> slice:
    """From the first to the last True of an array of shape (n,), or an empty slice."""
    content = is_occupied.tobytes()  # Python searches it before NumPy has begun
    return slice(max(content.find(1), 0), content.rfind(1) + 1)


class LabelFinder:
    """Finds labels in a label map that is filled piece by piece.

    The map is a flat array of shape (Z * Y * X,), which need not be filled yet; labels
    are from 1 to 255. Each piece is looked at while it is still in the CPU's cache.
    """

    def __init__(
        self, voxels: Labels, shape: tuple[int, int, int], labels: Sequence[int]
    ) -> None:
        depth, height, width = self._shape = shape
        self._voxels = voxels
        self._labels = tuple(labels)
        # The slot behind those of the labels is where all others are noted, for nobody.
        slots = len(labels) + 1
        self._slot_of = np.full(256, len(labels))
        self._slot_of[list(labels)] = np.arange(len(labels))
        self._rows = np.zeros((slots, depth, height), dtype=np.bool_)
        self._columns = np.zeros((slots, depth, width), dtype=np.bool_)
        self._first_row_of = self._slot_of * depth * height
        self._first_column_of = self._slot_of * depth * width
        self._next = width  # the first row has none above
        self._scratch = np.empty(PIECE_BYTES + -PIECE_BYTES % 8, dtype=np.uint8)
        self._batch: list[tuple[Indices, Labels, Labels]] = []
        self._batch_size = 0
        self._expected = bytes({0, *labels})
        self._first_unexpected = min(set(range(257)) - set(self._expected))
        self.unknown: set[int] = set()
        """Other labels of the map; complete once the search is finished."""

    def add(self, stop: int) -> None:
        """Look at the next voxels, up to `stop`, which have been filled."""
        while self._next < stop:
            start = self._next
            self._next = min(start + PIECE_BYTES, stop)
            self._add_piece(start, self._next)

    def finish(self) -> dict[int, Occupancy]:
        """The places of each label, after the last voxel was added."""
        self._note_batch()
        self._note_first_and_last_rows()
        occupied = {}
        for slot, label in enumerate(self._labels):
            occupied[label] = Occupancy(
                label=label, rows=self._rows[slot], columns=self._columns[slot]
            )
        return occupied

    def _add_piece(self, start: int, stop: int) -> None:
        """Find the voxels that differ from those above, from `start` to `stop`."""
        width = self._shape[2]
        voxels = self._voxels[start:stop]
        above = self._voxels[start - width : stop - width]
        groups, words = self._compare(voxels, above)
        if groups.size * DENSE > voxels.size // 8:
            self._note_everywhere(start - width, stop)
            return
        places = bytes_in_groups(groups * 8, words)
        self._batch.append((places + start, voxels[places], above[places]))
        self._batch_size += places.size
        if self._batch_size >= BATCH:
            self._note_batch()

    def _compare(
        self, voxels: Labels, above: Labels
    ) -> tuple[Indices, npt.NDArray[np.uint64]]:
        """Compare eight voxels at once with those above.

        Returns which groups of eight differ, and the differing bits of each.
        """
        size = voxels.size
        if self._shape[2] % 8 == 0 and size % 8 == 0:  # quicker
            words, words_above = voxels.view(np.uint64), above.view(np.uint64)
            groups = np.not_equal(words, words_above).nonzero()[0]
            return groups, words[groups] ^ words_above[groups]
        padded = self._scratch[: size + -size % 8]
        padded[size:] = 0
        np.bitwise_xor(voxels, above, out=padded[:size])
        words = padded.view(np.uint64)
        groups = (words != 0).nonzero()[0]
        return groups, words[groups]

    def _note_batch(self) -> None:
        """Take note of the differences of the batch, voxel by voxel."""
        if not self._batch:
            return
        columns = zip(*self._batch, strict=True)
        places, labels, labels_above = (np.concatenate(column) for column in columns)
        self._batch.clear()
        self._batch_size = 0
        _, height, width = self._shape
        rows = places // width
        slices = rows // height
        self._note_rows(rows, labels)
        self._note_columns(slices * width + places - rows * width, labels)
        # The column of the label above was noted where that label began.
        self._note_rows(rows - 1, labels_above)

    def _note_first_and_last_rows(self) -> None:
        """Take note of the first and the last row of each slice."""
        depth, height, width = self._shape
        label_map = self._voxels.reshape(self._shape)
        step = max(1, BATCH // width)
        for y, z, x in product(
            {0, height - 1}, range(0, depth, step), range(0, width, BATCH)
        ):
            block = np.ascontiguousarray(label_map[z : z + step, y, x : x + BATCH])
            voxels = block.reshape(-1)
            places = (voxels != 0).nonzero()[0]
            if places.size:
                zs, xs = np.divmod(places, block.shape[1])
                zs += z
                labels = voxels.take(places)
                self._note_rows(zs * height + y, labels)
                self._note_columns(zs * width + x + xs, labels)

    def _note_rows(self, rows: Indices, labels: Labels) -> None:
        """Take note of voxels' labels and rows, of shape (n,), through all slices."""
        if labels.max(initial=0) >= self._first_unexpected:
            self.unknown.update(labels.tobytes().translate(None, self._expected))
        self._rows.reshape(-1)[self._first_row_of.take(labels) + rows] = True

    def _note_columns(self, columns: Indices, labels: Labels) -> None:
        """Take note of voxels' columns, of shape (n,), counted through all slices."""
        self._columns.reshape(-1)[self._first_column_of.take(labels) + columns] = True

    def _note_everywhere(self, start: int, stop: int) -> None:
        """Take each label of a slice as anywhere in it: then windows are larger.

        Noise is unlike the row above almost everywhere. To note each voxel of it would
        take longer than all that is then saved by a smaller box, which it has not.
        """
        _, height, width = self._shape
        area = height * width
        end = stop + -stop % area
        for z in range(start // area, end // area):
            voxels = self._voxels[max(start, z * area) : min(stop, (z + 1) * area)]
            counts = np.bincount(voxels, minlength=256)
            labels = np.flatnonzero(counts).astype(np.uint8)
            self._note_rows(np.full(len(labels), z * height), labels)
            slots = self._slot_of[labels]
            self._rows[slots, z] = self._columns[slots, z] = True


def find_labels(label_map: Labels, labels: Sequence[int]) -> dict[int, Occupancy]:
    """Find each of some labels in a label map of shape (Z, Y, X)."""
    depth, height, width = label_map.shape
    voxels = np.ascontiguousarray(label_map).reshape(-1)
    finder = LabelFinder(voxels, (depth, height, width), labels)
    finder.add(voxels.size)
    return finder.finish()
