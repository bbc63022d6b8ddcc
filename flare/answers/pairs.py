"""What a case gives: a few numbers from its reference and its prediction.

A function takes both values, as `cells.py` has read them, and the rules; it returns a
number, or a row of numbers, from which `agreement.py` makes the value of all cases.
"""

from __future__ import annotations

import math
from typing import Any

from flare.challenge.answers import AnswerRules, EmptyReference, Positive

Row = tuple[Any, ...]


def _decided_class(prediction: Any, rules: AnswerRules) -> Any:
    """The class that a probability or scores decide for; a word is a class itself.

    Of equal scores, the first class counts, as NumPy's ``argmax`` has it.
    """
    if isinstance(prediction, tuple):
        return max(range(len(prediction)), key=prediction.__getitem__)
    if isinstance(prediction, float):
        is_from = rules.positive is Positive.FROM and prediction == rules.threshold
        return int(prediction > rules.threshold or is_from)
    return prediction


def decisions(reference: Any, prediction: Any, rules: AnswerRules) -> Row:
    """The class of the reference, and the one that is decided for."""
    return reference, _decided_class(prediction, rules)


def is_right(reference: Any, prediction: Any, rules: AnswerRules) -> Row:
    """1 if both are the same class, else 0."""
    return (float(reference == _decided_class(prediction, rules)),)


def class_and_score(reference: int, prediction: Any, rules: AnswerRules) -> Row:
    """The class of the reference, and the score, or the score of each class."""
    scores = prediction if isinstance(prediction, tuple) else (prediction,)
    return reference, *scores


def truths_and_scores(
    reference: Any, prediction: tuple[float, ...], rules: AnswerRules
) -> Row:
    """0 or 1 of each class or label, and behind them the score of each."""
    truths = reference
    if not isinstance(reference, tuple):
        truths = [float(number == reference) for number in range(len(prediction))]
    return *truths, *prediction


def both_numbers(reference: float, prediction: float, rules: AnswerRules) -> Row:
    """The two numbers as they are."""
    return reference, prediction


def absolute_error(reference: float, prediction: float, rules: AnswerRules) -> Row:
    """The absolute difference of two numbers."""
    return (abs(reference - prediction),)


def squared_error(reference: float, prediction: float, rules: AnswerRules) -> Row:
    """The squared difference of two numbers."""
    return ((reference - prediction) ** 2,)


# --- Words ---------------------------------------------------------------------------

Words = frozenset[str]


def set_counts(reference: Words, prediction: Words, rules: AnswerRules) -> Row:
    """The words that are right, too many and missed."""
    if not reference and rules.empty is EmptyReference.LEFT_OUT:
        return 0, 0, 0
    right = len(reference & prediction)
    return right, len(prediction) - right, len(reference) - right


def _of_set(right: int, divisor: float, reference: Words, rules: AnswerRules) -> Row:
    """A share of words, whose divisor is 0 where nothing is answered or expected."""
    if not reference and rules.empty is EmptyReference.LEFT_OUT:
        return (math.nan,)
    if right:
        return (right / divisor,)
    return (float(not reference and not divisor),)


def set_precision(reference: Words, prediction: Words, rules: AnswerRules) -> Row:
    """The share of the words answered that are right; NaN for a case left out."""
    right = len(reference & prediction)
    return _of_set(right, len(prediction), reference, rules)


def set_recall(reference: Words, prediction: Words, rules: AnswerRules) -> Row:
    """The share of the reference's words that are answered; NaN for a case left out."""
    right = len(reference & prediction)
    divisor = len(reference) or len(prediction)
    return _of_set(right, divisor, reference, rules)


def set_f1(reference: Words, prediction: Words, rules: AnswerRules) -> Row:
    """The F1 of a case's words; NaN for a case left out."""
    right = len(reference & prediction)
    divisor = (len(reference) + len(prediction)) / 2
    return _of_set(right, divisor, reference, rules)


def overlap(reference: Words, prediction: Words, rules: AnswerRules) -> Row:
    """The right words divided by the larger of both numbers; 1 if both are empty.

    Source: global accuracy of FLARE25-MLLM3D at 7441a22.
    """
    most = max(len(reference), len(prediction))
    return (len(reference & prediction) / most if most else 1.0,)


def chain_share(
    reference: tuple[str, ...], prediction: tuple[str, ...], rules: AnswerRules
) -> Row:
    """The share of a chain's answers that are right, 0 if the first is wrong.

    Source: local accuracy of FLARE25-MLLM3D at 7441a22.
    """
    if prediction[:1] != reference[:1]:
        return (0.0,)
    pairs = zip(reference, prediction, strict=False)
    right = sum(expected == answer for expected, answer in pairs)
    return (right / len(reference),)
