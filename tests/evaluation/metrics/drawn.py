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

SPACINGS = (
    (1.0, 1.0, 1.0),
    (2.5, 0.8, 0.8),
    (0.5, 0.5, 2.5),
    (5.0, 0.7, 0.9),
    # Distances of exactly 1 mm: 0.6, 0.8, 1; and five times 0.2, which is more than 1
    # once a header has stored it as a 32-bit number.
    (2.5, 0.6, 0.8),
    (0.6, 1.0, 0.8),
    (1.0, *(float(np.float32(0.2)),) * 2),
    (1 / 3, 1 / 3, 1.0),
)
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


def small_pairs(numbers):
    """Drawn masks that both have something; by turns, distances equal tolerances."""
    for number in numbers:
        first, second, spacing, tolerance = draw(number)
        if number % 2:
            spacing = SPACINGS[number // 2 % len(SPACINGS)]
            tolerance = (0.5, 1.0, 2.0, 7.0)[number // 16 % 4]
        if first.any() and second.any() and first.size < 2400:
            yield first, second, spacing, tolerance


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
