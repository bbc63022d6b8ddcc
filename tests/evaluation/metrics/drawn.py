"""Pairs of masks that are drawn, and digests of their values.

``former_values.json`` was written with commit a05c32a2, which counted in another way,
by ``python -m tests.evaluation.metrics.drawn FILE``.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import flare

PAIRS = 1200
BLOCK = 100  # pairs share a digest


def boxes(random, shape):
    """One to three boxes; several touch, or end at a border."""
    mask = np.zeros(shape, dtype=bool)
    for _ in range(random.integers(1, 4)):
        starts = [int(random.integers(0, size)) for size in shape]
        stops = [int(random.integers(a + 1, b + 1)) for a, b in zip(starts, shape)]  # noqa: B905
        mask[tuple(map(slice, starts, stops))] = True
    return mask


def draw(number):
    """Two masks, a spacing and a tolerance in mm; each third ball is wide."""
    random = np.random.default_rng(number)
    shape = tuple(int(size) for size in random.integers(1, 14, size=3))
    if number % 6 == 5:  # rows of many words
        shape = (
            *(int(size) for size in random.integers(1, 5, size=2)),
            600 + number % 64,
        )
    spacing = tuple(float(mm) for mm in np.round(random.uniform(0.4, 5, size=3), 2))
    if number % 4 == 3:
        pair = random.random(shape) < 0.4, random.random(shape) < 0.4
    else:
        pair = boxes(random, shape), boxes(random, shape)
    if number % 12 == 1:
        pair = pair[0], np.zeros(shape, dtype=bool)
        pair[1][tuple(size // 2 for size in shape)] = True
    tolerance = float(random.choice([0.5, 1.0, 2.0, 5.0]))
    if number % 3 == 0:
        tolerance = float(random.uniform(10, 70)) * spacing[2]
    return *pair, spacing, tolerance


def values(number):
    """DSC, NSD, HD95 and ASSD of a drawn pair."""
    first, second, spacing, tolerance = draw(number)
    return (
        flare.dice(first, second),
        flare.normalized_surface_dice(first, second, spacing, tolerance),
        flare.hd95(first, second, spacing),
        flare.assd(first, second, spacing),
    )


def digest(start):
    """SHA-256 of the values of a block of pairs, to the last bit."""
    texts = [value.hex() for n in range(start, start + BLOCK) for value in values(n)]
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()


if __name__ == "__main__":
    digests = [digest(start) for start in range(0, PAIRS, BLOCK)]
    Path(sys.argv[1]).write_text(json.dumps(digests, indent=1) + "\n")
