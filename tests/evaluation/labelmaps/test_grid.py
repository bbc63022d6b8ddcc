"""Grids: how far apart they are, what is said of another one, and what is advised."""

import itertools

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
from hypothesis import given, settings
from hypothesis import strategies as st

import flare
from flare.evaluation.labelmaps.grid import (
    Grid,
    compare_positions,
    compare_sizes,
)
from flare.evaluation.submission.find import LabelMapFile
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


# --- How far apart ----------------------------------------------------------------


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


@pytest.mark.parametrize("signs", list(itertools.product([-1, 1], repeat=3)), ids=str)
def test_a_grid_saved_by_nibabel_and_by_simpleitk_is_the_same(tmp_path, signs):
    """Tilted by half a degree, as a gantry is, and mirrored in every way."""
    turn = sitk.Euler3DTransform((0, 0, 0), np.radians(0.5), 0, 0).GetMatrix()
    affine = np.eye(4)
    sizes = np.diag([0.7421875, 0.7421875, 5.0])
    affine[:3, :3] = np.reshape(turn, (3, 3)) @ np.diag(signs) @ sizes
    affine[:3, 3] = -181.3, 142.77, -1044.5
    first, second = tmp_path / "a.nii.gz", tmp_path / "b.nii.gz"
    nib.save(nib.Nifti1Image(np.zeros((64, 64, 60), dtype=np.uint8), affine), first)
    sitk.WriteImage(sitk.ReadImage(first), second)

    one, other = (
        LabelMapFile(case="", path=path, name=path.name).read_grid()
        for path in (first, second)
    )
    assert one.corner_shift(other) < 0.05


# --- What is said, and advised ----------------------------------------------------


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(
            grid(affine, SHAPE[::-1]),
            "size is 10 x 16 x 20 voxels, expected 20 x 16 x 10: its axes are reversed",
            id=f"transposed array, {header}",
        )
        for affine, header in ((AFFINE, "the CT's header"), (np.eye(4), "no header"))
    ]
    + [
        pytest.param(
            reoriented("SPL"),
            "size is 10 x 16 x 20 voxels, expected 20 x 16 x 10; axes point to SPL,"
            " expected LPS",
            id="turned with its header",
        ),
        pytest.param(
            resampled((1.6, 1.6, 5.0)),
            "size is 10 x 8 x 5 voxels, expected 20 x 16 x 10",
            id="resampled",
        ),
        pytest.param(
            grid(shape=(10, 16, 12)),
            "size is 12 x 16 x 10 voxels, expected 20 x 16 x 10",
            id="cropped",
        ),
        pytest.param(
            grid(np.eye(4), shape=(10, 16, 21)),
            "size is 21 x 16 x 10 voxels, expected 20 x 16 x 10",
            id="whatever",
        ),
    ],
)
def test_another_size(found, text):
    assert compare_sizes(found, grid()) == text
    assert compare_sizes(grid(np.eye(4)), grid()) == ""


LOST = "its header was lost (voxel size 1, origin 0)"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(grid(np.eye(4)), LOST, id="lost by nibabel"),
        pytest.param(grid(np.diag([-1, -1, 1, 1])), LOST, id="lost by SimpleITK"),
        pytest.param(
            changed(2, 2, 5.0),
            "voxel size is 0.8 x 0.8 x 5 mm, expected 0.8 x 0.8 x 2.5 mm",
            id="voxel size",
        ),
        pytest.param(
            reoriented("RAS"),
            "it was reoriented, axes point to RAS, expected LPS",
            id="reoriented",
        ),
        pytest.param(
            changed(0, 0, 0.8), "axes point to RPS, expected LPS", id="flipped"
        ),
        pytest.param(
            changed(0, 3, -90.0),
            "RAS origin is (-90, 110, -300) mm, expected (90, 110, -300) mm",
            id="moved",
        ),
        pytest.param(changed(1, 0, 0.03), "it is rotated", id="rotated"),
        pytest.param(
            changed(0, 0, -0.8006),
            "voxel size is 0.8006 x 0.8 x 2.5 mm, expected 0.8 x 0.8 x 2.5 mm",
            id="voxel size in the last digit",
        ),
    ],
)
def test_another_position(found, text):
    shift = found.corner_shift(grid())
    wrong = compare_positions(found, grid(), 0.01)
    assert wrong == f"it lies up to {shift:.4g} mm off: {text}"


def test_voxel_sizes_are_told_along_the_axes_of_the_file():
    """Slices run along x here, as in KiTS19; the file's first axis is 5 mm."""
    affine = np.array([[0, 0, -0.8, 0], [0, -0.7, 0, 0], [-5.0, 0, 0, 0], [0, 0, 0, 1]])
    other = affine.copy()
    other[2, 0] = -3.0

    wrong = compare_positions(grid(other), grid(affine), 0.1)

    assert wrong.endswith("is 3 x 0.7 x 0.8 mm, expected 5 x 0.7 x 0.8 mm")


@pytest.mark.parametrize(
    ("tolerance", "is_right"), [(0.51, True), (0.5, True), (0.49, False)]
)
def test_the_tolerance_decides(tolerance, is_right):
    affine = np.eye(4)
    affine[2, 3] = 0.5

    wrong = compare_positions(grid(affine), grid(np.eye(4)), tolerance)

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


# --- Axes that are not at right angles, as those of 13 scans of FLARE 2026 --------

SHEARED = AFFINE.copy()
SHEARED[0, 2] = 0.05
"""Its z axis leans to the right, by 0.05 mm in each slice of 2.5 mm: the last slice,
the ninth after the first, is 0.45 mm off."""

SLIGHTLY = AFFINE.copy()
SLIGHTLY[0, 2] = 0.002
"""At the tenth slice it is off by 0.018 mm, which is within the tolerance of 0.1 mm."""


@pytest.fixture
def scored(tmp_path):
    """Score a label map that is moved by a voxel, with headers of their own."""

    def score(reference, prediction, challenge="flare21"):
        for folder, shift, affine in (
            ("references", 0, reference),
            ("predictions", 1, prediction),
        ):
            file = tmp_path / folder / "case.nii.gz"
            write_nifti(file, organ_boxes(shift=shift), affine=affine)
        folders = tmp_path / "predictions", tmp_path / "references"
        return flare.evaluate(*folders, challenge=challenge)

    return score


@pytest.mark.parametrize(
    ("pair", "challenge"),
    [((SHEARED, SHEARED), each) for each in ("flare21", "flare24", "flare25-pet")]
    + [((SLIGHTLY, AFFINE), "flare21"), ((SHEARED, AFFINE), "flare24")],
)
def test_sheared_files_score_what_upright_ones_do(scored, pair, challenge):
    """NSD has the spacing of pixdim, as the official scripts have it."""
    found, upright = scored(*pair, challenge), scored(AFFINE, AFFINE, challenge)

    assert found.cases == upright.cases
    assert 0 < found.cases[0].dsc < 1
    more = set(found.warnings) - set(upright.warnings)
    is_off = pair[0] is not pair[1] and pair[0] is SHEARED  # a warning for its size
    assert ["it lies up to 0.45 mm off" in text for text in more] == [True] * is_off
