"""Turns a file's axes to the planes that doctors look at, and the part that is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import nibabel as nib
import numpy as np
import numpy.typing as npt

from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.metrics.finder import Spacing

_Array = TypeVar("_Array", bound=npt.NDArray[Any])

TILTED_DEGREES = 1.0
"""Slices that are tilted by more are said to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """How the axes of a file have to be turned.

    A turned array runs from the feet to the head, from front to back, and from the
    patient's right to the left: its slices are seen as doctors see them.
    """

    ways: npt.NDArray[np.float64]
    """For the file's axes x, y and z, as nibabel has it: the axis of LPS, and -1 where
    it has to be turned around."""
    tilt: float
    """By how many degrees the nearest directions of the patient differ from the axes
    at most; pictures are along the axes."""

    def volume(self, array: _Array) -> _Array:
        """A turned view of an array (z, y, x)."""
        return nib.orientations.apply_orientation(array.T, self.ways).T  # type: ignore[no-any-return]

    def lengths(self, spacing: Spacing) -> Spacing:
        """Spacings along z, y, x in the order of the turned axes."""
        order = np.argsort(self.ways[:, 0])
        x, y, z = (spacing[2 - own] for own in order)
        return z, y, x

    def slices(self, part: slice, size: int) -> tuple[int, slice]:
        """The turned axis of the file's slices, and where some of so many are on it."""
        way, sign = self.ways[2]
        if sign < 0:
            part = slice(size - part.stop, size - part.start)
        return 2 - int(way), part


def orientation_of(grid: Grid) -> Orientation:
    """How a grid has to be turned."""
    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    found = nib.orientations.io_orientation(affine)
    nowhere = np.isnan(found[:, 0])  # an axis gets the direction that is left
    found[nowhere, 0] = sorted({0, 1, 2} - {*found[~nowhere, 0]})
    found[nowhere, 1] = 1
    lps = nib.orientations.axcodes2ornt("LPS")
    ways = nib.orientations.ornt_transform(found, lps)
    return Orientation(ways=ways, tilt=_tilt(affine[:3, :3]))


def _tilt(steps: npt.NDArray[np.float64]) -> float:
    """The largest angle between an axis and the nearest direction of the patient."""
    lengths = np.linalg.norm(steps, axis=0)
    if not lengths.all():
        return 0.0
    nearest = (np.abs(steps) / lengths).max(axis=0)
    return math.degrees(math.acos(min(1.0, float(nearest.min()))))


Pixels = npt.NDArray[Any]
"""Shape (rows, columns)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """One of the planes that doctors look at, and a side to look from."""

    name: str
    across: int
    """The turned axis that its slices follow each other along."""
    down: int
    """The turned axis of its rows."""
    right: int
    """The turned axis of its columns."""
    letters: str
    """At its left, right, top and bottom."""
    side: str
    """From where its surface is looked at."""
    is_far_end: bool = False
    """Whether that is the end of the axis across, and not its beginning."""

    @property
    def is_upside_down(self) -> bool:
        """Whether its rows run against their axis: the head is on top."""
        return self.down == 0

    def cut(self, volume: Pixels, number: int, field: FieldOfView) -> Pixels:
        """A slice of a turned array, as far as it is seen; rows from the top."""
        where: list[slice | int] = list(field.box)
        where[self.across] = number
        found = volume[tuple(where)]  # the axes that are left are in the right order
        return found[::-1] if self.is_upside_down else found


PLANES = (
    Plane(name="axial", across=0, down=1, right=2, letters="RLAP", side="below"),
    Plane(name="coronal", across=1, down=0, right=2, letters="RLSI", side="the front"),
    Plane(
        name="sagittal",
        across=2,
        down=0,
        right=1,
        letters="APSI",
        side="the patient's left",
        is_far_end=True,
    ),
)

FRONT = PLANES[1]
"""What is seen from the front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOfView:
    """The part of a case that is seen."""

    box: tuple[slice, slice, slice]
    spacing: tuple[float, float, float]
    """In mm."""

    def pixels(self, axis: int) -> int:
        """Voxels along an axis."""
        part = self.box[axis]
        return int(part.stop - part.start)

    def length(self, axis: int) -> float:
        """In mm."""
        return self.pixels(axis) * self.spacing[axis]


def bar_length(width: float) -> int:
    """How many mm a scale bar is long, in a picture so many mm wide.

    Examples
    --------
    >>> bar_length(300.0), bar_length(40.0)
    (50, 10)
    """
    fitting = [length for length in (1, 2, 5, 10, 20, 50, 100) if length <= width / 4]
    return fitting[-1] if fitting else 1
