"""Headers whose axes are not at right angles, which SimpleITK refuses, are read.

As those of 13 training scans of FLARE 2026. The reader of positions is nibabel's.
"""

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk

import flare
from flare.common.errors import SubmissionError
from tests.builders import AFFINE, nifti_bytes, organ_boxes, write_nifti

SHEARED = AFFINE.copy()
SHEARED[0, 2] = 0.05
"""Its z axis leans to the right, by 0.05 mm in each slice of 2.5 mm."""

SLIGHTLY = AFFINE.copy()
SLIGHTLY[0, 2] = 0.002
"""At the tenth slice it is off by 0.018 mm, which is within the tolerance of 0.1 mm."""

ONE = organ_boxes()
MOVED = organ_boxes(shift=1)


@pytest.fixture
def scored(tmp_path):
    """Score MOVED against ONE, with headers of their own."""

    def score(reference, prediction, challenge):
        for folder, labels, affine in (
            ("references", ONE, reference),
            ("predictions", MOVED, prediction),
        ):
            write_nifti(tmp_path / folder / "case.nii.gz", labels, affine=affine)
        return flare.evaluate(
            *(tmp_path / "predictions", tmp_path / "references"),
            challenge=challenge,
        )

    return score


def test_simpleitk_refuses_such_a_file_which_nibabel_reads(tmp_path):
    file = tmp_path / "case.nii"
    file.write_bytes(nifti_bytes(ONE, affine=SHEARED))

    with pytest.raises(RuntimeError, match="orthonormal"):
        sitk.ReadImage(str(file))

    assert np.allclose(nib.load(file).affine, SHEARED, rtol=0, atol=1e-5)


@pytest.mark.parametrize("challenge", ["flare21", "flare24", "flare25-pet"])
def test_a_sheared_reference_and_prediction_score_what_upright_ones_do(
    scored, challenge
):
    """NSD has the spacing of pixdim, as the official scripts have it."""
    found = scored(SHEARED, SHEARED, challenge)
    upright = scored(AFFINE, AFFINE, challenge)

    assert found.cases == upright.cases
    assert 0 < found.cases[0].dsc < 1
    assert found.warnings == upright.warnings


@pytest.mark.parametrize(
    ("reference", "prediction"),
    [(SHEARED, AFFINE), (AFFINE, SHEARED)],
    ids=["the reference", "the prediction"],
)
def test_one_sheared_file_alone_is_somewhere_else(scored, reference, prediction):
    """The last slice is the ninth after the first: 9 x 0.05 mm = 0.45 mm."""
    with pytest.raises(SubmissionError) as caught:
        scored(reference, prediction, "flare21")

    assert "case.nii.gz: it lies up to 0.45 mm off" in str(caught.value)
    assert str(caught.value).endswith("[F08]")


def test_one_sheared_file_alone_is_a_warning_where_sizes_are_compared(scored):
    found = scored(SHEARED, AFFINE, "flare24")

    assert found.cases == scored(AFFINE, AFFINE, "flare24").cases
    assert "case.nii.gz: it lies up to 0.45 mm off" in found.warnings[0]


def test_a_header_made_upright_again_lies_within_the_tolerance(scored):
    """As participants have to do it before SimpleITK reads such a CT."""
    found = scored(SLIGHTLY, AFFINE, "flare21")

    assert found.cases == scored(AFFINE, AFFINE, "flare21").cases
    assert found.warnings == ()
