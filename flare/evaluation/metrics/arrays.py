"""The arrays that travel between modules, in order z, y, x, and memory for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.uint8]
"""Labels of shape (Z, Y, X)."""

Mask = npt.NDArray[np.bool_]
"""A mask of shape (Z, Y, X)."""

Spacing = tuple[float, float, float]
"""Voxel size in mm along z, y, x."""


class ReusedMemory:
    """Memory that is used again, for one case after the other.

    The kernel hands out fresh memory by pages of 4 KiB, which takes longer than what is
    then done with them: that was a third of the time of a case.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[np.uint8]] = {}

    def take(self, name: str, size: int) -> npt.NDArray[np.uint8]:
        """An array of shape (size,) with any content.

        The next that is taken by the same name has the same place: it overwrites it.
        """
        if name not in self._arrays or size > self._arrays[name].size:
            self._arrays.pop(name, None)  # never hold both
            self._arrays[name] = np.empty(size, dtype=np.uint8)
        return self._arrays[name][:size]
