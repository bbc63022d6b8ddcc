"""The record of a metric: a column of results, from which all else follows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

Lengths = Sequence[float]


def diagonal_mm(shape: Lengths, spacing: Lengths) -> float:
    """The diagonal of a grid, as the worst distance."""
    return math.hypot(*map(operator.mul, shape, spacing))


class Better(Enum):
    """Which end of a metric is the good one."""

    HIGHER = "higher"
    LOWER = "lower"


MOST = 10**15
"""No value is above this: nothing that is ranked comes near such a number."""

ROUNDING = 1e-9
"""A mean of ones may be above 1 by less than this."""

LEFT_OUT = "left_out"
"""Stands in challenge files and tables for a value that a rule leaves out."""

NO_VALUE = "left out"
"""The words for it."""

ALL_CASES = "all cases together"
"""Stands for the case of a value of all cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A column of results; by its defaults, a metric of two masks."""

    name: str
    """The name of the column, such as ``dsc``, ``dsc_liver`` or ``runtime_s``."""
    title: str
    """The name in print, without the organ or the answers."""
    definition: str = ""
    """One sentence, for Methods and the documentation."""
    part: str = ""
    """The organ or the answers that it is of; empty for a mean over organs."""
    is_scored: bool = True
    """Whether it is made here of label maps or answers; a gate holds for all others."""
    is_of_each_case: bool = True
    """Whether each case has a value; else one is made of all cases together."""
    precision: str = ""
    """The format that its values are rounded by before they are ranked."""
    function: str = ""
    """Module below `flare.evaluation.metrics` and the function in it, which takes an
    `Agreement` and returns the value, or None for the worst one; it is imported when it
    is first needed, and not called where both masks are empty. `SCORES` need none."""
    needs_tolerance: bool = False
    """Whether it is made with the tolerance of the organ, in mm."""
    needs_distances: bool = False
    """Whether it is made from distances of surfaces, which take as long as DSC and NSD;
    they are computed once for all such metrics."""
    unit: str = ""
    range: tuple[float, float] = (0.0, 1.0)
    """The smallest and the largest value."""
    better: Better | None = Better.HIGHER
    """None if 0 is best, and values to both sides of it are worse."""
    worst: float | None = 0.0
    """Of an organ that one mask lacks, and of a case that cannot be scored; None for
    what the challenge says of distances, or `worst_of`: infinity is not JSON and has no
    mean. NaN where nobody knows."""
    worst_of: Callable[[Lengths, Lengths], float] = field(
        default=diagonal_mm, compare=False
    )
    """The worst value on a grid of so many voxels of such a size in mm."""
    decimals: int = 3
    """On a line of progress, and the most that participants are told."""
    bounds: tuple[float, ...] = ()
    """Six values, from bad to good, between which pages have seven shades."""
    tells_cases: bool = True
    """Whether participants may see values of single cases: what tells a volume of the
    reference, or how many lesions it has, is for organisers alone."""
    tells_means: bool = True
    """Whether they may see its mean over cases, which one case has not."""
    needs_reference: bool = True
    """Whether it has no value of an organ that a challenge leaves out."""
    needs_lesions: bool = False
    """Whether it has none wherever the reference has no lesion."""

    @property
    def base(self) -> str:
        """The name without the organ or the answers."""
        return self.name.removesuffix(f"_{self.part}") if self.part else self.name

    @property
    def part_title(self) -> str:
        """The organ or the answers in print."""
        return self.part.replace("_", " ")

    @property
    def best(self) -> float:
        """The value of two masks that are equal, or both empty."""
        return self.range[1] if self.better is Better.HIGHER else 0.0

    @property
    def worst_of_grid(self) -> str:
        """The words for a worst value that depends on the grid."""
        return "the diagonal" if self.unit == "mm" else "all voxels"

    @property
    def is_share(self) -> bool:
        """Whether it is from 0 (worst) to 1 (best), without a unit."""
        return self.range == (0.0, 1.0) and self.better is Better.HIGHER

    @property
    def statistics(self) -> tuple[str, ...]:
        """The numbers in tables over all cases, by their names in metrics.json.

        One missing organ decides the mean of distances, which have no upper end.
        """
        return ("mean",) if self.is_share else ("mean", "median")

    @property
    def hides_cases(self) -> bool:
        """Whether a rank on a case, or that it has no value, tells too much as well."""
        return self.is_scored and not self.tells_cases

    def is_told(self, cases: int) -> bool:
        """Whether participants may see a mean, or another number, of so many cases."""
        return self.tells_cases or (self.tells_means and cases > 1)

    def units(self, cases: Sequence[str]) -> Sequence[str]:
        """The cases, if each has a value, else one word for all of them."""
        return cases if self.is_of_each_case else (ALL_CASES,)

    def text(self, value: float | None) -> str:
        """A value, or a mean of values; None is one that a rule leaves out."""
        return NO_VALUE if value is None else f"{value:z.{self.decimals}f}"

    def told(self, value: float) -> float:
        """A value as participants may know it: more digits tell of the reference.

        Examples
        --------
        >>> Metric(name="dsc", title="DSC").told(0.97394)
        0.974
        """
        if not self.is_scored:
            return value
        scale: int = 10**self.decimals
        return round(value * scale) / scale

    @property
    def full_title(self) -> str:
        """The title with the organ or the answers."""
        return f"{self.title} of {self.part_title}" if self.part else self.title

    @property
    def heading(self) -> str:
        """The full title in the heads of tables and beside axes."""
        return f"{self.full_title} ({self.unit})" if self.unit else self.full_title

    @property
    def title_within(self) -> str:
        """The full title within a sentence.

        Examples
        --------
        >>> titles = "HD95", "Volume difference"
        >>> [Metric(name="", title=title).title_within for title in titles]
        ['HD95', 'volume difference']
        """
        title = self.full_title
        is_word = title[1:2].islower()
        return title[0].lower() + title[1:] if is_word else title

    @property
    def heading_within(self) -> str:
        """The full title with its unit, within a line."""
        return f"{self.title_within} ({self.unit})" if self.unit else self.title_within

    @property
    def is_running_time(self) -> bool:
        """Whether it is a running time, whoever has measured it."""
        return self.name.startswith("runtime")

    def problem(self, value: float) -> str:
        """Why it cannot have a value; empty if it can."""
        if not math.isfinite(value) or value > MOST:
            return f"{self.name} is {value}, which nothing that was measured is"
        if value < self.range[0]:
            # Not a sentinel of some other program: it would be the best running time.
            return f"{self.name} is {value:g}, negative; leave a missing value empty"
        if value > 1 + ROUNDING and self.is_share:
            return f"{self.name} is {value}, above 1; is it percent? Divide it by 100"
        if value == 0 and self.is_running_time:
            return f"{self.name} is 0, which no run takes; leave a missing value empty"
        return ""
