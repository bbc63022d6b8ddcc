"""Says how sure ranks are: bootstrap samples of the cases, and tests of pairs of teams.

The test is the one-sided Wilcoxon signed-rank test of the differences on each case, as
R's ``wilcox.test(paired = TRUE, exact = FALSE)`` computes it: cases on which both teams
have the same value are left out, ties of differences get their average rank, and the
normal approximation is used with its corrections for ties and continuity. Where nobody
has said before who should be better, the test is two-sided.

A value of answers is of all cases together, and no case has one to be compared. So it
is made anew of the cases of each draw, and p is the share of the draws in which a team
is not better than the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import Metric, MetricName
from flare.common.schema import OMIT, Count, Is, Positive, Share, Text
from flare.common.text import listing
from flare.ranking.answers import AnswerColumn
from flare.ranking.ranks import (
    Board,
    Integers,
    Tau,
    Values,
    comparable,
    kendall_tau,
    ranks_by_sums,
    ranks_of,
)
from flare.ranking.rules import SAMPLES, SEED, RankingRules
from flare.results.csv_rows import TeamName
from flare.results.errors import RankingError

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
    left_out: Count = field(default=0, metadata=OMIT)
    """Only where metrics of answers are ranked: samples that do not count, as the
    references drawn leave a value undefined, such as AUROC with one class."""

    @property
    def has_shared_first(self) -> bool:
        """Whether teams share first place in some samples."""
        samples = self.samples - self.left_out
        firsts = math.fsum(team.frequencies[0] for team in self.teams)
        return round(firsts * samples) > samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Cases drawn with replacement, and the values of answers on them."""

    seed: int
    cases: Integers
    """Numbers of cases of the board, of shape (samples, cases)."""
    rules: RankingRules
    """The rules of the board for its metrics of answers alone."""
    answers: Values
    """Comparable values of answers, of shape (teams, samples, metrics of the rules);
    NaN where the cases that were drawn leave a value undefined."""

    @property
    def is_defined(self) -> npt.NDArray[np.bool_]:
        """Whether each draw has all values of answers."""
        return np.asarray(~np.isnan(self.answers).any(axis=(0, 2)))


def draw_cases(board: Board, *, samples: int = SAMPLES, seed: int = SEED) -> Draws:
    """Draw cases with replacement, as many as there are; and make values of answers.

    Answers whose cases are those of the board are drawn with them. Others, such as
    questions, are drawn by themselves: each draw has as many of them as there are.
    Equal seeds of the generator give equal draws.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    places = {}
    for cases in (board.cases, *(c.cases for c in board.answers.values())):
        if cases not in places:
            size = (samples, len(cases))
            places[cases] = generator.integers(0, len(cases), size=size)
    metrics = [rule for rule in board.rules.metrics if rule.metric in board.answers]
    values = np.empty((len(board.teams), samples, len(metrics)))
    for number, rule in enumerate(metrics):
        column = board.answers[rule.metric]
        values[:, :, number] = _drawn_values(column, board.teams, places[column.cases])
    # The gate is one of label maps, case by case.
    rules = replace(board.rules, metrics=tuple(metrics), gate_dsc=0.0)
    return Draws(
        seed=seed,
        cases=places[board.cases],
        rules=rules,
        answers=comparable(values, rules),
    )


def _drawn_values(
    column: AnswerColumn, teams: Sequence[str], drawn: Integers
) -> Values:
    """The values of teams on each draw, of shape (teams, samples)."""
    values = np.empty((len(teams), len(drawn)))
    for number, team in enumerate(teams):
        values[number] = [column.value(team, places) for places in drawn]
    return values


def bootstrap(board: Board, draws: Draws) -> Bootstrap:
    """Rank teams on the cases of each draw.

    Ranks on single cases do not depend on the other cases, and are averaged by their
    mean. A RankingError is raised if no draw has all values of answers.
    """
    samples = len(draws.cases)
    sums = _drawn_sums(board, draws)[draws.is_defined]
    if not len(sums):
        problem = f"no draw leaves {listing(draws.rules.names)} defined"
        raise RankingError("The bootstrap", problem, "Rank with --bootstrap 0.")
    ranks = np.array([ranks_by_sums(row) for row in sums])
    actual = ranks_by_sums(board.case_sums.sum(axis=1))
    taus = [kendall_tau(actual, row) for row in ranks]
    defined = np.array([tau for tau in taus if tau is not None])
    return Bootstrap(
        teams=tuple(
            _rank_interval(team, ranks[:, index], len(board.teams))
            for index, team in enumerate(board.teams)
        ),
        samples=samples,
        seed=draws.seed,
        kendall_tau=_interval(defined) if len(defined) else None,
        left_out=samples - len(sums),
    )


def _drawn_sums(board: Board, draws: Draws) -> Integers:
    """The sums of ranks by which teams are ordered in each draw, (samples, teams).

    A rank by answers counts as often as there are cases, so that it has the weight of
    the mean rank by a metric of cases.
    """
    weights = dict(zip(board.rules.names, board.rules.weights, strict=True))
    answer_weights = [weights.pop(name) for name in draws.rules.names]
    case_weights = [weights.get(name, 0) for name in board.rules.names]
    count = len(board.cases)
    counts = np.stack([np.bincount(row, minlength=count) for row in draws.cases])
    sums: Integers = counts @ (board.doubled_ranks @ case_weights).T
    if answer_weights:
        ranks = ranks_of(draws.answers, draws.rules)
        sums += count * (ranks @ answer_weights).T
    return sums


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
    """Cases on which the two differ; of a metric of answers, draws."""
    zeros: Count
    """Cases on which they do not, which the test leaves out; of a metric of answers,
    draws, which count as not better."""
    p: Share
    """The p-value; 1 if they differ on no case. Of a metric of answers, the share of
    the draws in which `team` is not better."""
    p_holm: Share
    """The p-value, adjusted by Holm's method."""
    effect: Tau
    """Matched-pairs rank-biserial correlation: 1 if `team` is better on every case on
    which they differ, -1 if it is worse. Of a metric of answers, the share of the draws
    in which it is better, less that in which it is worse."""
    # Kerby 2014, doi:10.2466/11.IT.3.1


def compare_pairs(board: Board, draws: Draws | None = None) -> tuple[PairTest, ...]:
    """Test all ordered pairs of teams, by each metric.

    Metrics of answers are compared by draws; without any, they are left out.
    """
    pairs = list(itertools.permutations(range(len(board.teams)), 2))
    if not pairs:
        return ()
    tests: list[PairTest] = []
    for metric in board.rules.records:
        method = method_of(metric)
        values = method.values(board, draws, metric.name)
        if values is not None:
            matrices = method.compare(values)
            tests += _pair_tests(board.teams, metric.name, matrices, values.shape[1])
    return tuple(tests)


def _values_of_cases(board: Board, _: Draws | None, metric: str) -> Values:
    """The comparable values of a metric, of shape (teams, cases)."""
    return board.filled[:, :, board.rules.names.index(metric)]


def _values_of_draws(board: Board, draws: Draws | None, metric: str) -> Values | None:
    """The comparable values of a metric, of shape (teams, draws); None without draws.

    Draws whose cases leave the value of a team undefined are left out.
    """
    if draws is None:
        return None
    values = draws.answers[:, :, draws.rules.names.index(metric)]
    return np.asarray(values[:, ~np.isnan(values).any(axis=0)])


def _pair_tests(
    teams: Sequence[str], metric: str, matrices: Iterable[Values], count: int
) -> Iterator[PairTest]:
    """The tests of all ordered pairs of teams.

    The matrices have the p-value, the effect and the ties of each team with each other,
    on a number of cases or draws.
    """
    pairs = list(itertools.permutations(range(len(teams)), 2))
    numbers, rivals = np.array(pairs).T
    p, effects, zeros = (matrix[numbers, rivals] for matrix in matrices)
    columns = zip(
        pairs,
        p.tolist(),
        holm(p).tolist(),
        effects.tolist(),
        zeros.astype(int).tolist(),
        strict=True,
    )
    for (team, rival), p_value, p_holm, effect, equal in columns:
        yield PairTest(
            metric=metric,
            team=teams[team],
            other=teams[rival],
            cases=count - equal,
            zeros=equal,
            p=p_value,
            p_holm=p_holm,
            effect=effect,
        )


def _share_each_with_each(values: Values) -> tuple[Values, Values, Values]:
    """The p-value, the effect and the equal draws of each team with each other.

    `values` are comparable, of shape (teams, draws): smaller is better.
    """
    p, effects, zeros = np.zeros((3, len(values), len(values)))
    count = max(values.shape[1], 1)
    for team, row in enumerate(values):
        better = (row < values).sum(axis=1)
        worse = (row > values).sum(axis=1)
        p[team] = (count - better) / count
        effects[team] = (better - worse) / count
        zeros[team] = values.shape[1] - better - worse
    return p, effects, zeros


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


def holm(p: Values) -> Values:
    """P-values adjusted by Holm's method."""
    order = np.argsort(p, kind="stable")
    stepped = p[order] * (len(p) - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


# --- Ways of comparing ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How pairs of teams are compared by a metric, and all words for it."""

    values: Callable[[Board, Draws | None, str], Values | None]
    """The values that are compared, of shape (teams, cases or draws)."""
    compare: Callable[[Values], tuple[Values, Values, Values]]
    """The p-value, the effect and the equal values of each team with each other."""
    kind: str
    """The metrics that it is for, where others are named before; else empty."""
    short: str
    """Within a sentence."""
    recorded: str
    """In ranking.json."""
    title: str
    """Behind the title of a table of p-values."""
    effect: str
    """Behind what an effect is."""
    paper: str
    """The sentence of Methods, with places for what is counted."""


BY_CASE = Method(
    values=_values_of_cases,
    compare=_each_with_each,
    kind="",
    short="one-sided Wilcoxon tests paired by case",
    recorded="one-sided Wilcoxon signed-rank, paired by case, normal approximation",
    title="; cases without a difference are left out",
    effect="",
    paper=(
        "Teams were compared by one-sided Wilcoxon signed-rank tests paired by case"
        " (normal approximation with corrections for ties and continuity; cases without"
        " a difference left out; missing results {replaced}), adjusted by Holm's method"
        " over the {pairs} ordered pairs of teams for each metric, at a level of"
        " {alpha:g}; effects are matched-pairs rank-biserial correlations."
    ),
)
"""Of values of each case."""

BY_DRAWS = Method(
    values=_values_of_draws,
    compare=_share_each_with_each,
    kind="answers",
    short="comparisons on the bootstrap's draws",
    recorded="of metrics of answers, share of draws in which it is not better",
    title="; of answers, p is the share of draws in which it is not better",
    effect=(
        "; of answers, the share of draws in which it is better, less that in which it"
        " is worse, and p that in which it is not better"
    ),
    paper=(
        "By metrics of answers, p is the share of the bootstrap samples in which a team"
        " was not better than the other one, adjusted by Holm's method over the {pairs}"
        " ordered pairs of teams for each metric, at a level of {alpha:g}; effects are"
        " the share of the samples in which it was better, less that in which it was"
        " worse."
    ),
)
"""Of values of all cases together."""


def method_of(metric: Metric) -> Method:
    """How teams are compared by a metric."""
    return BY_CASE if metric.is_of_each_case else BY_DRAWS


def methods_of(metrics: Iterable[Metric]) -> tuple[Method, ...]:
    """How teams are compared by some metrics: each way once, that of cases first."""
    methods = list(map(method_of, metrics))
    return tuple(method for method in (BY_CASE, BY_DRAWS) if method in methods)
