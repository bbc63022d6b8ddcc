"""Measures lesions against BraTS-evaluation 0.0.10, which is run as a program.

Usage: lesions.py BRATS_EVALUATE, the path of its command ``brats-evaluate``.

Maps with many lesions of one region are generated, and scored by both by turns:
Dice, NSD and HD95 of lesions. Printed is the processor time of each less that of its
command on the smallest pair, the median of their ratios, and the largest memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import nibabel as nib
import numpy as np

REPEATS = 5

PAIRS = {
    "smallest": ((24, 20, 12), 1, 3),
    "240 x 240 x 155, 250 lesions": ((240, 240, 155), 290, 6),
    "240 x 240 x 155, 28 lesions": ((240, 240, 155), 28, 14),
    "512 x 512 x 300, 290 lesions": ((512, 512, 300), 300, 10),
}
"""The shape, the number of lesions and the largest radius in voxels; some touch."""

NAME = "12345-000.nii.gz"
"""A name that BraTS-evaluation knows a subject by."""

CHALLENGE = """
name = "Lesions"
metrics = ["lesion_dsc", "lesion_nsd", "lesion_hd95", "lesion_f1"]
[[organs]]
label = [1, 2, 3]
name = "wt"
tolerance_mm = 1.0
lesions = "brats23-met"
"""


def draw(labels: np.ndarray, centre: np.ndarray, radii: np.ndarray) -> None:
    """Draw an ellipsoid of oedema, which is of the whole tumour alone."""
    starts = np.maximum(np.floor(centre - radii).astype(int), 0)
    stops = np.ceil(centre + radii).astype(int) + 1
    box = tuple(map(slice, starts, stops))
    places = np.indices(labels[box].shape).T + starts - centre
    inside = (np.square(places / radii).sum(axis=-1) <= 1).T
    labels[box][inside] = 2


def write_pair(
    folder: Path, shape: tuple[int, ...], lesions: int, largest: int
) -> None:
    """A twelfth of the lesions is missed, and as many are false."""
    random = np.random.default_rng(53)
    maps = np.zeros((2, *shape), dtype=np.uint8)
    for number in range(lesions):
        centre = random.uniform(0.1, 0.9, 3) * shape
        radii = random.uniform(1.2, largest, 3) * random.uniform(0.4, 1)
        if number % 12:
            draw(maps[0], centre, radii)
        if number % 12 != 1 or lesions == 1:
            shift = random.integers(-1, 2, 3)
            draw(maps[1], centre + shift, radii * random.uniform(0.8, 1.15))
    for labels, kind in zip(maps, ("reference", "prediction"), strict=True):
        (folder / kind).mkdir(parents=True)
        nib.save(nib.Nifti1Image(labels, np.eye(4)), folder / kind / NAME)


def run(words: list[str]) -> tuple[float, float]:
    """The processor time of a command in s, and its largest memory in MB."""
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words[0]} has failed on {words}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Measure all pairs."""
    (brats,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder, starts = Path(name), [0.0, 0.0]
        (folder / "lesions.toml").write_text(CHALLENGE, encoding="utf-8")
        for title, pair in PAIRS.items():
            own = folder / title
            write_pair(own, *pair)
            maps = str(own / "reference"), str(own / "prediction")
            flare = [sys.executable, "-m", "flare", "evaluate", "--workers", "1"]
            flare += ["--challenge", str(folder / "lesions.toml")]
            flare += ["--ground-truth", maps[0], "--input", maps[1]]
            flare += ["--output", str(own)]
            other = [brats, "--config", "mets", "--ref_path", maps[0]]
            other += ["--pred_path", maps[1], "--summary_json", str(own / "other.json")]
            rounds = [[run(flare), run(other)] for _ in range(REPEATS)]
            seconds, memory = np.moveaxis(np.array(rounds), 2, 0)
            if title == "smallest":
                starts = [median(times) for times in seconds.T]
            net = seconds - starts
            ratio = median(theirs / ours for ours, theirs in net.tolist() if ours > 0)
            print(
                f"{title}: {median(net[:, 0]):.2f} s here, {median(net[:, 1]):.2f} s"
                f" there, {ratio:.1f} times; {memory[:, 0].max():.0f} and"
                f" {memory[:, 1].max():.0f} MB"
            )


if __name__ == "__main__":
    main()
