"""Computes confidence intervals of means by the bootstrap.

Its percentiles are what papers print, and suppose that the cases are a random sample.
Of few cases, and where a failure is rare, they are too narrow:
docs/reference/metrics.md says how often they hold, and tests simulate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95

FEWEST_VALUES = 10
"""Of fewer values, an interval holds too seldom to be called one."""

DRAWS = 1000

SEED = 2021


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """A confidence interval of the mean; None for too few values, or for equal ones.

    Examples
    --------
    A method that has never failed on 20 cases may still fail on another one:

    >>> print(mean_interval([1.0] * 20))
    None
    """
    if len(values) < FEWEST_VALUES or min(values) == max(values):
        return None
    means = np.array(values, dtype=np.float64).take(_drawn(len(values))).mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail)).tolist()
    return low, high


def reason_for_none(values: Sequence[float]) -> str:
    """Why there is no interval of the mean of values."""
    return "too few cases" if len(values) < FEWEST_VALUES else "all cases alike"


@lru_cache(maxsize=4)
def _drawn(count: int) -> npt.NDArray[np.int64]:
    """The numbers of the values in each draw; each call gives the same."""
    return np.random.default_rng(SEED).integers(count, size=(DRAWS, count))
