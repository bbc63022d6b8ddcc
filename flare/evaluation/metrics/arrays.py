"""The arrays that travel between modules, in order z, y, x, and memory for them."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Where one label is, in one label map or in either of two."""

    label: int
    rows: Mask
    """Shape (Z, Y): is the label anywhere in the row? In each slice, only the first and
    the last True count: no row outside them has the label. A slice has one True at
    least if it has the label, and none if it has not."""
    columns: Mask
    """Shape (Z, X): the same for the columns of each slice."""

    def __or__(self, other: Occupancy) -> Occupancy:
        """Where the label is in either label map."""
        return Occupancy(
            label=self.label,
            rows=self.rows | other.rows,
            columns=self.columns | other.columns,
        )

    def within(self, zs: slice) -> Occupancy:
        """The same for some slices of the label map alone."""
        return Occupancy(label=self.label, rows=self.rows[zs], columns=self.columns[zs])

    @property
    def depth(self) -> int:
        """Slices of the whole label map."""
        return len(self.rows)

    @property
    def span_z(self) -> slice:
        """Slices from the first to the last that hold the label."""
        return _span(self.rows.any(axis=1))

    def span_yx(self, zs: slice) -> tuple[slice, slice]:
        """Rows and columns outside which the slices `zs` do not hold the label."""
        return _span(self.rows[zs].any(axis=0)), _span(self.columns[zs].any(axis=0))

    @property
    def extent(self) -> tuple[int, int, int]:
        """Size in voxels of the box around the label."""
        spans = (self.span_z, *self.span_yx(slice(None)))
        depth, height, width = (span.stop - span.start for span in spans)
        return depth, height, width


def _span(occupied: npt.NDArray[np.bool_] | np.bool_) -> slice:
    """From the first to the last True of an array of shape (n,), or an empty slice."""
    content = occupied.tobytes()  # which Python searches quicker than NumPy begins to
    return slice(max(content.find(1), 0), content.rfind(1) + 1)
