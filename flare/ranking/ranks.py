"""Ranks teams by FLARE's rule: rank on each case and metric, then average.

No FLARE edition has published a script for this. The rule is that of the challenge's
page: for each case, teams are ranked on each metric; a team's ranks are averaged over
cases and metrics, and divided by the number of teams. Ranks are added as whole numbers,
twice as large as they are, because the average of tied places may end in a half: so
equal sums are equal, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from flare.challenge.rules import Better, Challenge, RankedMetric
from flare.common.text import listing
from flare.ranking.teams import ResultTable
from flare.results.errors import RankingError
from flare.results.values import is_score

Values = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_REMEDY = "docs/challenge-files.md explains [[ranking]] and its metrics."

PRIZE_RULE = (
    "Teams with equal scores share a rank, and the ranks behind it are left out"
    " (1, 2, 2, 4): they share the prizes of the places that they take together."
)


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
    """That of the value which the challenge has for runs that failed, or of the worst
    that any team has on the case, if that is worse."""
    REFUSE = "refuse"


class Average(Enum):
    """What a team's ranks by one metric are taken together with."""

    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
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

    @property
    def weights(self) -> Integers:
        """The weights of the metrics, as whole numbers."""
        exact = [Fraction(str(rule.weight)) for rule in self.metrics]
        common = math.lcm(*(weight.denominator for weight in exact))
        return np.array([int(weight * common) for weight in exact], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The values of the teams that are compared."""

    teams: tuple[str, ...]
    cases: tuple[str, ...]
    values: Values
    """Of shape (teams, cases, metrics of the rules); NaN where a result is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a team stands."""

    team: str
    rank: int | None
    """None for a team that is out of competition."""
    score: Fraction
    """Weighted mean of its ranks, divided by the number of teams; smaller is better."""
    mean_ranks: Mapping[str, Fraction]
    """By metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The ranking of all teams."""

    standings: tuple[Standing, ...]
    """Best first, teams with equal scores by their names; those out of competition
    last."""
    case_ranks: Mapping[tuple[str, str, str], Fraction]
    """By team, case and metric."""

    @property
    def competing(self) -> tuple[str, ...]:
        """The teams that have a rank, best first."""
        return tuple(s.team for s in self.standings if s.rank is not None)

    @property
    def guests(self) -> tuple[Standing, ...]:
        """Teams out of competition, which have none."""
        return tuple(s for s in self.standings if s.rank is None)


def rules_of(
    challenge: Challenge,
    *,
    metrics: Sequence[str] | None = None,
    ties: Ties = Ties.MIN,
    missing: MissingRule | None = None,
    gate_dsc: float | None = None,
) -> Rules:
    """The rules of a challenge, or of some of its metrics.

    Parameters
    ----------
    challenge : Challenge
        Whose metrics are ranked.
    metrics : sequence of str, optional
        Those that are; all if not given.
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
        problem = "it has no [[ranking]]: which metrics are ranked is not known"
        raise RankingError(challenge.key, problem, _REMEDY)
    chosen = list(metrics or known)
    unknown = [metric for metric in chosen if metric not in known]
    if unknown or len(set(chosen)) < len(chosen):
        problem = f"it ranks {listing(known)}; --metrics has {listing(chosen)}"
        raise RankingError(challenge.key, problem, _REMEDY)
    rules = tuple(known[metric] for metric in chosen)
    without = [rule.metric for rule in rules if rule.failed is None]
    if missing is None:
        missing = MissingRule.LAST if without else MissingRule.VALUE
    if missing is MissingRule.VALUE and without:
        problem = f"it has no value of a failed run for {listing(without)}"
        raise RankingError(challenge.key, problem, _REMEDY)
    gate = challenge.efficiency_gate_dsc if gate_dsc is None else gate_dsc
    if gate and "dsc" not in chosen:
        problem = "efficiency depends on the DSC, which --metrics leaves out"
        raise RankingError(challenge.key, problem)
    return Rules(metrics=rules, ties=ties, missing=missing, gate_dsc=gate)


def board_of(table: ResultTable, rules: Rules, teams: Sequence[str]) -> Board:
    """The values of some teams, in their order."""
    values = [
        [
            [table.values.get((team, case, rule.metric), math.nan) for rule in metrics]
            for case in table.cases
        ]
        for metrics in [rules.metrics]
        for team in teams
    ]
    return Board(
        teams=tuple(teams),
        cases=table.cases,
        values=np.array(values, dtype=np.float64),
    )


# --- Ranks ------------------------------------------------------------------------


def comparable(values: Values, rules: Rules) -> Values:
    """Values of which smaller ones are better; NaN where a result does not count.

    Parameters
    ----------
    values : ndarray of float, shape (teams, cases, metrics)
        As measured.
    rules : Rules
        Their gate, rounding, tolerances and directions are applied, in this order.
    """
    found = values.copy()
    names = [rule.metric for rule in rules.metrics]
    if rules.gate_dsc:
        closed = ~(values[:, :, names.index("dsc")] >= rules.gate_dsc)
        for index, name in enumerate(names):
            if not is_score(name):
                found[:, :, index][closed] = math.nan
    for index, rule in enumerate(rules.metrics):
        column = found[:, :, index]
        if rules.digits is not None:
            column[...] = rounded(column, f".{rules.digits}g")
        elif rule.decimals is not None:
            column[...] = rounded(column, f".{rule.decimals}f")
        if rule.tolerance:
            np.maximum(column - rule.tolerance, 0, out=column)
        if rule.better is Better.HIGHER:
            np.negative(column, out=column)
    return found


def rounded(values: Values, form: str) -> Values:
    """Values as they would be printed."""
    texts = [float(format(value, form)) for value in values.ravel()]
    return np.array(texts, dtype=np.float64).reshape(values.shape)


def doubled_ranks(board: Board, rules: Rules) -> Integers:
    """Twice the rank of each team, on each case, by each metric.

    Returns
    -------
    ndarray of int, shape (teams, cases, metrics)
        A team's ranks depend on the other teams, but not on other cases.
    """
    values = comparable(board.values, rules)
    if rules.missing is MissingRule.VALUE:
        values = _with_failed(values, rules)
    ranks = np.empty(values.shape, dtype=np.int64)
    for team, own in enumerate(values):
        better = (values < own).sum(axis=0)
        equal = (values == own).sum(axis=0)
        ranks[team] = _doubled_place(better, equal, rules.ties)
    absent = np.isnan(values)
    behind: Integers = np.full(values.shape[1:], 2 * len(board.teams), dtype=np.int64)
    if rules.missing is MissingRule.WORST_PLUS_ONE:
        highest = np.where(absent, 0, ranks).max(axis=0)
        count = absent.sum(axis=0)
        behind = highest + _doubled_place(np.zeros_like(count), count, rules.ties)
    return np.where(absent, behind, ranks)


def _with_failed(values: Values, rules: Rules) -> Values:
    """Values in which a missing one is that of a failed run, or the worst there is."""
    worst = np.fmax.reduce(values, axis=0)
    return np.where(np.isnan(values), np.fmax(worst, failed_values(rules)), values)


def failed_values(rules: Rules) -> Values:
    """What a failed run counts as by each metric; smaller is better, NaN if unknown."""
    return np.array(
        [
            math.nan
            if rule.failed is None
            else (-rule.failed if rule.better is Better.HIGHER else rule.failed)
            for rule in rules.metrics
        ]
    )


def _doubled_place(better: Integers, equal: Integers, ties: Ties) -> Integers:
    """Twice the rank behind `better` teams, of `equal` ones that share it."""
    if ties is Ties.MIN:
        return 2 * better + 2
    if ties is Ties.MAX:
        return 2 * (better + equal)
    return 2 * better + 1 + equal


def rank_sums(ranks: Integers, rules: Rules) -> Integers:
    """What teams are ordered by: smaller is better, equal is tied.

    Parameters
    ----------
    ranks : ndarray of int, shape (teams, cases, metrics)
        As from `doubled_ranks`.

    Returns
    -------
    ndarray of int, shape (teams,)
        Weighted sums over the metrics of each metric's sum of ranks over the cases, or
        of its median; only sums of the same teams and cases can be compared.
    """
    if rules.average is Average.MEAN:
        by_metric = ranks.sum(axis=1)
    else:
        ordered = np.sort(ranks, axis=1)
        count = ordered.shape[1]
        by_metric = ordered[:, (count - 1) // 2] + ordered[:, count // 2]
    sums: Integers = by_metric @ rules.weights
    return sums


def places(sums: Integers) -> tuple[int, ...]:
    """Ranks by sums; teams with equal sums share the best of their places.

    Examples
    --------
    >>> places(np.array([7, 5, 7, 9]))
    (2, 1, 2, 4)
    """
    return tuple(int(1 + (sums < own).sum()) for own in sums)


def case_sums(ranks: Integers, rules: Rules) -> Integers:
    """Weighted sums of each team's ranks on each case, of shape (teams, cases)."""
    sums: Integers = ranks @ rules.weights
    return sums


# --- The ranking ------------------------------------------------------------------


def rank_teams(
    table: ResultTable, rules: Rules, guests: frozenset[str] = frozenset()
) -> Standings:
    """Rank all teams.

    Parameters
    ----------
    table : ResultTable
        Their results.
    rules : Rules
        How they are ranked; ranks are averaged by their mean.
    guests : frozenset of str
        Teams out of competition. A guest gets the rank that it would have if it alone
        joined the others; theirs, and their number, do not change.

    Raises
    ------
    RankingError
        If results are missing, and the rules refuse that.
    """
    if rules.missing is MissingRule.REFUSE and table.missing:
        names = listing(f"{m.team} {m.case} {m.metric}" for m in table.missing)
        problem = f"{len(table.missing)} are missing: {names}"
        file = "The results"
        raise RankingError(file, problem)
    competing = [team for team in table.teams if team not in guests]
    found = doubled_ranks(board_of(table, rules, competing), rules)
    ranks = dict(zip(competing, found, strict=True))
    for guest in sorted(guests):
        joined = board_of(table, rules, [*competing, guest])
        ranks[guest] = doubled_ranks(joined, rules)[-1]
    sums = {team: int(own.sum(axis=0) @ rules.weights) for team, own in ranks.items()}
    count = 2 * len(table.cases)
    scores = {
        team: Fraction(total, count * int(rules.weights.sum()) * len(competing))
        for team, total in sums.items()
    }
    metrics = [rule.metric for rule in rules.metrics]
    standings = [
        Standing(
            team=team,
            rank=None
            if team in guests
            else 1 + sum(sums[other] < sums[team] for other in competing),
            score=scores[team],
            mean_ranks={
                metric: Fraction(int(total), count)
                for metric, total in zip(metrics, ranks[team].sum(axis=0), strict=True)
            },
        )
        for team in sorted(
            table.teams, key=lambda team: (team in guests, sums[team], team)
        )
    ]
    case_ranks = {
        (team, case, metric): Fraction(int(ranks[team][c, m]), 2)
        for team in table.teams
        for c, case in enumerate(table.cases)
        for m, metric in enumerate(metrics)
    }
    return Standings(standings=tuple(standings), case_ranks=case_ranks)
