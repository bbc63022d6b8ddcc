"""Slow, obvious twins of what flare does fast. They import nothing from flare."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import ndimage
from surface_distance.lookup_tables import create_table_neighbour_code_to_surface_area

KERNEL = np.array([[[128, 64], [32, 16]], [[8, 4], [2, 1]]])
"""Weight of each of the eight voxels around a corner in the published surfel table."""


def brute_force_dsc(reference, prediction):
    """Dice coefficient, by sets of voxels."""
    first = set(zip(*np.nonzero(reference), strict=True))
    second = set(zip(*np.nonzero(prediction), strict=True))
    return 2 * len(first & second) / (len(first) + len(second))


def surfels(mask, spacing):
    """Position in voxels, and area in mm2, of every surfel of a mask."""
    areas = areas_of_codes(tuple(spacing))
    padded = np.pad(mask.astype(int), 1)
    depth, height, width = (size + 1 for size in mask.shape)
    codes = sum(
        padded[z : z + depth, y : y + height, x : x + width] * KERNEL[z, y, x]
        for z, y, x in itertools.product(range(2), repeat=3)
    )
    return {
        corner: areas[code]
        for corner, code in np.ndenumerate(codes)
        if code not in (0, 255)
    }


@functools.cache
def areas_of_codes(spacing):
    """Area in mm2 of each code of the published table; to make it takes a while."""
    return create_table_neighbour_code_to_surface_area(spacing)


def brute_force_nsd(reference, prediction, spacing, tolerance):
    """Normalized surface Dice, by the distance of every surfel to every other."""
    first, second = surfels(reference, spacing), surfels(prediction, spacing)
    apart = squares(list(first), list(second), spacing)
    nearest = (np.sqrt(apart.min(axis=axis, initial=9e9)) for axis in (1, 0))
    within = total = 0.0
    for found, to_other in zip((first, second), nearest, strict=True):
        areas = np.array(list(found.values()))
        within += areas[to_other <= tolerance].sum()
        total += areas.sum()
    return within / total


def squares(corners, others, spacing):
    """All squared distances; they are added in the order x, y, z, as SciPy does."""
    first, second = (np.array(found).reshape(-1, 3) for found in (corners, others))
    steps = (first[:, np.newaxis, axis] - second[:, axis] for axis in range(3))
    z, y, x = ((step * size) ** 2 for step, size in zip(steps, spacing, strict=True))
    return (x + y) + z


def naive_ranks(values, ties, missing):
    """Ranks of some values, smaller ones better; None is a missing result."""
    present = sorted(value for value in values if value is not None)
    ranks = []
    for value in values:
        places = [n for n, other in enumerate(present, start=1) if other == value]
        if value is None:
            ranks.append(None)
        elif ties == "average":
            ranks.append(Fraction(sum(places), len(places)))
        else:
            ranks.append(Fraction(min(places) if ties == "min" else max(places)))
    absent = values.count(None)
    behind = Fraction(len(values))
    if missing == "worst-plus-one":
        highest = max((rank for rank in ranks if rank is not None), default=Fraction(0))
        together = {"min": 1, "average": Fraction(1 + absent, 2), "max": absent}
        behind = highest + together[ties]
    return [behind if rank is None else rank for rank in ranks]


def exact_signed_ranks(steps):
    """Effect and one-sided p of a signed-rank test, from exact differences.

    Everything is exact up to the last line, where p is the normal distribution's.
    """
    steps = [step for step in steps if step]
    count = len(steps)
    if not count:
        return Fraction(0), 1.0
    sizes = sorted(map(abs, steps))
    places = {}
    for place, size in enumerate(sizes, start=1):
        places.setdefault(size, []).append(place)
    ranks = {size: Fraction(sum(own), len(own)) for size, own in places.items()}
    above = sum(ranks[abs(step)] for step in steps if step > 0)
    ties = sum(len(own) ** 3 - len(own) for own in places.values())
    mean = Fraction(count * (count + 1), 4)
    variance = Fraction(2 * count * (count + 1) * (2 * count + 1) - ties, 48)
    z = float(above - mean - Fraction(1, 2)) / math.sqrt(variance)
    return above / mean - 1, math.erfc(z / math.sqrt(2)) / 2


def components_of(mask, neighbours):
    """Components of a mask by 6, 18 or 26 neighbours, and their number."""
    axes = {6: 1, 18: 2, 26: 3}[neighbours]
    return ndimage.label(mask, ndimage.generate_binary_structure(3, axes))


class Lesions:
    """Lesions of two masks by the fields of a definition, on whole arrays."""

    def __init__(self, reference, prediction, spacing, rules):
        self.rules = rules
        widened = self.widen(reference)
        parts, number = components_of(reference, rules.neighbours)
        if rules.widened:
            parts, number = components_of(widened, 26)
        masks = [(parts == n) & reference for n in range(1, number + 1)]
        masks.sort(key=lambda mask: np.flatnonzero(mask)[0])
        others, other_number = components_of(prediction, rules.neighbours)
        all_numbers = set(range(1, other_number + 1))
        if rules.pairs.name == "TOUCHING":
            partners = [{*others[self.widen(m)].tolist()} - {0} for m in masks]
        else:
            partners = self.one_to_one(masks, [others == n for n in all_numbers])
        least = rules.above_mm3 / math.prod(spacing)
        kept = [n for n, mask in enumerate(masks) if mask.sum() > least]
        self.sizes = [int(masks[n].sum()) for n in kept]
        self.found = sum(bool(partners[n]) for n in kept)
        self.missed = len(kept) - self.found
        self.dsc = [self.dice(masks[n], np.isin(others, [*partners[n]])) for n in kept]
        false = all_numbers - set().union(*partners)
        self.false = [int((others == n).sum()) for n in false]

    def widen(self, mask):
        if not self.rules.widened:
            return mask
        around = ndimage.generate_binary_structure(3, 2)
        return ndimage.binary_dilation(mask, around, self.rules.widened)

    def one_to_one(self, masks, others):
        pairs = []
        for (n, mask), (m, other) in itertools.product(
            enumerate(masks), enumerate(others)
        ):
            iou = Fraction(int((mask & other).sum()), int((mask | other).sum()))
            if iou and float(iou) >= self.rules.least_iou:
                pairs.append((-iou, m, n))
        partners = [set() for _ in masks]
        free = set(range(len(others)))
        for _, m, n in sorted(pairs):
            if m in free and not partners[n]:
                partners[n].add(m + 1)
                free.remove(m)
        return partners

    @staticmethod
    def dice(mask, other):
        total = int(mask.sum() + other.sum())
        return 2 * int((mask & other).sum()) / total if other.any() else 0.0
