"""Orders teams by FLARE's rule: rank on each case and metric, then average.

No FLARE edition has published a script for this. The rule is that of the challenge's
page: for each case, teams are ranked on each metric; a team's ranks are averaged over
cases and metrics, and divided by the number of teams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from flare.common.text import listing
from flare.ranking.options import MissingRule
from flare.ranking.ranks import Board
from flare.ranking.rules import RankingRules
from flare.ranking.table import ResultTable, make_index
from flare.results.errors import RankingError

PRIZE_RULE = (
    "Teams with equal scores share a rank, and the ranks behind it are left out"
    " (1, 2, 2, 4). Where there are prizes, they share those of the places that they"
    " take together."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a team stands."""

    team: str
    rank: int | None
    """None for a team that is out of competition."""
    score: Fraction
    """Weighted mean of its ranks, divided by the number of teams; smaller is better."""
    mean_ranks: Mapping[str, Fraction]
    """By metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The ranking of all teams."""

    standings: tuple[Standing, ...]
    """Best first, teams with equal scores by their names; those out of competition
    last."""
    case_ranks: pd.Series[float]
    """By team, case and metric, in the order of the table; whole numbers and halves,
    which are exact."""
    board: Board
    """Of the competing teams, best first."""

    def to_frame(self) -> pd.DataFrame:
        """A row for each team, best first: rank, score, and its mean ranks."""
        rows = {
            standing.team: {
                "rank": standing.rank,
                "score": float(standing.score),
                **{
                    f"mean_rank_{metric}": float(rank)
                    for metric, rank in standing.mean_ranks.items()
                },
            }
            for standing in self.standings
        }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        # Those out of competition have no rank, and the others have whole ones.
        return frame.astype({"rank": "Int64"}).rename_axis("team")

    @property
    def guests(self) -> tuple[Standing, ...]:
        """Teams out of competition, which have none."""
        return tuple(s for s in self.standings if s.rank is None)


def rank_teams(
    table: ResultTable, rules: RankingRules, guests: frozenset[str] = frozenset()
) -> Standings:
    """Rank all teams.

    Parameters
    ----------
    table : ResultTable
        Their results.
    rules : RankingRules
        How they are ranked; ranks are averaged by their mean.
    guests : frozenset of str
        Teams out of competition. A guest gets the rank that it would have if it alone
        joined the others; theirs, and their number, do not change.

    Raises
    ------
    RankingError
        If results are missing, and the rules refuse that.
    """
    missing = table.missing if rules.missing is MissingRule.REFUSE else ()
    if missing:
        names = listing(f"{m.team} {m.case} {m.metric}" for m in missing)
        raise RankingError("The results", f"{len(missing)} are missing: {names}")
    competing = [team for team in table.teams if team not in guests]
    board = table.board(rules, competing)
    ranks = dict(zip(competing, board.doubled_ranks, strict=True))
    for guest in sorted(guests):
        ranks[guest] = table.board(rules, [*competing, guest]).doubled_ranks[-1]
    sums = {team: int(own.sum(axis=0) @ rules.weights) for team, own in ranks.items()}
    order = sorted(table.teams, key=lambda team: (team in guests, sums[team], team))
    count = 2 * len(table.cases)
    places = count * int(rules.weights.sum()) * len(competing)
    standings = tuple(
        Standing(
            team=team,
            rank=None
            if team in guests
            else 1 + sum(sums[other] < sums[team] for other in competing),
            score=Fraction(sums[team], places),
            mean_ranks={
                metric: Fraction(int(total), count)
                for metric, total in zip(
                    rules.names, ranks[team].sum(axis=0), strict=True
                )
            },
        )
        for team in order
    )
    doubled = np.stack([ranks[team] for team in table.teams])
    case_ranks = pd.Series(
        doubled.ravel() / 2,
        index=make_index(table.teams, table.cases, rules.names),
        name="rank",
    )
    return Standings(
        standings=standings,
        case_ranks=case_ranks,
        board=table.board(rules, order[: len(competing)]),
    )
