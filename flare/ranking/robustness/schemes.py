"""Ranks the same results in other ways, and says which teams move.

The schemes are those of challengeR (Wiesenfarth et al. 2021,
doi:10.1038/s41598-021-82017-6), for several metrics at once: each scheme ranks the
teams by every metric, and adds the ranks by the metrics' weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flare.common.text import printable
from flare.ranking.options import Ties
from flare.ranking.ranks import (
    Board,
    kendall_tau,
    rank_sums,
    ranks_by_sums,
    ranks_of,
    rounded,
)
from flare.ranking.robustness.uncertainty import ALPHA, PairTest
from flare.ranking.rules import Average, Integers, RankingRules, Values

DIGITS = 3
"""Significant digits of the schemes that round: further ones mean little."""

GATE_DSC = 0.5
"""The gate of the schemes that have one, where the challenge sets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """The teams' ranks under another way of ranking."""

    name: str
    ranks: dict[str, int]
    """By team, except one that is left out."""
    before: dict[str, int]
    """Their ranks in the ranking itself, without the team that is left out."""
    tau: float | None
    """Kendall's tau of both; None where it is undefined."""
    left_out: str | None = None
    """The team that the scheme leaves out; None if it has all."""

    @property
    def moved(self) -> tuple[str, ...]:
        """Teams whose rank differs, in the order of the ranking itself."""
        return tuple(
            team for team, rank in self.before.items() if self.ranks[team] != rank
        )


def other_schemes(board: Board, tests: Sequence[PairTest]) -> tuple[Scheme, ...]:
    """Rank the teams in other ways, each of which changes one thing about the rules.

    Parameters
    ----------
    board : Board
        The teams.
    tests : sequence of PairTest
        Of these teams.
    """
    found, known = [], dict(zip(board.teams, board.final_ranks, strict=True))
    for name, teams, ranks in _all_schemes(board, tests):
        kept = [rank for team, rank in known.items() if team in teams]
        before = dict(zip(teams, ranks_by_sums(np.array(kept)), strict=True))
        scheme = Scheme(
            name=name,
            ranks=dict(zip(teams, ranks, strict=True)),
            before=before,
            tau=kendall_tau(list(before.values()), ranks),
            left_out=next(iter(set(board.teams).difference(teams)), None),
        )
        found.append(scheme)
    return tuple(found)


def _all_schemes(
    board: Board, tests: Sequence[PairTest]
) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """Name, teams and ranks of each scheme."""
    teams, rules = board.teams, board.rules
    for name, changed in _one_change(rules):
        yield name, teams, board.by(changed).final_ranks
    for average in Average:
        ranks = aggregate_ranks(board, average)
        yield f"{average.value} of values, then rank", teams, ranks
    for is_adjusted, name in ((False, "unadjusted"), (True, "Holm")):
        ranks = ranks_by_tests(board, tests, is_adjusted=is_adjusted)
        yield f"tests ({name}), then rank", teams, ranks
    if len(rules.metrics) > 1:
        for index, metric in enumerate(rules.names):
            if rules.gate_dsc and metric == "dsc":
                continue  # the other metrics depend on it
            yield f"without {metric}", teams, board.without_metric(index).final_ranks
    if len(teams) > 2:
        for number, team in enumerate(teams):
            found = ranks_of(np.delete(board.comparable, number, axis=0), rules)
            yield (
                f"without team {printable(team)}",
                tuple(other for other in teams if other != team),
                ranks_by_sums(rank_sums(found, rules)),
            )


def _one_change(rules: RankingRules) -> Iterator[tuple[str, RankingRules]]:
    """Rank-then-average schemes that differ from the rules in one thing."""
    for ties in Ties:
        if ties is not rules.ties:
            yield f"ties: {ties.value}", replace(rules, ties=ties)
    for missing in rules.missing_rules:
        if missing is not rules.missing:
            yield f"missing: {missing.value}", replace(rules, missing=missing)
    yield f"{DIGITS} significant digits", replace(rules, digits=DIGITS)
    if any(rule.decimals is not None for rule in rules.metrics):
        yield "without rounding", rules.unrounded
    if rules.gate_dsc:
        yield "without the gate", replace(rules, gate_dsc=0.0)
    elif "dsc" in rules.names:
        name = f"efficiency only where DSC is at least {GATE_DSC:g}"
        yield name, replace(rules, gate_dsc=GATE_DSC)
    yield "rank, then median", replace(rules, average=Average.MEDIAN)


def aggregate_ranks(board: Board, average: Average) -> tuple[int, ...]:
    """Ranks by the mean, or median, of each metric over the cases."""
    values = board.filled
    if average is Average.MEAN:
        values = values.mean(axis=1)
    else:
        values = np.median(values, axis=1)
    # Sums of the same values in another order differ in their last bits.
    return _ranks_by_metric(rounded(values, ".12g"), board.rules)


def ranks_by_tests(
    board: Board, tests: Sequence[PairTest], *, is_adjusted: bool
) -> tuple[int, ...]:
    """Ranks by how many teams a team is significantly better than, by each metric."""
    beaten = np.zeros((len(board.teams), len(board.rules.metrics)))
    numbers = {team: n for n, team in enumerate(board.teams)}
    columns = {name: n for n, name in enumerate(board.rules.names)}
    for test in tests:
        if (test.p_holm if is_adjusted else test.p) <= ALPHA:
            beaten[numbers[test.team], columns[test.metric]] += 1
    return _ranks_by_metric(-beaten, board.rules)


def _ranks_by_metric(values: Values, rules: RankingRules) -> tuple[int, ...]:
    """Ranks by the weighted sum of the ranks by each column."""
    ranks: Integers = 2 * np.array([ranks_by_sums(column) for column in values.T]).T
    return ranks_by_sums(ranks @ rules.weights)
