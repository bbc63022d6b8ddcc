"""Label maps packed into runs, and their labels counted by compiled code.

``kernel.c`` beside this file says what a packed label map is.
"""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_void_p
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import (
    Box,
    Bytes,
    Counts,
    Labels,
    Spacing,
    box_of,
    ends_of,
)
from flare.evaluation.metrics.kernel import (
    KernelList,
    KernelMap,
    KernelSearch,
    address,
    kernel,
)
from flare.evaluation.metrics.ring import ring_of
from flare.evaluation.metrics.tally import LabelPair, Near, Surfels, Tally, Voxels
from flare.evaluation.metrics.tolerance import Ball

WIDEST = 2**24 - 1
"""Rows of more voxels cannot be packed."""

LOOK_UPS = 2**23
"""So many rows are looked up for near surfels; of an organ, a million at most are."""

_NOWHERE = (2**62,) * 3 + (0,) * 3


_SEARCH_ROW = np.dtype([("z", np.int32), ("y", np.int32), ("square", np.float64)])


class PackedMap:
    """A label map of which only the runs are held; it is filled row by row."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        depth, height, width = shape
        self._rows = depth * height
        self._items_of_row = (width + 3) // 4
        self._parts: list[npt.NDArray[np.uint32]] = []
        self._items = np.empty(0, dtype=np.uint32)
        self._starts = np.empty(self._rows + 1, dtype=np.uint32)
        self._starts[0] = 0
        self._filled = 0
        self._boxes = np.tile(np.array(_NOWHERE), (256, 1))
        self._parameter: KernelMap | None = None

    def add(self, voxels: Bytes) -> None:
        """Take the next whole rows: shape (rows * width,)."""
        _, height, width = self.shape
        rows = voxels.size // width
        if rows * width != voxels.size or self._filled + rows > self._rows:
            raise ValueError("a packed label map is filled with whole rows, each once")
        room = rows * self._items_of_row
        if self._items.size < room:
            self._items = np.empty(room, dtype=np.uint32)
        starts = self._starts[self._filled : self._filled + rows + 1]
        voxels = np.ascontiguousarray(voxels, dtype=np.uint8)
        if kernel().pack_rows(
            address(voxels),
            self._filled,
            rows,
            height,
            width,
            address(self._items),
            room,
            address(starts),
            address(self._boxes),
        ):
            raise ValueError(f"a label map of shape {self.shape} cannot be packed")
        self._parts.append(self._items[: int(starts[-1] - starts[0])].copy())
        self._filled += rows
        if self._filled == self._rows:
            self._items = np.concatenate(self._parts)
            self._parts.clear()
            addresses = address(self._items), address(self._starts)
            self._parameter = KernelMap(*addresses, self._items.size, self._rows)

    def slices(self, part: slice) -> Labels:
        """The labels of some slices."""
        depth, height, width = self.shape
        start, stop, _ = part.indices(depth)
        labels: Labels = np.empty((max(0, stop - start), height, width), dtype=np.uint8)
        rows = len(labels) * height
        if kernel().unpack_rows(
            self.as_parameter(), start * height, rows, width, address(labels)
        ):
            raise ValueError("a packed label map is broken")
        return labels

    def box(self, label: int) -> Box:
        """The smallest box around a label."""
        return box_of(self._boxes[label, :3], self._boxes[label, 3:])

    @property
    def present(self) -> tuple[int, ...]:
        """The labels that it has, without 0."""
        return tuple(np.flatnonzero(self._boxes[:, 3]).tolist())

    def as_parameter(self) -> KernelMap:
        """The map as the kernel gets it, once it is full."""
        if not self._parameter:
            raise ValueError("a packed label map is compared when all rows are there")
        return self._parameter


@dataclass(frozen=True, slots=True)
class PackedPair(LabelPair):
    """One label in two packed label maps, counted by the kernel."""

    maps: tuple[PackedMap, PackedMap]

    def tally(self, tolerance: float) -> Tally:
        """Count its voxels and surfels."""
        return self._compare(self.ball(tolerance))

    def surfels(self, tolerance: float) -> tuple[Surfels, Surfels]:
        """List its surfels of both maps."""
        most = int(self.tally(tolerance).surfels.sum())  # of both together
        lists = _Lists.of(most)
        self._compare(self.ball(tolerance), lists)
        return lists.first(0), lists.first(1)

    def near(self, room: int) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other; `room` far ones."""
        rows, ranks = _search_rows(self.spacing)
        distances = ring_of(self.spacing).distances
        counts: Counts = np.zeros((2, distances.size + 1, 256), dtype=np.int64)
        lists = _Lists.of(room)
        search = KernelSearch(
            rows=address(rows),
            size=len(rows),
            radius=distances[-1],
            spacing=(c_double * 3)(*self.spacing),
            ranks=address(ranks),
            reach=(c_int64 * 3)(*np.subtract(ranks.shape, 1).tolist()),
            distances=distances.size,
            look_ups=LOOK_UPS,
            counts=(c_void_p * 2)(address(counts[0]), address(counts[1])),
        )
        self._compare(np.empty((0, 3), dtype=np.int32), lists, search)
        first, second = lists.first(0), lists.first(1)
        return Near(counts[0], first), Near(counts[1], second)

    def _compare(
        self,
        ball: Ball,
        lists: _Lists | None = None,
        search: KernelSearch | None = None,
    ) -> Tally:
        library = kernel()
        _, height, width = self.maps[0].shape
        is_counted = np.zeros(256, dtype=np.uint8)
        is_counted[self.label] = 1
        ends = ends_of(self.box)
        reach = int(ball[:, 0].max(initial=0))
        if search is not None:
            reach = max(reach, search.reach[0])
        memory = np.empty(library.words_needed(address(ends), reach), dtype=np.uint64)
        voxels: Counts = np.zeros(3, dtype=np.int64)
        counts: Counts = np.zeros((2, 256), dtype=np.int64)
        if library.compare_labels(
            self.maps[0].as_parameter(),
            self.maps[1].as_parameter(),
            height,
            width,
            address(is_counted),
            address(ends),
            address(ball),
            len(ball),
            address(memory),
            memory.size,
            address(voxels),
            address(counts),
            lists.into if lists else None,
            search,
        ):
            raise ValueError(f"label {self.label} cannot be compared")
        reference, prediction, shared = voxels.tolist()
        return Tally(Voxels(reference, prediction, shared), counts[0], counts[1])


@dataclass(frozen=True, slots=True)
class _Lists:
    """Memory for the surfels of two maps, and where the kernel finds it."""

    surfels: tuple[Surfels, ...]
    into: ctypes.Array[KernelList]

    @classmethod
    def of(cls, room: int) -> _Lists:
        """Memory for as many surfels of each map."""
        surfels = tuple(
            Surfels(
                corners=np.empty((room, 3), dtype=np.int32),
                codes=np.empty(room, dtype=np.uint8),
                is_beyond=np.empty(room, dtype=np.bool_),
            )
            for _ in range(2)
        )
        into = (KernelList * 2)()
        for side, memory in zip(into, surfels, strict=True):
            side.corners, side.codes = (
                address(memory.corners),
                address(memory.codes),
            )
            side.is_beyond, side.room = address(memory.is_beyond), room
        return cls(surfels, into)

    def first(self, side: int) -> Surfels:
        """The surfels of a map that had room."""
        number = self.into[side].size  # slices end where the room does
        corners, codes, is_beyond = self.surfels[side]
        return Surfels(corners[:number], codes[:number], is_beyond[:number])


@lru_cache(maxsize=64)
def _search_rows(
    spacing: Spacing,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int32]]:
    """A ring as the kernel looks it up: its rows, the nearest first, and ranks.

    Those are of the distances of some steps, by their absolute values along z, y, x; -1
    beyond the ring.
    """
    ring = ring_of(spacing)
    reach = np.abs(ring.offsets).max(axis=0) + 1
    ranks = np.full(reach, -1, dtype=np.int32)
    ranks[tuple(np.abs(ring.offsets).T)] = ring.ranks
    places = ring.offsets[ring.offsets[:, 2] == 0, :2]  # each row has its middle
    rows = np.zeros(len(places), dtype=_SEARCH_ROW)
    rows["z"], rows["y"] = places.T
    rows["square"] = np.square(places * spacing[:2]).sum(axis=1)
    rows = rows[np.argsort(rows["square"], kind="stable")]
    return rows, ranks
