"""Compares answers of two evaluations: values, and for organisers how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from flare.answers.agreement import Rows
from flare.answers.values import case_numbers, decisions, metric_value
from flare.challenge.answers import KINDS
from flare.challenge.metrics import metric_named
from flare.common.text import count
from flare.reports.answers import AnswerSheet
from flare.reports.comparison import Compared, p_text, signed
from flare.reports.model import (
    Cell,
    Part,
    Section,
    Table,
    Words,
    number_cell,
    table,
)
from flare.statistics import DRAWS
from flare.statistics.bootstrap import draw_places, percentiles
from flare.statistics.paired import mcnemar

SEED = 0
"""Seed of the draws: the same page has the same intervals."""

FEWEST_DRAWS = DRAWS // 2
"""With fewer draws that have a value, there is no interval."""

METHOD = (
    f"Intervals of differences are those of {DRAWS} bootstrap samples of the cases,"
    " drawn for both evaluations alike (percentiles 2.5 and 97.5). Whether one is right"
    " more often is McNemar's exact test: of the cases on which only one of both is"
    " right, either would be as likely to be it."
)


def comparison_section(first: Compared, candidates: Sequence[Compared]) -> Section:
    """The section of a comparison about answers; nothing in it without answers."""
    parts: list[Part] = []
    for candidate in candidates:
        answers = candidate.scores.answers
        if columns := [column for column in first.scores.answers if column in answers]:
            parts.append(_values_table(columns, first, candidate))
            parts += _tests(first, candidate)
    if first.sheets and parts:
        parts.append(Words(METHOD, "note"))
    return Section("answers", "Answers", "Answers in tables and JSON", parts)


def _values_table(
    columns: Sequence[str], first: Compared, candidate: Compared
) -> Table:
    """A row for each metric: both values, the difference, and its interval."""
    exact = first.scores.exact
    intervals = _intervals(first, candidate)
    heads = ["answers", "metric", first.name, candidate.name, "change"]
    if intervals:
        heads.append("95 % interval")
    rows = []
    for column in columns:
        metric = metric_named(column)
        before, after = (e.scores.answers[column] for e in (first, candidate))
        change = Cell(
            signed(after - before, metric.decimals),
            exact=repr(after - before) if exact else "",
        )
        values = [number_cell(value, exact=exact) for value in (before, after)]
        row = [metric.part_title, Cell(metric.title, css="wrap"), *values, change]
        if intervals:
            row.append(intervals[column])
        rows.append(row)
    title = f"Answers, {candidate.name} against {first.name}"
    return table(title, heads, rows, words=("answers", "metric"), is_whole=True)


# --- How sure it is, for organisers -------------------------------------------------


def _pairs(
    first: Compared, candidate: Compared
) -> Iterator[tuple[AnswerSheet, AnswerSheet]]:
    """The answers of both to the same cases, in the same order."""
    sheets = {sheet.rules.name: sheet for sheet in candidate.sheets}
    for before in first.sheets:
        after = sheets.get(before.rules.name)
        if after and after.cases == before.cases:
            yield before, after


def _intervals(first: Compared, candidate: Compared) -> Mapping[str, str]:
    """The interval of each difference in words, by its column; empty without answers.

    A draw in which a metric is undefined is left out, and counted.
    """
    texts: dict[str, str] = {}
    for before, after in _pairs(first, candidate):
        for metric in before.rules.metrics:
            numbers = [
                case_numbers(metric, sheet.rules, sheet.rows)
                for sheet in (before, after)
            ]
            differences = drawn_differences(metric, before, numbers)
            column = f"{metric}_{before.rules.name}"
            texts[column] = _interval_text(differences)
    if texts:
        columns = (*first.scores.answers, *candidate.scores.answers)
        texts = dict.fromkeys(columns, "not compared") | texts
    return texts


def drawn_differences(
    metric: str, sheet: AnswerSheet, numbers: Sequence[Rows]
) -> list[float]:
    """The differences of a metric's values, second less first, in draws of the cases.

    `numbers` has what each case gives, in both evaluations. Draws in which the metric
    is undefined are left out.
    """
    differences = []
    for drawn in draw_places([len(numbers[0])], seed=SEED)[0]:
        before, after = (
            metric_value(metric, sheet.rules, rows[drawn]) for rows in numbers
        )
        if not math.isnan(after - before):
            differences.append(after - before)
    return differences


def _interval_text(differences: Sequence[float]) -> str:
    """The middle 95 % of differences, and how many draws had none."""
    if len(differences) < FEWEST_DRAWS:
        return "too often undefined"
    low, high = percentiles(np.array(differences))
    text = f"{signed(low, 3)} to {signed(high, 3)}"
    undefined = DRAWS - len(differences)
    return f"{text} (undefined in {undefined} draws)" if undefined else text


def _tests(first: Compared, candidate: Compared) -> Iterator[Part]:
    """A sentence for each answers that are decisions: McNemar's test."""
    for before, after in _pairs(first, candidate):
        if not KINDS[before.rules.kind].is_decision:
            continue
        outcomes = list(zip(_is_right(before), _is_right(after), strict=True))
        gained, lost = outcomes.count((False, True)), outcomes.count((True, False))
        yield Words(
            f"Of {count(len(outcomes), 'answer')} to {before.title}, {gained} are right"
            f" in {candidate.name} alone, {lost} in {first.name} alone;"
            f" p of McNemar's test: {p_text(mcnemar(gained, lost))}."
        )


def _is_right(sheet: AnswerSheet) -> list[bool]:
    """Whether each answer is of the class of its reference."""
    pairs = decisions(sheet.rules, sheet.rows)
    return [reference == prediction for reference, prediction in pairs]
