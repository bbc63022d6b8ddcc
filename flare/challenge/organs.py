"""The organs that are scored: their labels, and the rules for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

from flare.challenge.answers import Name
from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metrics import LEFT_OUT, METRICS
from flare.common.schema import Checked, Is, Length, Share, check
from flare.common.text import listing

STATISTICS = ("mean", "std", "min", "max", "median")
"""The statistics of each metric over all cases; no organ can have such a name."""

FREE_CASES = "free_cases"
LEFT_EMPTY = "free_left_empty"
"""With an organ before them, keys of metrics.json that count cases without it."""

RESERVED_ENDINGS = (*STATISTICS, FREE_CASES, LEFT_EMPTY)
"""The endings that give keys of metrics.json a meaning; no name of answers has one."""

Label = Annotated[int, Is(minimum=1, maximum=255)]

ANY_LABEL = tuple(range(1, 256))


class TopSlice(Enum):
    """Whether the highest slice of a z-range is scored."""

    KEPT = "kept"
    DROPPED = "dropped"
    """It is left out, as the slices of official scripts end before their bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organ(Checked):
    """One structure that is scored."""

    label: Label | tuple[Label, ...] | None = None
    """Value of its voxels, 1 to 255; several for a region, which may share them."""
    name: Name
    """Its name in the keys of metrics.json: lower case, digits and underscores."""
    tolerance_mm: Length | None = None
    """Tolerance of its NSD; None only where no NSD is computed."""
    in_mean: bool = True
    """Whether it counts in the DSC and NSD of a case."""
    free_cases: bool = False
    """Whether cases without the organ are counted, and those of them that a submission
    leaves empty."""
    labels: Literal["each"] | None = None
    """In place of a label: each value of either label map is a structure of its own,
    such as a lesion, and the organ has the means over these."""
    lesions: Annotated[str, Is(enum=DEFINITIONS)] | None = None
    """The definition by which it consists of lesions; without it, the organ has no
    metrics of lesions."""

    def has(self, metric: str) -> bool:
        """Whether it has a value of a metric."""
        return bool(self.lesions) or not isinstance(METRICS[metric], LesionMetric)

    @property
    def region(self) -> tuple[int, ...]:
        """All labels of its voxels."""
        if isinstance(self.label, tuple):
            return self.label
        return ANY_LABEL if self.label is None else (self.label,)

    def structures(self, present: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """The labels of each part that is compared by itself; one part, but for "each".

        Of those, there is one for each label that is `present` in either label map; if
        none is, one part without labels.
        """
        if self.labels is None:
            return (self.region,)
        return tuple((label,) for label in sorted({*present})) or ((),)

    def _check_rules(self) -> None:
        check(
            self.name not in STATISTICS,
            "name",
            self.name,
            f"another name than {listing(STATISTICS)}, which metrics.json uses",
        )
        has_one = (self.label is None) != (self.labels is None)
        check(
            has_one, "label", self.label, 'a label, a list of them or labels = "each"'
        )
        is_region = len({*self.region}) == len(self.region) > 0
        check(is_region, "label", [*self.region], "each label once, and at least one")
        is_mask = not (self.lesions and self.labels)
        expected = "no lesions where each label is one"
        check(is_mask, "lesions", self.lesions, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentOrgans(Checked):
    """DSC and NSD of an organ that one label map, or neither, contains.

    One that is left out has no value by any metric.
    """

    in_both: Share | Literal["left_out"] = 1.0
    """The value if it is absent in both label maps."""
    in_reference: Share | Literal["left_out"] = 0.0
    """The value if only the prediction has it."""
    in_prediction: Share | Literal["left_out"] = 0.0
    """The value if only the reference has it."""

    def of(self, reference: int, prediction: int) -> float | str | None:
        """The rule for an organ of so many voxels; None if both label maps have it."""
        if reference and prediction:
            return None
        if reference:
            return self.in_prediction
        return self.in_reference if prediction else self.in_both

    @property
    def may_leave_out(self) -> bool:
        """Whether there are organs without a value."""
        return LEFT_OUT in (self.in_both, self.in_reference, self.in_prediction)

    @property
    def reference_decides(self) -> bool:
        """Whether an organ that the reference lacks, and no other, has no value."""
        values = (self.in_both, self.in_reference, self.in_prediction == LEFT_OUT)
        return values == (LEFT_OUT, LEFT_OUT, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZRange:
    """Organs that are scored only in the slices where the reference has them."""

    organs: tuple[str, ...] = ()
    top_slice: TopSlice = TopSlice.KEPT


USUAL_ABSENCE = AbsentOrgans()
ALL_SLICES = ZRange()
"""What holds where a challenge says nothing."""
