"""Compares organs of two label maps: an `Agreement` of each, for all metrics.

DSC and NSD are always computed; distances only if a metric needs them. Further metrics
are functions of an `Agreement`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flare.evaluation.metrics.arrays import EMPTY, Spacing
from flare.evaluation.metrics.surfels import surfel_areas
from flare.evaluation.metrics.tally import LabelPair, Tally, Voxels

if TYPE_CHECKING:
    from flare.evaluation.metrics.distances import Sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well an organ of a prediction agrees with the reference."""

    voxels: Voxels
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
    if pair.box == EMPTY:  # neither map has it
        return Agreement(voxels=Voxels(0, 0, 0), nsd=1.0)
    counts, distances = pair.tally(tolerance), None
    voxels = counts.voxels
    if has_distances and voxels.reference and voxels.prediction:
        # Not at the top: the module is loaded where distances are asked for.
        from flare.evaluation.metrics.distances import sides_of

        distances = sides_of(pair)
    is_too_small = voxels.dsc < smallest_dsc
    nsd = 0.0 if is_too_small else surface_dice(counts, pair.spacing)
    return Agreement(voxels=voxels, nsd=nsd, distances=distances)


def surface_dice(counts: Tally, spacing: Spacing) -> float:
    """The NSD of what was counted of an organ.

    Surfels of one code have one area, so a sum over codes is that over all surfels.
    """
    voxels = counts.voxels
    codes = counts.surfels.nonzero()[0]  # the others add nothing
    if not (voxels.reference and voxels.prediction and codes.size):
        return float(voxels.reference == voxels.prediction == 0)
    areas = surfel_areas(spacing)[codes]
    surfels, beyond = counts.surfels[codes], counts.beyond[codes]
    within = math.fsum(((surfels - beyond) * areas).tolist())
    return within / math.fsum((surfels * areas).tolist())


# --- Further metrics ----------------------------------------------------------------


def hausdorff_95(agreement: Agreement) -> float | None:
    """HD95: the larger percentile of both surfaces; None if a mask is empty."""
    sides = agreement.distances
    return max(side.within(0.95) for side in sides) if sides else None


def average_distance(agreement: Agreement) -> float | None:
    """ASSD: the mean of both surfaces, weighted by area; None if a mask is empty."""
    sides = agreement.distances or ()
    area = sum(side.area for side in sides)
    return sum(side.sum for side in sides) / area if area else None


def volume_difference(agreement: Agreement) -> float:
    """The volume that a prediction has too much, relative to the reference.

    Where there is no reference to relate it to, a prediction is 1 too large.
    """
    voxels = agreement.voxels
    if not voxels.reference:
        return float(voxels.prediction > 0)
    return (voxels.prediction - voxels.reference) / voxels.reference
