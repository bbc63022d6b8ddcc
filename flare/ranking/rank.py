"""Ranks the teams of a challenge, with all that says how sure the ranking is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from flare.challenge.rules import Challenge
from flare.ranking.decisions import Decisions, apply_decisions, read_decisions
from flare.ranking.robustness.bootstrap import SAMPLES, SEED, Bootstrap, bootstrap
from flare.ranking.robustness.flags import find_flags
from flare.ranking.robustness.schemes import Scheme, other_schemes
from flare.ranking.robustness.sensitivity import Sensitivity, sensitivity_of
from flare.ranking.robustness.significance import PairTest, compare_pairs
from flare.ranking.rules import RankingRules
from flare.ranking.standings import Standings, rank_teams
from flare.ranking.table import Board, ResultTable, board_of, read_results
from flare.results.efficiency_csv import known_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A ranking, what it was made from, and how far it can be trusted."""

    challenge: Challenge
    table: ResultTable
    """After the decisions."""
    rules: RankingRules
    decisions: Decisions
    standings: Standings
    board: Board
    """Of the competing teams, best first; the rest is about these."""
    bootstrap: Bootstrap | None
    """None if no samples were asked for."""
    tests: tuple[PairTest, ...]
    schemes: tuple[Scheme, ...]
    sensitivity: tuple[Sensitivity, ...]
    flags: tuple[str, ...]


def rank_results(
    source: Path | pd.DataFrame,
    challenge: Challenge,
    rules: RankingRules,
    *,
    decisions: Path | None = None,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Analysis:
    """Rank the teams of a folder or a table.

    Parameters
    ----------
    source : Path or DataFrame
        As in `flare.ranking.table.read_results`.
    challenge : Challenge
        Whose ranking it is.
    rules : RankingRules
        How teams are ranked.
    decisions : Path, optional
        A TOML file with what the organisers have decided.
    samples, seed : int
        As in `analyse`.

    Raises
    ------
    RankingError
        If results or decisions contradict themselves, or results are missing, and the
        rules refuse that.
    """
    table = _read_table(source, challenge, rules)
    decided = Decisions()
    if decisions:
        decided = read_decisions(decisions)
        table = apply_decisions(table, decided, str(decisions))
    return analyse(table, challenge, rules, decided, samples=samples, seed=seed)


def find_ranks(
    source: Path | pd.DataFrame, challenge: Challenge, rules: RankingRules
) -> dict[str, int]:
    """Rank the teams of a folder or a table, without a look from any other side.

    It costs a small part of `rank_results`, which needs SciPy's tests.

    Returns
    -------
    dict of str to int
        By team, in the order of the ranks.

    Raises
    ------
    RankingError
        As `rank_results` does.
    """
    standings = rank_teams(_read_table(source, challenge, rules), rules)
    return {found.team: found.rank for found in standings.standings if found.rank}


def _read_table(
    source: Path | pd.DataFrame, challenge: Challenge, rules: RankingRules
) -> ResultTable:
    """Read what the rules need of the results."""
    return read_results(
        source,
        [rule.metric for rule in rules.metrics],
        {
            rule.metric: rule.trace_tolerance_mb
            for rule in rules.metrics
            if rule.trace_tolerance_mb
        },
        challenge=challenge,
        unranked=[
            *(rule.metric for rule in challenge.ranking),
            *known_metrics(challenge),
        ],
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
    board = board_of(table, rules, standings.competing)
    tests = compare_pairs(board, rules)
    schemes = other_schemes(board, rules, tests)
    return Analysis(
        challenge=challenge,
        table=table,
        rules=rules,
        decisions=decisions,
        standings=standings,
        board=board,
        bootstrap=bootstrap(board, rules, samples=samples, seed=seed)
        if samples
        else None,
        tests=tests,
        schemes=schemes,
        sensitivity=sensitivity_of(board, rules, schemes),
        flags=find_flags(board, table, rules),
    )
