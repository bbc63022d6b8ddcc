"""What `flare check --images` remarks about organs that do not fit their CTs."""

import os

import numpy as np
import pytest

import flare
from flare.evaluation.check import check_submission
from tests.builders import run_flare, write_nifti

FLARE21 = flare.read_challenge("flare21")
FLARE22 = flare.read_challenge("flare22")

GRID = {"spacing": (8.0, 8.0, 8.0), "affine": np.diag([8.0, 8.0, 8.0, 1.0])}
"""Voxels of 0.512 ml."""

CASES = ("case_001", "case_002", "case_003")

LIVER, KIDNEY, SPLEEN, PANCREAS = 1, 2, 3, 4
HU = {LIVER: 60, KIDNEY: 180, SPLEEN: 125, PANCREAS: 90}


def right_labels():
    """1405 ml of liver, 221 of kidneys, 201 of spleen, 82 of pancreas; x below 25."""
    labels = np.zeros((16, 24, 56), dtype=np.uint8)
    labels[1:15, 1:15, 1:15] = LIVER
    labels[9:15, 1:13, 17:23] = KIDNEY
    labels[1:8, 1:8, 16:24] = SPLEEN
    labels[1:5, 16:21, 1:9] = PANCREAS
    return labels


def made_ct():
    """Organs in a body of fat with one bone, and air beside it."""
    ct = np.full((16, 24, 56), -1000)
    ct[:, :, :25] = -80
    ct[-1, -1, :5] = 700
    for label, hu in HU.items():
        ct[right_labels() == label] = hu
    return ct


def relabelled(**changes):
    """The right label map with other labels, such as `LIVER=3`."""
    table = np.arange(256, dtype=np.uint8)
    for name, label in changes.items():
        table[globals()[name]] = label
    return table[right_labels()]


@pytest.fixture
def folders(tmp_path):
    """Write predictions and CTs of three cases; the CTs are 16-bit by default."""

    def write(*labels, ct=None, dtype="<i2", **header):
        ct = made_ct() if ct is None else ct
        for number, name in enumerate(CASES):
            mine = labels[number % len(labels)]
            write_nifti(tmp_path / "predictions" / f"{name}.nii.gz", mine, **GRID)
            file = tmp_path / "images" / f"{name}_0000.nii.gz"
            write_nifti(file, ct, dtype=dtype, **GRID, **header)
        return tmp_path / "predictions", tmp_path / "images"

    return write


def remarks(folders, challenge=FLARE21):
    predictions, images = folders
    report = check_submission(
        predictions, challenge, images=images, workers=1, are_cts_read=True
    )
    assert report.lines == ()
    return report.remarks


def test_the_right_label_map_gets_no_remark(folders):
    assert remarks(folders(right_labels())) == ()


def test_the_whole_text_of_exchanged_labels(folders):
    predictions, images = folders(relabelled(LIVER=SPLEEN, SPLEEN=LIVER))

    run = run_flare("check", predictions, "--images", images)

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "Checked 3 label maps by the rules of FLARE 2021. They have:\n"
        "  liver     in 3 of 3\n"
        "  kidney    in 3 of 3\n"
        "  spleen    in 3 of 3\n"
        "  pancreas  in 3 of 3\n"
        "Names and grids are those of the images.\n"
        "Remark: liver (label 1): its volume is 201 ml (median over cases), which is"
        " mostly 600 to 3500 ml\n"
        "Remark: If liver and spleen were exchanged, they would fit: is liver really"
        " label 1, and spleen label 3?\n"
        "Nothing would be refused, but look at the remarks in a viewer.\n"
    )


def test_organs_in_the_order_of_another_program(folders):
    """Three change places at once."""
    labels = relabelled(LIVER=KIDNEY, KIDNEY=PANCREAS, PANCREAS=LIVER)

    (*_, last) = remarks(folders(labels))

    assert last.startswith("If liver, kidney and pancreas were exchanged, ")


def test_a_mirrored_label_map_lies_on_air(folders):
    """In one of three cases: medians do not show that."""
    mirrored = right_labels()[:, :, ::-1].copy()

    assert remarks(folders(right_labels(), mirrored, right_labels())) == tuple(
        f"{organ} (label {label}): more than 20% of it lies on air or lung (below -300"
        " HU) in 1 of 3: case_002"
        for label, organ in enumerate(("liver", "kidney", "spleen", "pancreas"), 1)
    )


def test_a_mean_that_no_organ_has(folders):
    mirrored = right_labels()[:, :, ::-1].copy()

    found = remarks(folders(mirrored))

    assert found[:2] == (
        "liver (label 1): its mean is -1000 HU (median over cases), which is mostly 30"
        " to 150 HU",
        "liver (label 1): more than 20% of it lies on air or lung (below -300 HU) in 3"
        " of 3: case_001, case_002, case_003",
    )


def test_all_organs_as_one_label(folders):
    labels = (right_labels() > 0).astype(np.uint8)

    assert remarks(folders(labels)) == (
        "Every label is liver: were all organs saved as one label?",
    )


def test_a_hollow_organ_may_hold_gas(folders):
    """Label 11 of FLARE 2022 is the stomach, 5 the aorta."""
    labels = np.zeros_like(right_labels())
    labels[:3, :3, -3:] = 11
    labels[8:10, :3, -3:] = 5

    (line,) = remarks(folders(labels), FLARE22)

    assert line.startswith("aorta (label 5): more than 20% of it lies on air")


@pytest.mark.parametrize(
    ("ct", "dtype"),
    [
        (np.clip(made_ct(), 0, 255), "<u1"),
        (made_ct() + 1024, "<i2"),
        (made_ct() / 2000, "<f4"),
        (np.clip(made_ct(), -1000, 200), "<i2"),
        (np.where(made_ct() > 500, np.nan, made_ct()), "<f4"),
        (np.where(made_ct() > 500, np.inf, made_ct()), "<f4"),
    ],
    ids=["uint8", "without intercept", "normalised", "window", "NaN", "inf"],
)
def test_images_that_are_no_cts_in_hu(folders, ct, dtype):
    labels = relabelled(LIVER=SPLEEN, SPLEEN=LIVER)

    assert remarks(folders(labels, ct=ct, dtype=dtype)) == ()


@pytest.mark.parametrize(
    ("ct", "options"),
    [
        (made_ct(), {"dtype": ">i2"}),
        (made_ct(), {"dtype": "<f4"}),
        (made_ct() + 1024, {"dtype": "<u2", "slope": 1, "intercept": -1024}),
    ],
    ids=["big-endian", "float", "scaled"],
)
def test_cts_however_they_are_stored(folders, ct, options):
    labels = relabelled(LIVER=SPLEEN, SPLEEN=LIVER)

    assert len(remarks(folders(labels, ct=ct, **options))) == 2


def test_a_ct_of_a_tilted_gantry_is_read_all_the_same(tmp_path):
    """SimpleITK would refuse its header, which is sheared; no environment is left."""
    sheared = np.diag([8.0, 8.0, 8.0, 1.0])
    sheared[1, 2] = 3.0
    before = dict(os.environ)
    for folder, voxels in (
        ("predictions", relabelled(LIVER=SPLEEN, SPLEEN=LIVER)),
        ("images", made_ct()),
    ):
        file = tmp_path / folder / "case.nii.gz"
        write_nifti(file, voxels, dtype="<i2", spacing=(8.0, 8.0, 8.0), affine=sheared)

    found = remarks((tmp_path / "predictions", tmp_path / "images"))

    assert any("If liver and spleen were exchanged" in line for line in found)
    assert dict(os.environ) == before


def test_a_ct_that_simpleitk_cannot_read_is_a_remark(folders):
    """As one of NIfTI's second version."""
    predictions, images = folders(right_labels(), version=2)

    assert remarks((predictions, images)) == (
        "The voxels of 3 of 3 CTs cannot be read: case_001_0000.nii.gz: SimpleITK"
        " cannot read it",
    )


def test_a_ct_that_is_cut_off_is_a_remark(folders):
    predictions, images = folders(right_labels())
    file = images / "case_002_0000.nii.gz"
    file.write_bytes(file.read_bytes()[:-9])

    assert remarks((predictions, images)) == (
        "The voxels of 1 of 3 CTs cannot be read: case_002_0000.nii.gz: its compressed"
        " data end early",
    )


def test_cts_are_read_only_where_remarks_are_wanted(folders):
    """A measurement of teams checks every output, and wants none."""
    predictions, images = folders(relabelled(LIVER=SPLEEN, SPLEEN=LIVER))

    report = check_submission(predictions, FLARE21, images=images, workers=1)

    assert report.remarks == ()
    with_labels = check_submission(
        *(predictions, FLARE21), ground_truth=predictions, are_cts_read=True, workers=1
    )
    assert with_labels.remarks == ()
