"""Ranks teams by each metric, on each case or by their means.

Ranks are whole numbers, twice as large as they are, because the average of tied places
may end in a half: so equal sums are equal, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Annotated

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import Better, metric_named
from flare.challenge.scheme import Ties
from flare.common.schema import Is
from flare.ranking.answers import AnswerColumn
from flare.ranking.rules import Average, MissingRule, RankingRules

Integers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

Tau = Annotated[float, Is(minimum=-1, maximum=1)]

ALL_CASES = "all cases"
"""Stands for the only group, where teams are not ranked in groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Board:
    """The values of the teams that are compared, and their ranks by some rules.

    A team's ranks on a case depend on the other teams, but not on other cases.
    """

    teams: tuple[str, ...]
    cases: tuple[str, ...]
    values: Values
    """As measured, of shape (teams, cases, metrics of the rules); NaN where a result is
    missing."""
    rules: RankingRules
    spreads: Values | None = None
    """How far repeated measurements of each value lay apart, NaN where that is not
    known; None of a board that was made of another one."""
    answers: Mapping[str, AnswerColumn] = field(default_factory=dict)
    """The metrics of answers, whose values stand in every case; none of a ranking that
    was written."""
    worst: Mapping[str, Values] = field(default_factory=dict)
    """By metric without a worst value of its own, such as a distance: what a missing
    value counts as on each case; NaN where nobody has told it."""
    groups: tuple[str, ...] = ()
    """The group of each case, if teams are ranked in groups."""
    ties: Board | None = None
    """The columns that order the teams which the ranking leaves equal, if any do."""
    is_left_out: Flags
    """Flags of the values that a rule of the challenge leaves out: where teams are
    ranked on a case, all or none."""

    @property
    def units(self) -> tuple[str, ...]:
        """The cases that teams are ranked on; of means, the groups, or all cases."""
        if not self.rules.scheme.is_of_means:
            return self.cases
        return tuple(sorted(set(self.groups))) or (ALL_CASES,)

    @cached_property
    def members(self) -> list[Integers]:
        """The numbers of the cases of each group, or of all, if there are no groups."""
        groups = np.array(self.groups or [ALL_CASES] * len(self.cases), dtype=object)
        return [np.flatnonzero(groups == name) for name in sorted(set(groups))]

    def means(self, counts: Integers) -> Values:
        """Means of cases that count as often as in each draw, of shape (draws, cases).

        They have the shape (teams, draws, groups, metrics). A missing result counts as
        in the tables of means; where nobody has told as what, the team has no mean, and
        that in every draw, as its rank should not be better without a case. Nor has it
        one of a draw in which all of its values are left out.
        """
        values = np.where(np.isnan(self.values), self.counted, self.values)
        values, means = np.where(self.is_left_out, 0, values), []
        for cases in self.members:
            is_in = (~self.is_left_out[:, cases]).astype(float)
            totals = np.tensordot(counts[:, cases], is_in, axes=(1, 1))
            totals[totals == 0] = math.nan
            sums = np.tensordot(counts[:, cases], values[:, cases], axes=(1, 1))
            means.append((sums / totals).swapaxes(0, 1))
        # Sums of the same values in another order differ in their last bits.
        return rounded(np.stack(means, axis=2), ".12g")

    @cached_property
    def ranked(self) -> Values:
        """The comparable values that are ranked, of shape (teams, units, metrics)."""
        if not self.rules.scheme.is_of_means:
            return self.comparable
        return comparable(self._whole_means, self.rules)

    @property
    def _whole_means(self) -> Values:
        """The means of all cases, of shape (teams, groups, metrics)."""
        return self.means(np.ones((1, len(self.cases)), dtype=np.int64))[:, 0]

    @cached_property
    def comparable(self) -> Values:
        """The values as `comparable` makes them."""
        return comparable(self.values, self.rules)

    @cached_property
    def counted(self) -> Values:
        """The measured value that a missing result counts as; NaN where none is known.

        It has the shape (cases, metrics of the rules).
        """
        counted = np.empty((len(self.cases), len(self.rules.metrics)))
        for number, rule in enumerate(self.rules.metrics):
            counted[:, number] = missing_values(rule.metric, rule.failed, self.worst)
        counted[self.is_left_out.all(axis=0)] = math.nan
        return counted

    @cached_property
    def filled(self) -> Values:
        """The comparable values, each missing one replaced by what it counts as.

        Where that tells nothing, the worst of any team on any case takes its place; and
        where the value of a failed run is better than that, too: a missing result must
        never be an advantage. What is left out stays NaN.
        """
        worst = np.fmax.reduce(self.comparable, axis=(0, 1))
        columns = []
        all_columns = zip(self.rules.metrics, self.counted.T, worst, strict=True)
        for rule, column, worst_value in all_columns:
            if rule.better is Better.HIGHER:
                column = -column
            is_least = np.isnan(column) | (rule.failed is not None)
            columns.append(np.where(is_least, np.fmax(column, worst_value), column))
        replacements = np.nan_to_num(np.stack(columns, axis=1))
        filled = np.where(np.isnan(self.comparable), replacements, self.comparable)
        filled[self.is_left_out] = math.nan
        return filled

    @cached_property
    def doubled_ranks(self) -> Integers:
        """Twice the rank of each team, on each case or of means, by each metric."""
        return self.ranks(self.ranked, self.rules)

    def ranks(self, values: Values, rules: RankingRules) -> Integers:
        """Twice the ranks by comparable values of this board; 0 where one is left out.

        A metric that is left out on a case ranks nobody there.
        """
        ranks = ranks_of(values, rules)
        if not rules.scheme.is_of_means:
            ranks[:, self.is_left_out.any(axis=0)] = 0
        return ranks

    @cached_property
    def case_sums(self) -> Integers:
        """Weighted sums of each team's ranks on each case, of shape (teams, cases)."""
        sums: Integers = self.doubled_ranks @ self.rules.weights
        return sums

    @cached_property
    def final_ranks(self) -> tuple[int, ...]:
        """The rank of each team."""
        return self.ranks_by(rank_sums(self.doubled_ranks, self.rules))

    def ranks_by(self, sums: Integers, without: Sequence[int] = ()) -> tuple[int, ...]:
        """Ranks by sums of all teams, or without some, the equal ones in order."""
        if self.ties is None:
            return ranks_by_sums(sums)
        values = comparable(self.ties._whole_means, self.ties.rules).mean(axis=1)
        return ranks_by_sums(break_ties(sums, np.delete(values, without, axis=0)))

    @property
    def dsc(self) -> Values | None:
        """The DSC of all teams and cases; None without a DSC.

        It is 0 where it is missing, and NaN where it is left out.
        """
        if "dsc" not in self.rules.names:
            return None
        number = self.rules.names.index("dsc")
        column = np.nan_to_num(self.values[:, :, number])
        column[self.is_left_out[:, :, number]] = math.nan
        return np.asarray(column)

    def on(self, numbers: Sequence[int]) -> Board:
        """The board of the cases with these numbers alone."""
        return replace(
            self,
            cases=tuple(self.cases[number] for number in numbers),
            values=self.values[:, list(numbers)],
            spreads=None,
            worst={name: on_all[list(numbers)] for name, on_all in self.worst.items()},
            groups=tuple(self.groups[number] for number in numbers if self.groups),
            ties=self.ties.on(numbers) if self.ties else None,
            is_left_out=self.is_left_out[:, list(numbers)],
        )

    def by(self, is_chosen: Sequence[bool]) -> Board:
        """The board of some metrics, without a gate, which is one of label maps."""
        metrics = tuple(compress(self.rules.metrics, is_chosen))
        places = np.s_[:, :, np.array(is_chosen, dtype=bool)]
        return replace(
            self,
            values=self.values[places],
            is_left_out=self.is_left_out[places],
            rules=replace(self.rules, metrics=metrics, gate_dsc=0.0),
            spreads=None,
        )


def missing_values(
    column: str, failed: float | None, worst: Mapping[str, Values]
) -> Values:
    """The value of a missing result, or that on each case; NaN where nobody told it.

    Means of teams, tests, and schemes that rank by values all ask here. `column` is a
    metric, also one of an organ, or a measured column. The challenge's value of a
    failed run goes before all else. `worst` has what a missing value of other metrics
    counts as on each case, such as of distances, which depends on the grid.

    Examples
    --------
    >>> diagonals = {"hd95": np.array([44.7, 50.1])}
    >>> missing_values("dsc_liver", None, diagonals).tolist()
    0.0
    >>> missing_values("hd95_liver", None, diagonals).tolist()
    [44.7, 50.1]
    >>> missing_values("runtime_s", 3600.0, diagonals).tolist()
    3600.0
    """
    metric = metric_named(column)
    value = metric.worst if failed is None else failed
    if value is None:
        return worst.get(metric.base, np.array(math.nan))
    return np.array(value)


def comparable(values: Values, rules: RankingRules) -> Values:
    """Values turned so that smaller is better; NaN where a result does not count.

    The gate, rounding, tolerances and directions of the rules are applied, in this
    order, to values of shape (teams, cases or more, metrics).
    """
    smaller_is_better = values.copy()
    if rules.gate_dsc:
        _close_gate(smaller_is_better, rules)
    for index, rule in enumerate(rules.metrics):
        column = smaller_is_better[..., index]
        if rules.digits is not None:
            column[...] = rounded(column, f".{rules.digits}g")
        elif rule.decimals is not None:
            column[...] = rounded(column, f".{rule.decimals}f")
        elif rule.record.precision:
            column[...] = rounded(column, rule.record.precision)
        if rule.tolerance:
            np.maximum(column - rule.tolerance, 0, out=column)
        if rule.better is Better.HIGHER:
            # Not np.negative: NumPy 2.1.0 to 2.4.6 err in place on eight columns.
            column *= -1
    return smaller_is_better


def _close_gate(values: Values, rules: RankingRules) -> None:
    """Make efficiency missing, in place, where the DSC is below the gate or missing."""
    is_closed = ~(values[:, :, rules.names.index("dsc")] >= rules.gate_dsc)
    for index, rule in enumerate(rules.metrics):
        if not rule.record.is_scored:
            values[:, :, index][is_closed] = math.nan


def rounded(values: Values, form: str) -> Values:
    """Values as they would be printed."""
    numbers = [float(format(value, form)) for value in values.ravel()]
    return np.array(numbers, dtype=np.float64).reshape(values.shape)


def ranks_of(values: Values, rules: RankingRules) -> Integers:
    """Twice the ranks by values that `comparable` has made, which stay as they are.

    Values of some teams will do: how a value compares does not depend on other teams.
    """
    import pandas as pd  # not at the top: flare score has no need of it

    if rules.missing is MissingRule.VALUE:
        worst = np.fmax(np.fmax.reduce(values, axis=0), rules.failed)
        values = np.where(np.isnan(values), worst, values)
    rows = pd.DataFrame(values.reshape(len(values), -1))
    ranks = 2 * rows.rank(method=rules.ties.value).to_numpy().reshape(values.shape)
    is_missing = np.isnan(values)
    last_ranks = np.full(values.shape[1:], 2 * len(values))
    if rules.missing is MissingRule.WORST_PLUS_ONE:
        count = is_missing.sum(axis=0)
        places = {Ties.MIN: 2, Ties.AVERAGE: 1 + count, Ties.MAX: 2 * count}
        last_ranks = np.where(is_missing, 0, ranks).max(axis=0) + places[rules.ties]
    return np.where(is_missing, last_ranks, ranks).astype(np.int64)


def rank_sums(ranks: Integers, rules: RankingRules) -> Integers:
    """The sums by which teams are ordered: smaller is better, equal is tied.

    Doubled ranks of shape (teams, cases, metrics) are summed over the cases, or their
    medians are taken, as the rules say; and then summed by the weights of the metrics.
    Only sums of the same teams and cases can be compared.
    """
    if rules.average is Average.MEAN:
        by_metric = ranks.sum(axis=1)
    else:
        ordered = np.sort(ranks, axis=1)
        # The ranks 0, of metrics that are left out on a case, come first.
        first = (ordered == 0).sum(axis=1, keepdims=True)
        count = ordered.shape[1] - first
        low = np.take_along_axis(ordered, first + np.maximum(count - 1, 0) // 2, axis=1)
        high = np.take_along_axis(ordered, first + count // 2, axis=1)
        by_metric = (low + high)[:, 0]
    sums: Integers = by_metric @ rules.weights
    return sums


def ranks_by_sums(sums: Integers) -> tuple[int, ...]:
    """Ranks by sums; teams with equal sums share the best of their places.

    Examples
    --------
    >>> ranks_by_sums(np.array([7, 5, 7, 9]))
    (2, 1, 2, 4)
    """
    return tuple((np.searchsorted(np.sort(sums), sums) + 1).tolist())


def break_ties(sums: Integers, values: Values) -> Integers:
    """Whole numbers in the order of sums, and where these are equal, of rows of values.

    Smaller is better; a missing value is the worst.

    Examples
    --------
    >>> break_ties(np.array([7, 5, 7]), np.array([[-0.9], [-0.5], [-0.8]])).tolist()
    [1, 0, 2]
    """
    rows = np.column_stack([sums, np.nan_to_num(values, nan=math.inf)])
    _, places = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(places).ravel()


def kendall_tau(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Kendall's tau-b of two rankings; None if one of them is a single tie."""
    order = _order_of_pairs(first)
    other_order = _order_of_pairs(second)
    ordered = int(np.count_nonzero(order)) * int(np.count_nonzero(other_order))
    if not ordered:
        return None
    agreeing = int((order * other_order).sum())
    # Other ways to calculate it differ in the last bits.
    return round(agreeing / math.sqrt(ordered), 12)


def _order_of_pairs(ranks: Sequence[int]) -> Integers:
    """The order of each pair of teams: 1 or -1, or 0 if they tie."""
    column = np.asarray(ranks)[:, np.newaxis]
    return np.asarray(np.sign(column - column.T))
