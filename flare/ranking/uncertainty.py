"""Says how sure ranks are: bootstrap samples of the cases, and tests of pairs of teams.

The test is the one-sided Wilcoxon signed-rank test of the differences on each case, as
R's ``wilcox.test(paired = TRUE, exact = FALSE)`` computes it: cases on which both teams
have the same value are left out, ties of differences get their average rank, and the
normal approximation is used with its corrections for ties and continuity. Where nobody
has said before who should be better, the test is two-sided.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from flare.challenge.metrics import MetricName
from flare.common.schema import Count, Is, Positive, Share, Text
from flare.ranking.ranks import Board, Integers, Tau, Values, kendall_tau, ranks_by_sums
from flare.ranking.rules import SAMPLES, SEED
from flare.results.csv_rows import TeamName

CONFIDENCE = 0.95
"""Share of the samples in which a team's rank lies within its interval."""

ALPHA = 0.05
"""Largest p of a difference that is called significant."""

DECIMALS = 12
"""The decimals that a difference of values below 10 is rounded to."""

FEWEST_CASES = 6
"""On fewer cases, no rank is 95 % sure, however clear it looks: of two equal teams, one
is ahead on all of 5 cases in 1 of 16 rankings (2 / 2^5), of 6 in 1 of 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInterval:
    """A team."""

    team: TeamName
    interval: Annotated[tuple[Positive, Positive], Is(minItems=2, maxItems=2)]
    """Best and worst rank of the interval."""
    frequencies: tuple[Share, ...]
    """Share of the samples in which it has rank 1, 2, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How the ranks depend on the cases; not there with `--bootstrap 0`."""

    samples: Positive
    """How often cases were drawn, as many as there are, with replacement."""
    seed: Count
    """Seed of the generator."""
    generator: Text = "PCG64"
    """NumPy's name of the generator."""
    confidence: Share = CONFIDENCE
    """Share of the samples within the intervals."""
    kendall_tau: Annotated[tuple[Tau, Tau, Tau], Is(minItems=3, maxItems=3)] | None
    """Kendall's tau of the samples' rankings with the ranking itself: lower end of the
    interval, median, upper end; null if it is undefined."""
    teams: tuple[RankInterval, ...]
    """Each team, best first."""

    @property
    def has_shared_first(self) -> bool:
        """Whether teams share first place in some samples."""
        firsts = math.fsum(team.frequencies[0] for team in self.teams)
        return round(firsts * self.samples) > self.samples


def bootstrap(board: Board, *, samples: int = SAMPLES, seed: int = SEED) -> Bootstrap:
    """Rank teams on cases drawn with replacement: each sample has as many as there are.

    Ranks on single cases do not depend on the other cases, and are averaged by their
    mean. Equal seeds of the generator give equal results.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    count = len(board.cases)
    drawn = generator.integers(0, count, size=(samples, count))
    counts = np.stack([np.bincount(row, minlength=count) for row in drawn])
    ranks = np.array([ranks_by_sums(row) for row in counts @ board.case_sums.T])
    actual = ranks_by_sums(board.case_sums.sum(axis=1))
    taus = [kendall_tau(actual, row) for row in ranks]
    defined = np.array([tau for tau in taus if tau is not None])
    return Bootstrap(
        teams=tuple(
            _rank_interval(team, ranks[:, index], len(board.teams))
            for index, team in enumerate(board.teams)
        ),
        samples=samples,
        seed=seed,
        kendall_tau=_interval(defined) if len(defined) else None,
    )


def _interval(values: Values | Integers) -> tuple[float, float, float]:
    """Lower end, median and upper end of values."""
    ordered = np.sort(values)
    outside = math.floor(len(ordered) * (1 - CONFIDENCE) / 2)
    low, high = ordered[outside], ordered[-1 - outside]
    return float(low), float(np.median(ordered)), float(high)


def _rank_interval(team: str, ranks: Integers, teams: int) -> RankInterval:
    """Interval and frequencies of a team's ranks."""
    low, _, high = _interval(ranks)
    frequencies = np.bincount(ranks, minlength=teams + 1)[1:] / len(ranks)
    return RankInterval(
        team=team,
        interval=(int(low), int(high)),
        frequencies=tuple(frequencies.tolist()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTest:
    """An ordered pair of teams, by one metric."""

    metric: MetricName
    """Name of the metric."""
    team: Text
    """The team that may be better."""
    other: Text
    """The team that it is compared with."""
    cases: Count
    """Cases on which the two differ."""
    zeros: Count
    """Cases on which they do not, which the test leaves out."""
    p: Share
    """The p-value; 1 if they differ on no case."""
    p_holm: Share
    """The p-value, adjusted by Holm's method."""
    effect: Tau
    """Matched-pairs rank-biserial correlation: 1 if `team` is better on every case on
    which they differ, -1 if it is worse."""  # Kerby 2014, doi:10.2466/11.IT.3.1


def compare_pairs(board: Board) -> tuple[PairTest, ...]:
    """Test all ordered pairs of teams, by each metric."""
    values = board.filled
    pairs = list(itertools.permutations(range(len(board.teams)), 2))
    if not pairs:
        return ()
    teams, rivals = np.array(pairs).T
    tests = []
    for index, metric in enumerate(board.rules.names):
        matrices = _each_with_each(values[:, :, index])
        p, effects, zeros = (matrix[teams, rivals] for matrix in matrices)
        columns = zip(
            pairs,
            p.tolist(),
            holm(p).tolist(),
            effects.tolist(),
            zeros.astype(int).tolist(),
            strict=True,
        )
        for (team, rival), p_value, p_holm, effect, equal in columns:
            test = PairTest(
                metric=metric,
                team=board.teams[team],
                other=board.teams[rival],
                cases=len(board.cases) - equal,
                zeros=equal,
                p=p_value,
                p_holm=p_holm,
                effect=effect,
            )
            tests.append(test)
    return tuple(tests)


def _each_with_each(column: Values) -> tuple[Values, Values, Values]:
    """The p-value, the effect and the equal cases of each team with each other.

    One team is compared with all after it at a time: the differences of all pairs at
    once would need gigabytes.
    """
    p, effects, zeros = np.zeros((3, len(column), len(column)))
    for team, values in enumerate(column[:-1]):
        rivals = slice(team + 1, None)
        differences = steps(values, column[rivals])
        zeros[team, rivals] = zeros[rivals, team] = (differences == 0).sum(axis=1)
        both_p, both_effects = signed_ranks(differences)
        p[team, rivals], p[rivals, team] = both_p
        effects[team, rivals], effects[rivals, team] = both_effects
    return p, effects, zeros


def steps(before: Values, after: Values) -> Values:
    """How far values lie above others, so that equal steps are equal.

    In binary fractions 0.9 - 0.8 and 0.8 - 0.7 differ by 1e-16, and would not share a
    rank. So differences are rounded to a trillionth, or, in a row with values of 10 and
    more, to 13 digits of the largest: no value is that precise.

    Parameters
    ----------
    before, after : ndarray of float, shape (tests, cases) or (cases,)
        Without NaN; not both of the second shape.

    Examples
    --------
    >>> steps(np.array([[0.8, 0.7]]), np.array([[0.9, 0.8]])).tolist()
    [[0.1, 0.1]]
    """
    sizes = np.maximum(np.abs(before), np.abs(after)).max(axis=1, keepdims=True)
    digits = np.floor(np.log10(np.maximum(sizes, 1)))
    scales = 10 ** (DECIMALS - digits)
    rounded: Values = np.rint((after - before) * scales) / scales + 0.0
    return rounded


def signed_ranks(differences: Values) -> tuple[Values, Values]:
    """The test of each row, for either sign of an advantage.

    Parameters
    ----------
    differences : ndarray of float, shape (tests, cases)
        Made by `steps`; 0 on cases that are left out.

    Returns
    -------
    tuple of ndarray of float, each of shape (2, tests)
        The p-values and the effects, first as if positive differences were an
        advantage, then as if negative ones were.
    """
    # Not at the top: they take longer to load than all else, and only tests need them.
    import pandas as pd
    from scipy.special import ndtr

    # Equal sizes share their average rank; a zero has none, and is NaN.
    sizes = pd.DataFrame(np.where(differences, np.abs(differences), math.nan))
    first = sizes.rank(axis=1, method="min").to_numpy()
    last = sizes.rank(axis=1, method="max").to_numpy()
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


def holm(p: Values) -> Values:
    """P-values adjusted by Holm's method."""
    order = np.argsort(p, kind="stable")
    stepped = p[order] * (len(p) - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted
