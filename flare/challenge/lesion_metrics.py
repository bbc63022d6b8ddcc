"""Metrics of lesions: each a record with a function of the lesions of a case."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from flare.challenge.lesions import LONGEST_MISS_MM, Definition, Hits
from flare.challenge.metric import Better, Lengths, Metric, diagonal_mm


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesion:
    """A lesion of the reference."""

    voxels: int
    partners: int = 0
    """How many lesions of the prediction belong to it."""
    dsc: float = 0.0
    """Of all that belong to it, as the following ones."""
    nsd: float = 0.0
    hd95: float = math.nan
    """In mm; NaN if nothing belongs to it, or nobody asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesions:
    """The lesions of an organ in one case, of which metrics are made."""

    definition: Definition
    references: tuple[Lesion, ...]
    """Those that count."""
    false: tuple[int, ...]
    """The voxels of those of the prediction that belong to none of the reference: there
    may be millions in a prediction of noise."""
    hit_predictions: int
    """How many of the prediction belong to one of the reference that counts."""
    voxels: tuple[int, int]
    """Of the organ in the reference, and in the prediction."""
    voxel_ml: float

    @property
    def found(self) -> int:
        """How many of the reference are found: TP."""
        return sum(lesion.partners > 0 for lesion in self.references)

    @property
    def missed(self) -> tuple[Lesion, ...]:
        """The lesions of the reference that nothing belongs to: FN."""
        return tuple(lesion for lesion in self.references if not lesion.partners)

    @property
    def hits(self) -> int:
        """The number that precision counts."""
        is_of_references = self.definition.hits is Hits.REFERENCES
        return self.found if is_of_references else self.hit_predictions

    def mean(self, values: list[float], false: float, none: float) -> float:
        """The mean of values of references and of `false` ones; `none` of nothing."""
        number = len(values) + len(self.false)
        total = math.fsum([*values, false * len(self.false)])
        return total / number if number else none


@dataclass(frozen=True, slots=True, kw_only=True)
class LesionMetric(Metric):
    """A metric of the lesions of each organ that has a definition."""

    # Nobody compares functions.
    of_lesions: Callable[[Lesions], float | None] = field(compare=False)
    """The value; None where there is none."""
    needs: str = ""
    """The field of a definition that has to be set for it."""
    needs_hd95: bool = False

    def is_defined_by(self, definition: Definition) -> bool:
        """Whether a definition has a rule for it."""
        return not self.needs or getattr(definition, self.needs) is not None


def _dsc(lesions: Lesions) -> float:
    return lesions.mean([lesion.dsc for lesion in lesions.references], 0.0, 1.0)


def _nsd(lesions: Lesions) -> float:
    return lesions.mean([lesion.nsd for lesion in lesions.references], 0.0, 1.0)


def _hd95(lesions: Lesions) -> float:
    rule = lesions.definition.mean
    assert rule
    values = [
        lesion.hd95 if lesion.partners else rule.missed_distance_mm
        for lesion in lesions.references
    ]
    return lesions.mean(values, rule.missed_distance_mm, 0.0)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _recall(lesions: Lesions) -> float:
    return _share(lesions.found, len(lesions.references))


def _precision(lesions: Lesions) -> float:
    return _share(lesions.hits, lesions.hits + len(lesions.false))


def _f1(lesions: Lesions) -> float:
    """The harmonic mean of recall and precision, as one quotient of whole numbers.

    So it is rounded once, as 2 TP / (2 TP + FP + FN) where both count the same hits.
    """
    true, references = lesions.found, len(lesions.references)
    hits, predictions = lesions.hits, lesions.hits + len(lesions.false)
    if not references and not predictions:
        return 1.0
    total = true * predictions + hits * references
    return 2 * true * hits / total if total else 0.0


def _count_difference(lesions: Lesions) -> float:
    # What belongs to references that are joined counts once, as these do.
    predictions = lesions.hits + len(lesions.false)
    return float(abs(len(lesions.references) - predictions))


def _false_volume(lesions: Lesions) -> float:
    return sum(lesions.false) * lesions.voxel_ml


def _missed_volume(lesions: Lesions) -> float | None:
    """None without lesions: nothing can be missed."""
    if not lesions.voxels[0]:
        return None
    return sum(lesion.voxels for lesion in lesions.missed) * lesions.voxel_ml


def _volume_difference(lesions: Lesions) -> float:
    reference, prediction = lesions.voxels
    return abs(reference - prediction) * lesions.voxel_ml


def _voxels(shape: Lengths, spacing: Lengths) -> float:
    """All voxels of a grid, which are more than there can be lesions."""
    return math.prod(shape)


def _grid_ml(shape: Lengths, spacing: Lengths) -> float:
    return math.prod(shape) * math.prod(spacing) / 1000


def _distance(shape: Lengths, spacing: Lengths) -> float:
    """The HD95 of a missed lesion, or the diagonal of a grid that is larger.

    A case that cannot be scored is no better than one of which all is missed.
    """
    return max(LONGEST_MISS_MM, diagonal_mm(shape, spacing))


_hidden = partial(LesionMetric, tells_cases=False)
"""Recall and the like tell how many lesions a reference has, or how large it is."""

_amount = partial(_hidden, range=(0.0, math.inf), better=Better.LOWER, worst=None)
_volume = partial(_amount, unit="ml", worst_of=_grid_ml)

LESION_METRICS = (
    LesionMetric(
        name="lesion_dsc",
        title="Lesion-wise DSC",
        definition="the mean DSC of lesions",
        of_lesions=_dsc,
        needs="mean",
        bounds=(0.0, 0.3, 0.5, 0.6, 0.75, 0.9),
    ),
    LesionMetric(
        name="lesion_nsd",
        title="Lesion-wise NSD",
        definition="the mean NSD of lesions",
        of_lesions=_nsd,
        needs="mean",
        needs_tolerance=True,
        bounds=(0.0, 0.3, 0.5, 0.6, 0.75, 0.9),
    ),
    LesionMetric(
        name="lesion_hd95",
        title="Lesion-wise HD95",
        definition="the mean HD95 of lesions",
        of_lesions=_hd95,
        needs="mean",
        needs_hd95=True,
        unit="mm",
        range=(0.0, math.inf),
        better=Better.LOWER,
        worst=None,
        worst_of=_distance,
        decimals=2,
        bounds=(300.0, 200.0, 100.0, 50.0, 20.0, 5.0),
    ),
    _hidden(
        name="lesion_f1",
        title="Lesion-wise F1",
        definition="the harmonic mean of the recall and the precision of lesions",
        of_lesions=_f1,
        needs="hits",
    ),
    _hidden(
        name="lesion_recall",
        title="Lesion-wise recall",
        definition="the share of the lesions of the reference that are found",
        of_lesions=_recall,
        needs="hits",
    ),
    _hidden(
        name="lesion_precision",
        title="Lesion-wise precision",
        definition="the share of hits among hits and false lesions",
        of_lesions=_precision,
        needs="hits",
    ),
    _amount(
        name="lesion_count_difference",
        title="Difference of lesion counts",
        definition="how many more or fewer lesions the prediction has",
        of_lesions=_count_difference,
        worst_of=_voxels,
    ),
    _volume(
        name="false_volume",
        title="Volume of false lesions",
        definition="the volume of the lesions of the prediction that belong to none",
        of_lesions=_false_volume,
        needs_reference=False,
    ),
    _volume(
        name="missed_volume",
        title="Volume of missed lesions",
        definition="the volume of the lesions of the reference that nothing belongs to;"
        " a case without lesions has none",
        of_lesions=_missed_volume,
        needs_lesions=True,
    ),
    _volume(
        name="absolute_volume_difference",
        title="Absolute volume difference",
        definition="how much larger or smaller the whole prediction is",
        of_lesions=_volume_difference,
    ),
)
