"""Says exactly what would have to change for another team to win.

Ranks on one case do not depend on the other cases. So a rival overtakes the winner by
the fewest withdrawn cases when those are withdrawn on which the winner gains most on
it, and these are found by sorting; no search is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, TypedDict

import numpy as np

from flare.common.schema import Count, Is, Positive
from flare.ranking.options import Ties
from flare.ranking.ranks import Board, comparable, rank_sums, ranks_by_sums, ranks_of
from flare.ranking.robustness.schemes import DIGITS, GATE_DSC, Scheme
from flare.ranking.rules import Average, Integers, RankingRules
from flare.results.csv_rows import TeamName


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
    cases; the rival that needs the fewest first."""
    shares: tuple[Rival, ...]
    """Each rival that could share first place if cases were withdrawn, and the fewest
    such cases."""
    lost_without_team: tuple[str, ...]
    """Each team without which another one would be first."""
    shared_without_team: tuple[SharedPlace, ...]
    """Each team without which first place would be shared."""
    choices_of_rules: Positive
    """How many choices of rules were tried."""
    alternatives: Annotated[
        Mapping[str, Positive], Is(each=("RULE", "Number of its choices."))
    ]
    """What is chosen, and among how many; the product is `choices_of_rules`."""
    different_rankings: Positive
    """How many different rankings the choices give."""
    first_under: Count
    """Under how many choices the team is first."""


def sensitivity_of(board: Board, schemes: Sequence[Scheme]) -> tuple[Sensitivity, ...]:
    """Say what the first place depends on; for each team that shares it.

    Parameters
    ----------
    board : Board
        The competing teams, whose ranks are averaged by their mean.
    schemes : sequence of Scheme
        Other ways to rank them, among them those without one of three or more teams.
    """
    winners = [n for n, rank in enumerate(board.final_ranks) if rank == 1]
    names = [board.teams[winner] for winner in winners]
    withdrawals = [_withdrawals(board, winner) for winner in winners]
    shares = [_withdrawals(board, winner, is_tie_enough=True) for winner in winners]
    without = {s.left_out: s.ranks for s in schemes if s.left_out}
    joining = {
        team: tuple(t for t, rank in ranks.items() if rank == 1 and t not in names)
        for team, ranks in without.items()
    }
    ways = {name: len(ways) for name, ways in alternatives(board.rules).items()}
    under = ranks_by_choice(board)
    return tuple(
        Sensitivity(
            team=name,
            withdrawals=withdrawals[number],
            shares=shares[number],
            lost_without_team=tuple(
                team for team, ranks in without.items() if ranks.get(name, 1) > 1
            ),
            shared_without_team=tuple(
                {"team": team, "with": others}
                for team, others in joining.items()
                if others and without[team].get(name) == 1
            ),
            choices_of_rules=len(under),
            alternatives=ways,
            different_rankings=len(set(under)),
            first_under=sum(ranks[winners[number]] == 1 for ranks in under),
        )
        for number, name in enumerate(names)
    )


def alternatives(rules: RankingRules) -> dict[str, list[dict[str, Any]]]:
    """By what can be chosen about the rules, the fields that each choice sets."""
    gates = sorted({0.0, rules.gate_dsc or GATE_DSC}) if "dsc" in rules.names else [0.0]
    roundings = [rules.unrounded, replace(rules, digits=DIGITS)]
    if any(rule.decimals is not None for rule in rules.metrics):
        roundings.append(rules)
    return {
        "ties": [{"ties": ties} for ties in Ties],
        "missing results": [{"missing": rule} for rule in rules.missing_rules],
        "mean or median of ranks": [{"average": average} for average in Average],
        "rounding": [{"metrics": r.metrics, "digits": r.digits} for r in roundings],
        "gate": [{"gate_dsc": gate} for gate in gates],
    }


def ranks_by_choice(board: Board) -> list[tuple[int, ...]]:
    """The teams' ranks by every combination of the alternatives, in any order."""
    ways = alternatives(board.rules)
    average = ways.pop("mean or median of ranks")
    values_differ = [ways.pop(name) for name in ("rounding", "gate")]
    found = []
    for rounding, gate in product(*values_differ):
        changed = replace(board.rules, **rounding, **gate)
        values = comparable(board.values, changed)
        for parts in product(*ways.values()):
            changed = replace(
                changed, **{k: v for part in parts for k, v in part.items()}
            )
            ranks = ranks_of(values, changed)
            found += [
                ranks_by_sums(rank_sums(ranks, replace(changed, **how)))
                for how in average
            ]
    return found


def _withdrawals(
    board: Board, winner: int, *, is_tie_enough: bool = False
) -> tuple[Rival, ...]:
    """The rivals of a winner, and the cases to which it owes its lead over each."""
    found = []
    for rival, team in enumerate(board.teams):
        leads = board.case_sums[rival] - board.case_sums[winner]
        if rival == winner or (is_tie_enough and not leads.sum()):
            continue  # it is the winner, or shares first place already
        cases = fewest_withdrawals(leads, is_tie_enough=is_tie_enough)
        if cases is not None:
            names = tuple(board.cases[case] for case in cases)
            found.append(Rival(rival=team, number=len(names), cases=names))
    return tuple(sorted(found, key=lambda own: (own.number, own.rival)))


def fewest_withdrawals(
    leads: Integers | Sequence[int], *, is_tie_enough: bool = False
) -> tuple[int, ...] | None:
    """The fewest cases without which a rival is ahead; None if there are none.

    Parameters
    ----------
    leads : sequence of int
        By case: how much higher, which is worse, the rival's ranks are. Their sum is
        at least 0, as long as the rival is behind.
    is_tie_enough : bool
        Whether the rival need not be ahead, but may be equal. One case has to be left.

    Returns
    -------
    tuple of int
        Of equal leads, the first cases.

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
    left = values.sum() - np.cumsum(values[order])
    enough = np.flatnonzero(left[:-1] <= 0 if is_tie_enough else left < 0)
    if not len(enough):
        return None
    return tuple(sorted(int(case) for case in order[: enough[0] + 1]))
