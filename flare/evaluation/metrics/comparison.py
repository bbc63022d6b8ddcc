"""Compares labels of two label maps: an `Agreement` for each, for all metrics.

This is where scoring enters the folder, and where what was counted and measured leaves
it. DSC and NSD are always computed; distances only if a metric needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flare.evaluation.metrics.arrays import ReusedMemory
from flare.evaluation.metrics.pairs import LabelPair, MapPair, check_lengths
from flare.evaluation.metrics.surface_dice import surface_dice
from flare.evaluation.metrics.tally import tally
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

    Tolerances are in mm, by the labels to compare, 1 to 255; labels of `slices` are
    compared in these alone. DSC and NSD are those of `flare.dice` and
    `flare.normalized_surface_dice` for the label's two masks, cut to its slices. But
    where the DSC is below `smallest_dsc`, no surfel is counted, and NSD is 0. Distances
    of surfaces, with `has_distances`, are computed whatever the DSC is. `memory` is
    used again, when many label maps are compared. A ValueError is raised if a tolerance
    is not positive and finite.
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
    finder = None
    if has_distances:
        # Not at the top: the module is loaded where distances are asked for.
        from flare.evaluation.metrics.distances import DistanceFinder

        finder = DistanceFinder(pair)
    counts = tally(pair, ball, smallest_dsc, finder.add if finder else None)
    voxels = counts.voxels
    is_in_both = voxels.reference and voxels.prediction
    return Agreement(
        reference_voxels=voxels.reference,
        prediction_voxels=voxels.prediction,
        dsc=voxels.dsc,
        nsd=surface_dice(counts, pair.spacing),
        distances=finder.finish() if finder and is_in_both else None,
    )
