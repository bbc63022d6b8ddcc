"""Means of teams by metric and organ: the tables that every paper has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flare.challenge.metrics import Better, MetricName, metric_named, metrics_in
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.schema import Count, Text
from flare.ranking.rank import Analysis
from flare.ranking.ranks import Board, Flags, Values, missing_values
from flare.ranking.rules import RankingRules
from flare.ranking.table import ResultTable
from flare.ranking.uncertainty import PairTest, compare_pairs
from flare.results.scores import statistics
from flare.statistics import ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """What each team reaches over all cases, a row for each metric, organ and team; for
    organisers, as volumes of references can follow from means.
    """  # noqa: D205  a sentence of the public schema

    metric: MetricName
    """Name of the metric."""
    organ: str
    """Name of the organ; empty for the mean over organs, and for a metric that has no
    organs."""
    team: Text
    """Name of the team."""
    n: Count
    """Cases that count. A missing result counts as the challenge's value of a failed
    run, or else as the metric's worst value, which of a distance may be the diagonal of
    the case's grid, as metrics.json has it; where none is known, it is left out, and so
    is what a rule of the challenge leaves out. A
    metric of answers has one value of all cases together, and 1 here."""
    missing: Count
    """Results that are missing, whether or not they count."""
    mean: float | None
    """Mean; empty if no case counts, as all that follows."""
    sd: float | None
    """Standard deviation (n - 1); also empty if a single case counts."""
    first_quartile: float | None
    """First quartile, by linear interpolation (type 7 of R, as in NumPy)."""
    median: float | None
    """Median."""
    third_quartile: float | None
    """Third quartile, as the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The means of all teams by some metrics, and by organs."""

    rows: tuple[Mean, ...]
    """All means by metric, organ and team; the teams in the order of the ranking."""
    best: frozenset[Mean]
    """The best mean of each metric and organ."""
    level: frozenset[Mean]
    """Further means that no test tells from the best."""
    guests: frozenset[str]
    """Teams out of competition, which come last and are never best."""
    counted: Mapping[str, Sequence[float | None]]
    """What a missing result counts as, by metric and case; None where it is left
    out."""
    cases: int
    left_out: Mapping[Mean, int]
    """The number of cases that a rule of the challenge leaves out, if there are any."""
    is_tested: bool
    """Whether there were tests."""

    def fewest_cases(self, metric: str) -> int:
        """The fewest cases that a mean by a metric is of, also of an organ."""
        return min((row.n for row in self.rows if row.metric == metric), default=0)


def ranking_means(
    analysis: Analysis, *, has_organs: bool = True, has_tests: bool = True
) -> Means:
    """The means of the teams of a ranking, by its tests."""
    return team_means(
        analysis.table,
        analysis.challenge,
        analysis,
        has_organs=has_organs,
        has_tests=has_tests,
    )


def _columns(
    table: ResultTable, challenge: Challenge, *, has_organs: bool
) -> Iterator[tuple[str, str]]:
    """Each metric, and each metric and organ, as the challenge has them in order."""
    names = {*table.metrics, *table.others}
    scores = [metric.name for metric in metrics_in(table.others)]
    scores += [name for name in challenge.columns_of_others if name in names]
    for metric in dict.fromkeys((*table.metrics, *scores)):
        yield metric, ""
        for organ in challenge.organs if has_organs else ():
            if f"{metric}_{organ.name}" in names:
                yield metric, organ.name


def team_means(
    table: ResultTable,
    challenge: Challenge,
    analysis: Analysis | None = None,
    *,
    has_organs: bool = True,
    has_tests: bool = True,
) -> Means:
    """The means of teams, with those that no test tells from the best.

    The tests of a ranking compare them, if there is one. For organs and for metrics
    that are not ranked, the same test is done with the same adjustment, over all
    ordered pairs of teams. Without a ranking or tests, only the best is marked.
    """
    teams, guests, rules = _teams_and_rules(table, analysis)
    competing = len(teams) - len(guests)
    rows: list[Mean] = []
    best: set[Mean] = set()
    level: set[Mean] = set()
    left_out: dict[Mean, int] = {}
    counted: dict[str, list[float | None]] = {}
    worst_by_metric = table.worst(challenge.worst_distance_mm)
    for name, organ in _columns(table, challenge, has_organs=has_organs):
        column = f"{name}_{organ}" if organ else name
        rule = rules.get(name)
        worst = missing_values(name, rule.failed if rule else None, worst_by_metric)
        is_left_out = table.left_out_of(teams, [column])[:, :, 0]
        worst = np.where(is_left_out.all(axis=0), np.nan, worst)
        worst_values = [None if np.isnan(v) else v for v in worst.tolist()]
        counted.setdefault(name, worst_values)  # the mean of organs is first
        values = table.cube("value", teams, [column])[:, :, 0]
        count = len(metric_named(name).units(table.cases))
        values, worst = values[:, :count], worst[:count]
        is_left_out = is_left_out[:, :count]
        is_missing = np.isnan(values) & ~is_left_out
        missing = is_missing.sum(axis=1).tolist()
        values = np.where(is_missing, worst, values)
        team_rows = [
            _mean_of(name, organ, team, values[number], missing[number])
            for number, team in enumerate(teams)
        ]
        rows += team_rows
        left_out |= zip(team_rows, is_left_out.sum(axis=1).tolist(), strict=True)
        better = _direction(name, rule, challenge)
        if not better:
            continue
        complete = _complete(team_rows[:competing], left_out, count)
        column_best = _best(complete, better)
        best |= column_best
        if analysis and has_tests:
            flags = is_left_out[:competing]
            tests = _tests_of(analysis, column, better, values[:competing], flags)
            level |= _level(complete, column_best, tests)
    return Means(
        rows=tuple(rows),
        best=frozenset(best),
        level=frozenset(level),
        guests=guests,
        counted=counted,
        cases=len(table.cases),
        left_out=left_out,
        is_tested=analysis is not None and has_tests,
    )


def _complete(
    rows: Sequence[Mean], left_out: Mapping[Mean, int], cases: int
) -> list[Mean]:
    """The means of all cases, but those that a rule leaves out.

    One that leaves out what is missing would flatter: it is never the best.
    """
    return [row for row in rows if row.n + left_out[row] == cases]


def _teams_and_rules(
    table: ResultTable, analysis: Analysis | None
) -> tuple[Sequence[str], frozenset[str], dict[str, RankedMetric]]:
    """The teams in order, those out of competition, and the rules by metric."""
    if not analysis:
        return table.teams, frozenset(), {}
    teams = tuple(standing.team for standing in analysis.standings.standings)
    rules = {rule.metric: rule for rule in analysis.rules.metrics}
    return teams, analysis.decisions.guests, rules


def _direction(
    name: str, rule: RankedMetric | None, challenge: Challenge
) -> Better | None:
    """The direction in which a metric is better; None of a column that is no metric."""
    if rule:
        return rule.better
    return metric_named(name).better or challenge.columns_of_others.get(name)


def _tests_of(
    analysis: Analysis, column: str, better: Better, values: Values, is_left_out: Flags
) -> Sequence[PairTest]:
    """The tests of a column: the ranking's, or new ones of what is not ranked."""
    tests = [test for test in analysis.tests if test.metric == column]
    if tests:
        return tests
    rules = RankingRules(metrics=(RankedMetric(metric=column, better=better),))
    board = Board(
        teams=analysis.board.teams,
        cases=analysis.table.cases,
        values=values[:, :, np.newaxis],
        rules=rules,
        is_left_out=is_left_out[:, :, np.newaxis],
    )
    return compare_pairs(board)


def _mean_of(metric: str, organ: str, team: str, values: Values, missing: int) -> Mean:
    """The row of a team, from its values of all cases; NaN does not count."""
    present = values[~np.isnan(values)].tolist()
    summary = statistics(present) if present else {}
    quartiles = (None, None)
    if present:
        quartiles = np.quantile(present, (0.25, 0.75)).tolist()
    return Mean(
        metric=metric,
        organ=organ,
        team=team,
        n=len(present),
        missing=missing,
        mean=summary.get("mean"),
        sd=summary.get("std"),
        first_quartile=quartiles[0],
        median=summary.get("median"),
        third_quartile=quartiles[1],
    )


def _best(rows: Sequence[Mean], better: Better) -> set[Mean]:
    """The rows with the best mean: several, if they are equal."""
    means = [row.mean for row in rows if row.mean is not None]
    if not means:
        return set()
    best = max(means) if better is Better.HIGHER else min(means)
    return {row for row in rows if row.mean == best}


def _level(
    rows: Sequence[Mean], best: set[Mean], tests: Sequence[PairTest]
) -> set[Mean]:
    """The means that are not significantly worse than the best."""
    significant = {(test.team, test.other) for test in tests if test.p_holm <= ALPHA}
    level = set()
    for row in set(rows) - best:
        if any((first.team, row.team) not in significant for first in best):
            level.add(row)
    return level
