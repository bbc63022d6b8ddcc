"""DSC and NSD: by hand, by brute force, by other programs, and by their properties."""

import math

import nibabel as nib
import numpy as np
import pytest
import scipy.ndimage
import SimpleITK as sitk
import surface_distance
from hypothesis import given, settings
from hypothesis import strategies as st

import flare
from flare.evaluation.metrics.comparison import compare_labels
from flare.evaluation.metrics.tolerance import ball_rows
from tests.builders import Tensor
from tests.builders.fewer import few_fast
from tests.builders.maps import map_pair
from tests.oracles import brute_force_dsc, brute_force_nsd

EXACT = 1e-12

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


def empty(shape=(8, 8, 8)):
    return np.zeros(shape, dtype=bool)


def box(*spans, shape=(8, 8, 8)):
    mask = empty(shape)
    mask[tuple(slice(*span) for span in spans)] = True
    return mask


def random_pair(kind, seed, shape=(6, 7, 9)):
    """Two masks that have something to do with each other."""
    random = np.random.default_rng(seed)
    if kind == "noise":
        return random.random(shape) < 0.5, random.random(shape) < 0.5
    if kind == "voxels":
        masks = empty(shape), empty(shape)
        for mask in masks:
            mask[tuple(random.integers(0, shape))] = True
        return masks
    if kind == "sheets":
        masks = empty(shape), empty(shape)
        for mask in masks:
            axis = random.integers(0, 3)
            np.moveaxis(mask, axis, 0)[random.integers(0, shape[axis])] = True
        return masks
    if kind == "boxes":  # with sides that are flat, and far from the other side
        masks = []
        for _ in range(2):
            start = random.integers(0, shape)
            stop = start + random.integers(1, np.array(shape) + 1)
            masks.append(box(*zip(start, stop, strict=True), shape=shape))
        return masks
    if kind == "full":
        return ~empty(shape), random.random(shape) < 0.9
    centre = random.uniform(1, 5, size=3)
    grid = np.indices(shape).T - centre
    blob = ((grid / random.uniform(1.5, 4, size=3)) ** 2).sum(axis=-1).T < 1
    blob[tuple(np.clip(centre.astype(int), 0, np.array(shape) - 1))] = True
    return blob, blob ^ (random.random(shape) < 0.03)


# --- By hand ----------------------------------------------------------------------


def test_dice_of_two_boxes_that_share_a_third():
    """2 x 2 x 3 voxels each, 2 x 2 x 2 shared: 2 * 8 / (12 + 12)."""
    first, second = box((2, 4), (2, 4), (2, 5)), box((2, 4), (2, 4), (3, 6))

    assert flare.dice(first, second) == 16 / 24


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

    assert nsd == pytest.approx(within / (reference + prediction), abs=EXACT)


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

pairs = st.builds(
    random_pair,
    st.sampled_from(["noise", "voxels", "sheets", "boxes", "full", "blobs"]),
    st.integers(0, 10**6),
    st.sampled_from([(6, 7, 9), (13, 5, 8), (1, 9, 10), (24, 4, 3)]),
)
spacings = st.sampled_from(SPACINGS)
tolerances = st.sampled_from([0.5, 1.0, 2.0, 7.0]) | st.floats(0.3, 8)


@pytest.mark.parametrize("examples", few_fast([40, 400], fast=[0]))
def test_both_metrics_equal_brute_force(examples):
    draws = pairs, spacings, tolerances, st.integers(0, 12)
    settings(max_examples=examples)(given(*draws)(check_both))()


def check_both(pair, spacing, tolerance, empty_slices):
    reference, prediction = pair
    prediction = prediction.copy()
    prediction[:empty_slices] = False  # what is far from the other surface
    prediction[-1, -1, -1] = reference[0, 0, 0] = True
    expected = brute_force_nsd(reference, prediction, spacing, tolerance)

    nsd = flare.normalized_surface_dice(reference, prediction, spacing, tolerance)

    assert nsd == pytest.approx(expected, abs=EXACT)
    assert flare.dice(reference, prediction) == brute_force_dsc(reference, prediction)


@pytest.mark.parametrize("seed", range(16))
def test_nsd_equals_the_surface_distance_package(seed):
    """Larger masks than brute force can do; the package needs both to be filled."""
    reference, prediction = random_pair("blobs", seed, shape=(24, 30, 33))
    spacing = SPACINGS[seed % len(SPACINGS)]
    tolerance = (0.5, 1.0, 2.0, 3.0, 5.0)[seed % 5]

    distances = surface_distance.compute_surface_distances(
        reference, prediction, spacing
    )
    expected = surface_distance.compute_surface_dice_at_tolerance(distances, tolerance)
    nsd = flare.normalized_surface_dice(reference, prediction, spacing, tolerance)

    assert nsd == pytest.approx(expected, abs=EXACT)


def test_nsd_is_0_where_the_dsc_is_too_small():
    """DSC 4 / (40 + 40): 2 of 40 voxels each. Equal to the smallest one, it counts.

    Distances stay as measured.
    """
    labels = np.zeros((2, 4, 5, 40), dtype=np.uint8)
    labels[0, 1, 2, :] = labels[1, 1, 2, :2] = 1
    labels[1, 3, 4, 2:] = 1

    pair = map_pair(*labels, (1, 1, 1))
    low = compare_labels(pair, {1: 1.0}, smallest_dsc=0.0501, has_distances=True)[1]

    assert max(side.within(0.95) for side in low.distances) > 0
    assert (low.reference_voxels, low.prediction_voxels) == (40, 40)
    assert (low.dsc, low.nsd) == (0.05, 0.0)
    same = compare_labels(map_pair(*labels, (1, 1, 1)), {1: 1.0}, smallest_dsc=0.05)[1]
    assert same == compare_labels(map_pair(*labels, (1, 1, 1)), {1: 1.0})[1]
    assert same.nsd > 0


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
        rows = ball_rows(spacing, float(tolerance), (2, 3, 4))
        ball = {
            (row.z, row.y, x)
            for row in rows
            for x in range(-row.half_width, row.half_width + 1)
        }
        inside = {
            (int(z) - 2, int(y) - 3, int(x) - 4)
            for x, y, z in np.argwhere(distances <= tolerance)
        }
        inner = {
            (z, y, x) for z, y, x in ball if abs(z) <= 2 and abs(y) <= 3 and abs(x) <= 4
        }
        assert inner == inside


def test_a_ball_is_made_once_for_all_organs_that_are_wider():
    thin, wide, wider = (ball_rows((1.0, 0.8, 0.8), 2, (z, 9, 9)) for z in (0, 7, 8))
    assert thin != wide
    assert wider is wide


def test_many_labels_with_tolerances_of_their_own():
    """Twelve labels, up to 255; each is as if it were alone."""
    random = np.random.default_rng(3)
    labels = [1, 2, 3, 4, 7, 8, 9, 64, 127, 128, 254, 255]
    reference = random.choice([0, *labels], size=(8, 9, 10)).astype(np.uint8)
    changed = random.random(reference.shape) < 0.4
    prediction = np.where(changed, np.roll(reference, 1, axis=1), reference)
    tolerances = {label: 0.5 + 0.25 * n for n, label in enumerate(labels)}

    found = compare_labels(map_pair(reference, prediction, (1.0, 0.9, 0.8)), tolerances)

    assert list(found) == labels
    for label, tolerance in tolerances.items():
        masks = reference == label, prediction == label
        nsd = brute_force_nsd(*masks, (1.0, 0.9, 0.8), tolerance)
        assert found[label].nsd == pytest.approx(nsd, abs=EXACT)
        assert found[label].dsc == brute_force_dsc(*masks)
        voxels = found[label].reference_voxels, found[label].prediction_voxels
        assert voxels == tuple(np.count_nonzero(mask) for mask in masks)


# --- Properties -------------------------------------------------------------------


@settings(max_examples=30)
@given(pairs, spacings, tolerances)
def test_equal_masks_are_perfect_and_masks_stay_unchanged(pair, spacing, tolerance):
    mask, copies = pair[0], [mask.copy() for mask in pair]

    assert flare.normalized_surface_dice(mask, mask, spacing, tolerance) == 1.0
    assert flare.dice(mask, mask) == 1.0
    flare.normalized_surface_dice(*pair, spacing, tolerance)
    assert all(np.array_equal(*masks) for masks in zip(pair, copies, strict=True))


@pytest.mark.parametrize("kind", [list, np.array, tuple])
def test_however_small_voxels_are_a_missing_mask_scores_0(kind):
    mask, none = box((2, 4), (2, 4), (2, 4)), empty()

    nsd = flare.normalized_surface_dice(mask, none, kind([1e-170] * 3), 1e-170)

    assert nsd == 0.0


@pytest.mark.parametrize("kind", ["bool", "u1", "i8", ">i2", "f4", "f2", Tensor])
def test_masks_of_0_and_1_are_masks_of_whatever_type(kind):
    """A cube of 4 x 4 x 4 voxels loses its last slice, 2.5 mm thick.

    The slice's centre, 2.5 mm away, has over 5 % of the surface.
    """
    reference = box((2, 6), (2, 6), (2, 6))
    prediction = box((2, 5), (2, 6), (2, 6))
    spacing = (2.5, 0.8, 0.8)
    expected = surface_distance.compute_surface_distances(
        reference, prediction, spacing
    )
    nsd = brute_force_nsd(reference, prediction, spacing, 1.0)
    masks = [
        Tensor(mask.astype("i8")) if kind is Tensor else mask.astype(kind)
        for mask in (reference, prediction)
    ]

    assert flare.dice(*masks) == 2 * 48 / (64 + 48)
    found = flare.normalized_surface_dice(*masks, spacing, 1.0)
    assert found == pytest.approx(nsd, abs=EXACT)
    assert flare.hd95(*masks, spacing) == 2.5
    means = surface_distance.compute_average_surface_distance(expected)
    areas = [expected[f"surfel_areas_{side}"].sum() for side in ("gt", "pred")]
    mean = np.average(means, weights=areas)
    assert flare.assd(*masks, spacing) == pytest.approx(mean, abs=EXACT)


# --- Refusals ---------------------------------------------------------------------

ARRAY = "a mask must be an array of 0 and 1, along z, y, x, not "


def values(odd):
    """A mask in numbers, one of which is no part of a mask."""
    mask = empty().astype(np.float64)
    mask[3, 4, 5] = odd
    return mask


NIBABEL = nib.Nifti1Image(np.ones((1, 1, 1), np.uint8), np.eye(4))


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        (flare.dice, ()),
        (flare.normalized_surface_dice, ((1, 1, 1), 1)),
        (flare.hd95, ((1, 1, 1),)),
        (flare.assd, ((1, 1, 1),)),
    ],
)
@pytest.mark.parametrize(
    ("first", "second", "error", "text"),
    [
        (empty(), empty((8, 8, 9)), ValueError, "found (8, 8, 8) and (8, 8, 9)"),
        (empty((8, 8)), empty((8, 8)), ValueError, "found (8, 8) and (8, 8)"),
        (empty(), values(2), ValueError, "not 2: use labels == organ"),
        (values(-1), empty(), ValueError, "not -1: use labels == organ"),
        (empty(), values(0.5), ValueError, "not 0.5: use labels == organ"),
        (empty(), values(math.nan), ValueError, "not nan: use labels == organ"),
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
