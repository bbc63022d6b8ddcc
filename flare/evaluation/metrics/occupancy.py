"""Says which rows and columns each label of a label map occupies, slice by slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Where one label is, in one label map or in either of two."""

    label: int
    rows: Mask
    """Shape (Z, Y): is the label anywhere in the row? Right at both ends of what is
    occupied in a slice, which is all that counts; between them it may be False."""
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
        found = _span(self.rows)
        height = self.rows.shape[1]
        return slice(found.start // height, -(-found.stop // height))

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
    """From the first to the last True, or an empty slice."""
    content = occupied.tobytes()  # which Python searches quicker than NumPy begins to
    return slice(max(content.find(1), 0), content.rfind(1) + 1)
