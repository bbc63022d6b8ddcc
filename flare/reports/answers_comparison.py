"""Tells how answers of evaluations differ, and for organisers how sure it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter

from flare.challenge.metrics import metric_named
from flare.common.text import count
from flare.ranking.comparison import PERCENTILES_NOTE, AnswerDifference
from flare.reports.comparison import Comparison, p_text, signed
from flare.reports.model import (
    Cell,
    Column,
    Part,
    Section,
    Table,
    Words,
    number_cell,
    table_of,
    text_cell,
)
from flare.statistics import DRAWS


def comparison_section(comparison: Comparison) -> Section:
    """The section of a comparison about answers; nothing in it without answers."""
    parts: list[Part] = []
    all_changes = comparison.numbers.answers
    for candidate in comparison.candidates:
        name = candidate.name
        if changes := [pair for pair in all_changes if pair.evaluation == name]:
            parts.append(_values_table(changes, comparison))
            parts += _tests(name, comparison)
    if any(pair.draws is not None for pair in all_changes):
        parts.append(Words(PERCENTILES_NOTE, "note"))
    return Section("answers", "Answers", "Answers in tables and JSON", parts)


def _values_table(changes: Sequence[AnswerDifference], comparison: Comparison) -> Table:
    """A row for each metric: both values, the difference, and its interval."""
    first, name = comparison.first, changes[0].evaluation
    exact = first.scores.exact
    metrics = [metric_named(pair.metric) for pair in changes]
    differences = []
    for pair, metric in zip(changes, metrics, strict=True):
        text = signed(pair.difference, metric.decimals)
        differences.append(Cell(text, exact=repr(pair.difference) if exact else ""))
    cell = partial(number_cell, exact=exact)
    titles = map(text_cell, map(attrgetter("title"), metrics))
    columns = [
        Column("answers", map(attrgetter("part_title"), metrics), is_text=True),
        Column("metric", titles, is_text=True),
        Column(first.name, map(cell, map(attrgetter("before"), changes))),
        Column(name, map(cell, map(attrgetter("after"), changes))),
        Column("change", differences),
    ]
    if any(pair.draws is not None for pair in changes):
        columns.append(Column("95 % interval", map(_interval_text, changes)))
    title = f"Answers, {name} against {first.name}"
    return table_of(title, columns, is_whole=True)


def _interval_text(pair: AnswerDifference) -> str:
    if pair.draws is None:
        return "not compared"
    if pair.interval is None:
        return "too often undefined"
    low, high = pair.interval
    text = f"{signed(low, 3)} to {signed(high, 3)}"
    undefined = DRAWS - pair.draws
    return f"{text} (undefined in {undefined} draws)" if undefined else text


def _tests(name: str, comparison: Comparison) -> Iterator[Part]:
    """A sentence for each answers that are decisions: McNemar's test."""
    for test in comparison.numbers.decisions:
        if test.evaluation == name:
            yield Words(
                f"Of {count(test.cases, 'answer')} to {test.answers.replace('_', ' ')},"
                f" {test.gained} are right in {name} alone, {test.lost} in"
                f" {comparison.first.name} alone; p of McNemar's test:"
                f" {p_text(test.p)}."
            )
