"""Generates cases that are as much work as label maps of their size can be.

A folder for each pair: label maps of 13 labels, made to be slow, that are predictions
for honest references, and for references of the same kind. In ``honest`` is an honest
pair, several times, and in ``start-up`` one of a few voxels: the time of a start.

With ``--search``, maps whose distances take longest are looked for instead: masks are
drawn, and the slowest so far are changed a little. Each is compared with an organ of an
honest reference, and its time with that of noise. A line is printed for each that is
slower than all before; the slowest is written to the folder ``found``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import nibabel as nib
import numpy as np
from cases import label_maps

sys.path.insert(0, str(Path(__file__).parent.parent))

from flare.evaluation.metrics.comparison import compare_organ
from flare.evaluation.metrics.pairs import MapPair, map_of

Shape = tuple[int, int, int]
Maker = Callable[[Shape, np.random.Generator], np.ndarray]

ORGANS = 13

GAPS = (2, 20)
"""Voxels between an organ and the sphere around it."""

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


def sphere(organ: np.ndarray, gap: int) -> np.ndarray:
    """A thin shell around an organ, so many voxels away from its farthest ones.

    From the middle of the organ, all of it is equally far.
    """
    centre = [int(np.median(at)) for at in organ.nonzero()]
    squares = [(at - c) ** 2 for at, c in zip(_axes(organ.shape), centre, strict=True)]
    radius = np.sqrt(sum(squares)).astype(int)
    return radius == radius[organ > 0].max() + gap


def spheres(reference: np.ndarray, gap: int) -> np.ndarray:
    """A shell of each label around its organ in a reference."""
    labels = np.zeros_like(reference)
    for label in range(1, ORGANS + 1):
        organ = reference == label
        if organ.any():
            labels[sphere(organ, gap)] = label
    return labels


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
    for gap in GAPS:
        labels = spheres(reference, gap)
        _write(folder / f"spheres {gap} voxels away", grid, reference, labels)
    for kind, make in KINDS.items():
        labels = make(grid.shape, random)
        _write(folder / kind, grid, reference, labels)
        other = np.roll(make(grid.shape, random), (2, 5, 5), (0, 1, 2))
        _write(folder / f"{kind} in both", grid, other, labels)


# --- A search for maps whose distances take long ----------------------------------

PATTERNS = (
    *("noise", "blocks", "planes", "columns", "checkerboard", "gyroid", "shells"),
    "sphere",
)

BEST = 8
"""So many of the slowest masks are changed to get others."""


@dataclass(frozen=True)
class Recipe:
    """How a mask is made: a pattern in a part of the map, without what is near."""

    pattern: str
    size: int
    """Of blocks, or of a period, in voxels."""
    share: float
    """Of all places that belong to the mask."""
    box: tuple[tuple[float, float], ...]
    """Where it is, as parts of each axis: from 0 to 1."""
    gap: int
    """So many voxels around the organ's box are left empty."""
    axis: int
    seed: int

    def mask(self, shape: Shape, organ: np.ndarray) -> np.ndarray:
        """The mask, for a map with an organ."""
        random = np.random.default_rng(self.seed)
        z, y, x = _axes(shape)
        if self.pattern == "noise":
            found = random.random(shape) < self.share
        elif self.pattern == "blocks":
            found = blocks(self.size, self.share)(shape, random) > 0
        elif self.pattern == "planes":
            found = (z, y, x)[self.axis] % self.size == 0
        elif self.pattern == "columns":
            across = [at for n, at in enumerate((z, y, x)) if n != self.axis]
            found = (across[0] % self.size == 0) & (across[1] % self.size == 0)
        elif self.pattern == "checkerboard":
            found = (x // self.size + y // self.size + z // self.size) % 2 == 0
        elif self.pattern == "gyroid":
            found = gyroid(self.size, 0.5)(shape, random) % 2 == 1
        elif self.pattern == "sphere":
            found = sphere(organ, self.size)
        else:
            centre = [
                int(n * part) for n, (part, _) in zip(shape, self.box, strict=True)
            ]
            found = sum((at - c) ** 2 for at, c in zip((z, y, x), centre, strict=True))
            found = np.sqrt(found).astype(int) % self.size == 0
        whole, mask = np.broadcast_to(found, shape), np.zeros(shape, dtype=np.uint8)
        part = tuple(
            slice(int(n * low), int(n * high) + 1)
            for n, (low, high) in zip(shape, self.box, strict=True)
        )
        mask[part] = whole[part]
        if self.gap:
            near = [
                (at.min() - self.gap, at.max() + self.gap + 1) for at in organ.nonzero()
            ]
            mask[tuple(slice(max(0, low), high) for low, high in near)] = 0
        return mask


def drawn(random: np.random.Generator) -> Recipe:
    """Any recipe."""
    ends = np.sort(random.random((3, 2)), axis=1)
    box = tuple((float(low), float(high)) for low, high in ends)
    return Recipe(
        pattern=str(random.choice(PATTERNS)),
        size=int(random.integers(2, 64)),
        share=float(10 ** random.uniform(-4, -0.1)),
        box=box if random.random() < 0.5 else ((0.0, 1.0),) * 3,
        gap=int(random.choice((0, 0, 4, 12, 30))),
        axis=int(random.integers(3)),
        seed=int(random.integers(2**31)),
    )


def changed(recipe: Recipe, random: np.random.Generator) -> Recipe:
    """A recipe of which one or two things are as in another."""
    names = random.choice(
        list(asdict(recipe)), size=random.integers(1, 3), replace=False
    )
    other = drawn(random)
    return replace(recipe, **{str(name): getattr(other, str(name)) for name in names})


def search(folder: Path, grid: Grid, seconds: float, seed: int) -> None:
    """Look for masks whose distances take longest, beside those of noise."""
    random = np.random.default_rng(seed)
    reference, _ = label_maps(grid.shape, ORGANS, random)
    organs = {label: (reference == label).astype(np.uint8) for label in (1, 2, 5, 12)}
    everywhere = replace(drawn(random), pattern="noise", gap=0, box=((0.0, 1.0),) * 3)
    noisy = [replace(everywhere, share=share) for share in (1 / 5, 1 / 14)]
    usual = {
        label: max(
            _seconds(grid, organ, each.mask(grid.shape, organ)) for each in noisy
        )
        for label, organ in organs.items()
    }
    slowest: list[tuple[float, int, Recipe]] = []
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        label, recipe = int(random.choice(list(organs))), drawn(random)
        if slowest and random.random() < 0.6:
            _, label, recipe = slowest[random.integers(len(slowest))]
            recipe = changed(recipe, random)
        mask = recipe.mask(grid.shape, organs[label])
        if not mask.any():
            continue
        ratio = _seconds(grid, organs[label], mask) / usual[label]
        if not slowest or ratio > slowest[0][0]:
            what = {"ratio": round(ratio, 2), "masks": number, "label": label}
            print(json.dumps(what | asdict(recipe)), flush=True)
            if folder.exists():
                shutil.rmtree(folder / "found", ignore_errors=True)
            _write(folder / "found", grid, organs[label] * label, mask * label)
        slowest = sorted([*slowest, (ratio, label, recipe)], key=lambda at: -at[0])[
            :BEST
        ]
    print(json.dumps({"masks": number, "noise_s": usual}))


def _seconds(grid: Grid, organ: np.ndarray, mask: np.ndarray) -> float:
    """The processor time of all metrics of an organ and a mask."""
    start = time.process_time()
    maps = map_of(organ), map_of(mask)
    pair = MapPair(reference=maps[0], prediction=maps[1], spacing=grid.spacing)
    compare_organ(pair.cut((1,)), 2.0, has_distances=True)
    return time.process_time() - start


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
    parser.add_argument("--search", type=float, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=2021)
    arguments = parser.parse_args()
    chosen = GRIDS[arguments.grid]
    shape = (arguments.slices or chosen.shape[0], *chosen.shape[1:])
    if arguments.search:
        search(
            arguments.folder,
            Grid(shape, chosen.spacing),
            arguments.search,
            arguments.seed,
        )
    else:
        write_cases(arguments.folder, Grid(shape, chosen.spacing))
