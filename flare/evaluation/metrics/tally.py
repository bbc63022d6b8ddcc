"""A label map, an organ in two of them, and what is counted of it.

``kernel.c`` counts, or `flare.evaluation.metrics.plain` where that is not compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import (
    EMPTY,
    Box,
    Bytes,
    Counts,
    Labels,
    Mask,
    Spacing,
    box_around,
    box_of,
    extent_of,
    mask_of,
)
from flare.evaluation.metrics.tolerance import Ball, ball_rows


class Voxels(NamedTuple):
    """How many voxels two masks have."""

    reference: int
    prediction: int
    shared: int

    @property
    def dsc(self) -> float:
        """The Dice coefficient: 1 if both masks are empty."""
        total = self.reference + self.prediction
        return 2 * self.shared / total if total else 1.0


class Surfels(NamedTuple):
    """Surfels of one mask, in the order of the grid."""

    corners: npt.NDArray[np.int32]
    """Shape (n, 3): the corners of the grid that they sit on, along z, y, x. Corner
    (z, y, x) is before voxel (z, y, x) on all axes."""
    codes: Bytes
    """Shape (n,): which of the eight voxels around the corner the mask has."""
    is_beyond: Mask
    """Shape (n,): has the other mask none within the tolerance?"""


class Near(NamedTuple):
    """How far the surfels of one mask are from the other mask."""

    counts: Counts
    """Shape (distances + 1, 256): how many there are, by the distance's place in the
    ring of `flare.evaluation.metrics.ring`, and by code; behind those that are near,
    all that are far."""
    far: Surfels
    """Those that are far; the first of many."""


class Tally(NamedTuple):
    """What is counted of an organ."""

    voxels: Voxels
    surfels: Counts
    """Numbers by code, of both masks together: shape (256,)."""
    beyond: Counts
    """Of those that have none of the other mask within the tolerance."""


NOWHERE = 2**62
"""Where the box of a label starts that no voxel has."""


class VoxelMap(ABC):
    """The voxels of a label map, as they are held while it is compared."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self._boxes: Counts = np.zeros((256, 2, 3), dtype=np.int64)
        self._boxes[:, 0] = NOWHERE

    @abstractmethod
    def add(self, voxels: Bytes) -> None:
        """Take the next whole rows: shape (rows * width,)."""

    @abstractmethod
    def slices(self, part: slice) -> Labels:
        """The labels of some slices."""

    def box(self, labels: Collection[int]) -> Box:
        """The smallest box around some labels."""
        boxes = (box_of(*self._boxes[label].tolist()) for label in labels)
        return reduce(box_around, boxes, EMPTY)

    @cached_property
    def present(self) -> tuple[int, ...]:
        """The labels that it has once it is full, without 0."""
        return tuple((np.flatnonzero(self._boxes[1:, 1, 0]) + 1).tolist())


@dataclass(frozen=True, slots=True)
class LabelPair(ABC):
    """An organ in two label maps on the same grid, or in some slices of them."""

    maps: tuple[VoxelMap, VoxelMap]
    labels: tuple[int, ...]
    """Its labels: a voxel belongs to it that has one of them."""
    spacing: Spacing
    box: Box
    """The part of the grid that has the organ in either map."""

    @abstractmethod
    def tally(self, tolerance: float) -> Tally:
        """Count voxels and surfels; those beyond a tolerance in mm are told apart."""

    @abstractmethod
    def surfels(self, tolerance: float) -> tuple[Surfels, Surfels]:
        """List the surfels of both maps; those beyond a tolerance in mm are marked."""

    @abstractmethod
    def near(self, room: int) -> tuple[Near, Near]:
        """How far the surfels of each map are from the other.

        Of those that are not near, at most `room` are listed.
        """

    def masks(self, slices: slice) -> tuple[Mask, Mask]:
        """The masks of the organ in some slices of the box."""
        _, y, x = self.box
        first, second = (
            mask_of(label_map.slices(slices)[:, y, x], self.labels)
            for label_map in self.maps
        )
        return first, second

    def ball(self, tolerance: float) -> Ball:
        """The ball of a tolerance in mm, as far as it may reach."""
        return ball_rows(self.spacing, tolerance, extent_of(self.box))
