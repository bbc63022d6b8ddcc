"""Where the lesions of a mask lie, and their masks within a box."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from flare.evaluation.lesions.pairs import Side
from flare.evaluation.lesions.runs import Numbers
from flare.evaluation.metrics.arrays import Box, Mask, box_of, extent_of, start_of


class Parts:
    """The runs of some lesions of a mask; `box` is the part of the grid that has it.

    Noise has millions of others, whose places nobody asks for.
    """

    def __init__(self, side: Side, lesions: Numbers, box: Box) -> None:
        is_asked = np.zeros(side.number, dtype=np.bool_)
        is_asked[lesions] = True
        members = np.flatnonzero(is_asked[side.lesions])
        owners, runs = side.lesions[members], side.runs
        order = members[np.argsort(owners, kind="stable")]
        places = np.column_stack(np.unravel_index(runs.firsts[order], runs.shape))
        self._places = places + start_of(box)
        self._sizes = runs.sizes[order]
        numbers = np.bincount(owners, minlength=side.number)
        self._ends = np.append(0, np.cumsum(numbers))

    def _members(self, lesions: Sequence[int] | Numbers) -> Numbers:
        """The runs of some lesions."""
        begins, ends = self._ends[lesions], self._ends[np.add(lesions, 1)]
        return np.concatenate([*map(np.arange, begins, ends)])

    def box(self, lesions: Sequence[int] | Numbers) -> Box:
        """The smallest box around some lesions."""
        members = self._members(lesions)
        starts = self._places[members]
        stops = starts + 1
        stops[:, 2] += self._sizes[members] - 1
        return box_of(starts.min(axis=0).tolist(), stops.max(axis=0).tolist())

    def mask(self, lesions: Sequence[int] | Numbers, box: Box) -> Mask:
        """The mask of some lesions in a box that has all of them."""
        members, shape = self._members(lesions), extent_of(box)
        places = (self._places[members] - start_of(box)).T
        firsts = np.ravel_multi_index(tuple(places), shape)
        changes = np.zeros(math.prod(shape) + 1, dtype=np.int8)
        # One run may end where the next one begins, in the row behind.
        changes[firsts] += 1
        changes[firsts + self._sizes[members]] -= 1
        mask: Mask = np.cumsum(changes[:-1], dtype=np.int8).view(np.bool_)
        return mask.reshape(shape)
