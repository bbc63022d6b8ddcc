"""Draws cases with replacement, and makes intervals of what was computed on the draws.

The percentiles of means are what papers print, and suppose that the cases are a random
sample. Of few cases, and where a failure is rare, they are too narrow:
docs/reference/metrics.md says how often they hold, and tests simulate it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flare.statistics import CONFIDENCE, DRAWS, SEED

Integers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

FEWEST_VALUES = 10
"""Of fewer values, an interval holds too seldom to be called one."""


def draw_places(
    counts: Iterable[int], *, draws: int = DRAWS, seed: int = SEED
) -> list[Integers]:
    """Draw as many places of cases, from 0, as there are, with replacement [1]_.

    One generator, of which equal seeds give equal draws, draws for each count after the
    other: arrays of shape (draws, count).

    References
    ----------
    .. [1] Efron, Annals of Statistics 7(1), 1979. doi:10.1214/aos/1176344552
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    return [generator.integers(count, size=(draws, count)) for count in counts]


def percentiles(values: Values) -> tuple[float, float]:
    """The ends of the interval of what was computed on each draw, interpolated."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, (tail, 1 - tail)).tolist()
    return low, high


def middle(values: Values | Integers) -> tuple[float, float, float]:
    """Lower end, median and upper end of values; the ends are some of them."""
    ordered = np.sort(values)
    outside = math.floor(len(ordered) * (1 - CONFIDENCE) / 2)
    low, high = ordered[outside], ordered[-1 - outside]
    return float(low), float(np.median(ordered)), float(high)


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
    means = np.array(values, dtype=np.float64).take(_places(len(values))).mean(axis=1)
    return percentiles(means)


def reason_for_none(values: Sequence[float]) -> str:
    """Why there is no interval of the mean of values."""
    return "too few cases" if len(values) < FEWEST_VALUES else "all cases alike"


@lru_cache(maxsize=4)
def _places(count: int) -> Integers:
    """The places of the values in each draw; each call gives the same."""
    return draw_places([count])[0]
