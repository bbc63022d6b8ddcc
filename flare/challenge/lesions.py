"""Named definitions of lesions, program by program, which are data alone.

Challenge files name one for an organ, and can change nothing of it. A further one is a
record here, with values of its program in `tests/evaluation/lesions/test_official.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal


class Pairs(Enum):
    """Which lesions of the reference and of the prediction belong together."""

    TOUCHING = "touching"
    """All that touch; one of the prediction may belong to several of the reference."""
    BY_ORDER = "by order"
    """One to one: the pair with the largest IoU first."""


class Hits(Enum):
    """What precision counts: the share of hits among hits and false lesions."""

    REFERENCES = "references"
    """References that were found."""
    PREDICTIONS = "predictions"
    """Lesions of the prediction that belong to a reference."""


_HITS = {
    Hits.REFERENCES: "each of the reference that is found is one hit",
    Hits.PREDICTIONS: "recall counts references, precision lesions of the prediction",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The sum over lesions that count, divided by these and the false ones."""

    missed_distance_mm: float
    """The HD95 of a missed and of a false lesion; their DSC and NSD are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """How lesions are made of two masks, paired, and counted."""

    name: str
    """As challenge files have it."""
    title: str
    """In print."""
    source: str
    """The program that it is taken from, with its commit or version."""
    link: str
    """Where that is."""
    neighbours: Literal[6, 18, 26] = 26
    """Voxels of one lesion are neighbours: 26 by faces, edges or corners."""
    widened: int = 0
    """Steps by 18 neighbours. Lesions of the reference that join by 26 neighbours when
    they are widened are one, and what touches it when it is widened belongs to it."""
    pairs: Pairs = Pairs.TOUCHING
    least_iou: float = 0.0
    """The IoU that a pair by order has at least."""
    above_mm3: float = 0.0
    """A lesion of the reference that is not larger does not count, and neither does
    what belongs to it alone."""
    mean: Mean | None = None
    """None where DSC, NSD and HD95 of lesions are not defined."""
    hits: Hits | None = None
    """None where recall, precision and F1 are not defined."""

    def text(self, needs: Collection[str] = ("mean", "hits")) -> str:
        """Its name, source and rules, for metrics that need some fields of it.

        Examples
        --------
        >>> print(DEFINITIONS["autopet"].text().partition("): ")[2])
        lesions are components by 18 neighbours; all that share a voxel belong together.
        """
        clauses = [*self._clauses()]
        if self.mean and "mean" in needs:
            clauses.append("the mean is over those of the reference and false ones")
            hd95 = f"an HD95 of {self.mean.missed_distance_mm:g} mm"
            clauses.append(
                f"missed and false ones have a DSC and an NSD of 0, and {hd95}"
            )
        if self.hits and "hits" in needs:
            clauses.append(_HITS[self.hits])
        source = f"{self.title}, from {self.source}, {self.link}"
        return f"{self.name} ({source}): {'; '.join(clauses)}."

    def _clauses(self) -> Iterator[str]:
        yield f"lesions are components by {self.neighbours} neighbours"
        if self.widened:
            steps = f"{self.widened} step{'s' * (self.widened > 1)} by 18 neighbours"
            yield f"those of the reference that join when widened by {steps} are one"
        if self.pairs is Pairs.BY_ORDER:
            iou = f"an IoU of {self.least_iou:g} or more"
            yield f"pairs with {iou} are one to one, the largest IoU first"
        elif self.widened:
            yield "all of the prediction that touch one so widened belong to it"
        else:
            yield "all that share a voxel belong together"
        if self.above_mm3:
            size = f"those of the reference of at most {self.above_mm3:g} mm3"
            yield f"{size}, and what belongs to them alone, do not count"


_GLI = Definition(
    name="brats23-gli",
    title="BraTS 2023 GLI",
    source="rachitsaluja/BraTS-2023-Metrics 43c9052, metrics.py (GLI)",
    link="https://github.com/rachitsaluja/BraTS-2023-Metrics/tree/43c9052",
    widened=3,
    above_mm3=50.0,
    mean=Mean(missed_distance_mm=374.0),
    hits=Hits.REFERENCES,
)
_ISLES24 = Definition(
    name="isles24",
    title="ISLES'24",
    source="ezequieldlrosa/isles24 94b3486, utils/eval_utils.py, with panoptica 1.0.0",
    link="https://github.com/ezequieldlrosa/isles24/tree/94b3486",
    pairs=Pairs.BY_ORDER,
    least_iou=0.2,
    hits=Hits.REFERENCES,
)

DEFINITIONS = {
    definition.name: definition
    for definition in (
        _GLI,
        replace(
            _GLI,
            name="brats23-men",
            title="BraTS 2023 MEN",
            source=_GLI.source.replace("GLI", "MEN"),
            widened=1,
        ),
        replace(
            _GLI,
            name="brats23-met",
            title="BraTS 2023 MET",
            source=_GLI.source.replace("GLI", "MET"),
            widened=1,
            above_mm3=2.0,
        ),
        _ISLES24,
        replace(
            _ISLES24,
            name="isles24-iou0.5",
            title="ISLES'24 until 2025-12",
            source=_ISLES24.source.replace("94b3486", "before 94b3486"),
            least_iou=0.5,
        ),
        Definition(
            name="autopet",
            title="autoPET",
            source="ClinicalDataScience/autoPETIII 9b3dd51, evaluation_metrics.py",
            link="https://github.com/ClinicalDataScience/autoPETIII/tree/9b3dd51",
            neighbours=18,
        ),
        Definition(
            name="wmh17",
            title="WMH 2017",
            source="hjkuijf/wmhchallenge 2e628cb, evaluation.py",
            link="https://github.com/hjkuijf/wmhchallenge/tree/2e628cb",
            hits=Hits.PREDICTIONS,
        ),
    )
}
"""All definitions by name."""

LONGEST_MISS_MM = max(d.mean.missed_distance_mm for d in DEFINITIONS.values() if d.mean)
"""The longest HD95 of a missed lesion by any definition."""
