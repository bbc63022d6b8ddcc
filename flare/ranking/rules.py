"""Says how teams are ranked: by the rules of a challenge, and what organisers chose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import Better
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import listing
from flare.ranking.options import MissingRule, RankingOptions, Ties
from flare.results.errors import RankingError

Integers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

_REMEDY = "The documentation's page Challenge files explains [[ranking]]."


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
    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(rule.metric for rule in self.metrics)

    @property
    def weights(self) -> Integers:
        """The weights of the metrics, as whole numbers."""
        exact = [Fraction(str(rule.weight)) for rule in self.metrics]
        common = math.lcm(*(weight.denominator for weight in exact))
        return np.array([int(weight * common) for weight in exact], dtype=np.int64)

    @property
    def unrounded(self) -> RankingRules:
        """The rules without any rounding."""
        metrics = tuple(replace(rule, decimals=None) for rule in self.metrics)
        return replace(self, metrics=metrics, digits=None)

    @property
    def missing_rules(self) -> tuple[MissingRule, ...]:
        """The rules for missing results that can be applied."""
        found = [MissingRule.LAST, MissingRule.WORST_PLUS_ONE]
        if all(rule.failed is not None for rule in self.metrics):
            found.append(MissingRule.VALUE)
        return tuple(found)

    @property
    def failed(self) -> Values:
        """The value of a failed run by each metric; smaller is better, or NaN."""
        return np.array(
            [
                math.nan
                if rule.failed is None
                else (-rule.failed if rule.better is Better.HIGHER else rule.failed)
                for rule in self.metrics
            ]
        )


def ranked_metrics(
    challenge: Challenge, chosen: Sequence[str] | None = None
) -> tuple[RankedMetric, ...]:
    """The metrics that a challenge ranks, or those of them that were chosen.

    Raises
    ------
    RankingError
        If the challenge has no ranking, or no such metric.
    """
    known = {rule.metric: rule for rule in challenge.ranking}
    if not known:
        raise RankingError(
            challenge.key,
            "it has no [[ranking]]: which metrics are ranked is not known",
            _REMEDY,
        )
    chosen = chosen or list(known)
    if not known.keys() >= set(chosen) or len(set(chosen)) < len(chosen):
        raise RankingError(
            challenge.key,
            f"it ranks {listing(known)}; --metrics has {listing(chosen)}",
            _REMEDY,
        )
    return tuple(known[metric] for metric in chosen)


def rules_of(
    challenge: Challenge,
    options: RankingOptions | None = None,
    *,
    left_out: Sequence[str] = (),
) -> RankingRules:
    """The rules of a challenge, or of some of its metrics.

    Parameters
    ----------
    challenge : Challenge
        Whose metrics are ranked.
    options : RankingOptions, optional
        What was chosen instead of the challenge's rules. Where it is not, a missing
        result counts as the value that the challenge has for failed runs, or else gets
        the number of teams as its rank.
    left_out : sequence of str
        Metrics of the challenge that nobody has.

    Raises
    ------
    RankingError
        If the challenge has no ranking, or no such metric, or no such value.
    """
    options = options or RankingOptions()
    metrics = tuple(
        rule
        for rule in ranked_metrics(challenge, options.metrics)
        if rule.metric not in left_out
    )
    without = [rule.metric for rule in metrics if rule.failed is None]
    missing = options.missing
    if missing is None:
        missing = MissingRule.LAST if without else MissingRule.VALUE
    if missing is MissingRule.VALUE and without:
        raise RankingError(
            challenge.key,
            f"it has no value of a failed run for {listing(without)}",
            _REMEDY,
        )
    gate = challenge.efficiency_gate_dsc if options.gate is None else options.gate
    if gate and all(rule.metric != "dsc" for rule in metrics):
        raise RankingError(
            challenge.key, "efficiency depends on the DSC, which --metrics leaves out"
        )
    return RankingRules(
        metrics=metrics,
        ties=options.ties,
        missing=missing,
        gate_dsc=gate,
        left_out=tuple(left_out),
    )
