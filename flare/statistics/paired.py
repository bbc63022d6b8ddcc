"""Tests whether one side of paired values is better than the other.

The signed-rank test of the differences is as R's ``wilcox.test(paired = TRUE, exact =
FALSE)`` computes it: cases without a difference are left out, ties of differences get
their average rank, and the normal approximation is used with its corrections for ties
and continuity.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from flare.statistics import ALPHA

Values = npt.NDArray[np.float64]

DECIMALS = 12
"""The decimals that a difference of values below 10 is rounded to."""


def compare_by_signed_ranks(values: Values) -> tuple[Values, Values, Values]:
    """The one-sided test of each row with each other, paired by column.

    Values have the shape (rows, cases), and smaller ones are better. The p-values, the
    effects and the numbers of equal values are those of the first row as the better
    one, with the second; each has the shape (rows, rows). One row is compared with all
    after it at a time: the differences of all pairs at once would need gigabytes.
    """
    p, effects, zeros = np.zeros((3, len(values), len(values)))
    for number, row in enumerate(values[:-1]):
        rivals = slice(number + 1, None)
        differences = steps(row, values[rivals])
        zeros[number, rivals] = zeros[rivals, number] = (differences == 0).sum(axis=1)
        both_p, both_effects = signed_ranks(differences)
        p[number, rivals], p[rivals, number] = both_p
        effects[number, rivals], effects[rivals, number] = both_effects
    return p, effects, zeros


def compare_by_draws(values: Values) -> tuple[Values, Values, Values]:
    """The share of draws in which each row is not better than each other.

    Values and results are those of `compare_by_signed_ranks`, with draws for cases.
    """
    p, effects, zeros = np.zeros((3, len(values), len(values)))
    count = max(values.shape[1], 1)
    for number, row in enumerate(values):
        better = (row < values).sum(axis=1)
        worse = (row > values).sum(axis=1)
        p[number] = (count - better) / count
        effects[number] = (better - worse) / count
        zeros[number] = values.shape[1] - better - worse
    return p, effects, zeros


def steps(before: Values, after: Values) -> Values:
    """How far values lie above others, so that equal steps are equal.

    In binary fractions 0.9 - 0.8 and 0.8 - 0.7 differ by 1e-16, and would not share a
    rank. So differences are rounded to a trillionth, or, in a row with values of 10 and
    more, to 13 digits of the largest: no value is that precise. Values have the shape
    (tests, cases), or one side (cases,), and none is NaN.

    Examples
    --------
    >>> steps(np.array([[0.8, 0.7]]), np.array([[0.9, 0.8]])).tolist()
    [[0.1, 0.1]]
    """
    sizes = np.maximum(np.abs(before), np.abs(after))
    largest = sizes.max(axis=1, keepdims=True, initial=1)  # of no case, too
    digits = np.floor(np.log10(largest))
    scales = 10 ** (DECIMALS - digits)
    rounded: Values = np.rint((after - before) * scales) / scales + 0.0
    return rounded


def signed_ranks(differences: Values) -> tuple[Values, Values]:
    """The signed-rank test of each row [1]_, for either sign of an advantage.

    The differences, of shape (tests, cases), are made by `steps`, and 0 on cases that
    are left out. The p-values and the effects, matched-pairs rank-biserial correlations
    [2]_, have the shape (2, tests): first as if positive differences were an advantage,
    then as if negative ones were.

    References
    ----------
    .. [1] Wilcoxon, Biometrics Bulletin 1(6), 1945. doi:10.2307/3001968
    .. [2] Kerby, Comprehensive Psychology 3, 2014. doi:10.2466/11.IT.3.1
    """
    # Not at the top: it takes longer to load than all else, and only tests need it.
    from scipy.special import ndtr

    # Equal sizes share their average rank; a zero has none, and is NaN.
    sizes = np.where(differences, np.abs(differences), math.nan)
    first, last = _first_and_last_ranks(sizes)
    above = np.where(differences > 0, first + last, 0).sum(axis=1) / 2
    # Of t equal ones, each adds t^2 - 1: together t^3 - t.
    ties = np.nansum((last - first + 1) ** 2 - 1, axis=1)
    count = np.count_nonzero(differences, axis=1)
    sums = np.stack([above, count * (count + 1) / 2 - above])
    is_tested = count > 0
    count = np.maximum(count, 1)
    deviation = np.sqrt((count * (count + 1) * (2 * count + 1) - ties / 2) / 24)
    z = (sums - count * (count + 1) / 4) / deviation - 0.5 / deviation
    effect = 4 * sums / (count * (count + 1)) - 1
    return np.where(is_tested, ndtr(-z), 1.0), np.where(is_tested, effect, 0.0)


def _first_and_last_ranks(sizes: Values) -> tuple[Values, Values]:
    """The first and the last rank, from 1, that equal sizes of a row share; NaN of NaN.

    By sorting once: to rank twice took a tenth of the work of a ranking.
    """
    order = sizes.argsort(axis=1)  # NaN comes last
    ordered = np.take_along_axis(sizes, order, axis=1)
    is_first = np.ones(sizes.shape, dtype=bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_last = np.ones(sizes.shape, dtype=bool)
    is_last[:, :-1] = is_first[:, 1:]
    places = np.arange(1.0, sizes.shape[1] + 1)
    firsts = np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    ends = np.where(is_last, places, np.inf)[:, ::-1]
    lasts = np.minimum.accumulate(ends, axis=1)[:, ::-1]
    ranks = []
    for ordered_ranks in (firsts, lasts):
        ordered_ranks = np.where(np.isnan(ordered), math.nan, ordered_ranks)
        row_ranks = np.empty(sizes.shape)
        np.put_along_axis(row_ranks, order, ordered_ranks, axis=1)
        ranks.append(row_ranks)
    return ranks[0], ranks[1]


def fewest_cases_to_test(tests: int) -> int:
    """The fewest cases on which a test of a family can be significant, after Holm.

    On fewer cases no test is, even if all of them change in one way, by steps of
    different sizes. A two-sided test counts as two tests.

    Examples
    --------
    One two-sided test; and the tests of all ordered pairs of 11 teams:

    >>> fewest_cases_to_test(2), fewest_cases_to_test(110)
    (6, 15)
    """
    for cases in itertools.count(1):
        p, _ = signed_ranks(np.arange(1.0, cases + 1)[np.newaxis])
        if p[0, 0] * tests <= ALPHA:
            return cases
    raise AssertionError("p falls with each case")


def two_sided(differences: Values) -> tuple[Values, Values]:
    """The two-sided test of each row: p is twice the smaller one of both signs.

    Examples
    --------
    >>> p, effect = two_sided(np.array([[1.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    >>> p.round(4).tolist(), effect.tolist()
    ([0.1814, 1.0], [1.0, 0.0])
    """
    p, effect = signed_ranks(differences)
    return np.minimum(2 * p.min(axis=0), 1), effect[0]


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided p of McNemar's exact test [1]_.

    Twice the smaller tail of a binomial distribution with as many draws as cases on
    which only one of both is right, each of which is as likely; at most 1.

    References
    ----------
    .. [1] McNemar, Psychometrika 12(2), 1947. doi:10.1007/BF02295996

    Examples
    --------
    >>> mcnemar(5, 0), mcnemar(2, 2)
    (0.0625, 1.0)
    """
    draws = gained + lost
    tail = sum(math.comb(draws, k) for k in range(min(gained, lost) + 1))
    return min(1.0, float(2 * tail / 2**draws))


def holm(p: Values) -> Values:
    """P-values adjusted by Holm's method [1]_.

    References
    ----------
    .. [1] Holm, Scandinavian Journal of Statistics 6(2), 1979, 65-70.

    Examples
    --------
    >>> holm(np.array([0.02, 0.01, 0.5])).tolist()
    [0.04, 0.03, 0.5]
    """
    order = np.argsort(p, kind="stable")
    stepped = p[order] * (len(p) - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted
