"""The arrays that metrics work on, and the memory that they are made in.

Arrays of voxels are in order z, y, x. A flat buffer is a part of a label map as one
long array of shape (n,); `flare.evaluation.metrics.windows` tells how it is laid out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.uint8]
"""Labels of shape (Z, Y, X)."""

Mask = npt.NDArray[np.bool_]
"""A mask of shape (Z, Y, X)."""

Spacing = tuple[float, float, float]
"""Voxel size in mm along z, y, x."""

Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class ReusedMemory:
    """Memory that is used again, for one case after the other.

    The kernel hands out fresh memory by pages of 4 KiB, which takes longer than what is
    then done with them: that was a third of the time of a case.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Bytes] = {}

    def take(self, name: str, size: int) -> Bytes:
        """An array of shape (size,) with any content.

        The next that is taken by the same name has the same place: it overwrites it.
        """
        if name not in self._arrays or size > self._arrays[name].size:
            self._arrays.pop(name, None)  # never hold both
            self._arrays[name] = np.empty(size, dtype=np.uint8)
        return self._arrays[name][:size]


def bytes_in_groups(groups: Indices, words: npt.NDArray[np.uint64]) -> Indices:
    """Places of the bytes that are not 0, in ascending order.

    `groups` are where the groups of eight bytes begin that are looked at, and `words`
    the eight bytes of each; both are of shape (n,).
    """
    nonzero = (words.view(np.uint8) != 0).nonzero()[0]
    places: Indices = groups.take(nonzero >> 3) + (nonzero & 7)
    return places
