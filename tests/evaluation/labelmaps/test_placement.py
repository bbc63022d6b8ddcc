"""A grid that is not the reference's: what is said, and what is advised."""

import nibabel as nib
import numpy as np
import pytest

from flare.evaluation.labelmaps.grid import (
    COPY_HEADER,
    PAD,
    RESAMPLE,
    TRANSPOSE,
    TURN_BACK,
    Grid,
    compare_positions,
    compare_sizes,
)
from tests.builders import AFFINE

SHAPE = (10, 16, 20)


def grid(affine=AFFINE, shape=SHAPE):
    affine = np.array(affine, dtype=float)
    size = np.linalg.norm(affine[:3, :3], axis=0)
    return Grid(
        shape=shape,
        spacing=tuple(size[::-1]),
        affine=tuple(tuple(row) for row in affine[:3]),
    )


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


def changed(row, column, value):
    affine = AFFINE.copy()
    affine[row, column] = value
    return grid(affine)


# --- Sizes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "text", "remedy"),
    [
        pytest.param(
            grid(shape=SHAPE[::-1]),
            "size is 10 x 16 x 20 voxels, expected 20 x 16 x 10: its axes are reversed",
            TRANSPOSE,
            id="transposed array, the CT's header",
        ),
        pytest.param(
            grid(np.eye(4), shape=SHAPE[::-1]),
            "size is 10 x 16 x 20 voxels, expected 20 x 16 x 10: its axes are reversed",
            TRANSPOSE,
            id="transposed array, no header",
        ),
        pytest.param(
            reoriented("SPL"),
            "size is 10 x 16 x 20 voxels, expected 20 x 16 x 10; axes point to SPL,"
            " expected LPS",
            TURN_BACK,
            id="turned with its header",
        ),
        pytest.param(
            resampled((1.6, 1.6, 5.0)),
            "size is 10 x 8 x 5 voxels, expected 20 x 16 x 10",
            RESAMPLE,
            id="resampled",
        ),
        pytest.param(
            grid(shape=(10, 16, 12)),
            "size is 12 x 16 x 10 voxels, expected 20 x 16 x 10",
            PAD,
            id="cropped",
        ),
        pytest.param(
            grid(np.eye(4), shape=(10, 16, 21)),
            "size is 21 x 16 x 10 voxels, expected 20 x 16 x 10",
            "",
            id="whatever",
        ),
    ],
)
def test_another_size(found, text, remedy):
    wrong = compare_sizes(found, grid())

    assert (wrong.text, wrong.remedy) == (text, remedy)


def test_the_same_size_is_right_wherever_it_is():
    assert compare_sizes(grid(np.eye(4)), grid()) is None


# --- Positions --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "text", "remedy"),
    [
        pytest.param(
            grid(np.eye(4)),
            "its header was lost (voxel size 1, origin 0)",
            COPY_HEADER,
            id="nibabel without a header",
        ),
        pytest.param(
            grid(np.diag([-1, -1, 1, 1])),
            "its header was lost (voxel size 1, origin 0)",
            COPY_HEADER,
            id="SimpleITK without a header",
        ),
        pytest.param(
            changed(2, 2, 5.0),
            "voxel size is 0.8 x 0.8 x 5 mm, expected 0.8 x 0.8 x 2.5 mm",
            "",
            id="voxel size",
        ),
        pytest.param(
            reoriented("RAS"),
            "it was reoriented, axes point to RAS, expected LPS",
            TURN_BACK,
            id="reoriented",
        ),
        pytest.param(
            changed(0, 0, 0.8), "axes point to RPS, expected LPS", "", id="flipped"
        ),
        pytest.param(
            changed(0, 3, -90.0),
            "RAS origin is (-90, 110, -300) mm, expected (90, 110, -300) mm",
            "",
            id="moved",
        ),
        pytest.param(changed(1, 0, 0.03), "it is rotated", "", id="rotated"),
        pytest.param(
            changed(0, 0, -0.8006),
            "voxel size is 0.8006 x 0.8 x 2.5 mm, expected 0.8 x 0.8 x 2.5 mm",
            "",
            id="voxel size in the last digit",
        ),
    ],
)
def test_another_position(found, text, remedy):
    wrong = compare_positions(found, grid(), 0.01)

    shift = found.corner_shift(grid())
    assert wrong.text == f"it lies up to {shift:.4g} mm off: {text}"
    assert wrong.remedy == remedy


def test_voxel_sizes_are_told_along_the_axes_of_the_file():
    """Slices run along x here, as in KiTS19; the file's first axis is 5 mm."""
    affine = np.array([[0, 0, -0.8, 0], [0, -0.7, 0, 0], [-5.0, 0, 0, 0], [0, 0, 0, 1]])
    other = affine.copy()
    other[2, 0] = -3.0

    wrong = compare_positions(grid(other), grid(affine), 0.1)

    assert wrong.text.endswith(
        "voxel size is 3 x 0.7 x 0.8 mm, expected 5 x 0.7 x 0.8 mm"
    )


@pytest.mark.parametrize(("tolerance", "is_right"), [(0.51, True), (0.49, False)])
def test_the_tolerance_decides(tolerance, is_right):
    wrong = compare_positions(changed(0, 3, 90.5), grid(), tolerance)

    assert (wrong is None) == is_right
