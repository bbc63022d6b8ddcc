"""Says exactly what would have to change for another team to win.

Ranks on one case do not depend on the other cases. So a rival overtakes the winner by
the fewest withdrawn cases when those are withdrawn on which the winner gains most on
it, and these are found by sorting; no search is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from flare.ranking.options import Ties
from flare.ranking.ranks import Board, comparable, rank_sums, ranks_by_sums, ranks_of
from flare.ranking.robustness.schemes import DIGITS, GATE_DSC, Scheme
from flare.ranking.rules import Average, Integers, RankingRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What the first place of a team depends on."""

    team: str
    cases: int
    """Of the challenge."""
    withdrawals: tuple[tuple[str, tuple[str, ...]], ...]
    """Each rival that could win if cases were withdrawn, and the fewest such cases; the
    rival that needs the fewest first."""
    shares: tuple[tuple[str, tuple[str, ...]], ...]
    """Each rival that could then share first place, and the fewest such cases."""
    disqualifications: tuple[str, ...]
    """Each team without which another one would be first."""
    ties: tuple[tuple[str, tuple[str, ...]], ...]
    """Each team without which it would share first place, and with whom; without those
    with whom it shares it as it is."""
    first: int
    """How many choices of rules put it first."""
    choices: int
    """How many choices there are."""
    alternatives: tuple[tuple[str, int], ...]
    """What is chosen, and among how many; their product is `choices`."""
    rankings: int
    """How many different rankings the choices give."""


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
    ways = tuple((name, len(ways)) for name, ways in alternatives(board.rules).items())
    under = ranks_by_choice(board)
    return tuple(
        Sensitivity(
            team=name,
            cases=len(board.cases),
            withdrawals=withdrawals[number],
            shares=shares[number],
            disqualifications=tuple(
                team for team, ranks in without.items() if ranks.get(name, 1) > 1
            ),
            ties=tuple(
                (team, others)
                for team, others in joining.items()
                if others and without[team].get(name) == 1
            ),
            first=sum(ranks[winners[number]] == 1 for ranks in under),
            choices=len(under),
            alternatives=ways,
            rankings=len(set(under)),
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
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The rivals of a winner, and the cases to which it owes its lead over each."""
    found = []
    for rival, team in enumerate(board.teams):
        leads = board.case_sums[rival] - board.case_sums[winner]
        if rival == winner or (is_tie_enough and not leads.sum()):
            continue  # it is the winner, or shares first place already
        cases = fewest_withdrawals(leads, is_tie_enough=is_tie_enough)
        if cases is not None:
            found.append((team, tuple(board.cases[case] for case in cases)))
    return tuple(sorted(found, key=lambda item: (len(item[1]), item[0])))


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
