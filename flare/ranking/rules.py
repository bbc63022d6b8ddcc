"""Says how teams are ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import listing
from flare.results.errors import RankingError

Integers = npt.NDArray[np.int64]


_REMEDY = "The documentation's page Challenge files explains [[ranking]]."


class Ties(Enum):
    """Which rank teams with equal values get."""

    MIN = "min"
    """The best of the places that they take together."""
    AVERAGE = "average"
    MAX = "max"


class MissingRule(Enum):
    """Which rank a team without a result gets."""

    LAST = "last"
    """The number of teams."""
    WORST_PLUS_ONE = "worst-plus-one"
    """The places behind the highest rank that is given, as challengeR does."""
    VALUE = "value"
    """That of the value which the challenge sets for failed runs, or of the worst
    that any team has on the case, if that is worse."""
    REFUSE = "refuse"


class Average(Enum):
    """How a team's ranks by one metric are combined."""

    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRules:
    """How teams are ranked."""

    metrics: tuple[RankedMetric, ...]
    ties: Ties = Ties.MIN
    missing: MissingRule = MissingRule.LAST
    average: Average = Average.MEAN
    gate_dsc: float = 0.0
    """Metrics of efficiency count as missing on cases with a DSC below this."""
    digits: int | None = None
    """Significant digits to which values are rounded, instead of the metrics' own
    decimals."""
    left_out: tuple[str, ...] = ()
    """Metrics of the challenge by which nobody is ranked, as no team was measured."""

    @property
    def weights(self) -> Integers:
        """The weights of the metrics, as whole numbers."""
        exact = [Fraction(str(rule.weight)) for rule in self.metrics]
        common = math.lcm(*(weight.denominator for weight in exact))
        return np.array([int(weight * common) for weight in exact], dtype=np.int64)


def rules_of(
    challenge: Challenge,
    *,
    metrics: Sequence[str] | None = None,
    left_out: Sequence[str] = (),
    ties: Ties = Ties.MIN,
    missing: MissingRule | None = None,
    gate_dsc: float | None = None,
) -> RankingRules:
    """The rules of a challenge, or of some of its metrics.

    Parameters
    ----------
    challenge : Challenge
        Whose metrics are ranked.
    metrics : sequence of str, optional
        Those that are; all if not given.
    left_out : sequence of str
        Of these, those that nobody has, as `flare.ranking.table.unmeasured` finds.
    ties : Ties
        The rank of equal values.
    missing : MissingRule, optional
        The rank of a missing result. If not given, it is that of the value which the
        challenge has for failed runs, else the number of teams.
    gate_dsc : float, optional
        Instead of the challenge's ``efficiency_gate_dsc``.

    Raises
    ------
    RankingError
        If the challenge has no ranking, or no such metric, or no such value.
    """
    known = {rule.metric: rule for rule in challenge.ranking}
    if not known:
        raise RankingError(
            challenge.key,
            "it has no [[ranking]]: which metrics are ranked is not known",
            _REMEDY,
        )
    chosen = list(metrics or (name for name in known if name not in left_out))
    unknown = [metric for metric in chosen if metric not in known]
    if unknown or len(set(chosen)) < len(chosen):
        raise RankingError(
            challenge.key,
            f"it ranks {listing(known)}; --metrics has {listing(chosen)}",
            _REMEDY,
        )
    rules = tuple(known[metric] for metric in chosen)
    without = [rule.metric for rule in rules if rule.failed is None]
    if missing is None:
        missing = MissingRule.LAST if without else MissingRule.VALUE
    if missing is MissingRule.VALUE and without:
        raise RankingError(
            challenge.key,
            f"it has no value of a failed run for {listing(without)}",
            _REMEDY,
        )
    gate = challenge.efficiency_gate_dsc if gate_dsc is None else gate_dsc
    if gate and "dsc" not in chosen:
        raise RankingError(
            challenge.key, "efficiency depends on the DSC, which --metrics leaves out"
        )
    return RankingRules(
        metrics=rules,
        ties=ties,
        missing=missing,
        gate_dsc=gate,
        left_out=tuple(left_out),
    )
