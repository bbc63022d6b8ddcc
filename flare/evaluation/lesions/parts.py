"""Where the lesions of a mask lie, and their masks within a box."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from flare.evaluation.lesions.pairs import Side
from flare.evaluation.lesions.runs import Numbers
from flare.evaluation.metrics.arrays import Box, Mask, box_of, extent_of, start_of


class Parts:
    """The runs of a mask by lesion; `box` is the part of the grid that they are of."""

    def __init__(self, side: Side, box: Box) -> None:
        runs = side.runs
        order = np.argsort(side.lesions, kind="stable")
        places = np.column_stack(np.unravel_index(runs.firsts[order], runs.shape))
        self._places = places + start_of(box)
        self._sizes = runs.sizes[order]
        numbers = np.bincount(side.lesions, minlength=side.number)
        self._ends = np.append(0, np.cumsum(numbers))
        self._starts = self._stops = self._places
        if side.number:
            stops = self._places + 1
            stops[:, 2] += self._sizes - 1
            self._starts = np.minimum.reduceat(self._places, self._ends[:-1])
            self._stops = np.maximum.reduceat(stops, self._ends[:-1])

    def box(self, lesions: Sequence[int] | Numbers) -> Box:
        """The smallest box around some lesions."""
        starts, stops = self._starts[lesions], self._stops[lesions]
        return box_of(starts.min(axis=0).tolist(), stops.max(axis=0).tolist())

    def mask(self, lesions: Sequence[int] | Numbers, box: Box) -> Mask:
        """The mask of some lesions in a box that has all of them."""
        shape = extent_of(box)
        mask: Mask = np.zeros(math.prod(shape) + 1, dtype=np.bool_)
        # One run may end where the next one begins, in the row behind.
        for lesion in lesions:
            runs = slice(self._ends[lesion], self._ends[lesion + 1])
            places = (self._places[runs] - start_of(box)).T
            firsts = np.ravel_multi_index(tuple(places), shape)
            mask[firsts] ^= True
            mask[firsts + self._sizes[runs]] ^= True
        return np.logical_xor.accumulate(mask[:-1]).reshape(shape)
