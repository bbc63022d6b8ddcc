"""Compares labels of two label maps: an `Agreement` for each, for all metrics.

This is where scoring enters the folder, and where what was counted and measured leaves
it. DSC and NSD are always computed; distances only if a metric needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flare.evaluation.metrics.arrays import ReusedMemory, Spacing
from flare.evaluation.metrics.pairs import (
    Array,
    LabelPair,
    MapPair,
    check_lengths,
    pair_of_masks,
)
from flare.evaluation.metrics.surface_dice import surface_dice
from flare.evaluation.metrics.tally import Tally, tally
from flare.evaluation.metrics.tolerance import ball_rows

if TYPE_CHECKING:
    from flare.evaluation.metrics.sides import Sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well one label of a prediction agrees with the reference."""

    reference_voxels: int
    prediction_voxels: int
    dsc: float
    nsd: float
    distances: Sides | None = None
    """The distances of both surfaces, if they were asked for and both maps have the
    label."""


def compare_labels(
    pair: MapPair,
    tolerances: Mapping[int, float],
    *,
    slices: Mapping[int, slice] | None = None,
    memory: ReusedMemory | None = None,
    smallest_dsc: float = 0.0,
    has_distances: bool = False,
) -> dict[int, Agreement]:
    """Compare several labels of two label maps, each as a mask of its own.

    Parameters
    ----------
    pair : MapPair
        The label maps of reference and prediction.
    tolerances : mapping of int to float
        For each label to compare, 1 to 255, its NSD tolerance in mm.
    slices : mapping of int to slice, optional
        For labels that are compared in some slices alone: which ones.
    memory : ReusedMemory, optional
        To be used again, when many label maps are compared.
    smallest_dsc : float
        Where the DSC is smaller, no surfel is counted, and NSD is 0.
    has_distances : bool
        Whether distances of surfaces are computed as well, whatever the DSC is.

    Returns
    -------
    dict of int to Agreement
        DSC and NSD are those of `flare.dice` and `flare.normalized_surface_dice` for
        the label's two masks, cut to its slices, unless `smallest_dsc` makes NSD 0.

    Raises
    ------
    ValueError
        If a tolerance is not positive and finite.
    """
    check_lengths(tolerances.values())
    label_pairs = pair.cut(tolerances, slices or {}, memory or ReusedMemory())
    agreements = {}
    for label_pair in label_pairs:
        label = label_pair.occupancy.label
        agreements[label] = compare_label(
            label_pair, tolerances[label], smallest_dsc, has_distances=has_distances
        )
    return agreements


def compare_label(
    pair: LabelPair,
    tolerance: float,
    smallest_dsc: float = 0.0,
    *,
    has_distances: bool = False,
) -> Agreement:
    """Compare one label, as `compare_labels` does several.

    Distances need the surfaces of all windows, which the tally has at hand.
    """
    ball = ball_rows(pair.spacing, tolerance, pair.occupancy.extent)
    if not has_distances:
        return _agreement(tally(pair, ball, smallest_dsc), pair.spacing)
    # Not at the top: the module is loaded where distances are asked for.
    from flare.evaluation.metrics.distances import DistanceFinder

    finder = DistanceFinder(pair)
    counts = tally(pair, ball, smallest_dsc, finder.add)
    if not (counts.voxels.reference and counts.voxels.prediction):
        return _agreement(counts, pair.spacing)
    return _agreement(counts, pair.spacing, finder.finish())


def _agreement(
    counts: Tally, spacing: Spacing, distances: Sides | None = None
) -> Agreement:
    return Agreement(
        reference_voxels=counts.voxels.reference,
        prediction_voxels=counts.voxels.prediction,
        dsc=counts.voxels.dsc,
        nsd=surface_dice(counts, spacing),
        distances=distances,
    )


def distance_of_masks(
    metric: Callable[[Agreement], float | None],
    reference: Array,
    prediction: Array,
    spacing: Spacing,
) -> float:
    """A distance of two masks; of an empty and a filled one, the grid's diagonal."""
    pair = pair_of_masks(reference, prediction, spacing)
    # The tolerance is for the NSD, which nobody reads here: no distance depends on it.
    agreement = compare_label(pair, tolerance=1.0, has_distances=True)
    value = metric(agreement)
    if value is not None:
        return value
    if not agreement.reference_voxels and not agreement.prediction_voxels:
        return 0.0
    shape = np.asarray(reference).shape
    return math.hypot(*(n * mm for n, mm in zip(shape, spacing, strict=True)))
