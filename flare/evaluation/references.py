"""Reads all reference labels, so that no mistake in them waits for a submission."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flare.challenge.rules import Challenge
from flare.common.text import aligned, listing
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.scoring.reading import read_reference
from flare.evaluation.submission.find import find_references, is_demonstration


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


def references_table(found: ReferenceSet, challenge: Challenge) -> str:
    """How often each organ is there, how large, and on what grids; for organisers."""
    from statistics import median  # slow to load, which no evaluation has to wait for

    count = len(found.grids)
    if not count:
        return "They are the demonstration set, which was not read."
    rows: list[Sequence[str]] = [("", "in", "smallest", "median", "largest")]
    for organ in challenge.organs:
        volumes = found.volumes_ml[organ.name]
        texts = ["-", "-", "-"]
        if volumes:
            middle = median(volumes)
            texts = [f"{v:.1f} ml" for v in (volumes[0], middle, volumes[-1])]
        rows.append((organ.name, f"{len(volumes)} of {count}", *texts))
    lines = aligned(rows)
    for axis, name in enumerate("zyx"):
        lengths = _span([grid.spacing[axis] for grid in found.grids])
        sizes = _span([grid.shape[axis] for grid in found.grids])
        lines.append(f"Along {name}: spacing {lengths} mm, {sizes} voxels")
    absent = [name for name, volumes in found.volumes_ml.items() if not volumes]
    if absent:
        challenge_is = f"is --challenge {challenge.key} the right one?"
        lines.append(f"No label map has {listing(absent)}: {challenge_is}")
    return "\n".join(lines)


def _span(values: Sequence[float]) -> str:
    """From the smallest to the largest of some numbers; one, if they are alike."""
    return " to ".join(dict.fromkeys(f"{v:g}" for v in (min(values), max(values))))
