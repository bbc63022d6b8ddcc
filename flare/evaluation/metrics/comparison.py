"""Compares organs of two label maps: an `Agreement` of each, for all metrics.

This is where scoring enters the folder, and where what was counted and measured leaves
it. DSC and NSD are always computed; distances only if a metric needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flare.evaluation.metrics.surface_dice import surface_dice
from flare.evaluation.metrics.tally import LabelPair

if TYPE_CHECKING:
    from flare.evaluation.metrics.sides import Sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well an organ of a prediction agrees with the reference."""

    reference_voxels: int
    prediction_voxels: int
    dsc: float
    nsd: float
    distances: Sides | None = None
    """The distances of both surfaces, if they were asked for and both maps have the
    organ."""


def compare_organ(
    pair: LabelPair,
    tolerance: float,
    smallest_dsc: float = 0.0,
    *,
    has_distances: bool = False,
) -> Agreement:
    """Compare an organ of two label maps as a mask of its own; the tolerance is in mm.

    DSC and NSD are those of `flare.dice` and `flare.normalized_surface_dice` for its
    two masks. But where the DSC is below `smallest_dsc`, NSD is 0. Distances of
    surfaces, with `has_distances`, are computed whatever the DSC is.
    """
    counts, distances = pair.tally(tolerance), None
    voxels = counts.voxels
    if has_distances and voxels.reference and voxels.prediction:
        # Not at the top: the module is loaded where distances are asked for.
        from flare.evaluation.metrics.distances import sides_of

        distances = sides_of(pair)
    is_too_small = voxels.dsc < smallest_dsc
    return Agreement(
        reference_voxels=voxels.reference,
        prediction_voxels=voxels.prediction,
        dsc=voxels.dsc,
        nsd=0.0 if is_too_small else surface_dice(counts, pair.spacing),
        distances=distances,
    )
