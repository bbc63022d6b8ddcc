"""Says what would have to change for other ranks: other rules, cases or teams.

The other schemes to rank by are those of challengeR (Wiesenfarth et al. 2021,
doi:10.1038/s41598-021-82017-6), for several metrics at once: each scheme ranks the
teams by every metric, and adds the ranks by the metrics' weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, NamedTuple, TypedDict

import numpy as np

from flare.challenge.scheme import PLAIN_SCHEME, Ties
from flare.common.schema import Count, Is, Positive
from flare.common.text import printable
from flare.ranking.ranks import (
    Board,
    Integers,
    Values,
    kendall_tau,
    rank_sums,
    ranks_by_sums,
    rounded,
)
from flare.ranking.rules import Average, MissingRule, RankingRules
from flare.ranking.uncertainty import PairTest
from flare.results.csv_rows import TeamName
from flare.statistics import ALPHA

DIGITS = 3
"""Significant digits of the schemes that round: further ones mean little."""

GATE_DSC = 0.5
"""The gate of the schemes that have one, where the challenge sets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """The teams' ranks under another way of ranking."""

    name: str
    ranks: dict[str, int]
    """The rank of each team, except one that is left out."""
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
    """Rank the teams in other ways; each way changes one thing about the rules."""
    schemes = [_scheme(board, *named) for named in _all_schemes(board, tests)]
    for number, team in enumerate(board.teams if len(board.teams) > 2 else ()):
        ranks = ranks_without_team(board, number)
        schemes.append(_scheme(board, f"without team {printable(team)}", ranks, team))
    return tuple(schemes)


def _scheme(
    board: Board, name: str, ranks: tuple[int, ...], left_out: str | None = None
) -> Scheme:
    final_ranks = dict(zip(board.teams, board.final_ranks, strict=True))
    before = ranks_before(final_ranks, left_out)
    return Scheme(
        name=name,
        ranks=dict(zip(before, ranks, strict=True)),
        before=before,
        tau=kendall_tau([*before.values()], ranks),
        left_out=left_out,
    )


def ranks_before(ranks: Mapping[str, int], left_out: str | None) -> dict[str, int]:
    """The ranks of teams in the ranking itself, among all but one that is left out."""
    teams = [team for team in ranks if team != left_out]
    places = ranks_by_sums(np.array([ranks[team] for team in teams]))
    return dict(zip(teams, places, strict=True))


NamedRanks = Iterator[tuple[str, tuple[int, ...]]]
"""The names of schemes, and the ranks of all teams by them."""


def _all_schemes(board: Board, tests: Sequence[PairTest]) -> NamedRanks:
    for name, rules in _one_change(board.rules):
        yield name, replace(board, rules=rules).final_ranks
    if board.rules.scheme.is_of_means:
        yield from _schemes_beside_means(board)
    elif board.rules.has_cases:
        yield from _schemes_over_cases(board)
    for is_adjusted, name in ((False, "unadjusted"), (True, "Holm")):
        ranks = ranks_by_tests(board, tests, is_adjusted=is_adjusted)
        yield f"tests ({name}), then rank", ranks
    if len(board.rules.metrics) > 1:
        yield from _schemes_without_a_metric(board)


def _schemes_over_cases(board: Board) -> NamedRanks:
    """The schemes that go on cases: the value of all together is its own median."""
    rules = replace(board.rules, average=Average.MEDIAN)
    yield "rank, then median", replace(board, rules=rules).final_ranks
    for average in Average:
        yield f"{average.value} of values, then rank", aggregate_ranks(board, average)


def _schemes_beside_means(board: Board) -> NamedRanks:
    """The schemes that rank no means, or those of all cases in place of groups."""
    rules = replace(board.rules, scheme=PLAIN_SCHEME)
    yield "rank on each case, then mean", replace(board, rules=rules).final_ranks
    yield "median of values, then rank", aggregate_ranks(board, Average.MEDIAN)
    if board.groups:
        yield "without groups", replace(board, groups=()).final_ranks


def _schemes_without_a_metric(board: Board) -> NamedRanks:
    """The schemes that leave out a metric; not the one that a gate depends on."""
    rules = board.rules
    for index, metric in enumerate(rules.names):
        if rules.gate_dsc and metric == "dsc":
            continue
        metrics = rules.metrics[:index] + rules.metrics[index + 1 :]
        ranks = np.delete(board.doubled_ranks, index, axis=2)
        sums = rank_sums(ranks, replace(rules, metrics=metrics))
        yield f"without {metric}", board.ranks_by(sums)


def ranks_without_team(board: Board, number: int) -> tuple[int, ...]:
    """The final ranks of all teams but the one with this number.

    Each team behind it moves up by one, which is faster than to rank them anew.
    """
    rules, team_values = board.rules, board.ranked[number]
    values = np.delete(board.ranked, number, axis=0)
    needs_all = rules.missing is not MissingRule.LAST or board.is_left_out.any()
    if needs_all and np.isnan(board.ranked).any():
        ranks = board.ranks(values, rules)  # which depend on the values of all teams
        return board.ranks_by(rank_sums(ranks, rules), without=[number])
    is_behind = (values > team_values) | np.isnan(values)
    # Doubled places that a team gains whose equal leaves.
    moved_by_tie = {Ties.MIN: 0, Ties.AVERAGE: 1, Ties.MAX: 2}[rules.ties]
    doubled_ranks = np.delete(board.doubled_ranks, number, axis=0)
    doubled_ranks -= 2 * is_behind + moved_by_tie * (values == team_values)
    return board.ranks_by(rank_sums(doubled_ranks, rules), without=[number])


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
    elif "dsc" in rules.names and rules.has_cases:
        name = f"efficiency only where DSC is at least {GATE_DSC:g}"
        yield name, replace(rules, gate_dsc=GATE_DSC)


def aggregate_ranks(board: Board, average: Average) -> tuple[int, ...]:
    """Ranks by the mean, or median, of each metric over the cases."""
    middle = np.ma.mean if average is Average.MEAN else np.ma.median
    values = middle(np.ma.masked_invalid(board.filled), axis=1)
    # Sums of the same values in another order differ in their last bits. A team is last
    # of whose cases all are left out.
    return _ranks_by_metric(rounded(values.filled(np.inf), ".12g"), board)


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
    return _ranks_by_metric(-beaten, board)


def _ranks_by_metric(values: Values, board: Board) -> tuple[int, ...]:
    """Ranks by the weighted sum of the ranks by each column."""
    ranks: Integers = 2 * np.array([ranks_by_sums(column) for column in values.T]).T
    return board.ranks_by(ranks @ board.rules.weights)


# --- First place ------------------------------------------------------------------
#
# Ranks on one case do not depend on the other cases. So a rival overtakes the winner by
# the fewest withdrawn cases when those are withdrawn on which the winner gains most on
# it, and these are found by sorting; no search is needed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """The cases that a rival needs to be withdrawn."""

    rival: TeamName
    number: Positive
    """How many cases it takes."""
    cases: Annotated[tuple[str, ...], Is(minItems=1)]
    """Which cases they are."""


SharedPlace = TypedDict(
    "SharedPlace",
    {
        "team": TeamName,
        "with": Annotated[
            tuple[str, ...], Is(about="With whom it would be shared.", minItems=1)
        ],
    },
)
"""A team without which first place would be shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What the first place of a team depends on."""

    team: TeamName
    withdrawals: tuple[Rival, ...]
    """Each rival that could be ahead if cases were withdrawn, and the fewest such
    cases; the rival that needs the fewest first. Empty where metrics of answers are
    ranked, as each case changes their values."""
    shares: tuple[Rival, ...]
    """Each rival that could draw level with the team if cases were withdrawn, and the
    fewest such cases; empty where metrics of answers are ranked."""
    lost_without_team: tuple[str, ...]
    """Each team without which another one would be first."""
    shared_without_team: tuple[SharedPlace, ...]
    """Each team without which first place would be shared."""
    choices_of_rules: Positive
    """How many choices of rules were tried."""
    alternatives: Annotated[
        Mapping[str, Positive], Is(entry=("RULE", "Number of its choices."))
    ]
    """What is chosen, and among how many; the product is `choices_of_rules`."""
    different_rankings: Positive
    """How many different rankings the choices give."""
    first_under: Count
    """Under how many choices the team is first."""


def sensitivity_of(board: Board, schemes: Sequence[Scheme]) -> tuple[Sensitivity, ...]:
    """Say what the first place depends on; for each team that shares it.

    The ranks of the competing teams are averaged by their mean. Among the schemes are
    those that leave out a team, if there are three or more.
    """
    winners = {
        team: number
        for number, team in enumerate(board.teams)
        if board.final_ranks[number] == 1
    }
    without = {s.left_out: s.ranks for s in schemes if s.left_out}
    rankings = ranks_by_choice(board)
    numbers = map(len, alternatives(board.rules))
    choices = dict(zip(CHOICES, numbers, strict=True))
    sensitivities = []
    for winner, number in winners.items():
        lost = [team for team, ranks in without.items() if ranks.get(winner, 1) > 1]
        sensitivity = Sensitivity(
            team=winner,
            withdrawals=_withdrawals(board, number),
            shares=_withdrawals(board, number, is_tie_enough=True),
            lost_without_team=tuple(lost),
            shared_without_team=tuple(_shared_places(winner, winners, without)),
            choices_of_rules=len(rankings),
            alternatives=choices,
            different_rankings=len(set(rankings)),
            first_under=sum(ranks[number] == 1 for ranks in rankings),
        )
        sensitivities.append(sensitivity)
    return tuple(sensitivities)


def _shared_places(
    winner: str, winners: Collection[str], without: Mapping[str, Mapping[str, int]]
) -> Iterator[SharedPlace]:
    """Teams without which a winner would share its place with teams behind it."""
    for left_out, ranks in without.items():
        first = [team for team, rank in ranks.items() if rank == 1]
        rivals = tuple(team for team in first if team not in winners)
        if rivals and winner in first:
            yield {"team": left_out, "with": rivals}


class Alternatives(NamedTuple):
    """All that can be chosen about the rules of a ranking."""

    ties: tuple[Ties, ...]
    missing: tuple[MissingRule, ...]
    averages: tuple[Average, ...]
    roundings: tuple[RankingRules, ...]
    """The rules, which differ in how values are rounded."""
    gates: tuple[float, ...]


CHOICES = ("ties", "missing results", "mean or median of ranks", "rounding", "gate")
"""The names of the alternatives for a reader, in their order."""


def alternatives(rules: RankingRules) -> Alternatives:
    """The choices about the rules of a challenge, these rules among them."""
    gates = {0.0}
    if "dsc" in rules.names and rules.has_cases:
        gates.add(rules.gate_dsc or GATE_DSC)
    roundings = [rules.unrounded, replace(rules, digits=DIGITS)]
    if any(rule.decimals is not None for rule in rules.metrics):
        roundings.append(rules)
    return Alternatives(
        ties=tuple(Ties),
        missing=rules.missing_rules,
        averages=tuple(Average) if rules.has_cases else (Average.MEAN,),
        roundings=tuple(roundings),
        gates=tuple(sorted(gates)),
    )


def ranks_by_choice(board: Board) -> list[tuple[int, ...]]:
    """The teams' ranks by every combination of the alternatives, in any order."""
    choices = alternatives(board.rules)
    rankings = []
    for rounding, gate in product(choices.roundings, choices.gates):
        rules = replace(rounding, gate_dsc=gate)
        values = replace(board, rules=rules).ranked
        for ties, missing in product(choices.ties, choices.missing):
            rules = replace(rules, ties=ties, missing=missing)
            ranks = board.ranks(values, rules)
            for average in choices.averages:
                sums = rank_sums(ranks, replace(rules, average=average))
                rankings.append(board.ranks_by(sums))
    return rankings


def _withdrawals(
    board: Board, winner: int, *, is_tie_enough: bool = False
) -> tuple[Rival, ...]:
    """The rivals of a winner, and the cases to which it owes its lead over each.

    There are none where values of answers or means are ranked, or order equal teams:
    each case changes these values, and no sorting finds the fewest.
    """
    rules = board.rules
    if rules.of_all_cases or rules.scheme.is_of_means or rules.ties_by:
        return ()
    rivals = []
    for number, team in enumerate(board.teams):
        leads = board.case_sums[number] - board.case_sums[winner]
        if number == winner or (is_tie_enough and not leads.sum()):
            continue  # it is the winner, or shares first place already
        cases = fewest_withdrawals(leads, is_tie_enough=is_tie_enough)
        if cases is not None:
            names = tuple(board.cases[case] for case in cases)
            rivals.append(Rival(rival=team, number=len(names), cases=names))
    return tuple(sorted(rivals, key=lambda rival: (rival.number, rival.rival)))


def fewest_withdrawals(
    leads: Integers | Sequence[int], *, is_tie_enough: bool = False
) -> tuple[int, ...] | None:
    """The fewest cases without which a rival is ahead; None if there are none.

    `leads` are how much higher, which is worse, the rival's ranks are on each case.
    Their sum is at least 0, as long as the rival is behind. Need the rival not be
    ahead, but may be equal, one case has to be left. Returns the numbers of the cases;
    the first ones of those with equal leads.

    Examples
    --------
    The lead is 4. Without the first case 2 - 1 - 1 = 0 are left: a tie; without the
    second one, too, the rival is ahead.

    >>> fewest_withdrawals([4, 2, -1, -1])
    (0, 1)
    >>> fewest_withdrawals([4, 2]) is None
    True
    """
    values = np.asarray(leads)
    order = np.argsort(-values, kind="stable")
    remaining = values.sum() - np.cumsum(values[order])
    is_enough = remaining[:-1] <= 0 if is_tie_enough else remaining < 0
    if not is_enough.any():
        return None
    withdrawn = order[: int(is_enough.argmax()) + 1]
    return tuple(sorted(withdrawn.tolist()))
