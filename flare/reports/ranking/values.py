"""The values of all teams by each metric, which organisers alone may see."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

import numpy as np

from flare.challenge.metrics import Metric, metric_named
from flare.ranking.rank import Analysis
from flare.reports.charts import value_axis
from flare.reports.model import Axis
from flare.reports.ranking.page import PublicRanking
from flare.reports.ranking.words import counted_text
from flare.reports.scores import Mean
from flare.results.groups_csv import Grouping
from flare.results.scores import present
from flare.statistics import ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValues:
    """The values of all competing teams by one metric, and how they differ."""

    metric: Metric
    teams: Sequence[str]
    """The competing teams, best first."""
    cases: Sequence[str]
    rows: Sequence[Sequence[float | None]]
    """The values of each team, by case."""
    counted: Sequence[float | None]
    """What a missing result counts as, by case; None where it is left out."""
    axis: Axis
    """The axis of all values, on the page of the ranking and on those of teams."""
    left_out: Sequence[Collection[int]]
    """The numbers of the cases on which each team has no value, by a rule."""
    own_order: Sequence[str]
    """The competing teams by their mean rank by this metric alone, best first."""
    effects: Mapping[tuple[str, str], tuple[float, bool]]
    """How much better a team is than another one, and whether significantly so."""

    @property
    def has_hard_cases(self) -> bool:
        """Whether its values tell which cases are hard, and for whom."""
        return self.metric.is_share and self.metric.is_of_each_case

    def medians_without(self, team: str) -> list[float | None]:
        """The medians of all other teams by case; None where none has a result."""
        rows = zip(self.teams, self.rows, strict=True)
        other_rows = [row for name, row in rows if name != team]
        medians: list[float | None] = []
        for number in range(len(self.cases)):
            results = present(row[number] for row in other_rows)
            medians.append(median(results) if results else None)
        return medians

    def counted_row(self, team: int) -> Sequence[float | None]:
        """The values of the team with a number, each missing one as it counts."""
        return counted_row(self.rows[team], self.counted, self.left_out[team])

    def mean_and_missing(self, team: int, cases: Sequence[int]) -> tuple[Mean, int]:
        """The mean of a team over cases with some numbers, and how many are missing."""
        row, values = self.rows[team], self.counted_row(team)
        mean = Mean(self.metric.name, [values[number] for number in cases])
        counted_cases = [n for n in cases if n not in self.left_out[team]]
        return mean, [row[number] for number in counted_cases].count(None)

    @property
    def counted_text(self) -> str:
        """Tell how a missing result counts; empty if no result is missing."""
        cases = range(len(self.cases))
        teams = range(len(self.teams))
        if not any(self.mean_and_missing(team, cases)[1] for team in teams):
            return ""
        return f"a missing result {counted_text({self.metric.name: self.counted})}"


@dataclass(frozen=True, slots=True)
class WholeRanking:
    """A ranking with all that organisers may know of it."""

    analysis: Analysis
    public: PublicRanking
    metrics: Sequence[MetricValues]
    groupings: Sequence[Grouping]

    @property
    def of_each_case(self) -> list[MetricValues]:
        """The metrics by which each case has a value."""
        return [values for values in self.metrics if values.metric.is_of_each_case]


def metric_values(analysis: Analysis) -> list[MetricValues]:
    """The values of all teams, by metric; None where the board has NaN."""
    return [
        _values_of(analysis, name, number)
        for number, name in enumerate(analysis.rules.names)
    ]


def _values_of(analysis: Analysis, name: str, number: int) -> MetricValues:
    """The values of all teams by a metric, which has a number on the board."""
    board = analysis.board
    rows = list(map(without_nan, board.values[:, :, number].tolist()))
    counted = without_nan(board.counted[:, number].tolist())
    effects = {}
    for test in analysis.tests:
        if test.metric == name:
            effects[test.team, test.other] = (test.effect, test.p_holm <= ALPHA)
    metric, cases = metric_named(name), board.cases
    if not metric.is_of_each_case:
        cases, counted = tuple(metric.units(cases)), counted[:1]
        rows = [row[:1] for row in rows]
    flags = board.is_left_out[:, :, number]
    mean_ranks = board.doubled_ranks[:, :, number].mean(axis=1)
    return MetricValues(
        metric=metric,
        teams=board.teams,
        cases=cases,
        rows=rows,
        counted=counted,
        axis=value_axis(metric, present(chain.from_iterable(rows))),
        own_order=[board.teams[n] for n in np.argsort(mean_ranks, kind="stable")],
        effects=effects,
        left_out=[np.flatnonzero(of_team).tolist() for of_team in flags],
    )


def counted_row(
    row: Sequence[float | None],
    counted: Sequence[float | None],
    left_out: Collection[int] = (),
) -> Sequence[float | None]:
    """The values of a team, each missing one as it counts in a mean.

    Those of a team without any result stay missing, and so do those on cases that are
    left out, by their numbers.
    """
    if not present(row):
        return row
    values = list(row)
    for number, counted_value in enumerate(counted):
        if row[number] is None and number not in left_out:
            values[number] = counted_value
    return values


def without_nan(values: Sequence[float]) -> list[float | None]:
    """The values, None for those that are missing."""
    return [None if math.isnan(value) else value for value in values]
