"""Compares evaluations with the first of them, case by case: comparison.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, product
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np

from flare.answers.values import case_numbers, decisions
from flare.challenge.answers import KINDS
from flare.challenge.metrics import METRICS, Better, Metric, MetricName, metric_named
from flare.common.environment import __version__
from flare.common.schema import Count, Is, Share, Text, dump
from flare.ranking.answers import AnswerColumn, AnswerSheet
from flare.ranking.ranking_json import shown
from flare.ranking.ranks import Tau, Values
from flare.results.scores import present
from flare.statistics import ALPHA, DRAWS
from flare.statistics.bootstrap import draw_places, mean_interval, percentiles
from flare.statistics.paired import holm, mcnemar, steps, two_sided

COMPARISON_JSON = "comparison.json"

SEED = 0
"""Seed of the draws of answers."""

FEWEST_DRAWS = DRAWS // 2
"""With fewer draws that have a value, there is no interval."""

Interval = Annotated[tuple[float, float], Is(minItems=2, maxItems=2)]


SIGNED_RANKS = "two-sided Wilcoxon signed-rank, paired by case, normal approximation"
"""How values of each case are compared, in comparison.json."""

SIGNED_RANKS_NOTE = (
    "p-values are those of the two-sided Wilcoxon signed-rank test, paired by case:"
    " cases without a difference are left out (zero method of Wilcoxon), equal"
    " differences get their average rank, and the normal approximation is used,"
    " with corrections for ties and continuity, as in flare rank. The effect is the"
    " matched-pairs rank-biserial correlation: 1 if the new scores are better"
    " wherever there is a difference, -1 if they are worse."
)

PERCENTILES = f"percentiles of {DRAWS} bootstrap samples of the cases"
"""How values of answers are compared, of all cases together."""

PERCENTILES_NOTE = (
    f"Intervals of differences are those of {DRAWS} bootstrap samples of the cases,"
    " drawn for both evaluations alike (percentiles 2.5 and 97.5). Whether one is"
    " right more often is McNemar's exact test: of the cases on which only one of"
    " both is right, either would be as likely to be it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One score of an evaluation, less that of the first evaluation."""

    evaluation: Text
    """The evaluation that is compared with the first."""
    metric: MetricName
    """Name of the metric."""
    organ: str
    """Name of the organ; empty for the mean over organs."""
    method: Text | None
    """Which test is used; null for a metric without a good end."""
    cases: Count = 0
    """Cases that have both scores, of which all that follows is."""
    before: float | None = None
    """Mean of the first evaluation."""
    after: float | None = None
    """Mean of this evaluation."""
    difference: float | None = None
    """Mean difference: the new value less the old one."""
    interval: Interval | None = None
    """95 % confidence interval of it; of scores, not of few or equal cases."""
    better: Count = 0
    """Cases that are better, or nearer to 0 where that is best."""
    equal: Count = 0
    """Cases without a difference, which the test leaves out."""
    worse: Count = 0
    """Cases that are worse."""
    effect: Tau = 0.0
    """Matched-pairs rank-biserial correlation: 1 if the evaluation is better on every
    case that differs, -1 if it is worse; 0 without a test."""
    p: Share = 1.0
    """The two-sided p-value; 1 without a test, or without a difference."""
    p_holm: Share = 1.0
    """The p-value, adjusted by Holm's method: over the means of organs by all metrics
    and of all evaluations, and, by themselves, over their organs."""
    differences: tuple[float | None, ...]
    """The difference of each case; null where either value is missing."""
    gains: tuple[float | None, ...]
    """The same, above 0 where the new value is better."""

    @property
    def record(self) -> Metric:
        """The metric."""
        return metric_named(self.metric)

    @property
    def title(self) -> str:
        """The organ, or the mean of organs, in print."""
        return self.organ.replace("_", " ") or "mean of organs"

    @property
    def present(self) -> list[float]:
        """The gains and losses of the cases that have both scores."""
        return present(self.gains)

    @property
    def mean_gain(self) -> float | None:
        """The mean gain; that of a loss is below 0."""
        present = self.present
        return fmean(present) if present else None

    @property
    def has_test(self) -> bool:
        """Whether it is one of the tests that p-values are adjusted for."""
        return self.method is not None and self.cases > 0

    @property
    def is_significant(self) -> bool:
        """Whether chance alone hardly explains it."""
        return self.p_holm <= ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDifference:
    """A value of all answers of an evaluation, less that of the first evaluation."""

    evaluation: Text
    """The evaluation that is compared with the first."""
    metric: MetricName
    """Name of the metric, with that of the answers."""
    method: Text
    """How the interval is made."""
    before: float
    """Value of the first evaluation."""
    after: float
    """Value of this evaluation."""
    difference: float
    """The new value less the old one."""
    interval: Interval | None = None
    """95 % confidence interval of it; null if fewer than half of the draws have a
    difference."""
    draws: Count | None = None
    """Draws in which both values are defined; null without single answers to the same
    cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTest:
    """Whether an evaluation is right more often than the first one."""

    evaluation: Text
    """The evaluation that is compared with the first."""
    answers: Text
    """Name of the answers."""
    cases: Count
    """How many answers there are."""
    gained: Count
    """Those that are right in this evaluation alone."""
    lost: Count
    """Those that are right in the first one alone."""
    p: Share
    """The two-sided p-value of McNemar's exact test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFile:
    """How evaluations differ from the first of them; for organisers alone."""

    version: Text
    """Version of the program."""
    evaluations: Annotated[tuple[Text, ...], Is(minItems=2)]
    """Names of the evaluations; all others are compared with the first."""
    cases: tuple[Text, ...]
    """The cases that all of them have, in the order of differences."""
    unlike: tuple[Text, ...]
    """Reasons why scores may differ though the predictions do not."""
    alpha: Share = ALPHA
    """Largest adjusted p of a difference that is called significant."""
    differences: tuple[Difference, ...]
    """Scores of label maps: means over organs first."""
    answers: tuple[AnswerDifference, ...]
    """Values of all answers together."""
    decisions: tuple[DecisionTest, ...]
    """Answers that decide for a class."""


class Side(NamedTuple):
    """An evaluation that is compared, as far as its readers may know it."""

    name: str
    values: Mapping[str, Sequence[float | None]]
    """The value of each case, by column."""
    answers: Mapping[str, float]
    sheets: Sequence[AnswerSheet]


def comparison_json(comparison: ComparisonFile) -> str:
    """The text of comparison.json."""
    return json.dumps(shown(dump(comparison)), indent=2, allow_nan=False) + "\n"


def compare(
    evaluations: Sequence[Side],
    organs: Sequence[str],
    cases: Sequence[str],
    unlike: Sequence[str],
) -> ComparisonFile:
    """Compare evaluations of the same cases and organs with the first of them.

    Holm's method adjusts for the tests of all evaluations and metrics: those of means
    by themselves, which a reader looks at first, and those of organs by themselves.
    """
    first, *candidates = evaluations
    metrics = [
        metric
        for name, metric in METRICS.items()
        if all(name in evaluation.values for evaluation in evaluations)
    ]
    rows = organs if len(organs) == 1 else ("", *organs)
    differences: list[Difference] = []
    for family in (rows[:1], rows[1:]):
        choices = product(candidates, metrics, family)
        pairs = [_difference(first, *choice, len(cases)) for choice in choices]
        differences += _adjusted(pairs)
    answers: list[AnswerDifference] = []
    tests: list[DecisionTest] = []
    for candidate in candidates:
        answers += _answer_differences(first, candidate)
        tests += _decision_tests(first, candidate)
    return ComparisonFile(
        version=__version__,
        evaluations=tuple(evaluation.name for evaluation in evaluations),
        cases=tuple(cases),
        unlike=tuple(unlike),
        differences=tuple(differences),
        answers=tuple(answers),
        decisions=tuple(tests),
    )


def _adjusted(family: Sequence[Difference]) -> Iterator[Difference]:
    """The same differences with p-values that are adjusted for all that have a test."""
    p_values = [pair.p for pair in family if pair.has_test]
    adjusted = iter(holm(np.array(p_values)).tolist())
    for pair in family:
        yield replace(pair, p_holm=next(adjusted)) if pair.has_test else pair


def _difference(
    first: Side, candidate: Side, metric: Metric, organ: str, cases: int
) -> Difference:
    """How the scores of an organ differ, on the cases that have both."""
    column = f"{metric.name}_{organ}" if organ else metric.name
    absent = (None,) * cases
    before = first.values.get(column) or absent
    after = candidate.values.get(column) or absent
    has_both = [None not in pair for pair in zip(before, after, strict=True)]
    difference = Difference(
        evaluation=candidate.name,
        metric=metric.name,
        organ=organ,
        method=SIGNED_RANKS if metric.better else None,
        differences=absent,
        gains=absent,
    )
    if not any(has_both):
        return difference
    old = np.array([list(compress(before, has_both))], dtype=np.float64)
    new = np.array([list(compress(after, has_both))], dtype=np.float64)
    differences, gains = steps(old, new), _gains(metric, old, new)
    p, effect = two_sided(gains) if metric.better else ([1.0], [0.0])
    return replace(
        difference,
        cases=sum(has_both),
        before=fmean(old[0].tolist()),
        after=fmean(new[0].tolist()),
        difference=fmean(differences[0].tolist()),
        interval=mean_interval(gains[0].tolist()) if metric.is_share else None,
        better=int((gains > 0).sum()),
        equal=int((gains == 0).sum()),
        worse=int((gains < 0).sum()),
        effect=float(effect[0]),
        p=float(p[0]),
        differences=_by_case(differences[0], has_both),
        gains=_by_case(gains[0], has_both),
    )


def _gains(metric: Metric, old: Values, new: Values) -> Values:
    """How much better the new values are; below 0 if they are worse."""
    if metric.better is None:
        return steps(np.abs(new), np.abs(old))
    return steps(old, new) if metric.better is Better.HIGHER else steps(new, old)


def _by_case(values: Values, has_both: Sequence[bool]) -> tuple[float | None, ...]:
    """Values of the cases that have both scores, and None for all other cases."""
    remaining = iter(values.tolist())
    return tuple(next(remaining) if is_compared else None for is_compared in has_both)


# --- Answers --------------------------------------------------------------------------


def _sheets(first: Side, candidate: Side) -> Iterator[tuple[AnswerSheet, AnswerSheet]]:
    """The answers of both to the same cases, in the same order."""
    sheets = {sheet.rules.name: sheet for sheet in candidate.sheets}
    for before in first.sheets:
        after = sheets.get(before.rules.name)
        if after and after.cases == before.cases:
            yield before, after


def _answer_differences(first: Side, candidate: Side) -> Iterator[AnswerDifference]:
    """The differences of the values that both have, with intervals if there are any."""
    drawn = {}
    for sheets in _sheets(first, candidate):
        rules = sheets[0].rules
        for metric, column in zip(rules.metrics, rules.columns, strict=True):
            drawn[column] = drawn_differences(metric, *sheets)
    for column in filter(candidate.answers.__contains__, first.answers):
        before, after = first.answers[column], candidate.answers[column]
        interval, draws = None, None
        if column in drawn:
            draws = len(drawn[column])
            interval = percentiles(drawn[column]) if draws >= FEWEST_DRAWS else None
        yield AnswerDifference(
            evaluation=candidate.name,
            metric=column,
            method=PERCENTILES,
            before=before,
            after=after,
            difference=after - before,
            interval=interval,
            draws=draws,
        )


def drawn_differences(metric: str, before: AnswerSheet, after: AnswerSheet) -> Values:
    """The differences of a metric's values in draws of the cases.

    Draws in which the metric is undefined are left out.
    """
    rules = before.rules
    numbers = {
        side: case_numbers(metric, rules, sheet.rows)
        for side, sheet in (("before", before), ("after", after))
    }
    column = AnswerColumn(
        metric=metric, rules=rules, cases=before.cases, numbers=numbers
    )
    (places,) = draw_places([len(before.rows)], seed=SEED)
    values = column.drawn_values(("before", "after"), places)
    differences = values[1] - values[0]
    return np.asarray(differences[~np.isnan(differences)])


def _decision_tests(first: Side, candidate: Side) -> Iterator[DecisionTest]:
    """McNemar's test of the answers that are decisions."""
    for before, after in _sheets(first, candidate):
        if KINDS[before.rules.kind].is_decision:
            outcomes = list(zip(_is_right(before), _is_right(after), strict=True))
            gained, lost = outcomes.count((False, True)), outcomes.count((True, False))
            yield DecisionTest(
                evaluation=candidate.name,
                answers=before.rules.name,
                cases=len(outcomes),
                gained=gained,
                lost=lost,
                p=mcnemar(gained, lost),
            )


def _is_right(sheet: AnswerSheet) -> list[bool]:
    pairs = decisions(sheet.rules, sheet.rows)
    return [reference == prediction for reference, prediction in pairs]
