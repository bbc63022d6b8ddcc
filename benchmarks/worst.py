"""Generates cases that are as much work as label maps of their size can be.

A folder for each pair: label maps of 13 labels, made to be slow, that are predictions
for honest references, and for references of the same kind. In ``honest`` is an honest
pair, several times, and in ``start-up`` one of a few voxels: the time of a start.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from cases import label_maps

Shape = tuple[int, int, int]
Maker = Callable[[Shape, np.random.Generator], np.ndarray]

ORGANS = 13

HONEST_CASES = 20
"""One is over so soon that the time of a start hides it."""


@dataclass(frozen=True)
class Grid:
    """The size of a label map, and of its voxels in mm, along z, y, x."""

    shape: Shape
    spacing: tuple[float, float, float]


GRIDS = {
    "fine": Grid((120, 320, 320), (0.5, 0.5, 0.5)),
    "thick": Grid((200, 512, 512), (2.5, 0.8, 0.8)),
}


def noise(shape: Shape, random: np.random.Generator) -> np.ndarray:
    """Any label anywhere, the background included."""
    return random.integers(0, ORGANS + 1, size=shape, dtype=np.uint8)


def salt_and_pepper(shape: Shape, random: np.random.Generator) -> np.ndarray:
    """Some label in each thirtieth voxel."""
    labels = noise(shape, random)
    labels[random.integers(0, 30, size=shape, dtype=np.uint8) > 0] = 0
    return labels


def checkerboard(shape: Shape, _: np.random.Generator) -> np.ndarray:
    """All labels by turns along every axis: each voxel is a surface of its own."""
    z, y, x = _axes(shape)
    return 1 + (x + y + z) % ORGANS


def combs(shape: Shape, _: np.random.Generator) -> np.ndarray:
    """Each label in every other column of a slab of its own."""
    z, y, x = _axes(shape)
    return (1 + y * ORGANS // shape[1]) * (x % 2) + 0 * z


def blocks(size: int, share: float) -> Maker:
    """Some label in each block of so many voxels along each axis, or in a share."""

    def make(shape: Shape, random: np.random.Generator) -> np.ndarray:
        count = [-(-length // size) for length in shape]
        labels = random.integers(1, ORGANS + 1, size=count, dtype=np.uint8)
        labels[random.random(count) >= share] = 0
        for axis in range(3):
            labels = labels.repeat(size, axis)
        return labels[tuple(slice(length) for length in shape)]

    return make


def fractal(shape: Shape, _: np.random.Generator) -> np.ndarray:
    """Sierpinski's tetrahedra, of 16 voxels, of one label each."""
    z, y, x = _axes(shape)
    labels = 1 + (z // 16 * 7 + y // 16 * 3 + x // 16) % ORGANS
    return labels * (((z & y | y & x | x & z) & 15) == 0)


def gyroid(period: float, turns: float) -> Maker:
    """Curved shells: all labels, and the background, by turns."""

    def make(shape: Shape, _: np.random.Generator) -> np.ndarray:
        z, y, x = (axis * np.float32(2 * np.pi / period) for axis in _axes(shape))
        height = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
        return (turns * (ORGANS + 1) * height).astype(int) % (ORGANS + 1)

    return make


KINDS: dict[str, Maker] = {
    "noise": noise,
    "salt and pepper": salt_and_pepper,
    "checkerboard": checkerboard,
    "combs": combs,
    "blocks of 3 voxels": blocks(3, 1.0),
    "specks": blocks(1, 0.02),
    "fractal": fractal,
    "gyroid of 20 voxels": gyroid(20, 0.5),
    "gyroid of 40 voxels": gyroid(40, 0.5),
}


def write_cases(folder: Path, grid: Grid) -> None:
    """Write a folder for each pair, with one case in it."""
    random = np.random.default_rng(2021)
    reference, honest = label_maps(grid.shape, ORGANS, random)
    _write(folder / "start-up", grid, *np.ones((2, 2, 2, 2), dtype=np.uint8))
    _write(folder / "honest", grid, reference, honest, HONEST_CASES)
    for kind, make in KINDS.items():
        labels = make(grid.shape, random)
        _write(folder / kind, grid, reference, labels)
        other = np.roll(make(grid.shape, random), (2, 5, 5), (0, 1, 2))
        _write(folder / f"{kind} in both", grid, other, labels)


def _axes(shape: Shape) -> tuple[np.ndarray, ...]:
    """The places along z, y and x, to compute with all voxels at once."""
    return np.ogrid[tuple(slice(length) for length in shape)]


def _write(
    target: Path,
    grid: Grid,
    reference: np.ndarray,
    prediction: np.ndarray,
    cases: int = 1,
) -> None:
    """Write a case as compressed NIfTI; quickly, as nobody looks at its size."""
    affine = np.diag([*grid.spacing[::-1], 1.0])
    for name, labels in (("reference", reference), ("predictions", prediction)):
        image = nib.Nifti1Image(labels.T.astype(np.uint8), affine)
        image.header.set_xyzt_units("mm")
        (target / name).mkdir(parents=True)
        content = gzip.compress(image.to_bytes(), compresslevel=1, mtime=0)
        for number in range(cases):
            (target / name / f"case_{number:03}.nii.gz").write_bytes(content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("grid", choices=GRIDS)
    parser.add_argument("--slices", type=int, help="fewer than the grid has")
    arguments = parser.parse_args()
    chosen = GRIDS[arguments.grid]
    shape = (arguments.slices or chosen.shape[0], *chosen.shape[1:])
    write_cases(arguments.folder, Grid(shape, chosen.spacing))
