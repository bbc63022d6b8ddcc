"""Which lesions of the reference and of the prediction belong together.

Lesions are numbered by their first voxel in the order of the grid. A pair is the number
of one of the reference, and that of one of the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flare.challenge.lesions import Definition, Pairs
from flare.evaluation.lesions.runs import (
    AXES,
    Numbers,
    Reach,
    Runs,
    components,
    grouped,
    joining_reaches,
    reaches,
    touching,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The lesions of one mask."""

    runs: Runs
    lesions: Numbers
    """The lesion that each run belongs to."""
    number: int
    """How many there are."""
    sizes: Numbers
    """The number of voxels of each."""


class LesionPairs(NamedTuple):
    """Pairs of lesions; arrays of shape (pairs,), in the order of the references."""

    references: Numbers
    predictions: Numbers
    shared: Numbers
    """The number of voxels that both have."""


def side_of(runs: Runs, neighbours: int, widened: int = 0) -> Side:
    """The lesions of some runs; those that join when they are widened are one."""
    number, lesions = components(runs, neighbours)
    if widened and number > 1:
        pairs = []
        for reach in joining_reaches(widened):
            firsts, seconds = (lesions[side] for side in touching(runs, runs, reach))
            is_new = firsts != seconds
            pairs.append((firsts[is_new], seconds[is_new]))
        number, groups = grouped(number, pairs)
        lesions = groups[lesions]
    sizes = np.bincount(lesions, runs.sizes, minlength=number).astype(np.int64)
    return Side(runs=runs, lesions=lesions, number=number, sizes=sizes)


def paired(reference: Side, prediction: Side, definition: Definition) -> LesionPairs:
    """The pairs that belong together."""
    return _CHOICES[definition.pairs](reference, prediction, definition)


def _touching(reference: Side, prediction: Side, definition: Definition) -> LesionPairs:
    """All that touch, when those of the reference are widened each by itself."""
    places, shared = [], []
    for reach in reaches(definition.widened, AXES[18]):
        pairs, voxels = _reached(reference, prediction, reach)
        if reach[:2] != HERE[:2]:
            pairs = np.unique(pairs)
            voxels = np.zeros_like(pairs)
        places.append(pairs)
        shared.append(np.maximum(voxels, 0))
    return _summed(np.concatenate(places), np.concatenate(shared), prediction.number)


def _by_order(reference: Side, prediction: Side, definition: Definition) -> LesionPairs:
    """The pair with the largest IoU first; each lesion belongs to one pair.

    Equal ones go by the order of the predictions, then of the references.
    """
    pairs = _summed(*_reached(reference, prediction, HERE), prediction.number)
    sizes = reference.sizes[pairs.references] + prediction.sizes[pairs.predictions]
    iou = pairs.shared / (sizes - pairs.shared)
    order = np.lexsort((pairs.references, pairs.predictions, -iou))
    free_references = np.ones(reference.number, dtype=np.bool_)
    free_predictions = np.ones(prediction.number, dtype=np.bool_)
    chosen = []
    for number in order[iou[order] >= definition.least_iou].tolist():
        first, second = pairs.references[number], pairs.predictions[number]
        if free_references[first] and free_predictions[second]:
            free_references[first] = free_predictions[second] = False
            chosen.append(number)
    places = np.array(sorted(chosen), dtype=np.int64)
    return LesionPairs(*(numbers[places] for numbers in pairs))


_CHOICES = {Pairs.TOUCHING: _touching, Pairs.BY_ORDER: _by_order}

HERE = (0, 0, 0)
"""The reach of a voxel that both masks have."""


def _reached(
    reference: Side, prediction: Side, reach: Reach
) -> tuple[Numbers, Numbers]:
    """Pairs as whole numbers, some several times, and voxels that their runs share."""
    runs, other_runs = reference.runs, prediction.runs
    firsts, seconds = touching(runs, other_runs, reach)
    lasts = np.minimum(runs.lasts[firsts], other_runs.lasts[seconds])
    voxels = lasts - np.maximum(runs.firsts[firsts], other_runs.firsts[seconds]) + 1
    pairs = reference.lesions[firsts].astype(np.int64) * prediction.number
    return pairs + prediction.lesions[seconds], voxels


def _summed(places: Numbers, voxels: Numbers, predictions: int) -> LesionPairs:
    """Each pair once, with the sum of its voxels."""
    pairs, order = np.unique(places, return_inverse=True)
    shared = np.bincount(order, voxels, minlength=pairs.size).astype(np.int64)
    first, second = np.divmod(pairs, max(1, predictions))
    return LesionPairs(references=first, predictions=second, shared=shared)
