"""Turns stored values into labels of one byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

UNKNOWN_LABELS_LIMIT = 20
"""So many different unknown labels of a file are kept, for its message."""


class Narrower:
    """Turns stored values into labels of one byte, and remembers what was not one."""

    def __init__(self, slope: float, intercept: float) -> None:
        self.misfits: set[int] = set()
        """Whole numbers that fit into no byte; the first few of many."""
        self.fraction: float | None = None
        """The first value that is no whole number."""
        self._slope, self._intercept = slope, intercept

    def narrow(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values as labels of one byte; what fits into none becomes 0."""
        if (self._slope, self._intercept) != (1, 0):
            with np.errstate(over="ignore", invalid="ignore"):
                values = values.astype(np.float64) * self._slope + self._intercept
        if values.min() >= 0 and values.max() <= 255:  # False if there is a NaN
            labels = values.astype(np.uint8)
            if values.dtype.kind != "f" or np.array_equal(labels, values):
                return labels
        if values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                is_whole = np.isfinite(values) & (np.rint(values) == values)
            is_fraction = ~is_whole
            if is_fraction.any():
                if self.fraction is None:
                    self.fraction = float(values[is_fraction][0])
                values = np.where(is_fraction, 0, values)
        fits = (values >= 0) & (values <= 255)
        room = UNKNOWN_LABELS_LIMIT - len(self.misfits)
        misfits = np.unique(values[~fits])[: max(0, room)]
        self.misfits.update(int(value) for value in misfits)
        return np.where(fits, values, 0)
