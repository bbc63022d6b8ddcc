"""Marks of the surfels of a label in both masks, on all corners of the label's box.

Distances reach from one end of a label to the other, so they need more than a window.
Marks are added window by window, while the NSD is counted. The surfels of an organ are
remembered as they are; if a map has too many for that, all are found once more, and
what their codes are made of is written down for each corner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flare.evaluation.metrics.arrays import Bytes, Counts, Indices, Mask
from flare.evaluation.metrics.pairs import LabelPair
from flare.evaluation.metrics.surfaces import (
    HALVES,
    PREDICTION,
    REFERENCE,
    SurfacePair,
    codes_of,
    find_marked,
    find_surfaces,
    is_surfel,
)
from flare.evaluation.metrics.tally import COUNTED_BYTES
from flare.evaluation.metrics.tolerance import BallRow
from flare.evaluation.metrics.windows import CHUNK_BYTES, Window

REMEMBERED = 2**20
"""At most this many surfels of both masks are remembered."""

SURFEL = np.uint8(1), np.uint8(2)
"""Marks of a corner that is a surfel of the reference, or of the prediction."""

BOTH = np.uint8(3)
"""The mark of a corner that is a surfel of both."""

FAR = np.uint8(4), np.uint8(8)
"""Marks of a surfel of that mask that is far from the other mask."""

_CENTRE_ALONE = (BallRow(z=0, y=0, half_width=0),)


class PlacedSurfels(NamedTuple):
    """Surfels of one mask; all arrays are of shape (n,)."""

    places: Indices
    """Indices of the flat array of marks."""
    codes: Bytes


def select(surfels: PlacedSurfels, is_selected: Mask) -> PlacedSurfels:
    """Some of the surfels; the mask is of shape (n,)."""
    places, codes = surfels
    return PlacedSurfels(places.compress(is_selected), codes.compress(is_selected))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """The surfels of a window; all arrays are of shape (n,)."""

    places: Indices
    """Indices of the flat array of marks."""
    marks: Bytes
    codes: tuple[Bytes, Bytes]
    """Their codes in both masks."""


class Marks:
    """The surfels of a label in both masks, marked in one flat array.

    Rows and slices of corners end in zeros there, as many as the longest offset that is
    looked up: so each offset, from any corner, is one constant shift. `reach` has the
    longest offsets along z, y, x; the memory of the pair is overwritten.
    """

    def __init__(self, pair: LabelPair, reach: tuple[int, int, int]) -> None:
        self.pair = pair
        box, (reach_z, reach_y, reach_x) = pair.occupancy.box, reach
        self._start = tuple(span.start for span in box)
        self.depth, height, width = (span.stop - span.start + 1 for span in box)
        self.row = width + reach_x
        """From a corner to its neighbour along y, in the flat array."""
        self.plane = (height + reach_y) * self.row
        """From a corner to its neighbour along z."""
        self._first = reach_z * self.plane + reach_y * self.row + reach_x
        self.flat = pair.memory.take("marks", self.depth * self.plane + 2 * self._first)
        """The marks, and zeros before and behind them."""
        self.flat[:] = 0
        self.totals: Counts = np.zeros((2, 256), dtype=np.int64)
        """By code, the number of surfels of either mask; complete when finished."""
        self._pieces: list[_Piece] | None = []
        self._fours: Bytes | None = None

    @property
    def are_remembered(self) -> bool:
        """Whether the surfels are few enough to be remembered one by one."""
        return self._pieces is not None

    @property
    def box(self) -> Bytes:
        """The marks of all slices, without the zeros before and behind."""
        return self.flat[self._first : self.flat.size - self._first]

    def shifts(self, offsets: Indices) -> Indices:
        """Offsets along z, y, x, of shape (n, 3), as shifts of the flat array."""
        shifts: Indices = offsets @ (self.plane, self.row, 1)
        return shifts

    def axes(self, places: Indices) -> Indices:
        """Corners at some places of the flat array: shape (3, n), along z, y, x."""
        z, in_plane = np.divmod(places - self._first, self.plane)
        return np.stack((z, *np.divmod(in_plane, self.row)))

    def add(self, surfaces: SurfacePair) -> None:
        """Mark the surfels of a window, unless there are too many already."""
        if self._pieces is None:
            return
        piece = self._piece(surfaces)
        self.flat[piece.places] = piece.marks
        for total, codes in zip(self.totals, piece.codes, strict=True):
            total[1:255] += np.bincount(codes, minlength=256)[1:255]
        self._pieces.append(piece)
        if self.totals.sum() > REMEMBERED:
            self._pieces = None

    def finish(self) -> None:
        """Complete marks and totals, after the last window."""
        if self._pieces is None:
            self.mark_all()
            self._count_all()

    def surfels(self, side: int) -> Iterator[tuple[PlacedSurfels, Bytes]]:
        """All corners that may be surfels of a mask, and their marks, part by part.

        A remembered part has those of the other mask alone, too: marks tell.
        """
        if self._pieces is not None:
            for piece in self._pieces:
                yield PlacedSurfels(piece.places, piece.codes[side]), piece.marks
            return
        for part in parts_of(self.box.size, CHUNK_BYTES):
            marks = self.box[part]
            indices = np.flatnonzero((marks & SURFEL[side]) != 0)
            codes = self._codes_in(part, side).take(indices)
            places = indices + (part.start + self._first)
            yield PlacedSurfels(places, codes), marks.take(indices) & BOTH

    def mark_all(self) -> None:
        """Mark the surfels of the whole box, and keep the fours of each corner."""
        if self._fours is not None:
            return
        rows = self.plane // self.row
        self._fours = self.pair.memory.take("fours", self.box.size + self.plane)
        self._fours[:] = 0
        all_fours = self._fours[self.plane :].reshape(-1, rows, self.row)
        all_marks = self.box.reshape(-1, rows, self.row)
        for window in self.pair.windows(_CENTRE_ALONE):
            surfaces = find_surfaces(self.pair.masks(window), window)
            z, y, x = self._first_of(window)
            depth, height, width = window.shape
            margin = window.margin
            box = (
                slice(z + margin, z + depth - margin),
                slice(y, y + height),
                slice(x, x + width),
            )
            # Rows and slices of a window end in zeros, of which the box has fewer.
            _, height, width = all_marks[box].shape
            inside = slice(margin, depth - margin), slice(height), slice(width)
            all_fours[box] = surfaces.fours.reshape(window.shape)[inside]
            surfels = surfaces.surfels.reshape(window.shape)[inside]
            for mark, half in zip(SURFEL, HALVES, strict=True):
                all_marks[box] |= ((surfels & half) != 0) * mark

    def codes_in_slices(self, slices: slice, part: slice, side: int) -> Bytes:
        """Codes of one mask in a part of some slices, once all is marked."""
        assert self._fours is not None
        fours = self._fours.reshape(-1, self.plane)
        fours_behind = fours[slices.start + 1 : slices.stop + 1, part]
        return codes_of(fours[slices, part], fours_behind, side)

    def _codes_in(self, part: slice, side: int) -> Bytes:
        """Codes of one mask in a part of the box, once all is marked."""
        assert self._fours is not None
        fours_behind = self._fours[part.start + self.plane : part.stop + self.plane]
        return codes_of(self._fours[part], fours_behind, side)

    def _count_all(self) -> None:
        """Count the surfels of the whole box by their codes."""
        self.totals[:] = 0
        for part in parts_of(self.box.size, COUNTED_BYTES):
            for side, total in enumerate(self.totals):
                total += np.bincount(self._codes_in(part, side), minlength=256)
        self.totals[:, [0, 255]] = 0

    def _piece(self, surfaces: SurfacePair) -> _Piece:
        """The surfels of a window, and their places in the box."""
        window = surfaces.window
        corners = find_marked(surfaces.surfels, window)
        codes = surfaces.codes_at(corners)
        z, in_plane = np.divmod(corners, window.plane)
        y, x = np.divmod(in_plane, window.row)
        first_z, first_y, first_x = self._first_of(window)
        z += first_z
        y += first_y
        x += first_x
        return _Piece(
            places=z * self.plane + y * self.row + x + self._first,
            marks=is_surfel(codes[REFERENCE]) * SURFEL[REFERENCE]
            | is_surfel(codes[PREDICTION]) * SURFEL[PREDICTION],
            codes=codes,
        )

    def _first_of(self, window: Window) -> tuple[int, int, int]:
        """The place in the label's box of the first corner of a window's buffers."""
        zs, ys, xs = window.box
        firsts = zs.start - window.first_slice, ys.start, xs.start
        z, y, x = (at - start for at, start in zip(firsts, self._start, strict=True))
        return z, y, x


def parts_of(size: int, step: int) -> Iterator[slice]:
    """Slices of some length, one after the other, that end at a size."""
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
