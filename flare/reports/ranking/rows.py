"""Puts a ranking into rows of cells, for every table that people read."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flare.common.text import printable
from flare.ranking.rank import Analysis
from flare.ranking.standings import Standing


def ranking_rows(analysis: Analysis, heads: Sequence[str]) -> list[list[str]]:
    """The ranking of the teams that compete, as rows of cells below these heads."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    ranked = [s for s in analysis.standings.standings if s.rank is not None]
    return [["rank", "team", "score", *heads], *(_row(s, metrics) for s in ranked)]


def guest_rows(analysis: Analysis) -> list[list[str]]:
    """Teams out of competition, with their mean ranks but no score."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    return [_row(s, metrics) for s in analysis.standings.guests]


def guests_note(analysis: Analysis) -> str:
    """What the ranks of teams out of competition mean."""
    count = len(analysis.board.teams)
    return (
        "Below the line: out of competition, without rank or score; ranked on each case"
        f" as if it alone had joined the {count} {'team' if count == 1 else 'teams'}."
    )


def _row(standing: Standing, metrics: Sequence[str]) -> list[str]:
    """A team's row."""
    return [
        str(standing.rank or "-"),
        printable(standing.team),
        f"{float(standing.score):.4f}" if standing.rank else "",
        *(f"{float(standing.mean_ranks[metric]):.2f}" for metric in metrics),
    ]


def plain(number: Fraction | float) -> int | float:
    """A whole number without decimals, any other in full precision."""
    return int(number) if number == int(number) else float(number)
