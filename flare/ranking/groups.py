"""Ranks the teams within each group of cases, by the rules of the ranking itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flare.ranking.robustness.schemes import team_ranks
from flare.ranking.rules import Rules
from flare.ranking.table import Board


def ranks_within(board: Board, rules: Rules, numbers: Sequence[int]) -> tuple[int, ...]:
    """The rank of each team of a board when some cases are all that there are.

    Parameters
    ----------
    board, rules
        Of the ranking itself. Ranks on single cases do not depend on the other cases.
    numbers : sequence of int
        Those of the cases.
    """
    return team_ranks(
        replace(
            board,
            cases=tuple(board.cases[number] for number in numbers),
            values=board.values[:, list(numbers)],
        ),
        rules,
    )
