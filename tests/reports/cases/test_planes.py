"""Files whose axes run anywhere are seen as doctors see them."""

import itertools

import nibabel as nib
import numpy as np
import pytest

from flare.evaluation.labelmaps.grid import make_grid
from flare.reports.cases.findings import orientation_of
from tests.builders.fewer import few_fast

ORIENTATIONS = [
    "".join(letters)
    for ways in itertools.permutations(("RL", "AP", "SI"))
    for letters in itertools.product(*ways)
]
"""All 48 directions of the axes x, y, z of a file."""


def grid_of(affine, shape):
    spacing = np.linalg.norm(affine[:3, :3], axis=0)
    return make_grid(shape, spacing, affine[:3])


@pytest.mark.parametrize("axes", few_fast(ORIENTATIONS, fast=range(0, 48, 5)))
def test_a_turned_array_runs_to_the_head_the_back_and_the_left(axes):
    """As nibabel turns the same file to LPS, whose axes these are, from x to z."""
    affine = nib.orientations.inv_ornt_aff(
        nib.orientations.axcodes2ornt(axes), (2, 3, 4)
    )
    affine[:3, :3] *= (0.5, 0.75, 2.0)
    voxels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)  # x, y, z
    image = nib.Nifti1Image(voxels, affine)
    ornt = nib.orientations.ornt_transform(
        nib.orientations.io_orientation(affine),
        nib.orientations.axcodes2ornt("LPS"),
    )
    turned = image.as_reoriented(ornt)

    turn = orientation_of(grid_of(affine, (4, 3, 2)))

    assert np.array_equal(turn.volume(voxels.T), np.asarray(turned.dataobj).T)
    sizes = np.linalg.norm(turned.affine[:3, :3], axis=0)[::-1]
    assert turn.lengths((2.0, 0.75, 0.5)) == pytest.approx(tuple(sizes))
    assert turn.tilt == pytest.approx(0.0)


def test_an_axis_that_points_nowhere_gets_the_direction_that_is_left():
    affine = np.diag([-1.0, -1.0, 0.0, 1.0])

    turn = orientation_of(grid_of(affine, (4, 3, 2)))

    assert turn.ways.tolist() == [[0, 1], [1, 1], [2, 1]]
