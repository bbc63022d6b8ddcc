"""Repairs of a label map: where each voxel comes from, and what its label means.

Mirrored, turned, shifted, resampled, cropped, stored under another header: each of
these is one matrix from the voxels of the reference to those of the prediction, beside
a table of labels. So all of them are tried, joined, judged and undone by the same code.
Arrays and matrices are in order z, y, x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import Floats, Indices, Labels


class Placement(Enum):
    """How a prediction's voxels lie on the grid of its reference."""

    AS_IS = "as is"
    AXES = "axes"
    """Axes are exchanged or reversed."""
    HEADER = "header"
    """As its header says, which is right, and another one than the reference's."""
    FIT = "fit"
    """It covers the same field of view with another number of voxels."""
    CUT = "cut"
    """It has the same voxels, of a smaller or larger field of view."""


FEW_SHARE = 1 / 8
"""A grid with fewer voxels than this share of the prediction's is filled one by one."""


class Axis(NamedTuple):
    """The axis of a prediction that lies along an axis of the reference."""

    number: int
    """From 0, for z, y, x."""
    is_reversed: bool = False


PLAIN_AXES = (Axis(0), Axis(1), Axis(2))
NO_SHIFT = (0, 0, 0)


class Cause(NamedTuple):
    """The parts of a repair that cases of different sizes may share."""

    placement: Placement = Placement.AS_IS
    axes: tuple[Axis, ...] = PLAIN_AXES
    shift: tuple[int, ...] = NO_SHIFT
    labels: tuple[tuple[int, int], ...] = ()

    @property
    def orientation(self) -> tuple[Placement, tuple[Axis, ...]]:
        """The placement and the axes, which cases of other sizes have alike."""
        return self.placement, self.axes

    @property
    def order(self) -> tuple[int, ...]:
        """The prediction's axes along z, y, x of the reference: (0, 1, 2) if right."""
        return tuple(axis.number for axis in self.axes)


NO_CAUSE = Cause()


@dataclass(frozen=True, slots=True)
class Repair:
    """A way to make the right label map of a prediction."""

    matrix: Floats = field(default_factory=lambda: np.eye(3, 4))
    """Of shape (3, 4): the voxel of the prediction that lies at one of the reference,
    by its numbers and a 1."""
    cause: Cause = NO_CAUSE

    def shifted(self, shift: Sequence[int] | Indices) -> Repair:
        """The repair of a prediction that lies some voxels further along z, y, x."""
        matrix = self.matrix.copy()
        matrix[:, 3] += matrix[:, :3] @ np.asarray(shift, dtype=float)
        total = np.add(self.cause.shift, shift).tolist()
        return Repair(matrix, self.cause._replace(shift=tuple(total)))

    def relabelled(self, labels: Sequence[tuple[int, int]]) -> Repair:
        """The same repair with another table of labels."""
        return replace(self, cause=self.cause._replace(labels=tuple(sorted(labels))))

    @property
    def label_table(self) -> Labels:
        """The label that each label becomes, of shape (256,)."""
        table = np.arange(256, dtype=np.uint8)
        for label, organ in self.cause.labels:
            table[label] = organ
        return table

    def apply(self, prediction: LabelMap, shape: Sequence[int]) -> Labels:
        """The repaired labels, of the shape of the reference."""
        repaired: Labels = np.empty(shape, dtype=np.uint8)
        steps = np.abs(self.matrix[:, :3])
        reference_axes = steps.argmax(axis=1)
        # One step along each axis; tilts below a thousandth are left out.
        is_along_axes = np.count_nonzero(steps > 1e-3 * steps.max()) == 3
        if is_along_axes and len({*reference_axes.tolist()}) == 3:
            repaired[...] = 0
            moved, places = self._moved(prediction, shape, np.argsort(reference_axes))
            repaired[places] = moved
        else:
            # Not at the top: it is slow to load, and an oblique grid is rare.
            from scipy.ndimage import affine_transform

            linear, offset = self.matrix[:, :3], self.matrix[:, 3]
            affine_transform(
                prediction.labels, linear, offset, output=repaired, order=0
            )
        if self.cause.labels:
            table = self.label_table
            for labels in repaired:  # a slice stays in the CPU's cache
                labels[...] = table[labels]
        return repaired

    def _moved(
        self, prediction: LabelMap, shape: Sequence[int], order: np.ndarray
    ) -> tuple[Labels, tuple[slice, ...]]:
        """The labels at the nearest voxels, and their places; all others are 0.

        `order` has, for each axis of the reference, that of the prediction.
        """
        labels = prediction.labels
        box = prediction.box(prediction.present)
        places, inside = [], []
        for axis, source in enumerate(order.tolist()):
            positions = self.matrix[source, axis] * np.arange(shape[axis])
            positions += self.matrix[source, 3]
            place = np.floor(positions + 0.5 + 1e-6).astype(np.int64)
            is_inside = (place >= box[source].start) & (place < box[source].stop)
            places.append(place[is_inside])
            start = int(is_inside.argmax())  # those inside lie side by side
            inside.append(slice(start, start + np.count_nonzero(is_inside)))
        moved: Labels = labels.transpose(order)
        if math.prod(shape) < labels.size * FEW_SHARE:
            moved = moved[np.ix_(*places)]
        else:  # an axis at a time: whole rows are copied, not voxel by voxel
            for axis, place in enumerate(places):
                # No copy where all places lie side by side, or the other way round.
                steps = {*np.diff(place).tolist()}
                if len(steps) == 1 and steps <= {1, -1}:
                    moved = moved.swapaxes(0, axis)[place.min() : place.max() + 1]
                    moved = moved[:: steps.pop()].swapaxes(0, axis)
                else:
                    moved = moved.take(place, axis)
        return moved, tuple(inside)


def placements(prediction: Grid, reference: Grid) -> list[Repair]:
    """All ways in which a prediction's voxels may lie on the reference's grid.

    48 orders and directions of axes; where sizes differ, each as resampled and as
    cropped; and the place that the prediction's own header names.
    """
    repairs: list[Repair] = []
    directions = [*product((False, True), repeat=3)]
    for order, flips in product(permutations(range(3)), directions):
        repairs += _along(tuple(map(Axis, order, flips)), prediction, reference)
    return [*repairs, *_by_header(prediction, reference)]


def _along(
    axes: tuple[Axis, ...], prediction: Grid, reference: Grid
) -> Iterator[Repair]:
    """The repairs of a prediction whose axes lie along those of the reference."""
    sizes = [prediction.shape[axis.number] for axis in axes]
    if tuple(sizes) == reference.shape:
        is_plain = axes == PLAIN_AXES
        placement = Placement.AS_IS if is_plain else Placement.AXES
        yield Repair(_matrix(axes, sizes, np.ones(3)), Cause(placement, axes))
        return
    steps = np.divide(sizes, reference.shape)
    yield Repair(_matrix(axes, sizes, steps), Cause(Placement.FIT, axes))
    yield Repair(_matrix(axes, sizes, np.ones(3)), Cause(Placement.CUT, axes))


def _matrix(axes: tuple[Axis, ...], sizes: Sequence[int], steps: Floats) -> Floats:
    """The matrix of axes, of a prediction of some sizes; voxels' centres are meant."""
    matrix = np.zeros((3, 4))
    for row, axis in enumerate(axes):
        first_centre = (steps[row] - 1) / 2
        matrix[axis.number, row] = -steps[row] if axis.is_reversed else steps[row]
        start = sizes[row] - 1 - first_centre if axis.is_reversed else first_centre
        matrix[axis.number, 3] = start
    return matrix


def _by_header(prediction: Grid, reference: Grid) -> Iterator[Repair]:
    """The repair of a prediction that lies where its own header says, if elsewhere."""
    if not (prediction.is_placed and reference.is_placed):
        return
    if abs(np.linalg.det(affine_of(prediction))) < 1e-9:
        return
    to_prediction = np.linalg.solve(affine_of(prediction), affine_of(reference))
    # From x, y, z to z, y, x.
    matrix = to_prediction[:3][::-1, [2, 1, 0, 3]].astype(float)
    if not np.allclose(matrix, np.eye(3, 4), atol=1e-3):
        yield Repair(matrix, Cause(Placement.HEADER))


def affine_of(grid: Grid) -> Floats:
    """The matrix from voxels x, y, z of a grid to mm, of shape (4, 4)."""
    return np.array((*grid.affine, (0.0, 0.0, 0.0, 1.0)))


def rebuilt(cause: Cause, prediction: Grid, reference: Grid) -> Repair | None:
    """The repair of a cause for a case of other sizes; None if it cannot be there."""
    for repair in placements(prediction, reference):
        if repair.cause.orientation == cause.orientation:
            return repair.shifted(cause.shift).relabelled(cause.labels)
    return None
