"""Ranks the teams of a challenge, with all that says how sure the ranking is.

No FLARE edition has published a script for this. The rule is that of the challenge's
page: for each case, teams are ranked on each metric; a team's ranks are averaged over
cases and metrics, and divided by the number of teams. A ``[scheme]`` may have means in
place of cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flare.challenge.metrics import METRICS, SCORES, Better
from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.errors import FlareError
from flare.common.text import listing, safe
from flare.ranking.decisions import (
    Decisions,
    apply_decisions,
    find_flags,
    read_decisions,
)
from flare.ranking.ranks import Board
from flare.ranking.rules import (
    MissingRule,
    RankingOptions,
    RankingRules,
    ranked_metrics,
    rules_of,
    tie_columns,
)
from flare.ranking.sensitivity import Scheme, Sensitivity, other_schemes, sensitivity_of
from flare.ranking.table import ResultTable, make_index, read_results
from flare.ranking.uncertainty import (
    Bootstrap,
    PairTest,
    bootstrap,
    compare_pairs,
    draw_cases,
)
from flare.results.errors import GroupsFileError, RankingError
from flare.results.groups_csv import NOT_GIVEN, read_groups
from flare.statistics import DRAWS

if TYPE_CHECKING:
    import pandas as pd


def prize_text(rules: RankingRules) -> str:
    """The rule for teams that nothing orders."""
    equal = "that are equal by all of this" if rules.ties_by else "with equal scores"
    return (
        f"Teams {equal} share a rank, and the ranks behind it are left out (1, 2, 2,"
        " 4). Where there are prizes, they share those of the places that they take"
        " together."
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
    """The mean of its ranks by each metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The ranking of all teams."""

    standings: tuple[Standing, ...]
    """The best team first, and teams with equal scores by their names; those out of
    competition come last."""
    case_ranks: pd.Series[float]
    """The ranks by team, case and metric, in the order of the table; whole numbers and
    halves, which are exact; NaN where a metric is left out. Ranks of means are those of
    groups, or of all cases."""
    board: Board
    """The values and ranks of the competing teams, best first."""

    def to_frame(self) -> pd.DataFrame:
        """A row for each team, best first: rank, score, and its mean ranks."""
        import pandas as pd

        rows = {}
        for standing in self.standings:
            row = {"rank": standing.rank, "score": float(standing.score)}
            for metric, rank in standing.mean_ranks.items():
                row[f"mean_rank_{metric}"] = float(rank)
            rows[standing.team] = row
        frame = pd.DataFrame.from_dict(rows, orient="index")
        # Ranks are whole numbers, or absent for teams out of competition.
        return frame.astype({"rank": "Int64"}).rename_axis("team")

    @property
    def guests(self) -> tuple[Standing, ...]:
        """The teams out of competition, which have no rank."""
        return tuple(s for s in self.standings if s.rank is None)


def rank_teams(
    table: ResultTable, rules: RankingRules, guests: frozenset[str] = frozenset()
) -> Standings:
    """Rank all teams by the means of their ranks.

    Guests are out of competition. A guest gets the rank that it would have if it alone
    joined the others; their ranks, and their number, do not change. A RankingError is
    raised if results are missing, and the rules refuse that.
    """
    import pandas as pd  # not at the top: flare score has no need of it

    if rules.missing is MissingRule.REFUSE and table.missing:
        names = listing(f"{m.team} {m.case} {m.metric}" for m in table.missing)
        problem = f"{len(table.missing)} are missing: {names}"
        raise RankingError("The results", problem)
    competing = [team for team in table.teams if team not in guests]
    board = table.board(rules, competing)
    ranks = dict(zip(competing, board.doubled_ranks, strict=True))
    for guest in sorted(guests):
        ranks[guest] = table.board(rules, [*competing, guest]).doubled_ranks[-1]
    sums = {
        team: int(places.sum(axis=0) @ rules.weights) for team, places in ranks.items()
    }
    places = dict(zip(competing, board.final_ranks, strict=True))
    order = sorted(table.teams, key=lambda t: (t in guests, places.get(t, sums[t]), t))
    # On a case where a metric is left out, nobody has a rank by it.
    counts = 2 * (board.doubled_ranks[0] > 0).sum(axis=0)
    largest_sum = int(counts @ rules.weights) * len(competing)
    standings = []
    for team in order:
        totals = ranks[team].sum(axis=0).tolist()
        means = map(Fraction, totals, counts.tolist())
        standing = Standing(
            team=team,
            rank=places.get(team),
            score=Fraction(sums[team], largest_sum),
            mean_ranks=dict(zip(rules.names, means, strict=True)),
        )
        standings.append(standing)
    doubled = np.stack([ranks[team] for team in table.teams])
    case_ranks = pd.Series(
        np.where(doubled == 0, math.nan, doubled / 2).ravel(),
        index=make_index(table.teams, board.units, rules.names),
        name="rank",
    )
    return Standings(
        standings=tuple(standings),
        case_ranks=case_ranks,
        board=table.board(rules, order[: len(competing)]),
    )


# --- From all sides ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A ranking, what it was made from, and how far it can be trusted."""

    challenge: Challenge
    table: ResultTable
    """The results, after the decisions were applied."""
    rules: RankingRules
    decisions: Decisions
    standings: Standings
    bootstrap: Bootstrap | None
    """None without samples; this and all that follows is about the competing teams."""
    tests: tuple[PairTest, ...]
    schemes: tuple[Scheme, ...]
    sensitivity: tuple[Sensitivity, ...]
    flags: tuple[str, ...]
    shows_means: bool = False
    """Whether everybody may see the means of all teams."""

    @property
    def board(self) -> Board:
        """The values and ranks of the competing teams, best first."""
        return self.standings.board


def rank_results(
    source: Path | pd.DataFrame,
    challenge: Challenge,
    options: RankingOptions | None = None,
    groups: Path | None = None,
) -> Analysis:
    """Rank the teams of a source that `flare.ranking.table.read_results` can read.

    A RankingError is raised if results or decisions contradict themselves, or results
    are missing, and the rules refuse that.
    """
    options = options or RankingOptions()
    metrics = ranked_metrics(challenge, options.metrics)
    needs_all = options.metrics is not None
    ties_by = tie_columns(challenge)
    table = read_results(
        source, metrics, challenge, needs_all=needs_all, ties_by=ties_by
    )
    rules = rules_of(challenge, options, left_out=table.left_out)
    decisions = Decisions()
    if options.decisions:
        decisions = read_decisions(options.decisions)
        table = apply_decisions(table, decisions, str(options.decisions))
    if challenge.scheme.group:
        withdrawn = [decision.case for decision in decisions.withdrawn]
        names = _groups_of(challenge, groups, table.cases, withdrawn)
        table = replace(table, groups=names)
    return analyse(table, challenge, rules, decisions, options)


def _groups_of(
    challenge: Challenge,
    file: Path | None,
    cases: Sequence[str],
    withdrawn: Sequence[str],
) -> tuple[str, ...]:
    """The group of each case in the column of the scheme; refuse a case without one."""
    column = challenge.scheme.group
    if file is None:
        problem = f"its [scheme] ranks in each {safe(column)}, and no file tells these"
        remedy = "Give one with the columns case and {}: --groups groups.csv."
        raise RankingError(challenge.key, problem, remedy.format(safe(column)))
    groupings = {g.column: g.names for g in read_groups(file, cases, withdrawn)}
    if column not in groupings:
        problem = f"it has no column {safe(column)}, in whose groups teams are ranked"
        raise GroupsFileError(str(file), problem)
    names = groupings[column]
    if NOT_GIVEN in names:
        case = safe(cases[names.index(NOT_GIVEN)])
        problem = f"no {safe(column)} of case {case}, and teams are ranked in each"
        raise GroupsFileError(str(file), problem)
    return names


def analyse(
    table: ResultTable,
    challenge: Challenge,
    rules: RankingRules,
    decisions: Decisions | None = None,
    options: RankingOptions | None = None,
) -> Analysis:
    """Rank teams, and look at the ranking from all sides.

    The decisions have been applied to the table already. The options tell of the
    bootstrap, and of who may see the means. Errors are those of `rank_teams`.
    """
    decisions, options = decisions or Decisions(), options or RankingOptions()
    standings = rank_teams(table, rules, decisions.guests)
    board = standings.board
    samples, draws = options.bootstrap, None
    # Metrics of answers are compared by draws, also where no ranks are drawn.
    if samples or board.answers:
        draws = draw_cases(board, samples=samples or DRAWS, seed=options.seed)
    tests = compare_pairs(board, draws)
    schemes = other_schemes(board, tests)
    return Analysis(
        challenge=challenge,
        table=table,
        rules=rules,
        decisions=decisions,
        standings=standings,
        bootstrap=bootstrap(board, draws) if draws and samples else None,
        tests=tests,
        schemes=schemes,
        sensitivity=sensitivity_of(board, schemes),
        flags=find_flags(table, board),
        shows_means=options.means,
    )


def read_scored(results: Path, challenge: str) -> ResultTable | None:
    """Read the first scores of teams, whether or not the challenge ranks by them.

    The result is None where teams cannot be compared yet.
    """
    try:
        rules = read_challenge(challenge)
        metrics = []
        for name in rules.metrics[: len(SCORES)]:
            better = METRICS[name].better or Better.LOWER
            metrics.append(RankedMetric(metric=name, better=better))
        return read_results(results, metrics, rules)
    except (FlareError, OSError):
        return None
