"""Reads cells of tables: what they mean for each kind of answers.

A function takes the cells of an answer and the rules, and returns its value; a
ValueError says what is wrong without the cell itself, which the caller names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from flare.challenge.answers import LARGEST, AnswerRules
from flare.common.tables import number as finite_number
from flare.common.text import listing, safe

Cells = Sequence[str]

BELOW_ALL, ABOVE_ALL = -math.inf, math.inf
"""Scores behind and before every other one, of the worst answer to a reference."""


def number(text: str) -> float:
    """The finite number that a cell holds.

    Examples
    --------
    >>> number(" 3.0 ")
    3.0
    """
    value = finite_number(text)
    if abs(value) > LARGEST:
        raise ValueError(f"beyond {LARGEST:.0e}")
    return value


def share(text: str) -> float:
    """The number from 0 to 1 that a cell holds; one of 32 bits may be rounded up."""
    value = number(text)
    if not 0 <= value <= 1 + 1e-6:
        raise ValueError("not from 0 to 1")
    return min(value, 1.0)


def word(text: str) -> str:
    """A word as it is compared: in lower case, with single blanks within.

    Examples
    --------
    >>> word(" Kidney  Stone")
    'kidney stone'
    """
    return " ".join(text.lower().split())


def json_value(text: str) -> Any:
    """The content of a text in JSON.

    A ValueError is raised if it is not JSON, or an object has a key twice, of which one
    would be lost.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("its lists lie too deep in one another") from error


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {safe(key)} twice in one object")
        values[key] = value
    return values


def _listed(cells: Cells) -> Cells:
    """The cells, or the items of a list that a single cell holds, as "[0.2, 0.8]"."""
    text = cells[0].strip()
    if len(cells) == 1 and text.startswith("[") and text.endswith("]"):
        return text[1:-1].split(",")
    return cells


# --- Kind binary --------------------------------------------------------------------


def zero_or_one(cells: Cells, rules: AnswerRules) -> int:
    """The class of a reference."""
    value = number(cells[0])
    if value not in (0, 1):
        raise ValueError("neither 0 nor 1")
    return int(value)


def probability(cells: Cells, rules: AnswerRules) -> float:
    """The probability of class 1, of which a list of two has the second."""
    items = _listed(cells)
    if len(items) > 2:
        raise ValueError("neither one number nor two")
    return [*map(share, items)][-1]


def wrong_probability(reference: int, rules: AnswerRules) -> float:
    """The score that is farthest from the reference."""
    return BELOW_ALL if reference else ABOVE_ALL


# --- Kinds classes and labels --------------------------------------------------------


def class_number(cells: Cells, rules: AnswerRules) -> int:
    """The number of a reference's class, from 0, which may be written as its name."""
    names = [*map(word, rules.classes)]
    if word(cells[0]) in names:
        return names.index(word(cells[0]))
    value = number(cells[0])
    if value not in range(len(names)):
        raise ValueError(f"not the number of a class, 0 to {len(names) - 1}")
    return int(value)


def class_scores(cells: Cells, rules: AnswerRules) -> tuple[float, ...]:
    """A finite score of each class."""
    items = _listed(cells)
    if len(items) != len(rules.classes):
        raise ValueError(f"not {len(rules.classes)} numbers")
    return tuple(map(number, items))


def wrong_class_scores(reference: int, rules: AnswerRules) -> tuple[float, ...]:
    """The class of the reference last, all others first."""
    scores = [ABOVE_ALL] * len(rules.classes)
    scores[reference] = BELOW_ALL
    return tuple(scores)


def label_truths(cells: Cells, rules: AnswerRules) -> tuple[int, ...]:
    """0 or 1 of each label of a reference."""
    return tuple(zero_or_one([cell], rules) for cell in cells)


def label_scores(cells: Cells, rules: AnswerRules) -> tuple[float, ...]:
    """A score from 0 to 1 of each label."""
    return tuple(map(share, cells))


def wrong_label_scores(
    reference: tuple[int, ...], rules: AnswerRules
) -> tuple[float, ...]:
    """The scores that are farthest from the reference."""
    return tuple(wrong_probability(truth, rules) for truth in reference)


# --- Kinds number and time -----------------------------------------------------------


def single_number(cells: Cells, rules: AnswerRules) -> float:
    """A finite number."""
    return number(cells[0])


def wrong_number(reference: float, rules: AnswerRules) -> float:
    """A number whose absolute error is the worst one; NaN if the rules have none."""
    return reference + (math.nan if rules.worst is None else rules.worst)


def no_number(reference: float, rules: AnswerRules) -> float:
    """NaN, which is in no order with any time."""
    return math.nan


# --- Kinds of words ------------------------------------------------------------------


def choice(cells: Cells, rules: AnswerRules) -> str:
    """A word, which has to be one of the classes if these have names."""
    text = word(cells[0])
    if not text:
        raise ValueError("empty")
    if rules.classes and text not in map(word, rules.classes):
        raise ValueError(f"not one of {listing(rules.classes)}")
    return text


def no_choice(reference: str, rules: AnswerRules) -> str:
    """No word at all."""
    return ""


def word_set(cells: Cells, rules: AnswerRules) -> frozenset[str]:
    """The words of a cell, between semicolons, else commas, or of a list in JSON."""
    text = cells[0].strip()
    if text.startswith("["):
        words = list(_json_words(text))
    else:
        words = text.split(";" if ";" in text else ",")
    return frozenset(filter(None, map(word, words)))


def _json_words(text: str) -> Iterator[str]:
    try:
        items = json_value(text)
    except ValueError as error:
        raise ValueError("not a list in JSON") from error
    for item in items:
        if not isinstance(item, str):
            raise ValueError("not a list of words")
        yield item


def wrong_words(reference: frozenset[str], rules: AnswerRules) -> frozenset[str]:
    """A word that no reference has: nothing may be the right answer."""
    return frozenset([""])


def chain(cells: Cells, rules: AnswerRules) -> tuple[str, ...]:
    """The answers to a chain of questions, the first question first."""
    return tuple(word(part) for part in cells[0].split("|"))


def no_chain(reference: tuple[str, ...], rules: AnswerRules) -> tuple[str, ...]:
    """No answer at all."""
    return ()
