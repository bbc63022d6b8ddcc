"""Orders results as a board of Codabench does.

The rules are those of LeaderboardPhaseSerializer, and of the strategies of submission
rules. It is not the final ranking, which FLARE makes of each case first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flare.platforms.board import Order
from flare.platforms.codabench.competition import Column, Leaderboard, SubmissionRule
from flare.platforms.leaderboard import Result, Row, first_of_each

DECIMALS = 10
"""The site keeps scores with so many."""

OF_OTHERS = "it has no score of the board, as if the bundle were of another challenge"
"""The reason why such a result is left out, which the site would not have scored."""


def order_results(
    results: Sequence[Result], board: Leaderboard
) -> tuple[list[Row], list[tuple[str, str]]]:
    """Order results, each a scores.json or a metrics.json, by the rules of a board.

    The last result of a name is the most recent. Returns rows, best first; and names
    and reasons of the results that are not on the board.
    """
    keys, on_board, unknown = {column.key for column in board.columns}, [], []
    for result in results:
        scores = _scores(result.metrics)
        if keys.isdisjoint(scores):
            unknown.append((result.name, OF_OTHERS))
        else:
            on_board.append(Result(name=result.name, metrics=scores))
    left_out: list[tuple[str, str]] = []
    rule, first = board.submission_rule, board.primary_index
    if rule in (SubmissionRule.FORCE_BEST, SubmissionRule.FORCE_LAST):
        candidates, why = on_board[::-1], "a later result is there"
        if rule is SubmissionRule.FORCE_BEST:
            # By hidden columns, too, which do not order the board.
            columns = sorted(board.columns, key=lambda c: (c.index != first, c.index))
            candidates, why = _ordered(on_board, columns), "a better result is there"
        firsts, left_out = first_of_each(candidates, why)
        chosen = {id(result) for result in firsts}
        on_board = [result for result in on_board if id(result) in chosen]
    best_first = _ordered(on_board, board.ordering)
    rows: list[Row] = [(rank, rank, row) for rank, row in enumerate(best_first, 1)]
    return rows, [*left_out, *unknown]


def _scores(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a scores.json, or among the aggregates of a metrics.json."""
    values = metrics.get("aggregates", metrics)
    return {
        key: round(value, DECIMALS)
        for key, value in values.items()
        if isinstance(value, int | float)
    }


def _ordered(results: Iterable[Result], columns: Sequence[Column]) -> list[Result]:
    """Results by some columns; of equal ones, the oldest comes first."""

    def key(result: Result) -> list[tuple[bool, float]]:
        return [_key(result.metrics.get(c.key), c.sorting) for c in columns]

    return sorted(results, key=key)


def _key(score: float | None, sorting: Order) -> tuple[bool, float]:
    """Place a score in its column; to PostgreSQL, no score is above all scores."""
    is_descending = sorting is Order.DESCENDING
    if score is None:
        return not is_descending, 0.0
    return is_descending, -score if is_descending else score
