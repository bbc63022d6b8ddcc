"""Ranks teams on each case by each metric.

Ranks are whole numbers, twice as large as they are, because the average of tied places
may end in a half: so equal sums are equal, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import Better, metric_of
from flare.ranking.rules import Average, Integers, MissingRule, RankingRules, Ties
from flare.ranking.table import Board, Values


def comparable(values: Values, rules: RankingRules) -> Values:
    """Values of which smaller ones are better; NaN where a result does not count.

    Parameters
    ----------
    values : ndarray of float, shape (teams, cases, metrics)
        As measured.
    rules : RankingRules
        Their gate, rounding, tolerances and directions are applied, in this order.
    """
    found = values.copy()
    names = [rule.metric for rule in rules.metrics]
    if rules.gate_dsc:
        closed = ~(values[:, :, names.index("dsc")] >= rules.gate_dsc)
        for index, name in enumerate(names):
            if metric_of(name) is None:
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


def doubled_ranks(board: Board, rules: RankingRules) -> Integers:
    """Twice the rank of each team, on each case, by each metric.

    Returns
    -------
    ndarray of int, shape (teams, cases, metrics)
        A team's ranks depend on the other teams, but not on other cases.
    """
    return ranks_of(comparable(board.values, rules), rules)


def ranks_of(values: Values, rules: RankingRules) -> Integers:
    """The same of values that `comparable` has made, which the ranks leave as they are.

    Those of fewer teams, too: how a value compares does not depend on the other teams.
    """
    if rules.missing is MissingRule.VALUE:
        values = _with_failed(values, rules)
    return _ranks(*_counts(values), np.isnan(values), rules)


def ranks_without_each(values: Values, rules: RankingRules) -> Iterator[Integers]:
    """The ranks without the first team, then without the second one, and so on."""
    numbers = np.arange(len(values))
    absent = np.isnan(values)
    if rules.missing is MissingRule.VALUE and absent.any():
        # What a missing result counts as may be a value of the team that is left out.
        for number in range(len(values)):
            yield ranks_of(values[numbers != number], rules)
        return
    better, equal = _counts(values)
    for number, own in enumerate(values):
        rest = numbers != number
        fewer = (better - (own < values))[rest], (equal - (own == values))[rest]
        yield _ranks(*fewer, absent[rest], rules)


def _ranks(
    better: Integers,
    equal: Integers,
    absent: npt.NDArray[np.bool_],
    rules: RankingRules,
) -> Integers:
    """The ranks that follow from `_counts`, and from where results are absent."""
    ranks = _doubled_place(better, equal, rules.ties)
    behind: Integers = np.full(ranks.shape[1:], 2 * len(ranks), dtype=np.int64)
    if rules.missing is MissingRule.WORST_PLUS_ONE:
        highest = np.where(absent, 0, ranks).max(axis=0)
        count = absent.sum(axis=0)
        behind = highest + _doubled_place(np.zeros_like(count), count, rules.ties)
    return np.where(absent, behind, ranks)


def _counts(values: Values) -> tuple[Integers, Integers]:
    """How many teams have a smaller value, and how many an equal one, itself included.

    The teams are sorted once on each case, by each metric: comparing each of them with
    all others would take as many times as long as there are teams. What is counted for
    a NaN means nothing.
    """
    teams = len(values)
    rows = values.reshape(teams, -1).T
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    is_first = np.ones(rows.shape, dtype=bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(is_first)
    lengths = np.diff(starts, append=rows.size)
    better, equal = np.empty((2, *rows.shape), dtype=np.int64)
    for counts, by_run in ((better, starts % teams), (equal, lengths)):
        by_place = np.repeat(by_run, lengths).reshape(rows.shape)
        np.put_along_axis(counts, order, by_place, axis=1)
    return better.T.reshape(values.shape), equal.T.reshape(values.shape)


def _with_failed(values: Values, rules: RankingRules) -> Values:
    """Values, each missing one replaced by a failed run's, or the worst there is."""
    worst = np.fmax.reduce(values, axis=0)
    return np.where(np.isnan(values), np.fmax(worst, failed_values(rules)), values)


def failed_values(rules: RankingRules) -> Values:
    """The value of a failed run by each metric; smaller is better, NaN if unknown."""
    return np.array(
        [
            math.nan
            if rule.failed is None
            else (-rule.failed if rule.better is Better.HIGHER else rule.failed)
            for rule in rules.metrics
        ]
    )


def _doubled_place(better: Integers, equal: Integers, ties: Ties) -> Integers:
    """Twice the rank that `equal` teams share behind `better` ones."""
    if ties is Ties.MIN:
        return 2 * better + 2
    if ties is Ties.MAX:
        return 2 * (better + equal)
    return 2 * better + 1 + equal


def rank_sums(ranks: Integers, rules: RankingRules) -> Integers:
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


def ranks_by_sums(sums: Integers) -> tuple[int, ...]:
    """Ranks by sums; teams with equal sums share the best of their places.

    Examples
    --------
    >>> ranks_by_sums(np.array([7, 5, 7, 9]))
    (2, 1, 2, 4)
    """
    return tuple((np.searchsorted(np.sort(sums), sums) + 1).tolist())


def case_sums(ranks: Integers, rules: RankingRules) -> Integers:
    """Weighted sums of each team's ranks on each case, of shape (teams, cases)."""
    sums: Integers = ranks @ rules.weights
    return sums
