"""Makes the demonstration set: five small synthetic abdomens and their predictions.

Each case shows one thing that an evaluation has to get right; `CASES` says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.challenge.formats import SUFFIX
from flare.challenge.reading import read_challenge
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.nifti import write_label_map
from flare.evaluation.metrics.arrays import Labels, Mask, Spacing
from flare.evaluation.submission.find import DEMONSTRATION_CASE

_Triple = Sequence[float] | npt.NDArray[np.float64]
"""Three numbers along z, y, x."""

SEED = 2021
SHAPE = (32, 96, 120)
"""Voxels along z, y, x."""

ABDOMEN = (
    ("liver", (0.62, 0.45, 0.30), (0.26, 0.30, 0.22)),
    ("kidney", (0.30, 0.68, 0.28), (0.20, 0.12, 0.08)),
    ("kidney", (0.33, 0.68, 0.70), (0.20, 0.12, 0.08)),
    ("spleen", (0.64, 0.55, 0.82), (0.20, 0.20, 0.10)),
    ("pancreas", (0.46, 0.45, 0.56), (0.09, 0.08, 0.15)),
)
"""Organs, as bumpy ellipsoids, of a person who lies on the back and is seen from the
feet: centre and radii, as parts of the field of view along z, y, x."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    spacing: Spacing
    absent: str = ""
    """An organ that neither label map has."""
    missed: str = ""
    """An organ that the prediction lacks."""
    stray: str = ""
    """An organ that has some voxels in a far corner of the prediction."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How far the abdomen lies off the middle, in parts of the field of view."""
    shift_x: int = 0
    """If not 0, the prediction is the reference, moved by this many voxels along x."""


CASES = (
    _Case(spacing=(2.5, 0.8, 0.8), missed="pancreas"),
    _Case(spacing=(3.0, 0.7, 0.7), absent="spleen"),
    _Case(spacing=(2.0, 0.9, 0.9), stray="liver"),
    _Case(spacing=(2.5, 0.75, 0.75), offset=(0.2, 0.0, -0.15)),  # at the border
    _Case(spacing=(1.0, 1.0, 1.0), shift_x=1),  # a surface exactly 1 mm away
)


def write_demonstration(folder: Path, *, seed: int = SEED) -> Iterator[Path]:
    """Write the demonstration set, and yield each file when it is there.

    The folder gets ``ground-truth``, ``predictions`` and ``images``. The images stand
    in for CTs: 50 times the label, and noise below 50. Equal seeds give equal shapes.
    """
    for number, case in enumerate(CASES, start=1):
        reference, prediction = _label_maps(case, np.random.default_rng((seed, number)))
        noise = np.random.default_rng((seed, number, 1)).integers(0, 50, size=SHAPE)
        image = (50 * reference + noise).astype(np.uint8)
        for subfolder, labels, ending in (
            ("ground-truth", reference, ""),
            ("predictions", prediction, ""),
            ("images", image, "_0000"),
        ):
            name = DEMONSTRATION_CASE.format(number)
            file = folder / subfolder / f"{name}{ending}{SUFFIX}"
            file.parent.mkdir(parents=True, exist_ok=True)
            write_label_map(file, labels, _grid(case.spacing))
            yield file


def _grid(spacing: Spacing) -> Grid:
    """A grid whose x runs to the left, y to the back and z to the head, as in a CT."""
    size_z, size_y, size_x = spacing
    affine = (
        (-size_x, 0.0, 0.0, SHAPE[2] * size_x / 2),
        (0.0, -size_y, 0.0, SHAPE[1] * size_y / 2),
        (0.0, 0.0, size_z, -400.0),  # the first slice lies 400 mm below the origin
    )
    return Grid(shape=SHAPE, spacing=spacing, affine=affine)


def _label_maps(case: _Case, random: np.random.Generator) -> tuple[Labels, Labels]:
    """Reference and prediction of a case."""
    labels = {o.name: o.region[0] for o in read_challenge("flare21").organs}
    reference = np.zeros(SHAPE, dtype=np.uint8)
    prediction = np.zeros(SHAPE, dtype=np.uint8)
    for organ, centre, radii in ABDOMEN:
        phases = random.uniform(0, 2 * np.pi, size=3)
        offset = np.array(case.offset)
        if organ != case.absent:
            mask = _ellipsoid(centre, radii, offset, 1.0, phases)
            reference[mask] = labels[organ]
        if organ not in (case.absent, case.missed):
            offset = offset + random.normal(0, 0.01, size=3)
            scale = random.uniform(0.92, 1.04)
            mask = _ellipsoid(centre, radii, offset, scale, phases)
            prediction[mask] = labels[organ]
    if case.shift_x:
        prediction = np.roll(reference, case.shift_x, axis=2)
    if case.stray:
        prediction[:2, :3, -4:] = labels[case.stray]
    return reference, prediction


def _ellipsoid(
    centre: _Triple, radii: _Triple, offset: _Triple, scale: float, phases: _Triple
) -> Mask:
    """The voxels of an ellipsoid, moved, scaled, and made bumpy by waves along axes."""
    axes = [(np.arange(count) + 0.5) / count for count in SHAPE]
    z, y, x = np.meshgrid(*axes, indexing="ij", sparse=True)
    terms = []
    for axis, middle, moved, radius, phase in zip(
        (z, y, x), centre, offset, radii, phases, strict=True
    ):
        distance = (axis - middle - moved) / radius
        wave = 0.1 * np.sin(15 * axis + phase)
        terms.append(distance**2 + wave)
    inside: Mask = terms[0] + terms[1] + terms[2] < scale**2
    return inside
