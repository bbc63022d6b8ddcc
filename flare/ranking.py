"""Ranks teams by FLARE's rule: rank on each case and metric, then average.

No FLARE edition has published a script for this. The rule is that of the challenge's
page: for each case, teams are ranked on each metric; a team's ranks are averaged over
cases and metrics, and divided by the number of teams. Ranks are added as fractions, so
that equal sums are equal, exactly.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

from flare._version import __version__
from flare.challenge import Better, Challenge, RankedMetric
from flare.decisions import Decisions
from flare.errors import OutputError, RankingError
from flare.names import aligned, csv_cell, listing, printable, safe, why
from flare.teams import ResultTable

PRIZE_RULE = (
    "Teams with equal scores share a rank, and the ranks behind it are left out"
    " (1, 2, 2, 4): they share the prizes of the places that they take together."
)


class Ties(Enum):
    """Which rank teams with equal values get."""

    MIN = "min"
    """The best of the places that they take together."""
    AVERAGE = "average"
    MAX = "max"


class MissingRule(Enum):
    """Which rank a team without a result gets."""

    LAST = "last"
    """The number of teams."""
    WORST_PLUS_ONE = "worst-plus-one"
    """The places behind the highest rank that is given, as challengeR does."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How teams are ranked."""

    metrics: tuple[RankedMetric, ...]
    ties: Ties = Ties.MIN
    missing: MissingRule = MissingRule.LAST


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
    """Best first; teams with equal scores by their names."""
    case_ranks: Mapping[tuple[str, str, str], Fraction]
    """By team, case and metric."""


def rules_of(
    challenge: Challenge,
    *,
    metrics: Sequence[str] | None = None,
    ties: Ties = Ties.MIN,
    missing: MissingRule = MissingRule.LAST,
) -> Rules:
    """The rules of a challenge, or of some of its metrics.

    Raises
    ------
    RankingError
        If the challenge has no ranking, or no such metric.
    """
    known = {rule.metric: rule for rule in challenge.ranking}
    if not known:
        problem = "it has no [[ranking]]: which metrics are ranked is not known"
        raise RankingError(challenge.key, problem)
    chosen = list(metrics or known)
    unknown = [metric for metric in chosen if metric not in known]
    if unknown or len(set(chosen)) < len(chosen):
        problem = f"it ranks {listing(known)}; --metrics has {listing(chosen)}"
        raise RankingError(challenge.key, problem)
    return Rules(
        metrics=tuple(known[metric] for metric in chosen), ties=ties, missing=missing
    )


def rank_teams(
    table: ResultTable, rules: Rules, guests: frozenset[str] = frozenset()
) -> Standings:
    """Rank all teams.

    Parameters
    ----------
    table : ResultTable
        Their results.
    rules : Rules
        How they are ranked.
    guests : frozenset of str
        Teams out of competition. A guest gets the rank that it would have if it alone
        joined the others; theirs, and their number, do not change.

    Raises
    ------
    RankingError
        If results are missing, and the rules refuse that.
    """
    if rules.missing is MissingRule.REFUSE and table.missing:
        names = listing(f"{m.team} {m.case} {m.metric}" for m in table.missing)
        problem = f"{len(table.missing)} are missing: {names}"
        file = "The results"
        raise RankingError(file, problem)
    competing = [team for team in table.teams if team not in guests]
    case_ranks = _case_ranks(table, competing, rules)
    for guest in guests:
        joined = _case_ranks(table, [*competing, guest], rules)
        case_ranks |= {key: rank for key, rank in joined.items() if key[0] == guest}
    mean_ranks = {
        team: {
            rule.metric: sum(
                (case_ranks[team, case, rule.metric] for case in table.cases),
                Fraction(),
            )
            / len(table.cases)
            for rule in rules.metrics
        }
        for team in table.teams
    }
    weights = {rule.metric: Fraction(rule.weight) for rule in rules.metrics}
    scores = {
        team: sum((weights[m] * rank for m, rank in ranks.items()), Fraction())
        / sum(weights.values())
        / len(competing)
        for team, ranks in mean_ranks.items()
    }
    standings = [
        Standing(
            team=team,
            rank=None
            if team in guests
            else 1 + sum(scores[other] < scores[team] for other in competing),
            score=scores[team],
            mean_ranks=mean_ranks[team],
        )
        for team in sorted(table.teams, key=lambda team: (scores[team], team))
    ]
    return Standings(standings=tuple(standings), case_ranks=case_ranks)


def _case_ranks(
    table: ResultTable, teams: Sequence[str], rules: Rules
) -> dict[tuple[str, str, str], Fraction]:
    """Ranks of some teams among themselves, by team, case and metric."""
    case_ranks: dict[tuple[str, str, str], Fraction] = {}
    for rule in rules.metrics:
        for case in table.cases:
            values = {
                team: _comparable(table.values[team, case, rule.metric], rule)
                for team in teams
                if (team, case, rule.metric) in table.values
            }
            ranks = rank_values(values, rules.ties)
            last = Fraction(len(teams))
            if rules.missing is MissingRule.WORST_PLUS_ONE:
                last = max(ranks.values(), default=Fraction(0)) + _place(
                    1, len(teams) - len(ranks), rules.ties
                )
            for team in teams:
                case_ranks[team, case, rule.metric] = ranks.get(team, last)
    return case_ranks


def rank_values(values: Mapping[str, float], ties: Ties) -> dict[str, Fraction]:
    """Ranks of values, of which smaller ones are better; equal ones are ties.

    Examples
    --------
    >>> ranks = rank_values({"a": 2.0, "b": 1.0, "c": 2.0}, Ties.AVERAGE)
    >>> {name: str(rank) for name, rank in ranks.items()}
    {'a': '5/2', 'b': '1', 'c': '5/2'}
    """
    ranks = {}
    for name, value in values.items():
        better = sum(other < value for other in values.values())
        equal = sum(other == value for other in values.values())
        ranks[name] = _place(better + 1, equal, ties)
    return ranks


def _place(first: int, equal: int, ties: Ties) -> Fraction:
    """The rank of each of some equal values that take the places from `first` on."""
    last = first + equal - 1
    return {
        Ties.MIN: Fraction(first),
        Ties.AVERAGE: Fraction(first + last, 2),
        Ties.MAX: Fraction(last),
    }[ties]


def _comparable(value: float, rule: RankedMetric) -> float:
    """A value of which a smaller one is better; 0 up to the tolerance."""
    if rule.better is Better.HIGHER:
        return -value
    return max(0.0, value - rule.tolerance) if rule.tolerance else value


# --- Output -----------------------------------------------------------------------


def ranking_table(
    standings: Standings, table: ResultTable, rules: Rules, decisions: Decisions
) -> str:
    """The ranking as text, the rule for prizes, decisions, and missing results."""
    metrics = [rule.metric for rule in rules.metrics]
    header = ["rank", "team", "score", *(f"mean rank {metric}" for metric in metrics)]
    lines = [
        [
            str(standing.rank or "-"),
            printable(decisions.name_of(standing.team)),
            f"{float(standing.score):.4f}",
            *(f"{float(standing.mean_ranks[metric]):.2f}" for metric in metrics),
        ]
        for standing in standings.standings
    ]
    text = aligned([header, *lines])
    text += ["", PRIZE_RULE, *decisions.lines]
    for missing in table.missing:
        team = safe(decisions.name_of(missing.team))
        place = f"{team}, {safe(missing.case)}, {missing.metric}"
        text.append(f"Missing: {place}: {safe(missing.reason)}")
    return "\n".join(text)


def write_ranking(
    standings: Standings,
    table: ResultTable,
    rules: Rules,
    challenge: Challenge,
    decisions: Decisions,
    folder: Path,
    **more: Any,
) -> None:
    """Write ranking.csv, case_ranks.csv and ranking.json, with what `more` there is.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    metrics = [rule.metric for rule in rules.metrics]
    ranking = [
        [csv_cell(decisions.name_of(s.team)), s.rank or "", _plain(s.score)]
        + [_plain(s.mean_ranks[metric]) for metric in metrics]
        for s in standings.standings
    ]
    columns = ["team", "rank", "score", *(f"mean_rank_{metric}" for metric in metrics)]
    ranks = [
        [csv_cell(decisions.name_of(team)), case, metric, _plain(rank)]
        for (team, case, metric), rank in sorted(standings.case_ranks.items())
    ]
    content = _content(standings, table, rules, challenge, decisions) | more
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_csv(folder / "ranking.csv", columns, ranking)
        case_columns = ["team", "case", "metric", "rank"]
        _write_csv(folder / "case_ranks.csv", case_columns, ranks)
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        (folder / "ranking.json").write_text(text, encoding="utf-8")
    except OSError as error:
        reason = why(error)
        problem = f"{safe(folder)}: it cannot be written to ({reason})"
        raise OutputError(problem) from error


def _content(
    standings: Standings,
    table: ResultTable,
    rules: Rules,
    challenge: Challenge,
    decisions: Decisions,
) -> dict[str, Any]:
    """What ranking.json holds."""
    return {
        "settings": {
            "version": __version__,
            "challenge": challenge.key,
            "challenge_sha256": challenge.checksum,
            "ties": rules.ties.value,
            "missing": rules.missing.value,
            "metrics": [
                {
                    "metric": rule.metric,
                    "better": rule.better.value,
                    "weight": rule.weight,
                    "tolerance": rule.tolerance,
                }
                for rule in rules.metrics
            ],
        },
        "decisions": list(decisions.lines),
        "teams": len(set(table.teams) - decisions.guests),
        "cases": list(table.cases),
        "ranking": [
            {
                "team": printable(decisions.name_of(s.team)),
                "rank": s.rank,
                "score": float(s.score),
                "score_exact": str(s.score),
                "mean_ranks": {m: float(rank) for m, rank in s.mean_ranks.items()},
            }
            for s in standings.standings
        ],
        "missing": [
            {
                "team": printable(decisions.name_of(m.team)),
                "case": printable(m.case),
                "metric": m.metric,
                "reason": printable(m.reason),
            }
            for m in table.missing
        ],
    }


def _plain(number: Fraction) -> int | float:
    """A whole number as such, and other ones in full precision."""
    return number.numerator if number.denominator == 1 else float(number)


def _write_csv(
    file: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Write a table."""
    with file.open("w", encoding="utf-8", newline="") as content:
        writer = csv.writer(content, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
