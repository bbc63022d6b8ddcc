"""Boxes: how they are read, how far they overlap, and which find a reference.

Sources: ``evaluate_detection`` of FLARE25-QWen2.5VL at 7f25a69 (matching "file") and
FLARE26-MedGemma at e447d3c (matching "iou"), both of github.com/medfm-flare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.answers.cells import Cells, json_value, number, word
from flare.challenge.answers import AnswerRules, BoxMatching

MOST_BOXES = 2000
"""A case has at most this many: the time to match them grows with their square."""

Box = tuple[float, float, float, float]
"""A box (x1, y1, x2, y2) in pixels."""

Boxes = Sequence[Box]

BoxesByLabel = Mapping[str, Boxes]
"""Boxes without a label have an empty one."""


def read_boxes(cells: Cells, rules: AnswerRules) -> BoxesByLabel:
    """The boxes of a cell: a list of boxes in JSON, or an object of such lists.

    A ValueError is raised if it is something else, a box has no area, or there are too
    many.
    """
    try:
        content = json_value(cells[0].strip() or "[]")
    except ValueError as error:
        raise ValueError("not boxes in JSON") from error
    lists = content if isinstance(content, dict) else {"": content}
    boxes: dict[str, Boxes] = {}
    for label, items in lists.items():
        if word(label) in boxes:
            raise ValueError("a label twice")
        boxes[word(label)] = tuple(_boxes(items))
    if sum(map(len, boxes.values())) > MOST_BOXES:
        raise ValueError(f"more than {MOST_BOXES} boxes")
    return boxes


def _boxes(items: Any) -> Iterator[Box]:
    if not isinstance(items, list):
        raise ValueError("not a list of boxes")
    for item in items:
        is_box = isinstance(item, list) and len(item) == 4
        if not is_box or any(type(side) not in (int, float) for side in item):
            raise ValueError("not a box [x1, y1, x2, y2]")
        yield _box(*item)


def _box(*sides: float) -> Box:
    """A box of finite sides that has an area."""
    x1, y1, x2, y2 = (number(repr(side)) for side in sides)
    # The product of two tiny sides may be 0.
    if x2 <= x1 or y2 <= y1 or not (x2 - x1) * (y2 - y1):
        raise ValueError("a box without an area")
    return x1, y1, x2, y2


def wrong_boxes(reference: BoxesByLabel, rules: AnswerRules) -> BoxesByLabel:
    """No box; one that is wrong where the reference has none."""
    is_empty = not any(reference.values())
    return {"": ((0.0, 0.0, 1.0, 1.0),)} if is_empty else {}


def overlaps(predictions: Boxes, references: Boxes) -> npt.NDArray[np.float64]:
    """The IoU of each prediction with each reference, (predictions, references).

    It is the shared area divided by the area that the two boxes cover together.

    Examples
    --------
    >>> overlaps([(0, 0, 2, 2)], [(1, 0, 3, 2), (2, 2, 3, 3)])
    array([[0.33333333, 0.        ]])
    """
    first = np.array(predictions, dtype=float)[:, None, :]
    second = np.array(references, dtype=float)[None, :, :]
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., 2:], second[..., 2:])
    shared = np.maximum(high - low, 0).prod(axis=-1)
    areas = (first[..., 2:] - first[..., :2]).prod(axis=-1)
    areas = areas + (second[..., 2:] - second[..., :2]).prod(axis=-1)
    return np.asarray(shared / (areas - shared))


def matches(
    predictions: Boxes, references: Boxes, iou: float, matching: BoxMatching
) -> int:
    """How many predictions find a reference that no other prediction has taken.

    Examples
    --------
    >>> boxes = [(0, 0, 2, 2), (0, 0, 2, 1)]
    >>> matches(boxes, [(0, 0, 2, 2)], 0.5, BoxMatching.IOU)
    1
    """
    if not predictions or not references:
        return 0
    shares = overlaps(predictions, references)
    if matching is BoxMatching.FILE:
        return _matches_by_file(shares, iou)
    return _matches_by_iou(shares, iou)


def _matches_by_file(shares: npt.NDArray[np.float64], iou: float) -> int:
    """Let each prediction in turn take the best reference that is still free."""
    free_shares = shares.copy()
    count = 0
    for row in free_shares:
        best = int(row.argmax())
        if row[best] > iou:
            free_shares[:, best] = -1
            count += 1
    return count


def _matches_by_iou(shares: npt.NDArray[np.float64], iou: float) -> int:
    """Let the pair with the highest IoU take each other first."""
    places = np.flatnonzero((shares >= iou) & (shares > 0))
    # Of equal IoU, the first prediction comes first, then the first reference.
    order = np.argsort(-shares.ravel()[places], kind="stable")
    predictions: set[int] = set()
    references: set[int] = set()
    for place in places[order].tolist():
        prediction, reference = divmod(place, shares.shape[1])
        if prediction not in predictions and reference not in references:
            predictions.add(prediction)
            references.add(reference)
            if len(predictions) == min(shares.shape):
                break
    return len(predictions)


def box_counts(
    reference: BoxesByLabel, prediction: BoxesByLabel, rules: AnswerRules
) -> list[int]:
    """The boxes that are right, too many and missed, for each IoU of the rules."""
    predicted = sum(map(len, prediction.values()))
    expected = sum(map(len, reference.values()))
    counts = []
    for iou in rules.iou:
        right = 0
        for label, boxes in prediction.items():
            right += matches(boxes, reference.get(label, ()), iou, rules.matching)
        counts += [right, predicted - right, expected - right]
    return counts
