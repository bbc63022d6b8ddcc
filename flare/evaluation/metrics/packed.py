"""Label maps packed into runs, and their organs counted by compiled code.

``kernel.c`` beside this file says what a packed label map is.
"""

from __future__ import annotations

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
"""So many steps are tried for near surfels; of an organ, a million at most are."""

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
    """An organ in two packed label maps, counted by the kernel."""

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
        ball, steps = _steps_of_ring(self.spacing)
        distances = ring_of(self.spacing).distances.size
        counts: Counts = np.zeros((2, distances + 1, 256), dtype=np.int64)
        search = KernelSearch(
            steps=address(steps),
            size=len(steps),
            distances=distances,
            look_ups=LOOK_UPS,
            counts=address(counts),
        )
        _, (first, second) = self._compare(ball, room, search)
        return Near(counts[0], first), Near(counts[1], second)

    def _compare(
        self, ball: Ball, room: int = 0, search: KernelSearch | None = None
    ) -> tuple[Tally, list[Surfels]]:
        """Count the organ, and list at most `room` surfels of each map.

        With a search, its counts grow, and only those that are far are listed.
        """
        library = kernel()
        _, height, width = self.maps[0].shape
        ends = ends_of(self.box)
        reach = int(ball[:, 0].max(initial=0))
        memory = np.empty(library.words_needed(address(ends), reach), dtype=np.uint64)
        is_organ = np.zeros(256, dtype=np.uint8)
        is_organ[[*self.labels]] = 1
        voxels: Counts = np.zeros(3, dtype=np.int64)
        counts: Counts = np.zeros((2, 256), dtype=np.int64)
        surfels = np.empty((2, room), dtype=_SURFEL)
        lists = (KernelList * 2)(*(KernelList(address(part), room) for part in surfels))
        if library.compare_labels(
            self.maps[0].as_parameter(),
            self.maps[1].as_parameter(),
            height,
            width,
            address(is_organ),
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
            raise ValueError(f"labels {self.labels} cannot be compared")
        reference, prediction, shared = voxels.tolist()
        # Slices end where the room does, however many surfels there are.
        parts = [part[: side.size] for part, side in zip(surfels, lists, strict=True)]
        return (
            Tally(Voxels(reference, prediction, shared), counts[0], counts[1]),
            [Surfels(p["corner"], p["code"], p["is_beyond"]) for p in parts],
        )


@lru_cache(maxsize=64)
def _steps_of_ring(spacing: Spacing) -> tuple[Ball, npt.NDArray[np.int32]]:
    """A ring as the kernel takes it: its ball, and each step with its rank."""
    ring = ring_of(spacing)
    places, sizes = np.unique(ring.offsets[:, :2], axis=0, return_counts=True)
    ball = np.column_stack((places, sizes // 2)).astype(np.int32)
    steps = np.column_stack((ring.offsets, ring.ranks)).astype(np.int32)
    return ball[np.argsort(-ball[:, 2], kind="stable")], steps
