"""Ranks the teams of a challenge, with all that says how sure the ranking is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import FlareError
from flare.ranking.decisions import Decisions, apply_decisions, read_decisions
from flare.ranking.options import SAMPLES, SEED, RankingOptions
from flare.ranking.ranks import Board
from flare.ranking.robustness.flags import find_flags
from flare.ranking.robustness.schemes import Scheme, other_schemes
from flare.ranking.robustness.sensitivity import Sensitivity, sensitivity_of
from flare.ranking.robustness.uncertainty import (
    Bootstrap,
    PairTest,
    bootstrap,
    compare_pairs,
)
from flare.ranking.rules import RankingRules, ranked_metrics, rules_of
from flare.ranking.standings import Standings, rank_teams
from flare.ranking.table import ResultTable, read_results


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A ranking, what it was made from, and how far it can be trusted."""

    challenge: Challenge
    table: ResultTable
    """After the decisions."""
    rules: RankingRules
    decisions: Decisions
    standings: Standings
    bootstrap: Bootstrap | None
    """None if no samples were asked for; this and the rest is about the competing
    teams."""
    tests: tuple[PairTest, ...]
    schemes: tuple[Scheme, ...]
    sensitivity: tuple[Sensitivity, ...]
    flags: tuple[str, ...]

    @property
    def board(self) -> Board:
        """The values and ranks of the competing teams, best first."""
        return self.standings.board


def rank_results(
    source: Path | pd.DataFrame,
    challenge: Challenge,
    options: RankingOptions | None = None,
) -> Analysis:
    """Rank the teams of a folder or a table.

    Parameters
    ----------
    source : Path or DataFrame
        As in `flare.ranking.table.read_results`.
    challenge : Challenge
        Whose ranking it is.
    options : RankingOptions, optional
        What was chosen about the ranking.

    Raises
    ------
    RankingError
        If results or decisions contradict themselves, or results are missing, and the
        rules refuse that.
    """
    options = options or RankingOptions()
    metrics = ranked_metrics(challenge, options.metrics)
    needs_all = options.metrics is not None
    table = read_results(source, metrics, challenge, needs_all=needs_all)
    rules = rules_of(challenge, options, left_out=table.left_out)
    decisions = Decisions()
    if options.decisions:
        decisions = read_decisions(options.decisions)
        table = apply_decisions(table, decisions, str(options.decisions))
    return analyse(
        table,
        challenge,
        rules,
        decisions,
        samples=options.bootstrap,
        seed=options.seed,
    )


def analyse(
    table: ResultTable,
    challenge: Challenge,
    rules: RankingRules,
    decisions: Decisions | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Analysis:
    """Rank teams, and look at the ranking from all sides.

    Parameters
    ----------
    table : ResultTable
        The results, to which the decisions have been applied.
    challenge : Challenge
        Whose ranking it is.
    rules : RankingRules
        How teams are ranked.
    decisions : Decisions, optional
        What the organisers have decided.
    samples : int
        Of the bootstrap; 0 for none.
    seed : int
        Of its generator.

    Raises
    ------
    RankingError
        If results are missing, and the rules refuse that.
    """
    decisions = decisions or Decisions()
    standings = rank_teams(table, rules, decisions.guests)
    board = standings.board
    tests = compare_pairs(board)
    intervals = bootstrap(board, samples=samples, seed=seed) if samples else None
    schemes = other_schemes(board, tests)
    return Analysis(
        challenge=challenge,
        table=table,
        rules=rules,
        decisions=decisions,
        standings=standings,
        bootstrap=intervals,
        tests=tests,
        schemes=schemes,
        sensitivity=sensitivity_of(board, schemes),
        flags=find_flags(board, table.notes),
    )


def ranks_by_scores(results: Path, challenge: str) -> dict[str, int]:
    """The ranks of teams by DSC and NSD alone, without a look from any other side.

    Returns
    -------
    dict of str to int
        By team, in the order of the ranks; empty where they cannot be ranked yet.
    """
    # Not each challenge says how it ranks; by these two, all do as FLARE 2021 did.
    options = RankingOptions(metrics=("dsc", "nsd"))
    rules = rules_of(read_challenge("flare21"), options)
    try:
        table = read_results(results, rules.metrics, read_challenge(challenge))
    except (FlareError, OSError):
        return {}
    return {
        found.team: found.rank
        for found in rank_teams(table, rules).standings
        if found.rank
    }
