"""Points between two axes: the curve of a score, and the front of two aims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Truths = npt.NDArray[np.bool_]


def called_shares(is_positive: Truths, is_called: Truths) -> tuple[float, float]:
    """The share of negative and of positive cases that are called positive."""
    return float(is_called[~is_positive].mean()), float(is_called[is_positive].mean())


def roc_points(
    is_positive: Truths, scores: npt.NDArray[np.float64]
) -> list[tuple[float, float]]:
    """The corners of the ROC curve, from (0, 0) to (1, 1) [1]_.

    Each is the share of negative and of positive cases, of which there are both, with a
    score from a threshold on.

    References
    ----------
    .. [1] Fawcett, Pattern Recognition Letters 27(8), 2006.
       doi:10.1016/j.patrec.2005.10.010

    Examples
    --------
    >>> roc_points(np.array([True, False, True]), np.array([0.9, 0.5, 0.5]))
    [(0.0, 0.0), (0.0, 0.5), (1.0, 1.0)]
    """
    points = [(0.0, 0.0)]
    for threshold in np.unique(scores)[::-1].tolist():
        points.append(called_shares(is_positive, scores >= threshold))
    return points


def pareto_front(gains: Sequence[float], costs: Sequence[float]) -> list[int]:
    """The numbers of the points that no other beats, the cheapest first.

    A point beats another if it is as good in both, and better in one; equal points do
    not beat each other.

    Examples
    --------
    >>> pareto_front([0.9, 0.8, 0.9, 0.7], [5.0, 2.0, 6.0, 2.0])
    [1, 0]
    """
    points = np.column_stack([gains, costs])
    front = []
    for number, (gain, cost) in enumerate(points):
        is_as_good = (points[:, 0] >= gain) & (points[:, 1] <= cost)
        is_other = (points[:, 0] != gain) | (points[:, 1] != cost)
        if not (is_as_good & is_other).any():
            front.append(number)
    return sorted(front, key=lambda number: (costs[number], gains[number]))
