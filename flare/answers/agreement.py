"""Measures how answers agree with references, from a row of numbers for each case.

A function takes an array of shape (cases, numbers of a case) and the rules, and returns
one number, NaN where the references leave it undefined. The numbers are those of
scikit-learn 1.9.1, with which a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from flare.challenge.answers import AnswerRules, EmptyReference

Rows = npt.NDArray[np.float64]


def mean(rows: Rows, rules: AnswerRules) -> float:
    """The mean of a number of each case; cases with NaN are left out."""
    values = rows[:, 0][~np.isnan(rows[:, 0])]
    return float(values.mean()) if len(values) else np.nan


def root_mean(rows: Rows, rules: AnswerRules) -> float:
    """The square root of the mean of a number of each case."""
    return float(np.sqrt(mean(rows, rules)))


# --- Decisions: rows of the right class and the one that was decided for ------------


Counts = npt.NDArray[np.int64]


def class_counts(rows: Rows) -> tuple[Counts, Counts, Counts]:
    """How many cases of each class are right, are of it, and are decided to be it.

    No table of all pairs of classes: each wrong word of a submission may be another.

    Examples
    --------
    >>> class_counts(np.array([[0, 0], [1, 0], [1, 1.0]]))
    (array([1, 1]), array([1, 2]), array([2, 1]))
    """
    references, decided = rows.astype(np.int64).T
    size = int(rows.max()) + 1
    right = references[references == decided]
    return (
        np.bincount(right, minlength=size),
        np.bincount(references, minlength=size),
        np.bincount(decided, minlength=size),
    )


def _quotient(numbers: Counts, divisors: Counts) -> Rows:
    """The quotient of whole numbers, 0 where the divisor is 0, and so the number."""
    return np.asarray(numbers / np.maximum(divisors, 1))


def balanced_accuracy(rows: Rows, rules: AnswerRules) -> float:
    """The mean recall of the classes that the references have."""
    right, references, _ = class_counts(rows)
    recall = _quotient(right, references)
    return float(recall[references > 0].mean())


def weighted_precision(rows: Rows, rules: AnswerRules) -> float:
    """The mean precision of the classes, weighted by the references' cases."""
    right, references, decided = class_counts(rows)
    return float(np.average(_quotient(right, decided), weights=references))


def weighted_f1(rows: Rows, rules: AnswerRules) -> float:
    """The mean F1 of the classes, weighted by the references' cases."""
    right, references, decided = class_counts(rows)
    values = _quotient(2 * right, references + decided)
    return float(np.average(values, weights=references))


def sensitivity(rows: Rows, rules: AnswerRules) -> float:
    """The share of the positive cases that were called positive; 0 if none is."""
    return _share_equal(rows, column=0, value=1)


def specificity(rows: Rows, rules: AnswerRules) -> float:
    """The share of the negative cases that were called negative; 0 if none is."""
    return _share_equal(rows, column=0, value=0)


def precision(rows: Rows, rules: AnswerRules) -> float:
    """The share of the cases called positive that are so; 0 if none was."""
    return _share_equal(rows, column=1, value=1)


def _share_equal(rows: Rows, *, column: int, value: int) -> float:
    """Among the rows with a value in one column, the share with it in both."""
    chosen = rows[rows[:, column] == value]
    if not len(chosen):
        return 0.0
    return float((chosen == value).all(axis=1).mean())


def f1(rows: Rows, rules: AnswerRules) -> float:
    """The F1 of the positive class; 0 if there is no positive case or answer."""
    both_positive = float(rows.prod(axis=1).sum())
    total = float(rows.sum())
    return 2 * both_positive / total if total else 0.0


# --- Scores: rows of the right class and the scores ---------------------------------


def auroc(rows: Rows, rules: AnswerRules) -> float:
    """The area under the ROC curve, from the ranks of the positive cases' scores.

    Pairs of equal scores count a half. NaN if the references have one class alone.
    """
    return _roc_area(rows[:, 0] == 1, rows[:, 1])


def weighted_auroc(rows: Rows, rules: AnswerRules) -> float:
    """The area of each class against the others, weighted by its cases."""
    return _weighted(rows, _roc_area)


def auprc(rows: Rows, rules: AnswerRules) -> float:
    """The average precision of the positive class."""
    return average_precision(rows[:, 0] == 1, rows[:, 1])


def weighted_auprc(rows: Rows, rules: AnswerRules) -> float:
    """The average precision of each class against the others, weighted by its cases."""
    return _weighted(rows, average_precision)


def _weighted(
    rows: Rows, function: Callable[[npt.NDArray[np.bool_], Rows], float]
) -> float:
    """The mean of a function of each class and its scores, weighted by its cases."""
    classes, counts = np.unique(rows[:, 0].astype(np.int64), return_counts=True)
    values = [function(rows[:, 0] == k, rows[:, 1 + k]) for k in classes.tolist()]
    return float(np.average(values, weights=counts))


def _roc_area(is_positive: npt.NDArray[np.bool_], scores: Rows) -> float:
    positives = int(is_positive.sum())
    negatives = len(scores) - positives
    if not positives or not negatives:
        return np.nan
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    # Equal scores share the mean of their ranks.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    surplus = ranks[is_positive].sum() - positives * (positives + 1) / 2
    return float(surplus / (positives * negatives))


def average_precision(is_positive: npt.NDArray[np.bool_], scores: Rows) -> float:
    """The sum of the precision at each score times the rise of recall there.

    Not interpolated; 0 without a positive case, as scikit-learn 1.9.1 has it.
    """
    _, places, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    hits = np.bincount(places, weights=is_positive)
    if not hits.sum():
        return 0.0
    precisions = np.cumsum(hits) / np.cumsum(counts)
    # Divided at the end: the sum of shares may be above 1.
    return float(np.sum(hits * precisions) / hits.sum())


def mean_average_precision(rows: Rows, rules: AnswerRules) -> float:
    """The mean over classes or labels of their average precision.

    `rows` have 0 or 1 of each, and behind them the score of each.
    """
    truths, scores = np.split(rows, 2, axis=1)
    values = []
    for truth, column in zip(truths.T, scores.T, strict=True):
        if truth.any() or rules.empty is EmptyReference.COUNTED:
            values.append(average_precision(truth == 1, column))
    return float(np.mean(values)) if values else np.nan


# --- Times --------------------------------------------------------------------------


def c_index(rows: Rows, rules: AnswerRules) -> float:
    """The share of pairs of different times that are predicted in their order.

    Equal predictions, and NaN, count as wrong; without any pair it is 0.5. Source:
    FLARE25-CT-MR-FM at 7e0eab2, which knows no censoring either.
    """
    times, predictions = rows.T
    _, counts = np.unique(times, return_counts=True)
    pairs = (len(times) ** 2 - int((counts**2).sum())) // 2
    if not pairs:
        return 0.5
    is_number = ~np.isnan(predictions)
    times, predictions = times[is_number], predictions[is_number]
    # Among equal times, falling predictions are never in ascending order.
    order = np.lexsort((-predictions, times))
    _, ranks = np.unique(predictions[order], return_inverse=True)
    return _ascending_pairs(ranks) / pairs


def _ascending_pairs(ranks: npt.NDArray[np.int64]) -> int:
    """How many pairs of ranks stand in ascending order, in time n log n.

    Two ranks differ first in one bit: for each bit, the ranks are grouped by the bits
    above it, and those that have it find those before them that lack it.

    Examples
    --------
    >>> _ascending_pairs(np.array([1, 0, 2]))
    2
    """
    total = 0
    for bit in range(int(ranks.max(initial=0)).bit_length()):
        order = np.argsort(ranks >> (bit + 1), kind="stable")
        groups = ranks[order] >> (bit + 1)
        has_bit = (ranks[order] >> bit) & 1
        lacking_before = np.concatenate([[0], np.cumsum(1 - has_bit)])
        starts = np.searchsorted(groups, groups)
        lacking_in_group = lacking_before[:-1] - lacking_before[starts]
        total += int((lacking_in_group * has_bit).sum())
    return total


# --- Counts: rows of what is right, too many and missed, for one or more IoU --------


def _pooled(rows: Rows) -> Rows:
    """The sums over all cases, of shape (3, number of IoU)."""
    return np.asarray(rows.sum(axis=0).reshape(-1, 3).T)


def pooled_f1(rows: Rows, rules: AnswerRules) -> float:
    """The F1 of all cases' counts together; the mean over the IoU."""
    right, surplus, missed = _pooled(rows)
    return float(np.mean(2 * right / np.maximum(2 * right + surplus + missed, 1)))


def pooled_precision(rows: Rows, rules: AnswerRules) -> float:
    """The precision of all cases' counts together; the mean over the IoU."""
    right, surplus, _ = _pooled(rows)
    return float(np.mean(right / np.maximum(right + surplus, 1)))


def pooled_recall(rows: Rows, rules: AnswerRules) -> float:
    """The recall of all cases' counts together; the mean over the IoU."""
    right, _, missed = _pooled(rows)
    return float(np.mean(right / np.maximum(right + missed, 1)))
