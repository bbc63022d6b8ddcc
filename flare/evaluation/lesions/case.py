"""The lesions of an organ in one case: found, missed and false ones, and their values.

This is where scoring enters the folder. Everything works on runs, and in the box of a
lesion and of what belongs to it: the grid may be of any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flare.challenge.lesion_metrics import Lesion, Lesions
from flare.challenge.lesions import Definition
from flare.evaluation.lesions.pairs import paired, side_of
from flare.evaluation.lesions.parts import Parts
from flare.evaluation.lesions.runs import Numbers, runs_of
from flare.evaluation.metrics.arrays import box_around
from flare.evaluation.metrics.comparison import compare_organ, hausdorff_95
from flare.evaluation.metrics.pairs import pair_of_masks
from flare.evaluation.metrics.tally import LabelPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaces:
    """What is asked of the surfaces of lesions."""

    tolerance: float
    """Of NSD, in mm."""
    has_distances: bool


def lesions_of(
    pair: LabelPair, definition: Definition, surfaces: Surfaces | None = None
) -> Lesions:
    """The lesions of an organ by a definition; NSD and HD95 if they are asked for.

    Examples
    --------
    Two lesions of the reference in one row, the second of which is missed, and a false
    one before them:

    >>> from flare.challenge.lesions import DEFINITIONS
    >>> masks = (np.array([[list(row)]]) == "#" for row in ("..##.#", "#.#..."))
    >>> pair = pair_of_masks(*masks, spacing=(1.0, 1.0, 1.0))
    >>> lesions = lesions_of(pair, DEFINITIONS["isles24"])
    >>> lesions.found, len(lesions.missed), len(lesions.false)
    (1, 1, 1)
    >>> round(lesions.references[0].dsc, 3)
    0.667
    """
    case = CaseLesions(pair, definition)
    hits = case.pairs.predictions[case.is_counted[case.pairs.references]]
    numbers = np.flatnonzero(case.is_counted).tolist()
    return Lesions(
        definition=definition,
        references=tuple(case.lesion(n, surfaces) for n in numbers),
        false=tuple(case.prediction.sizes[case.is_false].tolist()),
        hit_predictions=np.unique(hits).size,
        voxels=(int(case.reference.sizes.sum()), int(case.prediction.sizes.sum())),
        voxel_ml=math.prod(pair.spacing) / 1000,
    )


class CaseLesions:
    """The lesions of both masks of an organ, and the pairs that belong together.

    `is_counted` tells it of each of the reference; `is_false` of each of the prediction
    whether it belongs to none, also to none too small.
    """

    def __init__(self, pair: LabelPair, definition: Definition) -> None:
        self.pair, self.definition = pair, definition
        runs, other_runs = runs_of(pair.masks, pair.box)
        self.reference = side_of(runs, definition.neighbours, definition.widened)
        self.prediction = side_of(other_runs, definition.neighbours)
        self.pairs = paired(self.reference, self.prediction, definition)
        numbers = np.arange(self.reference.number + 1)
        self._ends = np.searchsorted(self.pairs.references, numbers)
        self._parts = Parts(self.reference, numbers[:-1], pair.box)
        self._other_parts = Parts(self.prediction, self.pairs.predictions, pair.box)
        voxel_mm3 = math.prod(pair.spacing)
        self.is_counted = self.reference.sizes * voxel_mm3 > definition.above_mm3
        self.is_false = np.ones(self.prediction.number, dtype=np.bool_)
        self.is_false[self.pairs.predictions] = False

    def lesion(self, number: int, surfaces: Surfaces | None = None) -> Lesion:
        """A lesion of the reference, compared with all that belongs to it."""
        members = slice(self._ends[number], self._ends[number + 1])
        partners = self.pairs.predictions[members]
        size = int(self.reference.sizes[number])
        if not partners.size:
            return Lesion(voxels=size)
        shared = int(self.pairs.shared[members].sum())
        both = size + int(self.prediction.sizes[partners].sum())
        nsd = hd95 = math.nan
        if surfaces:
            nsd, hd95 = self._measured(number, partners, surfaces)
        return Lesion(
            voxels=size,
            partners=partners.size,
            dsc=2 * shared / both,
            nsd=nsd,
            hd95=hd95,
        )

    def _measured(
        self, number: int, partners: Numbers, surfaces: Surfaces
    ) -> tuple[float, float]:
        """NSD and HD95 of a lesion."""
        box = box_around(self._parts.box([number]), self._other_parts.box(partners))
        agreement = compare_organ(
            pair_of_masks(
                self._parts.mask([number], box),
                self._other_parts.mask(partners, box),
                self.pair.spacing,
            ),
            surfaces.tolerance,
            has_distances=surfaces.has_distances,
        )
        distance = hausdorff_95(agreement)
        return agreement.nsd, math.nan if distance is None else distance
