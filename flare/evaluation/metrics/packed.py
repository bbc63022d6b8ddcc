"""Label maps packed into runs, and their organs counted by compiled code.

``kernel.c`` beside this file says what a packed label map is.
"""

from __future__ import annotations

from ctypes import Array, c_int64, c_uint8
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import (
    Bytes,
    Counts,
    Labels,
    Spacing,
    box_around,
    start_of,
    stop_of,
)
from flare.evaluation.metrics.kernel import (
    KernelList,
    KernelMap,
    KernelSearch,
    address,
    kernel,
)
from flare.evaluation.metrics.ring import ring_of
from flare.evaluation.metrics.tally import (
    LabelPair,
    Near,
    Surfels,
    Tally,
    VoxelMap,
    Voxels,
)
from flare.evaluation.metrics.tolerance import Ball

WIDEST = 2**24 - 1
"""Rows of more voxels cannot be packed."""

LOOK_UPS = 2**23
"""So many steps are tried for the surfels of a mask, 64 at once; an organ needs a
million at most."""

FIRST_ITEMS = 2**19
"""Room for items of a map at first, which is enough for most. It takes memory where it
is written to; but for what a header promises alone, there may not even be room."""

GROWTH = 32
"""So many times the room that is needed is made next."""

_SURFEL = np.dtype(
    [("corner", np.int32, 3), ("code", np.uint8), ("is_beyond", np.bool_)], align=True
)


class PackedMap(VoxelMap):
    """A label map of which only the runs are held."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__(shape)
        self.codes: dict[tuple[int, ...], Counts] = {}
        """Numbers of surfels by code, of organs that were counted: by their labels. A
        reference is compared with the prediction of each team."""
        depth, height, width = shape
        self._items_of_row = (width + 3) // 4
        room = min(depth * height * self._items_of_row, FIRST_ITEMS)
        items = np.empty(room, dtype=np.uint32)
        self._starts = np.zeros(depth * height + 1, dtype=np.uint32)
        self._map = KernelMap(
            starts=address(self._starts),
            boxes=address(self._boxes),
            row_room=depth * height,
            height=height,
            width=width,
        )
        self._hold(items)

    def add(self, voxels: Bytes) -> None:
        """Take the next whole rows: shape (rows * width,)."""
        packed, width = self._map, self.shape[2]
        rows = voxels.size // width
        if rows * width != voxels.size or packed.row_count + rows > packed.row_room:
            raise ValueError("a packed label map is filled with whole rows, each once")
        room = packed.item_count + rows * self._items_of_row
        if room > packed.item_room:
            most = packed.row_room * self._items_of_row
            items = np.empty(min(GROWTH * room, most), dtype=np.uint32)
            items[: packed.item_count] = self._items[: packed.item_count]
            self._hold(items)
        voxels = np.ascontiguousarray(voxels, dtype=np.uint8)
        if kernel().pack_rows(packed, address(voxels), rows):
            raise ValueError(f"a label map of shape {self.shape} cannot be packed")
        if packed.row_count == packed.row_room:
            self._items.resize(packed.item_count, refcheck=False)
            self._hold(self._items)

    def _hold(self, items: npt.NDArray[np.uint32]) -> None:
        """Let the kernel pack into this array from now on."""
        self._items = items
        self._map.items, self._map.item_room = address(items), items.size

    def slices(self, part: slice) -> Labels:
        """The labels of some slices."""
        depth, height, width = self.shape
        start, stop, _ = part.indices(depth)
        labels: Labels = np.empty((max(0, stop - start), height, width), dtype=np.uint8)
        place = start * height, len(labels) * height
        if kernel().unpack_rows(self.as_parameter(), *place, address(labels)):
            raise ValueError("a packed label map is broken")
        return labels

    def as_parameter(self) -> KernelMap:
        """The map as the kernel gets it, once it is full."""
        if self._map.row_count < self._map.row_room:
            raise ValueError("a packed label map is compared when all rows are there")
        return self._map


@dataclass(frozen=True, slots=True)
class PackedPair(LabelPair):
    """An organ in two packed label maps, counted by the kernel."""

    maps: tuple[PackedMap, PackedMap]

    def tally(self, tolerance: float) -> Tally:
        """Count its voxels and surfels."""
        return self._compare(self.ball(tolerance))

    def surfels(self, tolerance: float) -> tuple[Surfels, Surfels]:
        """List its surfels of both maps."""
        most = int(self.tally(tolerance).surfels.sum())  # of both together
        return self._listed(self.ball(tolerance), most)

    def near(self, room: int) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other; `room` far ones."""
        ball, steps = _steps_of_ring(self.spacing)
        distances = ring_of(self.spacing).distances.size
        counts: Counts = np.zeros((2, distances + 1, 256), dtype=np.int64)
        search = KernelSearch(
            steps=address(steps),
            size=len(steps),
            distances=distances,
            look_ups=(LOOK_UPS, LOOK_UPS),
            counts=address(counts),
        )
        first, second = self._listed(ball, room, search)
        return Near(counts[0], first), Near(counts[1], second)

    def _listed(
        self, ball: Ball, room: int, search: KernelSearch | None = None
    ) -> tuple[Surfels, Surfels]:
        """List at most `room` surfels of each map, with a search those far away."""
        surfels = np.empty((2, room), dtype=_SURFEL)
        lists = (KernelList * 2)(*(KernelList(address(part), room) for part in surfels))
        self._compare(ball, search, lists)
        # Slices end where the room does, however many surfels there are.
        parts = [part[: side.size] for part, side in zip(surfels, lists, strict=True)]
        first, second = (Surfels(p["corner"], p["code"], p["is_beyond"]) for p in parts)
        return first, second

    def _compare(
        self,
        ball: Ball,
        search: KernelSearch | None = None,
        lists: Array[KernelList] | None = None,
    ) -> Tally:
        """Count the organ; lists are filled, and the counts of a search grow."""
        library = kernel()
        # Small arrays of ctypes, whose addresses it knows.
        ends = (c_int64 * 6)(*start_of(self.box), *stop_of(self.box))
        is_organ = (c_uint8 * 256)()
        for label in self.labels:
            is_organ[label] = 1
        voxels = (c_int64 * 3)()
        reach = address(ball), len(ball)
        size = library.words_needed(ends, *reach, search)
        memory = np.empty(size, dtype=np.uint64)
        counts: Counts = np.empty((3, 256), dtype=np.int64)
        reference = self.maps[0]
        is_whole = box_around(self.box, reference.box(self.labels)) == self.box
        codes = reference.codes.get(self.labels) if is_whole else None
        if library.compare_labels(
            reference.as_parameter(),
            self.maps[1].as_parameter(),
            is_organ,
            codes is not None,
            ends,
            *reach,
            address(memory),
            size,
            voxels,
            address(counts),
            lists,
            search,
        ):
            raise ValueError(f"labels {self.labels} cannot be compared")
        if codes is None:
            codes = counts[0]
        if is_whole:
            reference.codes[self.labels] = codes
        return Tally(Voxels(*voxels), codes + counts[1], counts[2])


@lru_cache(maxsize=64)
def _steps_of_ring(spacing: Spacing) -> tuple[Ball, npt.NDArray[np.int32]]:
    """A ring as the kernel takes it: its ball, and each step with its rank."""
    ring = ring_of(spacing)
    places, sizes = np.unique(ring.offsets[:, :2], axis=0, return_counts=True)
    ball = np.column_stack((places, sizes // 2)).astype(np.int32)
    steps = np.column_stack((ring.offsets, ring.ranks)).astype(np.int32)
    return ball[np.argsort(-ball[:, 2], kind="stable")], steps
