"""Places what is drawn of a case: three planes, of which a part is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from flare.reports.cases.findings import CaseFinding

MARGIN_MM = 12.0
"""Of what surrounds the organs, so much is seen."""

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
    letters: tuple[str, str, str, str]
    """At its left, right, top and bottom."""
    side: str
    """From where its surface is looked at,"""
    is_far_end: bool
    """and whether that is the end of the axis across, or its beginning."""

    @property
    def is_upside_down(self) -> bool:
        """Whether its rows run against their axis: the head is on top."""
        return self.down == 0

    def cut(self, volume: Pixels, number: int, frame: Frame) -> Pixels:
        """A slice of a turned array, as far as it is seen; rows from the top."""
        where: list[slice | int] = list(frame.box)
        where[self.across] = number
        found = volume[tuple(where)]  # the axes that are left are in the right order
        return found[::-1] if self.is_upside_down else found


PLANES = (
    Plane(
        name="axial",
        across=0,
        down=1,
        right=2,
        letters=("R", "L", "A", "P"),
        side="below",
        is_far_end=False,
    ),
    Plane(
        name="coronal",
        across=1,
        down=0,
        right=2,
        letters=("R", "L", "S", "I"),
        side="the front",
        is_far_end=False,
    ),
    Plane(
        name="sagittal",
        across=2,
        down=0,
        right=1,
        letters=("A", "P", "S", "I"),
        side="the patient's left",
        is_far_end=True,
    ),
)

FRONT = PLANES[1]
"""What is seen from the front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
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

    @property
    def width(self) -> float:
        """Of the widest plane, in mm: all are drawn to one scale."""
        return max(self.length(plane.right) for plane in PLANES)


def frame_of(found: CaseFinding) -> Frame:
    """What surrounds the organs of a case, and a margin."""
    parts = []
    for axis, part in enumerate(found.box):
        margin = math.ceil(MARGIN_MM / found.spacing[axis])
        size = found.reference.shape[axis]
        parts.append(slice(max(part.start - margin, 0), min(part.stop + margin, size)))
    z, y, x = parts
    return Frame(box=(z, y, x), spacing=found.spacing)


def bar_length(width: float) -> int:
    """How many mm a scale bar is long, in a picture so many mm wide.

    Examples
    --------
    >>> bar_length(300.0), bar_length(40.0)
    (50, 10)
    """
    fitting = [length for length in (1, 2, 5, 10, 20, 50, 100) if length <= width / 4]
    return fitting[-1] if fitting else 1
