"""DSC and NSD: by hand, by brute force, by other programs, and by their properties."""

import math
from functools import partial

import nibabel as nib
import numpy as np
import pytest
import scipy.ndimage
import SimpleITK as sitk
import surface_distance

import flare
from flare.evaluation.metrics.comparison import compare_organ
from flare.evaluation.metrics.tolerance import ball_rows
from tests.builders import Tensor
from tests.builders.fewer import few_fast
from tests.builders.maps import map_pair
from tests.evaluation.metrics.drawn import small_pairs
from tests.oracles import brute_force_dsc, brute_force_nsd

approx = partial(pytest.approx, rel=0, abs=1e-12)


METRICS = (
    (flare.dice, ()),
    (flare.normalized_surface_dice, ((1, 1, 1), 1)),
    (flare.hd95, ((1, 1, 1),)),
    (flare.assd, ((1, 1, 1),)),
)
"""The metrics of two masks, and what else they are given."""


def empty(shape=(8, 8, 8)):
    return np.zeros(shape, dtype=bool)


def box(*spans, shape=(8, 8, 8)):
    mask = empty(shape)
    mask[tuple(slice(*span) for span in spans)] = True
    return mask


# --- By hand ----------------------------------------------------------------------


def test_nsd_of_a_cube_that_lost_its_last_slice():
    """A 4 x 4 x 4 cube against 3 x 4 x 4, 2.5 x 0.8 x 0.8 mm, within 1 mm.

    A surfel within a face is as large as the voxel's face: 0.64 mm2 at top and bottom,
    2 mm2 at the sides. On an edge it is a chamfer, as long as the voxel and as wide as
    the diagonal of half voxels. At a corner it is the triangle of half voxels.
    """
    top, side = 0.8 * 0.8, 2.5 * 0.8
    upright, level = 2.5 * math.hypot(0.4, 0.4), 0.8 * math.hypot(0.4, 1.25)
    corner = math.hypot(0.4 * 0.4, 0.4 * 1.25, 0.4 * 1.25) / 2

    lid = 9 * top + 12 * level + 4 * corner
    reference = 2 * lid + 36 * side + 12 * upright
    prediction = 2 * lid + 24 * side + 8 * upright
    # The reference's lid is 2.5 mm from the prediction's: none of it is within 1 mm.
    # Of the prediction's lid only the middle surfel is over 1 mm from a side.
    within = (reference - lid) + (prediction - top)

    cube, shorter = box((2, 6), (2, 6), (2, 6)), box((2, 5), (2, 6), (2, 6))
    nsd = flare.normalized_surface_dice(cube, shorter, (2.5, 0.8, 0.8), 1.0)

    assert nsd == approx(within / (reference + prediction))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_distance_equal_to_the_tolerance_counts_as_within(axis, step):
    """A cube moved by one voxel of 1 mm: every surfel is at most 1 mm away."""
    cube = box((2, 6), (2, 6), (2, 6))
    moved = np.roll(cube, step, axis=axis)
    spacing = tuple(1.0 if a == axis else 3.0 for a in range(3))

    assert flare.normalized_surface_dice(cube, moved, spacing, 1.0) == 1.0
    below = flare.normalized_surface_dice(cube, moved, spacing, math.nextafter(1, 0))
    assert below < 1.0


def test_two_empty_masks_score_1_and_one_empty_mask_scores_0():
    some = box((2, 4), (2, 4), (2, 4))
    for first, second, expected in (
        (empty(), empty(), 1.0),
        (some, empty(), 0.0),
        (empty(), some, 0.0),
        (~empty(), ~empty(), 1.0),
        (empty((3, 4, 0)), empty((3, 4, 0)), 1.0),
        (empty((3, 0, 4)), empty((3, 0, 4)), 1.0),
    ):
        assert flare.dice(first, second) == expected
        assert flare.normalized_surface_dice(first, second, (1, 1, 1), 1) == expected


# --- By brute force and by other programs -----------------------------------------


@pytest.mark.parametrize("numbers", few_fast([range(80), range(80, 800)], fast=[0]))
def test_both_metrics_equal_brute_force_and_the_surface_distance_package(numbers):
    for *masks, spacing, tolerance in small_pairs(numbers):
        nsd = flare.normalized_surface_dice(*masks, spacing, tolerance)
        distances = surface_distance.compute_surface_distances(*masks, spacing)
        assert nsd == approx(brute_force_nsd(*masks, spacing, tolerance))
        assert nsd == approx(
            surface_distance.compute_surface_dice_at_tolerance(distances, tolerance)
        )
        assert flare.dice(*masks) == brute_force_dsc(*masks)


def test_nsd_is_0_where_the_dsc_is_too_small():
    """DSC 4 / (40 + 40): 2 of 40 voxels each. Equal to the smallest one, it counts.

    Distances stay as measured.
    """
    labels = np.zeros((2, 4, 5, 40), dtype=np.uint8)
    labels[0, 1, 2, :] = labels[1, 1, 2, :2] = 1
    labels[1, 3, 4, 2:] = 1

    pair = map_pair(*labels, (1, 1, 1))
    low, same, usual = (
        compare_organ(pair.cut((1,)), 1.0, least, has_distances=True)
        for least in (0.0501, 0.05, 0.0)
    )
    assert max(side.within(0.95) for side in low.distances) > 0
    assert low.voxels == (40, 40, 2)
    assert (low.voxels.dsc, low.nsd) == (0.05, 0.0)
    assert same.nsd == usual.nsd > 0


@pytest.mark.parametrize("seed", range(12))
def test_the_ball_is_that_of_the_distance_transform_to_the_last_bit(seed):
    """Tolerances that equal a distance: SciPy's, of the official (x, y, z) arrays."""
    random = np.random.default_rng(seed)
    kind = (np.float32, np.float64)[seed % 2]
    spacing = tuple(float(kind(size)) for size in random.uniform(0.3, 5, size=3))
    is_away = np.ones((9, 7, 5), dtype=bool)
    is_away[4, 3, 2] = False
    distances = scipy.ndimage.distance_transform_edt(is_away, sampling=spacing[::-1])

    for tolerance in np.unique(distances)[1:]:
        is_within = np.zeros((5, 7, 9), dtype=bool)
        for z, y, half_width in ball_rows(spacing, float(tolerance), (2, 3, 4)):
            if abs(z) <= 2 and abs(y) <= 3:
                row = slice(max(0, 4 - half_width), 5 + half_width)
                is_within[2 + z, 3 + y, row] = True
        assert np.array_equal(is_within, tolerance >= distances.T)


def test_a_ball_is_made_once_for_all_organs_that_are_wider():
    thin, wide, wider = (ball_rows((1.0, 0.8, 0.8), 2, (z, 9, 9)) for z in (0, 7, 8))
    assert len(thin) < len(wide)
    assert wider is wide


def test_many_labels_with_tolerances_of_their_own():
    """Twelve labels, up to 255; each is as if it were alone."""
    random = np.random.default_rng(3)
    labels = [1, 2, 3, 4, 7, 8, 9, 64, 127, 128, 254, 255]
    reference = random.choice([0, *labels], size=(8, 9, 10)).astype(np.uint8)
    changed = random.random(reference.shape) < 0.4
    prediction = np.where(changed, np.roll(reference, 1, axis=1), reference)
    tolerances = {label: 0.5 + 0.25 * n for n, label in enumerate(labels)}

    pair = map_pair(reference, prediction, (1.0, 0.9, 0.8))

    for label, tolerance in tolerances.items():
        masks = reference == label, prediction == label
        nsd = brute_force_nsd(*masks, (1.0, 0.9, 0.8), tolerance)
        found = compare_organ(pair.cut((label,)), tolerance)
        assert found.nsd == approx(nsd)
        assert found.voxels.dsc == brute_force_dsc(*masks)
        assert found.voxels[:2] == tuple(np.count_nonzero(mask) for mask in masks)


# --- Properties -------------------------------------------------------------------


def test_equal_masks_are_perfect_and_masks_stay_unchanged():
    for *pair, spacing, tolerance in small_pairs(range(30)):
        mask, copies = pair[0], [mask.copy() for mask in pair]

        assert flare.normalized_surface_dice(mask, mask, spacing, tolerance) == 1.0
        assert flare.dice(mask, mask) == 1.0
        flare.normalized_surface_dice(*pair, spacing, tolerance)
        assert all(np.array_equal(*masks) for masks in zip(pair, copies, strict=True))


@pytest.mark.parametrize("kind", [list, np.array, tuple])
def test_however_small_voxels_are_a_missing_mask_scores_0(kind):
    pair = box((2, 4), (2, 4), (2, 4)), empty()
    assert flare.normalized_surface_dice(*pair, kind([1e-170] * 3), 1e-170) == 0.0


@pytest.mark.parametrize("kind", ["u1", "i8", ">i2", "f4", "f2", Tensor])
def test_masks_of_0_and_1_are_masks_of_whatever_type(kind):
    """A cube of 4 x 4 x 4 voxels loses its last slice: values are those of bool."""
    pair = box((2, 6), (2, 6), (2, 6)), box((2, 5), (2, 6), (2, 6))
    numbers = [
        Tensor(mask.astype("i8")) if kind is Tensor else mask.astype(kind)
        for mask in pair
    ]
    for metric, more in METRICS:
        assert metric(*numbers, *more) == metric(*pair, *more)


# --- Refusals ---------------------------------------------------------------------

ARRAY = "a mask must be an array of 0 and 1, along z, y, x, not "


NIBABEL = nib.Nifti1Image(np.ones((1, 1, 1), np.uint8), np.eye(4))


@pytest.mark.parametrize(("metric", "more"), METRICS)
@pytest.mark.parametrize(
    ("first", "second", "error", "text"),
    [
        (empty(), empty((8, 8, 9)), ValueError, "found (8, 8, 8) and (8, 8, 9)"),
        (empty((8, 8)), empty((8, 8)), ValueError, "found (8, 8) and (8, 8)"),
        (empty(), np.full((8, 8, 8), 2), ValueError, "not 2: use labels == organ"),
        (np.full((8, 8, 8), -1), empty(), ValueError, "not -1: use labels == organ"),
        (empty(), np.full((8, 8, 8), 0.5), ValueError, "not 0.5: use labels == organ"),
        (
            empty(),
            np.full((8, 8, 8), math.nan),
            ValueError,
            "not nan: use labels == organ",
        ),
        (empty(), empty().astype(complex), TypeError, "not of complex128"),
        (empty(), np.int64(1), ValueError, "found (8, 8, 8) and ()"),
        ([[[True]]], empty(), TypeError, f"{ARRAY}list"),
        (empty(), True, TypeError, f"{ARRAY}bool"),
        (NIBABEL, empty(), TypeError, f"{ARRAY}Nifti1Image"),
        (empty(), sitk.Image(1, 1, 1, sitk.sitkUInt8), TypeError, f"{ARRAY}Image"),
    ],
    ids=lambda own: own if isinstance(own, str) else "",
)
def test_what_is_not_a_pair_of_masks_is_refused(
    metric, more, first, second, error, text
):
    with pytest.raises(error) as caught:
        metric(first, second, *more)

    assert str(caught.value).endswith(text)


ONES = (1.0, 1.0, 1.0)
THREE, NUMBER = "^spacing must be 3 numbers", "^tolerance must be a number"


@pytest.mark.parametrize(
    ("spacing", "tolerance", "error", "text"),
    [
        *(
            (*lengths, ValueError, "must be positive and finite")
            for value in (0.0, -1.0, math.nan, math.inf)
            for lengths in (((1.0, value, 1.0), 1.0), (ONES, value))
        ),
        ((1e200, 1.0, 1.0), 1, ValueError, r"spacing must be at most 1e\+09 mm"),
        *((each, 1, TypeError, THREE) for each in (2.0, np.array(2.0), None, "0.8")),
        ((1.0, "2", 1.0), 1, TypeError, THREE),
        ((1.0, 1.0), 1, ValueError, THREE),
        ((*ONES, 1.0), 1, ValueError, THREE),
        *((ONES, each, TypeError, NUMBER) for each in ("1", None, (1, 1, 1), True)),
    ],
    ids=str,
)
def test_lengths_that_cannot_be_are_refused(spacing, tolerance, error, text):
    with pytest.raises(error, match=text):
        flare.normalized_surface_dice(empty(), empty(), spacing, tolerance)
    if text == THREE:
        with pytest.raises(error, match=text):
            flare.hd95(empty(), empty(), spacing)
