"""Label maps packed into runs, and their labels counted by compiled code.

``kernel.c`` beside this file says what a packed label map is.
"""

from __future__ import annotations

from ctypes import c_double, c_int64
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Bytes, Counts, Labels, Spacing, ends_of
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
"""So many rows are looked up for near surfels; of an organ, a million at most are."""

_SEARCH_ROW = np.dtype([("z", np.int32), ("y", np.int32), ("square", np.float64)])
_SURFEL = np.dtype(
    [("corner", np.int32, 3), ("code", np.uint8), ("is_beyond", np.bool_)], align=True
)


class PackedMap(VoxelMap):
    """A label map of which only the runs are held."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__(shape)
        depth, height, width = shape
        self._rows = depth * height
        self._items_of_row = (width + 3) // 4
        self._parts: list[npt.NDArray[np.uint32]] = []
        self._items = np.empty(0, dtype=np.uint32)
        self._starts = np.empty(self._rows + 1, dtype=np.uint32)
        self._starts[0] = 0
        self._filled = 0

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

    def as_parameter(self) -> KernelMap:
        """The map as the kernel gets it, once it is full."""
        if self._filled < self._rows:
            raise ValueError("a packed label map is compared when all rows are there")
        addresses = address(self._items), address(self._starts)
        return KernelMap(*addresses, self._items.size, self._rows)


@dataclass(frozen=True, slots=True)
class PackedPair(LabelPair):
    """One label in two packed label maps, counted by the kernel."""

    maps: tuple[PackedMap, PackedMap]

    def tally(self, tolerance: float) -> Tally:
        """Count its voxels and surfels."""
        counts, _ = self._compare(self.ball(tolerance))
        return counts

    def surfels(self, tolerance: float) -> tuple[Surfels, Surfels]:
        """List its surfels of both maps."""
        most = int(self.tally(tolerance).surfels.sum())  # of both together
        _, (first, second) = self._compare(self.ball(tolerance), most)
        return first, second

    def near(self, room: int) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other; `room` far ones."""
        rows, ranks = _search_rows(self.spacing)
        distances = ring_of(self.spacing).distances
        counts: Counts = np.zeros((2, distances.size + 1, 256), dtype=np.int64)
        search = KernelSearch(
            rows=address(rows),
            size=len(rows),
            radius=distances[-1],
            spacing=(c_double * 3)(*self.spacing),
            ranks=address(ranks),
            reach=(c_int64 * 3)(*np.subtract(ranks.shape, 1).tolist()),
            distances=distances.size,
            look_ups=LOOK_UPS,
            counts=address(counts),
        )
        no_ball: Ball = np.empty((0, 3), dtype=np.int32)
        _, (first, second) = self._compare(no_ball, room, search)
        return Near(counts[0], first), Near(counts[1], second)

    def _compare(
        self, ball: Ball, room: int = 0, search: KernelSearch | None = None
    ) -> tuple[Tally, list[Surfels]]:
        """Count the label, and list at most `room` surfels of each map.

        With a search, its counts grow, and only those that are far are listed.
        """
        library = kernel()
        _, height, width = self.maps[0].shape
        ends = ends_of(self.box)
        reach = int(ball[:, 0].max(initial=0))
        if search is not None:
            reach = max(reach, search.reach[0])
        memory = np.empty(library.words_needed(address(ends), reach), dtype=np.uint64)
        voxels: Counts = np.zeros(3, dtype=np.int64)
        counts: Counts = np.zeros((2, 256), dtype=np.int64)
        surfels = np.empty((2, room), dtype=_SURFEL)
        lists = (KernelList * 2)(*(KernelList(address(part), room) for part in surfels))
        if library.compare_labels(
            self.maps[0].as_parameter(),
            self.maps[1].as_parameter(),
            height,
            width,
            self.label,
            address(ends),
            address(ball),
            len(ball),
            address(memory),
            memory.size,
            address(voxels),
            address(counts),
            lists if room or search else None,
            search,
        ):
            raise ValueError(f"label {self.label} cannot be compared")
        reference, prediction, shared = voxels.tolist()
        # Slices end where the room does, however many surfels there are.
        parts = [part[: side.size] for part, side in zip(surfels, lists, strict=True)]
        return (
            Tally(Voxels(reference, prediction, shared), counts[0], counts[1]),
            [Surfels(p["corner"], p["code"], p["is_beyond"]) for p in parts],
        )


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
