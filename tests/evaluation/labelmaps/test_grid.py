"""Grids: how far apart they are, what is said of another one, and what is advised."""

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flare
from flare.evaluation.labelmaps.grid import Grid, compare_positions, compare_sizes
from tests.builders import AFFINE, organ_boxes, write_nifti

SHAPE = (10, 16, 20)


def grid(affine=AFFINE, shape=SHAPE, **more):
    affine = np.array(affine, dtype=float)
    size = np.linalg.norm(affine[:3, :3], axis=0)
    rows = tuple(tuple(row) for row in affine[:3])
    return Grid(shape=shape, spacing=tuple(size[::-1]), affine=rows, **more)


def changed(row, column, value):
    affine = AFFINE.copy()
    affine[row, column] = value
    return grid(affine)


def reoriented(codes):
    """The grid after nibabel turned an image of it to other axes."""
    image = nib.Nifti1Image(np.zeros(SHAPE[::-1], np.uint8), AFFINE)
    wanted = nib.orientations.axcodes2ornt(codes)
    turn = nib.orientations.ornt_transform(nib.io_orientation(AFFINE), wanted)
    turned = image.as_reoriented(turn)
    return grid(turned.affine, turned.shape[::-1])


def resampled(size):
    """A grid of another voxel size that fills the same box."""
    steps = np.abs(np.diag(AFFINE)[:3])
    shape = np.round(np.array(SHAPE[::-1]) * steps / size).astype(int)
    scale = np.diag([*(np.array(size) / steps), 1])
    shift = np.eye(4)
    shift[:3, 3] = (np.array(size) / steps - 1) / 2
    return grid(AFFINE @ shift @ scale, tuple(int(n) for n in shape[::-1]))


@pytest.mark.parametrize(
    ("spacing", "problem"),
    [
        ((2.5, 0.8, 0.8), ""),
        ((2.5, 0.0, 0.8), "its header has a voxel size of 0"),
        ((2.5, 0.8, -0.8), "its header has a negative voxel size"),
        ((0.0, 0.8, -0.8), "its header has a negative voxel size"),
    ],
)
def test_a_voxel_size_that_nothing_can_be_measured_by_is_told(spacing, problem):
    rows = tuple(tuple(row) for row in AFFINE[:3])

    assert Grid(shape=SHAPE, spacing=spacing, affine=rows).spacing_problem == problem


@settings(max_examples=60)
@given(
    shape=st.tuples(*[st.integers(1, 40)] * 3),
    noise=st.lists(st.floats(-0.1, 0.1), min_size=12, max_size=12),
)
def test_the_shift_is_the_farthest_that_any_voxel_moves(shape, noise):
    """Found by brute force; it is symmetric, and none from a grid to itself."""
    first, second = grid(shape=shape), AFFINE.copy()
    second[:3] += np.reshape(noise, (3, 4))
    voxels = np.indices(shape[::-1]).reshape(3, -1)
    moved = (second - AFFINE)[:3] @ np.vstack([voxels, np.ones(voxels.shape[1])])

    shift = first.corner_shift(grid(second, shape))

    assert shift == pytest.approx(np.linalg.norm(moved, axis=0).max(), abs=1e-9)
    assert grid(second, shape).corner_shift(first) == shift
    assert first.corner_shift(grid(shape=shape)) == 0


SIZE = "voxels, expected 20 x 16 x 10"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        # A transposed array, with the header of the CT and with none.
        (grid(AFFINE, SHAPE[::-1]), f"10 x 16 x 20 {SIZE}: its axes are r"),
        (grid(np.eye(4), SHAPE[::-1]), f"10 x 16 x 20 {SIZE}: its axes are"),
        (reoriented("SPL"), f"10 x 16 x 20 {SIZE}; axes point to SPL, exp"),
        (resampled((1.6, 1.6, 5.0)), f"10 x 8 x 5 {SIZE}"),
        (grid(shape=(10, 16, 12)), f"12 x 16 x 10 {SIZE}"),
        (grid(np.eye(4), shape=(10, 16, 21)), f"21 x 16 x 10 {SIZE}"),
    ],
    ids=["transposed", "no header", "turned", "resampled", "cropped", "whatever"],
)
def test_a_grid_of_another_size_or_direction_is_told_with_both(found, text):
    wrong = compare_sizes(found, grid())

    assert wrong.startswith(f"size is {text}")
    assert wrong.endswith(("reversed", "expected LPS", SIZE))
    assert not compare_sizes(grid(np.eye(4)), grid())


LOST = "its header was lost (voxel size 1, origin 0)"
TO_CT = "x 0.8 x 2.5 mm, expected 0.8 x 0.8 x 2.5 mm"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (grid(np.eye(4)), LOST),  # by nibabel
        (grid(np.diag([-1, -1, 1, 1])), LOST),  # by SimpleITK
        (changed(0, 0, -0.8006), f"voxel size is 0.8006 {TO_CT}"),
        (reoriented("RAS"), "it was reoriented, axes point to RAS, expected LPS"),
        (changed(0, 0, 0.8), "axes point to RPS, expected LPS"),
        (changed(0, 3, -90.0), "RAS origin is (-90, 110, -300) mm, expected (90, 110,"
         " -300) mm"),
        (changed(1, 0, 0.03), "it is rotated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_grid_that_lies_elsewhere_is_told_with_its_shift_in_mm(found, text):
    wrong = compare_positions(found, grid(), 0.01)

    shift = found.corner_shift(grid())
    assert wrong == f"it lies up to {shift:.4g} mm off: {text}"


def test_voxel_sizes_are_told_along_the_axes_of_the_file():
    """Slices run along x here, as in KiTS19; the file's first axis is 5 mm."""
    affine = np.array([[0, 0, -0.8, 0], [0, -0.7, 0, 0], [-5.0, 0, 0, 0], [0, 0, 0, 1]])
    other = affine.copy()
    other[2, 0] = -3.0

    wrong = compare_positions(grid(other), grid(affine), 0.1)

    assert wrong.endswith("is 3 x 0.7 x 0.8 mm, expected 5 x 0.7 x 0.8 mm")


def test_a_shift_as_large_as_the_tolerance_is_accepted():
    moved = np.eye(4)
    moved[2, 3] = 0.5

    for tolerance, is_right in ((0.51, True), (0.5, True), (0.49, False)):
        wrong = compare_positions(grid(moved), grid(np.eye(4)), tolerance)
        assert bool(wrong) != is_right


@pytest.mark.parametrize("is_found", [True, False])
def test_of_a_file_that_says_no_place_the_spacing_is_compared(is_found):
    """0.9 instead of 0.8 mm along x: 19 steps of 0.1 mm."""
    elsewhere = np.diag([0.8, 0.8, 2.5, 1])
    for affine, tolerance, end in (
        (elsewhere, 0.01, None),
        (np.diag([0.9, 0.8, 2.5, 1]), 1.91, None),
        (np.diag([0.9, 0.8, 2.5, 1]), 1.89, "expected 0.8 x 0.8 x 2.5 mm"),
        (np.diag([2.5, 0.8, 0.8, 1]), 0.01, ": its spacing is in the reverse order"),
    ):
        pair = [grid(affine, is_placed=False), grid()]
        if not is_found:
            pair = [grid(affine), grid(is_placed=False)]
        wrong = compare_positions(*pair, tolerance)
        assert wrong.endswith(end) if end else not wrong


SHEARED, SLIGHTLY = AFFINE.copy(), AFFINE.copy()
SHEARED[0, 2], SLIGHTLY[0, 2] = 0.05, 0.002
"""The z axis leans to the right, by 0.05 or 0.002 mm in each slice of 2.5 mm: the last
slice, the ninth after the first, is 0.45 or 0.018 mm off, which is within 0.1 mm."""


@pytest.mark.parametrize(
    ("pair", "challenge"),
    [((SHEARED, SHEARED), each) for each in ("flare21", "flare25-pet")]
    + [((SLIGHTLY, AFFINE), "flare21"), ((SHEARED, AFFINE), "flare24")],
)
def test_sheared_files_score_what_upright_ones_do(tmp_path, pair, challenge):
    """NSD has the spacing of pixdim, as the official scripts have it."""

    def score(*affines):
        folders = tmp_path / "references", tmp_path / "predictions"
        for folder, shift, affine in zip(folders, (0, 1), affines, strict=True):
            labels = organ_boxes(shift=shift)
            write_nifti(folder / "case.nii.gz", labels, affine=affine)
        return flare.evaluate(*folders[::-1], challenge=challenge)

    found, upright = score(*pair), score(AFFINE, AFFINE)

    assert found.cases == upright.cases
    assert 0 < found.cases[0].dsc < 1
    more = set(found.warnings) - set(upright.warnings)
    is_off = pair[0] is not pair[1] and pair[0] is SHEARED  # a warning for its size
    assert ["it lies up to 0.45 mm off" in text for text in more] == [True] * is_off
