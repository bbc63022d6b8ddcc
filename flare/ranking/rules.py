"""Says how teams are ranked: what organisers choose, by the rules of a challenge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from fractions import Fraction
from pathlib import Path

from flare.challenge.metrics import Better, Metric
from flare.challenge.rules import Challenge, RankedMetric
from flare.challenge.scheme import PLAIN_SCHEME, SchemeRules, Ties
from flare.common.options import argument, challenge_option, option, share, whole
from flare.common.text import listing, safe
from flare.results.errors import RankingError
from flare.statistics import DRAWS, SEED


class MissingRule(StrEnum):
    """The rank that a team without a result gets."""

    LAST = "last"
    """The number of teams."""
    WORST_PLUS_ONE = "worst-plus-one"
    """The places behind the highest rank that is given, as challengeR does."""
    VALUE = "value"
    """The rank of the value that the challenge sets for failed runs, or of the worst
    value that any team has on the case, if that is worse."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """How teams are ranked; equal options give equal rankings."""

    metrics: tuple[str, ...] | None = option(
        "Rank by these metrics of the challenge (default: all; where no team was"
        " measured, all but running time and memory).",
        default=None,
        parse=lambda text: tuple(text.split(",")),
        metavar="dsc,nsd,...",
    )
    ties: Ties | None = option(
        "Give teams with equal values this one of their ranks (default: the"
        " challenge's, which is min where its file tells none).",
        default=None,
    )
    missing: MissingRule | None = option(
        "Give a team without a result this rank: last, the number of teams;"
        " worst-plus-one, the one behind the highest rank that is given on the case;"
        " value, that of a failed run; or refuse to rank (default: value where the"
        " challenge has one, else last).",
        default=None,
    )
    gate: float | None = option(
        "Let metrics of efficiency count only on cases with at least this DSC"
        " (default: the challenge's; flare21 has none).",
        default=None,
        parse=share,
        metavar="DSC",
    )
    bootstrap: int = option(
        "Draw cases anew so often to tell how sure a rank is; 0: not at all"
        " (default: 1000).",
        default=DRAWS,
        parse=whole,
        metavar="N",
    )
    seed: int = option(
        "Start the random generator of these draws here (default: always the same).",
        default=SEED,
        parse=whole,
        metavar="N",
    )
    means: bool = option(
        "Also show the means of all teams where everybody sees the ranking: in"
        " ranking.md, and on pages for participants. From the means of several"
        " submissions, volumes of the references can be worked out.",
        default=False,
    )
    decisions: Path | None = option(
        "Apply this file's withdrawn cases, disqualified teams, baselines and names,"
        " each of which has its reason.",
        default=None,
        metavar="FILE.toml",
    )
    challenge: str = challenge_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRequest:
    """What is ranked, and where the ranking is written."""

    results: Path = argument(
        "A folder with a folder for each team, or a table with the columns"
        " team,case,metric,value.",
        metavar="RESULTS",
    )
    output: Path = option(
        "Write ranking.csv, case_ranks.csv, values.csv, means.csv, ranking.json,"
        " ranking.md, means.md, ranking.tex, means.tex, report.txt, methods.txt and"
        " sheets/TEAM.md into this folder.",
        metavar="DIR",
    )
    groups: Path | None = option(
        "Take the group of each case from this file, for a challenge whose [scheme]"
        " ranks in groups: it has a column case, and one for each kind of groups.",
        default=None,
        metavar="FILE.csv",
    )
    by_organ: bool = option(
        "Also print the mean of each team by each organ; a star is at the best one.",
        default=False,
    )
    options: RankingOptions = field(default_factory=RankingOptions)


_REMEDY = "The documentation's page Challenge files explains [[ranking]]."


class Average(Enum):
    """How a team's ranks by one metric are combined."""

    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRules:
    """How teams are ranked."""

    metrics: tuple[RankedMetric, ...]
    scheme: SchemeRules = PLAIN_SCHEME
    ties: Ties = Ties.MIN
    ties_by: tuple[RankedMetric, ...] = ()
    """Columns whose means order the teams that the ranking leaves equal."""
    missing: MissingRule = MissingRule.LAST
    average: Average = Average.MEAN
    gate_dsc: float = 0.0
    """Metrics of efficiency count as missing on cases with a DSC below this."""
    digits: int | None = None
    """Significant digits to which values are rounded, instead of the metrics' own
    decimals."""
    worst_distance_mm: float | None = None
    """What a missing distance counts as where values are compared; None for what each
    case has."""
    left_out: tuple[str, ...] = ()
    """Metrics of the challenge by which nobody is ranked, as no team was measured."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(rule.metric for rule in self.metrics)

    @property
    def records(self) -> tuple[Metric, ...]:
        """The metrics that the names stand for, in their order."""
        return tuple(rule.record for rule in self.metrics)

    @property
    def of_all_cases(self) -> tuple[str, ...]:
        """The metrics that have one value of all cases together."""
        return tuple(r.name for r in self.records if not r.is_of_each_case)

    @property
    def scheme_text(self) -> str:
        """The scheme in words, with the ties that are broken by what teams have."""
        ties_by = tuple(rule.metric for rule in self.ties_by)
        return replace(self.scheme, ties_by=ties_by).text(len(self.metrics))

    @property
    def rank_word(self) -> str:
        """A team's ranks by a metric in words: their mean, if it has several by any."""
        return "mean rank" if self.has_cases or self.scheme.group else "rank"

    @property
    def has_cases(self) -> bool:
        """Whether teams are ranked on single cases by a metric."""
        is_of_means = self.scheme.is_of_means
        return not is_of_means and any(r.is_of_each_case for r in self.records)

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of the metrics, as whole numbers."""
        exact = [Fraction(str(rule.weight)) for rule in self.metrics]
        common = math.lcm(*(weight.denominator for weight in exact))
        return tuple(int(weight * common) for weight in exact)

    @property
    def unrounded(self) -> RankingRules:
        """The rules without any rounding."""
        metrics = tuple(replace(rule, decimals=None) for rule in self.metrics)
        return replace(self, metrics=metrics, digits=None)

    @property
    def missing_rules(self) -> tuple[MissingRule, ...]:
        """The rules for missing results that can be applied."""
        rules = [MissingRule.LAST, MissingRule.WORST_PLUS_ONE]
        if all(rule.failed is not None for rule in self.metrics):
            rules.append(MissingRule.VALUE)
        return tuple(rules)

    @property
    def failed(self) -> list[float]:
        """The value of a failed run by each metric, negative where more is better."""
        values = []
        for rule in self.metrics:
            value = math.nan if rule.failed is None else rule.failed
            values.append(-value if rule.better is Better.HIGHER else value)
        return values


def ranked_metrics(
    challenge: Challenge, chosen: Sequence[str] | None = None
) -> tuple[RankedMetric, ...]:
    """The metrics that a challenge ranks, or those of them that were chosen.

    A RankingError is raised if the challenge has no ranking, or no such metric; or if
    one is there twice.
    """
    if challenge.unfair_ranks:
        remedy = 'Change them, or rank means: kind = "means" in [scheme].'
        raise RankingError(challenge.key, challenge.unfair_ranks, remedy)
    if not challenge.ranking:
        raise RankingError(
            challenge.key,
            "it has no [[ranking]]: which metrics are ranked is not known",
            _REMEDY,
        )
    names = [rule.metric for rule in challenge.ranking]
    chosen = chosen or names
    problems = []
    for metric, times in Counter(chosen).items():
        if metric not in names:
            problems.append(f"it does not rank {safe(metric)}, which --metrics has")
        elif times > 1:
            problems.append(f"--metrics has {metric} {times} times")
    if problems:
        remedy = f"Choose from {listing(names)}, each at most once."
        raise RankingError(challenge.key, "; ".join(problems), remedy)
    rules = tuple(challenge.ranking[names.index(metric)] for metric in chosen)
    return replace(challenge, ranking=rules).ranked


def tie_columns(
    challenge: Challenge, left_out: Sequence[str] = ()
) -> tuple[RankedMetric, ...]:
    """The columns of a challenge that order the teams which its ranking leaves equal.

    One that is ranked as well keeps its rules, such as its value of a failed run.
    """
    columns = {}
    for name in challenge.scheme.ties_by:
        better = challenge.good_end(name) or Better.LOWER
        columns[name] = RankedMetric(metric=name, better=better)
    for rule in challenge.ranked:
        if rule.metric in columns:
            columns[rule.metric] = rule
    return tuple(rule for name, rule in columns.items() if name not in left_out)


def rules_of(
    challenge: Challenge,
    options: RankingOptions | None = None,
    *,
    left_out: Sequence[str] = (),
) -> RankingRules:
    """The rules of a challenge, changed by options, without metrics that nobody has.

    Where the options do not tell, a missing result counts as the value that the
    challenge has for failed runs, or else gets the number of teams as its rank. A
    RankingError is raised if the challenge has no ranking, or no such metric, or no
    such value.
    """
    options = options or RankingOptions()
    ranked = ranked_metrics(challenge, options.metrics)
    metrics = tuple(rule for rule in ranked if rule.metric not in left_out)
    missing = _missing_rule(challenge, metrics, options.missing)
    gate = challenge.efficiency_gate_dsc if options.gate is None else options.gate
    scheme = challenge.scheme
    if gate and scheme.is_of_means:
        problem = "--gate is of values of each case, and its [scheme] ranks means"
        raise RankingError(challenge.key, problem, "Rank without --gate.")
    if gate and all(rule.metric != "dsc" for rule in metrics):
        raise RankingError(
            challenge.key, "efficiency depends on the DSC, which --metrics leaves out"
        )
    return RankingRules(
        metrics=metrics,
        scheme=scheme,
        ties=options.ties or scheme.ties,
        ties_by=tie_columns(challenge, left_out),
        missing=missing,
        gate_dsc=gate,
        worst_distance_mm=challenge.worst_distance_mm,
        left_out=tuple(left_out),
    )


def _missing_rule(
    challenge: Challenge, metrics: Sequence[RankedMetric], chosen: MissingRule | None
) -> MissingRule:
    """The rule that was chosen, or else the value of failed runs where all have one."""
    without = [rule.metric for rule in metrics if rule.failed is None]
    if chosen is MissingRule.VALUE and without:
        raise RankingError(
            challenge.key,
            f"it has no value of a failed run for {listing(without)}",
            _REMEDY,
        )
    if chosen:
        return chosen
    return MissingRule.LAST if without else MissingRule.VALUE
