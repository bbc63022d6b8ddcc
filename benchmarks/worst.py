"""Generates cases that are as much work as a label map of their size can be.

The reference is an honest one; the prediction is made to be slow. A generated case
without a trick is beside them, in ``honest``.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
from cases import IN_PLANE_MM, SLICE_MM, label_maps

Shape = tuple[int, int, int]

ORGANS = 4


def checkerboard(shape: Shape, _: np.random.Generator) -> np.ndarray:
    """Four labels by turns along every axis: each voxel is a surface of its own."""
    z, y, x = np.ogrid[tuple(slice(size) for size in shape)]
    return 1 + (x + y + z) % ORGANS


def noise(shape: Shape, random: np.random.Generator) -> np.ndarray:
    """Any label anywhere, the background included."""
    return random.integers(0, ORGANS + 1, size=shape, dtype=np.uint8)


def salt_and_pepper(shape: Shape, random: np.random.Generator) -> np.ndarray:
    """Some label in each thirtieth voxel."""
    labels = noise(shape, random)
    labels[random.integers(0, 30, size=shape, dtype=np.uint8) > 0] = 0
    return labels


def comb(axis: int) -> Callable[[Shape, np.random.Generator], np.ndarray]:
    """Label 1 in every other layer along an axis."""

    def layers(shape: Shape, _: np.random.Generator) -> np.ndarray:
        sizes = [shape[axis] if axis == other else 1 for other in range(3)]
        return np.broadcast_to(np.arange(shape[axis]).reshape(sizes) % 2, shape)

    return layers


KINDS: dict[str, Callable[[Shape, np.random.Generator], np.ndarray]] = {
    "checkerboard": checkerboard,
    "noise": noise,
    "salt and pepper": salt_and_pepper,
    "comb along x": comb(2),
    "comb along y": comb(1),
    "comb along z": comb(0),
}


def write_cases(folder: Path, slices: int) -> None:
    """Write a folder for each kind, with a case in it twice and once."""
    shape = (slices, 512, 512)
    random = np.random.default_rng((2021, slices))
    reference, honest = label_maps(shape, ORGANS, random)
    maps = {"honest": lambda: honest}
    for kind, make in KINDS.items():
        maps[kind] = lambda make=make: make(shape, random).astype(np.uint8)
    right = _packed(reference)
    for kind, labels in maps.items():
        content = _packed(labels())
        for count in (1, 2):
            for name, file in (("reference", right), ("predictions", content)):
                target = folder / f"{kind}-{count}" / name
                target.mkdir(parents=True)
                for number in range(count):
                    (target / f"case_{number:03}.nii.gz").write_bytes(file)


def _packed(labels: np.ndarray) -> bytes:
    """A compressed NIfTI file; quickly, as nobody looks at its size."""
    image = nib.Nifti1Image(labels.T, np.diag([*IN_PLANE_MM[:1] * 2, SLICE_MM, 1.0]))
    image.header.set_xyzt_units("mm")
    return gzip.compress(image.to_bytes(), compresslevel=1, mtime=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slices", type=int, default=100)
    arguments = parser.parse_args()
    write_cases(arguments.folder, arguments.slices)
