"""Describes what was found of one case, before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Labels, Spacing
from flare.reports.cases.strays import Stray
from flare.reports.cases.surfaces import OrganSurfaces
from flare.reports.cases.turning import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceCounts:
    """How many voxels of an organ each slice has, from the feet to the head."""

    reference: npt.NDArray[np.int64]
    prediction: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganFinding:
    """What was found of one organ."""

    name: str
    label: int
    tolerance_mm: float
    dsc: float
    """As metrics.json has it."""
    nsd: float
    """As metrics.json has it."""
    counts: SliceCounts
    """In the whole of both label maps."""
    surfaces: OrganSurfaces | None
    """None if neither label map has the organ."""
    strays: tuple[Stray, ...] = ()
    """Pieces of the prediction that lie far from the reference."""
    lost: tuple[Stray, ...] = ()
    """Pieces of the reference that lie far from the prediction."""
    scored: tuple[int, int] | None = None
    """The first slice that was scored, and the one after the last, from the feet; None
    if all were."""

    @property
    def voxels(self) -> tuple[int, int, int]:
        """Of the reference, of the prediction, and those that they share."""
        counts = self.counts
        return (
            int(counts.reference.sum()),
            int(counts.prediction.sum()),
            int(counts.shared.sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinding:
    """What was found of one case; arrays are turned, as `Turn` says."""

    case: str
    dsc: float
    nsd: float
    turn: Turn
    spacing: Spacing
    """In mm, turned."""
    reference: Labels
    prediction: Labels
    box: tuple[slice, slice, slice]
    """Where either label map has an organ; empty if none has."""
    worst: tuple[int, int, int]
    """The slice of each plane in which errors weigh the most."""
    organs: tuple[OrganFinding, ...]
    file_shape: tuple[int, int, int]
    """Of the arrays before they were turned."""

    @property
    def is_blank(self) -> bool:
        """Whether neither label map has any organ."""
        return any(part.start >= part.stop for part in self.box)

    @property
    def voxel_ml(self) -> float:
        """Volume of a voxel."""
        return float(np.prod(self.spacing)) / 1000
