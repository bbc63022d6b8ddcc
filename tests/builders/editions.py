"""Label maps as in the tasks of FLARE 2025 and 2026: small, and made of whole numbers.

What participants' own scripts say of them stands in tests/challenge/test_reported.py.
"""

from __future__ import annotations

import numpy as np

SHAPE = (20, 36, 40)
"""Of all label maps, along z, y, x."""

PET_SPACING = (3.0, 4.07, 4.07)
MRI_SPACING = (3.5, 1.25, 1.25)
CT_SPACING = (5.0, 0.78, 0.78)
"""Along z, y, x, in mm."""


def blob(centre, radii, *, is_rough=False):
    """An ellipsoid; a rough one has holes everywhere."""
    z, y, x = np.indices(SHAPE)
    rz, ry, rx = radii
    parts = (
        ((z - centre[0]) * ry * rx) ** 2,
        ((y - centre[1]) * rz * rx) ** 2,
        ((x - centre[2]) * rz * ry) ** 2,
    )
    inside = sum(parts) <= (rz * ry * rx) ** 2
    return inside & ((7 * z + 5 * y + 3 * x) % 11 != 0) if is_rough else inside


def drawn(organs, *, is_rough=False):
    labels = np.zeros(SHAPE, dtype=np.uint8)
    for label, (centre, radii) in organs.items():
        labels[blob(centre, radii, is_rough=is_rough)] = label
    return labels


LIVER, RIGHT = ((10, 12, 12), (6, 9, 10)), ((9, 27, 8), (5, 4, 4))
SPLEEN, LEFT = ((11, 12, 32), (4, 5, 6)), ((9, 27, 30), (5, 4, 4))
FOUR = {1: LIVER, 2: RIGHT, 3: SPLEEN, 4: LEFT}


def pet_pairs():
    """By case: reference and prediction with four organs, at coarse voxels."""
    shifted = {1: ((11, 12, 13), (6, 9, 10)), 2: ((9, 26, 8), (5, 4, 4)),
               3: ((11, 12, 31), (4, 6, 6)), 4: ((8, 27, 30), (5, 5, 4))}  # fmt: skip
    absent = {1: LIVER, 3: SPLEEN, 4: LEFT}
    found = {1: LIVER, 2: ((9, 27, 8), (2, 2, 2)), 3: ((11, 12, 33), (4, 5, 6))}
    far = {
        1: ((3, 28, 20), (2, 4, 4)),
        2: RIGHT,
        13: LEFT,
        3: ((12, 12, 32), (4, 5, 6)),
    }
    liver = drawn({1: LIVER})
    return {
        "pet_liver_alone": (liver, liver),
        "pet_shifted": (drawn(FOUR), drawn(shifted)),
        "pet_absent": (drawn(absent), drawn(found)),
        "pet_far": (drawn({**FOUR, 1: ((6, 28, 20), (3, 5, 5))}), drawn(far)),
        "pet_rough": (drawn(FOUR), drawn(FOUR, is_rough=True)),
    }


def _thirteen(step=0):
    """Thirteen blobs side by side, of which every third may be moved."""
    organs = {}
    for label in range(1, 14):
        row, column = divmod(label - 1, 5)
        move = step if label % 3 == 0 else 0
        centre = (9 + label % 3 + move, 6 + 12 * row, 4 + 8 * column)
        organs[label] = (centre, (4 + label % 2, 5, 3))
    return organs


def mri_pairs():
    """By case: reference and prediction with thirteen organs.

    The prediction's aorta (5), inferior vena cava (6) and esophagus (10) are longer.
    """
    longer = {label: (centre, (9, 5, 3)) if label in (5, 6, 10) else (centre, radii)
              for label, (centre, radii) in _thirteen().items()}  # fmt: skip
    few = {label: place for label, place in _thirteen(2).items() if label % 4}
    return {
        "mri_longer": (drawn(_thirteen()), drawn(longer)),
        "mri_moved": (drawn(_thirteen()), drawn(_thirteen(2))),
        "mri_few": (drawn(_thirteen()), drawn(few)),
        "mri_more": (drawn(few), drawn(_thirteen(), is_rough=True)),
    }


def lesion_pairs():
    """By case: reference and prediction with one label; two have no lesion."""
    nothing = drawn({})
    one = drawn({1: ((9, 15, 15), (3, 6, 6))})
    moved = drawn({1: ((10, 15, 16), (3, 6, 6))})
    two = drawn({1: ((9, 15, 15), (3, 6, 6)), 2: ((9, 30, 30), (1, 2, 2))})
    far = drawn({1: ((13, 20, 15), (3, 6, 6))})
    rough = drawn({1: ((9, 15, 15), (3, 6, 6))}, is_rough=True)
    return {
        "lesion_far": (one, far),
        "lesion_free_empty": (nothing, nothing),
        "lesion_free_found": (nothing, one),
        "lesion_missed": (one, nothing),
        "lesion_moved": (one, moved),
        "lesion_other_label": (one, two),
        "lesion_rough": (one, rough),
    }
