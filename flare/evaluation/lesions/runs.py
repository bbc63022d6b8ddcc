"""Runs of voxels along x: masks of any size, of which only the runs are held.

Neighbours of all kinds are found between runs. A step to a neighbour leaves a voxel by
at most one place on each axis, and on one, two or three axes at once: by 6, 18 or 26
neighbours. So the places that some steps lead to are a run of each row around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Box, Mask, extent_of

AXES = {6: 1, 18: 2, 26: 3}
"""On how many axes at once a step may leave a voxel, by the number of neighbours."""

MARGIN = 32
"""Empty places behind each row, and empty rows behind each slice: no steps lead over
them."""

SLAB = 2**20
"""So many voxels or runs are looked at, at a time."""

Numbers = npt.NDArray[np.integer[Any]]
"""Places, or what else is counted, of shape (n,)."""

NONE: Numbers = np.empty(0, dtype=np.int64)

Reach = tuple[int, int, int]
"""Steps along z and y, and how far one gets along x from there, to both sides."""


class Runs(NamedTuple):
    """The runs of a mask, in the order of the grid.

    Places are those of a grid with margins: of shape (depth, height + MARGIN, width +
    MARGIN).
    """

    firsts: Numbers
    """The first place of each."""
    lasts: Numbers
    """The last place of each."""
    shape: tuple[int, int, int]
    """Of the grid with its margins."""

    @property
    def sizes(self) -> Numbers:
        """The number of voxels of each."""
        return self.lasts - self.firsts + 1

    def part(self, begin: int, end: int) -> Runs:
        """Some that follow each other."""
        return Runs(self.firsts[begin:end], self.lasts[begin:end], self.shape)

    def moved(self, z: int, y: int) -> int:
        """How many places some slices and rows are."""
        return (z * self.shape[1] + y) * self.shape[2]

    def slice_of(self, run: int) -> int:
        """The slice that a run lies in."""
        return int(self.firsts[run]) // self.moved(1, 0)

    def begin_of(self, z: int) -> int:
        """The first run from a slice on."""
        return int(np.searchsorted(self.firsts, self.moved(z, 0)))


def runs_of(masks: Callable[[slice], tuple[Mask, Mask]], box: Box) -> tuple[Runs, Runs]:
    """The runs of both masks of a box; `masks` has those of some of its slices."""
    depth, height, width = extent_of(box)
    shape = depth, height + MARGIN, width + MARGIN
    step = max(1, SLAB // max(1, height * width))
    parts = [[NONE], [NONE]]
    for z in range(box[0].start, box[0].stop, step):
        slab = slice(z, min(z + step, box[0].stop))
        for mask, ends in zip(masks(slab), parts, strict=True):
            ends.append(_ends(mask, shape) + (z - box[0].start) * shape[1] * shape[2])
    first, second = (np.concatenate(ends) for ends in parts)
    return (
        Runs(first[::2], first[1::2] - 1, shape),
        Runs(second[::2], second[1::2] - 1, shape),
    )


def _ends(mask: Mask, shape: tuple[int, int, int]) -> Numbers:
    """Places where runs of some slices begin, and behind each, where it ends."""
    depth, height, width = mask.shape
    rows = np.zeros((depth * height, width + 1), dtype=np.bool_)
    rows[:, 1:] = mask.reshape(-1, width)
    flat = np.append(rows.reshape(-1), False)
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    row, x = np.divmod(ends, width + 1)
    z, y = np.divmod(row, height)
    return (z * shape[1] + y) * shape[2] + x


def reaches(steps: int, axes: int) -> Iterator[Reach]:
    """The places that some steps lead to, by rows."""
    around = range(-steps, steps + 1)
    for z, y in product(around, around):
        x = min(steps, axes * steps - abs(z) - abs(y))
        if x >= 0:
            yield z, y, x


def joining_reaches(steps: int) -> Iterator[Reach]:
    """The places of voxels that join one by 26 neighbours when both are widened.

    Each is widened by so many steps by 18 neighbours, and one more step by 26 joins
    them. They join within the grid, too: whatever lies beyond its border may be moved
    to it, and comes nearer to both. Half of the reaches are enough for both ways.
    """
    widened = {(z, y): x for z, y, x in reaches(2 * steps, AXES[18])}
    around = range(-2 * steps - 1, 2 * steps + 2)
    for z, y in product(around, around):
        nearest = max(abs(z) - 1, 0), max(abs(y) - 1, 0)
        if nearest in widened and (z, y) >= (0, 0):
            yield z, y, widened[nearest] + 1


def touching(first: Runs, second: Runs, reach: Reach) -> tuple[Numbers, Numbers]:
    """The pairs of runs, one of each mask, that a reach of the first leads to."""
    z, y, x = reach
    moved = first.moved(z, y)
    begins = np.searchsorted(second.lasts, first.firsts + (moved - x))
    ends = np.searchsorted(second.firsts, first.lasts + (moved + x), "right")
    numbers = ends - begins
    firsts = np.repeat(np.arange(numbers.size), numbers)
    seconds = np.arange(firsts.size) + np.repeat(ends - np.cumsum(numbers), numbers)
    return firsts, seconds


def components(runs: Runs, neighbours: int) -> tuple[int, Numbers]:
    """How many components runs make, and which each belongs to, by their first runs.

    Of many runs, those of some slices at a time are made components; the pairs that
    lead from one such slab to the next are few.
    """
    reached = [r for r in reaches(1, AXES[neighbours]) if r[:2] > (0, 0)]
    size = runs.firsts.size
    total, numbers, pairs = 0, np.empty(size, dtype=np.int32), []
    begin = last_slice = 0
    while begin < size:
        end = min(begin + SLAB, size)
        if end < size:  # whole slices, or one that has more
            z = max(runs.slice_of(end - 1), runs.slice_of(begin) + 1)
            end = runs.begin_of(z)
        slab = runs.part(begin, end)
        inner = [touching(slab, slab, reach) for reach in reached]
        number, groups = grouped(end - begin, inner)
        numbers[begin:end] = groups + total
        total += number
        before = runs.part(last_slice, begin)
        for reach in reached:
            firsts, seconds = touching(before, slab, reach)
            pairs.append((numbers[last_slice + firsts], numbers[begin + seconds]))
        last_slice, begin = runs.begin_of(runs.slice_of(end - 1)), end
    if total == 0:
        return 0, numbers
    number, groups = grouped(total, pairs)
    return number, groups[numbers]


def grouped(
    number: int, pairs: Sequence[tuple[Numbers, Numbers]]
) -> tuple[int, Numbers]:
    """How many groups things make by pairs, and which each belongs to, by its first."""
    # Not at the top: SciPy is loaded where lesions are asked for.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    firsts, seconds = (np.concatenate(side) for side in zip(*pairs, strict=True))
    ones = np.ones(firsts.size, dtype=np.bool_)
    graph = coo_array((ones, (firsts, seconds)), shape=(number, number))
    groups: tuple[int, Numbers] = connected_components(graph, directed=False)
    return groups
