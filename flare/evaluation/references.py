"""Reads all reference labels, so that no mistake in them waits for a submission."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flare.challenge.rules import Challenge
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.scoring.reading import read_reference
from flare.evaluation.submission.folder import (
    find_references,
    is_demonstration,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSet:
    """What the reference labels of a challenge are like."""

    count: int
    """How many there are."""
    grids: tuple[Grid, ...] = ()
    """Of those that were read."""
    volumes_ml: Mapping[str, tuple[float, ...]]
    """By organ: its volumes in the label maps that have it, in ml, smallest first."""


def check_references(ground_truth: Path, challenge: Challenge) -> ReferenceSet:
    """Read all references of a challenge, so that no mistake waits for a submission.

    Returns
    -------
    ReferenceSet
        The demonstration set is counted, and not read: it need not fit.

    Raises
    ------
    GroundTruthError
        If one is missing, damaged, there twice, or breaks the challenge's rules.
    InputError
        If the folder is not there.
    """
    references = find_references(ground_truth, challenge.npz.references)
    grids = []
    volumes: dict[str, list[float]] = {organ.name: [] for organ in challenge.organs}
    for file in references:
        if is_demonstration(file.case):
            continue
        reference = read_reference(file, challenge)
        grids.append(reference.grid)
        voxels = np.bincount(reference.labels.ravel(), minlength=256)
        voxel_ml = math.prod(reference.grid.spacing) / 1000
        for organ in challenge.organs:
            if voxels[organ.label]:
                volumes[organ.name].append(float(voxels[organ.label]) * voxel_ml)
    return ReferenceSet(
        count=len(references),
        grids=tuple(grids),
        volumes_ml={name: tuple(sorted(found)) for name, found in volumes.items()},
    )
