"""Makes the values of metrics from the rows of answers.csv.

Evaluations, rankings and pages take the values from here: a value of other cases, as of
a bootstrap's draw, is made of fewer, or of other rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from flare.answers.agreement import Rows
from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.metrics import ANSWER_METRICS
from flare.results.answers_csv import AnswerRow

MOST_CHARACTERS = 130_000
"""The text of an answer has at most this many: Python reads no longer cell of a CSV
file, as answers.csv is."""


@cache
def _function(name: str) -> Callable[..., Any]:
    """The function that a record names as ``module:function``."""
    module, _, function = name.partition(":")
    return getattr(import_module(f"flare.answers.{module}"), function)  # type: ignore[no-any-return]


def cells_text(cells: Sequence[str]) -> str:
    """The cells of an answer as one text: a list in JSON if they are several."""
    if len(cells) == 1:
        return cells[0]
    return json.dumps(list(cells), ensure_ascii=False)


def reference_value(text: str, rules: AnswerRules) -> Any:
    """The value of a reference; a ValueError says why the kind allows no such one."""
    cells = _checked_cells(text, rules.reference, rules)
    return _function(KINDS[rules.kind].reference)(cells, rules)


def prediction_value(text: str, rules: AnswerRules) -> Any:
    """The value of a prediction, as `reference_value`."""
    cells = _checked_cells(text, rules.prediction, rules)
    return _function(KINDS[rules.kind].prediction)(cells, rules)


def _checked_cells(
    text: str, columns: Sequence[str], rules: AnswerRules
) -> Sequence[str]:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"longer than {MOST_CHARACTERS:,} characters")
    # One text was made of several cells by `cells_text`.
    cells = [text] if len(columns) == 1 else [str(cell) for cell in json.loads(text)]
    if not KINDS[rules.kind].may_be_empty and not all(map(str.strip, cells)):
        raise ValueError("empty")
    return cells


def case_numbers(metric: str, rules: AnswerRules, answers: Sequence[AnswerRow]) -> Rows:
    """The numbers that each case gives to a metric that the kind of the rules has.

    They have the shape (cases, numbers of a case). An answer with a problem counts as
    the worst one. A ValueError is raised if a text is not one that the kind allows.
    """
    pair, _ = ANSWER_METRICS[metric].functions[rules.kind]
    return _numbers(pair, rules, _values(rules, answers))


def _values(
    rules: AnswerRules, answers: Sequence[AnswerRow]
) -> Iterator[tuple[Any, Any]]:
    """The value of each reference and of its prediction, or of the worst one."""
    missing = _function(KINDS[rules.kind].missing)
    for answer in answers:
        reference = reference_value(answer.reference, rules)
        if answer.problem:
            yield reference, missing(reference, rules)
        else:
            yield reference, prediction_value(answer.prediction, rules)


def _numbers(pair: str, rules: AnswerRules, values: Iterable[tuple[Any, Any]]) -> Rows:
    function = _function(pair)
    rows = [function(*both_values, rules) for both_values in values]
    if rows and isinstance(rows[0][0], str):
        return _word_numbers(rows)
    return np.array(rows, dtype=float)


def _word_numbers(rows: Sequence[Sequence[str]]) -> Rows:
    """Numbers in the place of words, the same for the same word."""
    # Not an array of words, which takes the length of the longest one for each.
    words = sorted(set().union(*rows))
    numbers = dict(zip(words, range(len(words)), strict=True))
    places = np.empty((len(rows), len(rows[0])))
    for place, row in enumerate(rows):
        places[place] = list(map(numbers.__getitem__, row))
    return places


def decisions(
    rules: AnswerRules, answers: Sequence[AnswerRow]
) -> list[tuple[str, str]]:
    """The class of each reference, and the one that its answer decides for, by name.

    Only for kinds of which each answer is a decision; a missing answer has no name.
    """
    names = []
    for answer, both_values in zip(answers, _values(rules, answers), strict=True):
        reference, decided = _function("pairs:decisions")(*both_values, rules)
        prediction = "" if answer.problem else _class_name(decided, rules)
        names.append((_class_name(reference, rules), prediction))
    return names


def _class_name(value: Any, rules: AnswerRules) -> str:
    """The name of a class that is a number, or a word itself."""
    is_named = isinstance(value, int) and rules.classes
    return rules.classes[value] if is_named else str(value)


def metric_value(metric: str, rules: AnswerRules, numbers: Rows) -> float:
    """The value of a metric for the numbers of some cases; NaN if it has none."""
    function = _function(ANSWER_METRICS[metric].functions[rules.kind][1])
    return float(function(numbers, rules))


def answer_values(rules: AnswerRules, answers: Sequence[AnswerRow]) -> dict[str, float]:
    """The values of all metrics, by their columns; NaN for those without a value."""
    both_values = [*_values(rules, answers)]  # cells are read once for all metrics
    numbers: dict[str, Rows] = {}  # by the function of cases, which metrics share
    values = {}
    for metric in rules.metrics:
        pair, _ = ANSWER_METRICS[metric].functions[rules.kind]
        if pair not in numbers:
            numbers[pair] = _numbers(pair, rules, both_values)
        values[f"{metric}_{rules.name}"] = metric_value(metric, rules, numbers[pair])
    return values
