"""Slow twins of what flare makes of answers. They import nothing from flare."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np


def binary_values(truths, scores, is_positive):
    """All metrics of probabilities, by scikit-learn."""
    from sklearn import metrics

    return {
        **decision_values(truths, is_positive.astype(int), average="binary"),
        "auroc": metrics.roc_auc_score(truths, scores),
        "auprc": metrics.average_precision_score(truths, scores),
        "sensitivity": metrics.recall_score(truths, is_positive, zero_division=0),
        "specificity": metrics.recall_score(
            truths, is_positive, pos_label=0, zero_division=0
        ),
        "recall": metrics.recall_score(truths, is_positive, zero_division=0),
    }


def decision_values(truths, decisions, average="weighted"):
    """All metrics of classes that were decided for, by scikit-learn."""
    from sklearn import metrics

    options = {"average": average, "zero_division": 0}
    return {
        "accuracy": metrics.accuracy_score(truths, decisions),
        "balanced_accuracy": metrics.balanced_accuracy_score(truths, decisions),
        "precision": metrics.precision_score(truths, decisions, **options),
        "f1": metrics.f1_score(truths, decisions, **options),
    }


def class_values(truths, scores):
    """All metrics of scores of classes, by scikit-learn; none has an absent class."""
    from sklearn import metrics

    is_class = truths[:, np.newaxis] == np.arange(scores.shape[1])
    columns = is_class.any(axis=0)
    return {
        **decision_values(truths, scores.argmax(axis=1)),
        "auroc": metrics.roc_auc_score(
            is_class[:, columns], scores[:, columns], average="weighted"
        ),
        "auprc": metrics.average_precision_score(is_class, scores, average="weighted"),
        "mean_average_precision": metrics.average_precision_score(is_class, scores),
    }


def label_values(truths, scores, is_counted):
    """The mean average precision of labels, by scikit-learn."""
    from sklearn import metrics

    columns = truths.any(axis=0) | is_counted
    if not columns.any():
        return {"mean_average_precision": np.nan}
    value = metrics.average_precision_score(truths[:, columns], scores[:, columns])
    return {"mean_average_precision": value}


def number_values(truths, predictions):
    """All metrics of numbers, by scikit-learn."""
    from sklearn import metrics

    return {
        "mean_absolute_error": metrics.mean_absolute_error(truths, predictions),
        "rmse": metrics.root_mean_squared_error(truths, predictions),
    }


def brute_force_c_index(times, predictions):
    """The share of pairs of different times whose predictions differ the same way."""
    right = pairs = 0
    for first, second in itertools.combinations(range(len(times)), 2):
        if times[first] == times[second]:
            continue
        pairs += 1
        early, late = sorted((first, second), key=times.__getitem__)
        right += predictions[early] < predictions[late]
    return right / pairs if pairs else 0.5


def iou(first, second):
    """The IoU of two boxes of whole numbers, from the pixels that they cover."""
    pixels = [
        set(itertools.product(range(x1, x2), range(y1, y2)))
        for x1, y1, x2, y2 in (first, second)
    ]
    shared, covered = pixels[0] & pixels[1], pixels[0] | pixels[1]
    return float(Fraction(len(shared), len(covered)))


def boxes_in_file_order(predictions, references, threshold):
    """How many boxes find one, each in turn the best one that is free."""
    free = list(references)
    for box in predictions:
        best = max(free, key=lambda reference: iou(box, reference), default=None)
        if best is not None and iou(box, best) > threshold:
            free.remove(best)
    return len(references) - len(free)


def boxes_by_iou(predictions, references, threshold):
    """How many boxes find one, the pair with the highest IoU first."""
    pairs = itertools.product(range(len(predictions)), range(len(references)))
    shares = {(i, j): iou(predictions[i], references[j]) for i, j in pairs}
    free = {pair: share for pair, share in shares.items() if share >= threshold}
    matches = 0
    while any(free.values()):
        first, second = max(free, key=free.__getitem__)
        free = {
            (i, j): share
            for (i, j), share in free.items()
            if i != first and j != second
        }
        matches += 1
    return matches


def pooled_values(counts):
    """Precision, recall and F1 of (right, predicted, expected) of all cases."""
    right, predicted, expected = map(sum, zip(*counts, strict=True))
    return (
        right / predicted if predicted else 0.0,
        right / expected if expected else 0.0,
        2 * right / (predicted + expected) if predicted + expected else 0.0,
    )


def set_values(reference, prediction):
    """All metrics of the words of a case, item by item."""
    right = sum(item in reference for item in prediction)
    if not reference and not prediction:
        return {"precision": 1, "recall": 1, "f1": 1, "overlap": 1}
    return {
        "precision": right / len(prediction) if prediction else 0,
        "recall": right / len(reference) if reference else 0,
        "f1": 2 * right / (len(prediction) + len(reference)),
        "overlap": right / max(len(prediction), len(reference)),
    }


def chain_value(reference, prediction):
    """The share of answers of a chain that are right, if its root is."""
    if not prediction or prediction[0] != reference[0]:
        return 0.0
    right = 0
    for place, answer in enumerate(reference):
        right += place < len(prediction) and prediction[place] == answer
    return right / len(reference)
