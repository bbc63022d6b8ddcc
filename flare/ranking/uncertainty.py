"""Says how sure ranks are: bootstrap samples of the cases, and tests of pairs of teams.

Values of each case are compared by the one-sided signed-rank test. A value of answers
is of all cases together, and no case has one to be compared. So it is made anew of the
cases of each draw, and p is the share of the draws in which a team is not better than
the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import Metric, MetricName
from flare.common.schema import OMIT, Count, Is, Positive, Share, Text
from flare.common.text import listing
from flare.ranking.ranks import (
    Board,
    Integers,
    Tau,
    Values,
    break_ties,
    comparable,
    kendall_tau,
    ranks_by_sums,
    ranks_of,
)
from flare.ranking.rules import RankingRules
from flare.results.csv_rows import TeamName
from flare.results.errors import RankingError
from flare.statistics import CONFIDENCE, DRAWS, SEED
from flare.statistics.bootstrap import draw_places, middle
from flare.statistics.paired import compare_by_draws, compare_by_signed_ranks, holm

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
    tied: Count = field(default=0, metadata=OMIT)
    """Only if there are any: samples that have no tau, as all teams tie in them."""

    @property
    def has_shared_first(self) -> bool:
        """Whether teams share first place in some samples."""
        samples = self.samples - self.left_out
        firsts = math.fsum(team.frequencies[0] for team in self.teams)
        return round(firsts * samples) > samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Cases drawn with replacement, and values made anew of them."""

    seed: int
    counts: Integers
    """How often each case of the board was drawn, of shape (samples, cases)."""
    rules: RankingRules
    """The rules of the board for the metrics whose values are made anew: where means
    are ranked all of them, else those of answers."""
    values: Values
    """Comparable values, of shape (teams, samples, groups, metrics of the rules); NaN
    where the cases that were drawn leave one of answers undefined, and of a team that
    has no mean."""
    ties: Values | None
    """Comparable values of the columns that order teams which are equal, of shape
    (teams, samples, columns), if there are any."""

    @property
    def is_defined(self) -> npt.NDArray[np.bool_]:
        """Whether each draw has all values of answers."""
        is_answer = [not record.is_of_each_case for record in self.rules.records]
        return np.asarray(~np.isnan(self.values[..., is_answer]).any(axis=(0, 2, 3)))


def draw_cases(board: Board, *, samples: int = DRAWS, seed: int = SEED) -> Draws:
    """Draw cases with replacement, as many as there are; and make values of them.

    Where teams are ranked in groups, as many are drawn in each. Answers whose cases are
    those of the board are drawn with them. Others, such as questions, are drawn by
    themselves: each draw has as many of them as there are. Equal seeds of the generator
    give equal draws.
    """
    members = board.members
    sets = dict.fromkeys(column.cases for column in board.answers.values())
    sets.pop(board.cases, None)
    sizes = [*map(len, members), *map(len, sets)]
    drawn = draw_places(sizes, draws=samples, seed=seed)
    cases = np.concatenate(list(map(np.take, members, drawn)), axis=1)
    counts = np.stack([np.bincount(row, minlength=len(board.cases)) for row in cases])
    places = dict(zip(sets, drawn[len(members) :], strict=True))
    places[board.cases] = cases
    anew = board
    if not board.rules.scheme.is_of_means:
        anew = board.by([name in board.answers for name in board.rules.names])
    ties = None
    if board.ties:
        ties = _drawn_values(board.ties, counts, places).mean(axis=2)
    return Draws(
        seed=seed,
        counts=counts,
        rules=anew.rules,
        values=_drawn_values(anew, counts, places),
        ties=ties,
    )


def _drawn_values(
    board: Board, counts: Integers, places: Mapping[tuple[str, ...], Integers]
) -> Values:
    """Comparable means and values of answers, (teams, samples, groups, metrics).

    `places` has the numbers of the cases that were drawn, by all cases.
    """
    values = board.means(counts)
    for number, name in enumerate(board.rules.names):
        if name in board.answers:
            column = board.answers[name]
            drawn_values = column.drawn_values(board.teams, places[column.cases])
            values[:, :, 0, number] = drawn_values
    return comparable(values, board.rules)


def bootstrap(board: Board, draws: Draws) -> Bootstrap:
    """Rank teams on the cases of each draw.

    Ranks on single cases do not depend on the other cases, and are averaged by their
    mean. A RankingError is raised if no draw has all values of answers.
    """
    samples = len(draws.counts)
    sums = _drawn_sums(board, draws)[draws.is_defined]
    if not len(sums):
        problem = f"no draw leaves {listing(draws.rules.names)} defined"
        raise RankingError("The bootstrap", problem, "Rank with --bootstrap 0.")
    if draws.ties is not None:
        values = draws.ties.swapaxes(0, 1)[draws.is_defined]
        sums = np.stack([*map(break_ties, sums, values)])
    ranks = np.array([ranks_by_sums(row) for row in sums])
    taus = [kendall_tau(board.final_ranks, row) for row in ranks]
    defined = np.array([tau for tau in taus if tau is not None])
    return Bootstrap(
        teams=tuple(
            _rank_interval(team, ranks[:, index], len(board.teams))
            for index, team in enumerate(board.teams)
        ),
        samples=samples,
        seed=draws.seed,
        kendall_tau=middle(defined) if len(defined) else None,
        left_out=samples - len(sums),
        tied=len(taus) - len(defined) if len(defined) else 0,
    )


def _drawn_sums(board: Board, draws: Draws) -> Integers:
    """The sums of ranks by which teams are ordered in each draw, (samples, teams).

    A rank by answers counts as often as there are cases, so that it has the weight of
    the mean rank by a metric of cases. Means leave no ranks of cases beside them.
    """
    weights = dict(zip(board.rules.names, board.rules.weights, strict=True))
    new_weights = [weights.pop(name) for name in draws.rules.names]
    count = len(board.cases)
    sums = np.zeros((len(draws.counts), len(board.teams)), dtype=np.int64)
    if new_weights:
        ranks = ranks_of(draws.values, draws.rules).sum(axis=2)
        sums += count * (ranks @ new_weights).T
    if weights:
        case_weights = [weights.get(name, 0) for name in board.rules.names]
        sums += draws.counts @ (board.doubled_ranks @ case_weights).T
    return sums


def _rank_interval(team: str, ranks: Integers, teams: int) -> RankInterval:
    low, _, high = middle(ranks)
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


def compare_pairs(board: Board, draws: Draws | None = None) -> tuple[PairTest, ...]:
    """Test all ordered pairs of teams, by each metric.

    Metrics of answers are compared by draws; without any, they are left out.
    """
    if len(board.teams) < 2:
        return ()
    tests: list[PairTest] = []
    for metric in board.rules.records:
        method = method_of(metric)
        values = method.values(board, draws, metric.name)
        if values is not None:
            # A case or draw is compared if all teams have a value there.
            values = values[:, ~np.isnan(values).any(axis=0)]
            matrices = method.compare(values)
            tests += _pair_tests(board.teams, metric.name, matrices, values.shape[1])
    return tuple(tests)


def _values_of_cases(board: Board, _: Draws | None, metric: str) -> Values:
    """The comparable values, (teams, cases); NaN where one is left out."""
    return board.filled[:, :, board.rules.names.index(metric)]


def _values_of_draws(board: Board, draws: Draws | None, metric: str) -> Values | None:
    """The comparable values, (teams, draws), NaN if undefined; None without draws."""
    if draws is None:
        return None
    return draws.values[:, :, 0, draws.rules.names.index(metric)]


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
    arrays = p, holm(p), effects, zeros.astype(int)
    columns = zip(pairs, *map(np.ndarray.tolist, arrays), strict=True)
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


# --- Ways of comparing ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How pairs of teams are compared by a metric, and all words for it."""

    is_for: Callable[[Metric], bool]
    """Whether it is for a metric."""
    values: Callable[[Board, Draws | None, str], Values | None]
    """The values that are compared, of shape (teams, cases or draws)."""
    compare: Callable[[Values], tuple[Values, Values, Values]]
    """The p-value, the effect and the equal values of each team with each other."""
    kind: str
    """The metrics that it is for, where others are named before."""
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
    drawn: str
    """A sentence of Methods about the bootstrap, if there is one to add."""


BY_CASE = Method(
    is_for=lambda metric: metric.is_of_each_case,
    values=_values_of_cases,
    compare=compare_by_signed_ranks,
    kind="values of each case",
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
    drawn="",
)
"""Of values of each case."""

BY_DRAWS = Method(
    is_for=lambda metric: not metric.is_of_each_case,
    values=_values_of_draws,
    compare=compare_by_draws,
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
    drawn="Values of answers were made anew from the answers of each sample.",
)
"""Of values of all cases together."""


METHODS = (BY_CASE, BY_DRAWS)
"""All ways of comparing: the first that is for a metric is used."""


def method_of(metric: Metric) -> Method:
    """How teams are compared by a metric."""
    return next(method for method in METHODS if method.is_for(metric))


def methods_of(metrics: Iterable[Metric]) -> tuple[Method, ...]:
    """How teams are compared by some metrics: each way once, in their order."""
    methods = list(map(method_of, metrics))
    return tuple(method for method in METHODS if method in methods)
