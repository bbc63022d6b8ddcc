"""Generates pairs of label maps that are as much work as those of a real challenge.

Organs are ellipsoids whose surface is bumpy at every scale, as a hand-drawn one is: a
compressed case has about 300 KB, and every organ has a surface in both label maps.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nibabel as nib
import numpy as np

IN_PLANE_MM = (0.6, 0.98)
"""Voxel size along x and y of the smallest and the largest patient."""

SLICE_MM = 2.5
"""Distance of the slices."""

ORGANS = (
    ((0.60, 0.45, 0.30), (0.34, 0.26, 0.19)),
    ((0.35, 0.66, 0.30), (0.16, 0.09, 0.06)),
    ((0.62, 0.55, 0.82), (0.22, 0.16, 0.09)),
    ((0.45, 0.46, 0.55), (0.12, 0.07, 0.13)),
    ((0.38, 0.66, 0.70), (0.16, 0.09, 0.06)),
    ((0.50, 0.62, 0.50), (0.45, 0.03, 0.03)),
    ((0.50, 0.60, 0.44), (0.40, 0.03, 0.03)),
    ((0.55, 0.64, 0.38), (0.05, 0.03, 0.02)),
    ((0.55, 0.64, 0.62), (0.05, 0.03, 0.02)),
    ((0.45, 0.36, 0.40), (0.10, 0.05, 0.04)),
    ((0.85, 0.60, 0.53), (0.14, 0.02, 0.02)),
    ((0.62, 0.36, 0.62), (0.18, 0.12, 0.14)),
    ((0.36, 0.46, 0.45), (0.16, 0.06, 0.07)),
)
"""Centre and radii of the organ of each label, as parts of the field of view: z, y, x.

Labels are FLARE22's; the first four are those of FLARE21 as well.
"""

BUMPS = 0.12
"""How far a surface is from that of its ellipsoid, as a part of the radius."""

ERROR = 0.06
"""The same for the surface of a prediction, from that of its reference."""


def write_cases(
    folder: Path, *, cases: int, slices: int, organs: int, dtype: str
) -> None:
    """Write pairs of label maps with 512 x 512 voxels per slice."""
    for kind in ("reference", "predictions"):
        (folder / kind).mkdir(parents=True)
    for number in range(cases):
        random = np.random.default_rng((2021, number))
        in_plane = random.uniform(*IN_PLANE_MM)
        affine = np.diag([in_plane, in_plane, SLICE_MM, 1.0])
        pair = label_maps((slices, 512, 512), organs, random)
        for kind, labels in zip(("reference", "predictions"), pair, strict=True):
            image = nib.Nifti1Image(labels.T.astype(dtype), affine)
            image.header.set_xyzt_units("mm")
            nib.save(image, folder / kind / f"case_{number:03}.nii.gz")


def label_maps(
    shape: tuple[int, int, int], organs: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Reference and prediction: uint8 arrays of the given shape, in order z, y, x."""
    reference, prediction = np.zeros((2, *shape), dtype=np.uint8)
    for label, (centre, radii) in enumerate(ORGANS[:organs], start=1):
        measures = list(zip(shape, centre, radii, strict=True))
        low = [int(n * max(0.0, c - 1.3 * r)) for n, c, r in measures]
        high = [int(n * (c + 1.3 * r)) + 1 for n, c, r in measures]
        box = tuple(slice(*ends) for ends in zip(low, high, strict=True))
        axes = [
            ((np.arange(count)[part] + 0.5) / count - c) / r
            for part, (count, c, r) in zip(box, measures, strict=True)
        ]
        z, y, x = np.meshgrid(*axes, indexing="ij", sparse=True)
        distance = np.sqrt(z**2 + y**2 + x**2)
        size = distance.shape
        distance += BUMPS * _bumps(size, random)
        reference[box][distance < 1] = label
        distance += ERROR * _bumps(size, random)
        prediction[box][distance < 1] = label
    return reference, prediction


def _bumps(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Noise between -1 and 1, the sum of coarse and fine parts."""
    total = np.zeros(shape)
    for cells, weight in ((3, 0.55), (8, 0.3), (24, 0.15)):
        noise = random.uniform(-1, 1, size=(cells + 1,) * 3)
        for axis, count in enumerate(shape):
            position = np.linspace(0, cells, count)
            left = np.minimum(position.astype(int), cells - 1)
            share = (position - left).reshape(
                [-1 if a == axis else 1 for a in range(3)]
            )
            noise = (
                noise.take(left, axis) * (1 - share)
                + noise.take(left + 1, axis) * share
            )
        total += weight * noise
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--slices", type=int, default=100)
    parser.add_argument("--organs", type=int, default=4)
    parser.add_argument("--dtype", default="uint8")
    arguments = parser.parse_args()
    write_cases(
        arguments.folder,
        cases=arguments.cases,
        slices=arguments.slices,
        organs=arguments.organs,
        dtype=arguments.dtype,
    )
