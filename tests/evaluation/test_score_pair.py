"""flare.score_pair: files and images in memory score what an evaluation says."""

import math
from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk

import flare
from flare.evaluation.errors import DamagedFileError
from tests.builders import (
    AFFINE,
    SPACING,
    Tensor,
    error_of,
    metaimage_bytes,
    nifti_bytes,
    nrrd_bytes,
    organ_boxes,
    write_gzip,
    write_nifti,
)
from tests.oracles import brute_force_dsc, brute_force_nsd

OBLIQUE = AFFINE.copy()
"""Turned by 30 degrees about z."""
OBLIQUE[:2, :2] = -0.8 * np.array([[np.sqrt(0.75), -0.5], [0.5, np.sqrt(0.75)]])

SHEARED = AFFINE.copy()
"""As of a tilted gantry: each slice lies 0.3 mm further back."""
SHEARED[1, 2] = 0.3

SWAPPED = AFFINE[:, [1, 0, 2, 3]]
"""The first axis points to the back, the second to the left."""


def write_scaled(path, labels):
    """Stored values are half of the labels, less one."""
    content = nifti_bytes(2 * labels + 2.0, dtype="<f4", slope=0.5, intercept=-1.0)
    write_gzip(path, content)


FORMATS = {
    "nii.gz": (".nii.gz", write_nifti),
    "mha": (".mha", lambda p, a: p.write_bytes(metaimage_bytes(a, compressed=False))),
    "nrrd": (".nrrd", lambda p, a: p.write_bytes(nrrd_bytes(a))),
    "scaled": (".nii.gz", write_scaled),
    "big-endian": (".nii.gz", lambda p, a: write_nifti(p, a, dtype=">i2")),
    "NIfTI-2": (".nii.gz", lambda p, a: write_nifti(p, a, version=2)),
    "oblique": (".nii.gz", lambda p, a: write_nifti(p, a, affine=OBLIQUE)),
    "sheared": (".nii.gz", lambda p, a: write_nifti(p, a, affine=SHEARED)),
    "swapped axes": (".nii.gz", lambda p, a: write_nifti(p, a, affine=SWAPPED)),
}


@pytest.fixture(params=FORMATS.values(), ids=FORMATS.keys())
def files(request, tmp_path):
    """A reference and a prediction that is moved by one voxel, in folders of each."""
    suffix, write = request.param
    files = []
    for folder, shift in (("references", 0), ("predictions", 1)):
        files.append(tmp_path / folder / f"case_1{suffix}")
        files[-1].parent.mkdir()
        write(files[-1], organ_boxes(shift=shift))
    return files


def readers_of(file):
    """How this file can be opened, by each library that can."""
    yield str
    if file.name.endswith(".nii.gz"):
        yield nib.load
        found = nib.load(file)
        is_sheared = found.affine[1, 2] != 0
        if not is_sheared and not isinstance(found, nib.Nifti2Image):
            yield sitk.ReadImage  # which refuses both
    else:
        yield sitk.ReadImage


def evaluated(files):
    reference, prediction = files
    return flare.evaluate(prediction.parent, reference.parent).cases[0]


def test_a_pair_scores_what_an_evaluation_says_whatever_it_is_given_as(files):
    expected = evaluated(files)
    assert expected.dsc < 1

    readers = tuple(readers_of(files[0]))
    assert len(readers) >= 2
    for read_reference in readers:
        for read_prediction in readers:
            score = flare.score_pair(
                read_reference(files[0]), read_prediction(files[1])
            )

            assert score.organs == expected.organs
            assert (score.dsc, score.nsd) == (expected.dsc, expected.nsd)


def test_an_image_that_was_made_in_memory():
    """One of 42 columns of the liver is lost at each end: the same for all images.

    The box is 7 voxels wide: 6 of 7 are shared, 2 * 6 / (7 + 7).
    """
    arrays = organ_boxes(), organ_boxes(shift=1)
    nibabel = [nib.Nifti1Image(array.T, AFFINE) for array in arrays]
    # Of no format, as those of PAR/REC: such a header has no fields.
    plain = [nib.spatialimages.SpatialImage(array.T, AFFINE) for array in arrays]
    simpleitk = [of_simpleitk(array) for array in arrays]

    mixed = nibabel[0], simpleitk[1]
    for reference, prediction in (nibabel, plain, simpleitk, mixed):
        score = flare.score_pair(reference, prediction)

        assert score.organs[0].dsc == 2 * 6 / 14
        assert [organ.dsc for organ in score.organs[1:]] == [1.0, 1.0, 1.0]
        assert (score.case, score.prediction_file) == ("", "")


def image(labels, **changes):
    return nib.Nifti1Image(labels.T, changes.get("affine", AFFINE))


def of_simpleitk(array):
    found = sitk.GetImageFromArray(array)
    found.SetSpacing((0.8, 0.8, 2.5))
    found.SetOrigin((-90, -110, -300))
    return found


LAYERS = np.zeros((4, 5, 6, 3), np.uint8)

MOVED = AFFINE + np.outer([1, 0, 0, 0], [0, 0, 0, 5])

NINE = organ_boxes()
NINE[0, 0, 0] = 9

REFUSED = {
    "a size": (lambda: image(organ_boxes()[:9]), "F07", "20 x 16 x 9 voxels"),
    "a place": (lambda: image(organ_boxes(), affine=MOVED), "F08", "up to 5 mm off"),
    "a label": (lambda: image(NINE), "F11", "unknown label 9"),
    "fractions": (lambda: image(organ_boxes() / 2), "F10", "not whole numbers"),
    "nibabel": (lambda: nib.Nifti1Image(LAYERS, AFFINE), "F06", "4 dimensions"),
    "SimpleITK": (
        lambda: sitk.GetImageFromArray(LAYERS, isVector=True),
        *("F06", "several channels"),
    ),
    # A kind of image there; asked for its voxels, it ends the program.
    "LabelMap": (
        lambda: sitk.Cast(of_simpleitk(organ_boxes()), sitk.sitkLabelUInt8),
        *("F06", "LabelMapToLabel first"),
    ),
}


def test_rules_may_be_set_for_a_pair(caplog):
    reference = image(organ_boxes())

    assert flare.score_pair(reference, REFUSED["a place"][0](), grid="size").dsc == 1.0
    assert "it lies up to 5 mm off" in caplog.text
    score = flare.score_pair(reference, image(NINE), unknown_labels="ignore")
    assert (score.dsc, score.unknown_labels) == (1.0, (9,))


def test_a_file_that_nibabel_has_opened_and_cannot_read(tmp_path):
    path = tmp_path / "half.nii.gz"
    write_nifti(path, np.random.default_rng(1).integers(0, 5, (30, 30, 30)))
    path.write_bytes(path.read_bytes()[:2000])

    with pytest.raises(DamagedFileError, match="its voxels cannot be read"):
        flare.score_pair(image(np.zeros((30, 30, 30), np.uint8)), nib.load(path))


# --- Arrays -------------------------------------------------------------------------


def random_maps():
    """Four organs that have something to do with each other."""
    random = np.random.default_rng(5)
    reference = random.integers(0, 5, (6, 7, 9))
    is_changed = random.random(reference.shape) < 0.3
    prediction = np.where(is_changed, random.integers(0, 5, (6, 7, 9)), reference)
    return reference.astype(np.uint8), prediction.astype(np.uint8)


KINDS = {
    **{
        name: lambda array, name=name: array.astype(name)
        for name in ("i8", ">i2", "f4")
    },
    "half": lambda array: array.astype(np.float16),
    "Fortran": np.asfortranarray,
    "a view": lambda array: np.repeat(array, 2, axis=2)[:, :, ::2],
    "a tensor": lambda array: Tensor(array.astype(np.int64)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_score_what_files_of_their_grid_score(tmp_path, kind):
    """With all metrics; a MetaImage holds its spacing in decimal digits."""
    rules = flare.read_challenge("flare21")
    rules = replace(rules, metrics=("dsc", "nsd", "hd95", "assd", "volume_difference"))
    maps, files = random_maps(), []
    for folder, labels in zip(("references", "predictions"), maps, strict=True):
        files.append(tmp_path / folder / "case_1.mha")
        files[-1].parent.mkdir()
        files[-1].write_bytes(metaimage_bytes(labels, compressed=False))
    reference, prediction = files
    expected = flare.evaluate(
        prediction.parent, reference.parent, challenge=rules
    ).cases[0]
    first, second = map(KINDS[kind], maps)

    score = flare.score_pair(first, second, rules, spacing=SPACING)

    assert score.organs == expected.organs
    assert score.by_metric == expected.by_metric
    assert 0 < score.dsc < 1
    assert score.by_metric["hd95"] > 0
    for other in (reference, sitk.ReadImage(reference)):  # beside an array
        mixed = flare.score_pair(other, second, rules, spacing=SPACING)
        assert mixed.organs == expected.organs


def test_arrays_by_labels_and_a_tolerance_equal_brute_force():
    """Labels that are not asked for are background; the mean is over those that are."""
    reference, prediction = random_maps()
    labels = {"spleen": 3, "liver": 1, "both": (1, 3)}

    score = flare.score_pair(
        reference, prediction, spacing=SPACING, labels=labels, tolerance=2.5
    )

    assert [organ.organ for organ in score.organs] == [*labels]
    for organ in score.organs:
        region = labels[organ.organ]
        masks = [np.isin(array, region) for array in (reference, prediction)]
        assert organ.dsc == brute_force_dsc(*masks)
        nsd = brute_force_nsd(*masks, SPACING, 2.5)
        assert organ.nsd == pytest.approx(nsd, abs=1e-12)
    assert score.dsc == math.fsum(organ.dsc for organ in score.organs) / 3
    assert score.unknown_labels == (2, 4)
    default = flare.score_pair(reference, prediction, spacing=SPACING, labels=labels)
    nsd = brute_force_nsd(reference == 3, prediction == 3, SPACING, 1.0)
    assert default.organs[0].nsd == pytest.approx(nsd, abs=1e-12)


def test_a_mask_of_bool_is_label_1():
    reference, prediction = (array == 1 for array in random_maps())

    score = flare.score_pair(
        Tensor(reference), prediction, spacing=SPACING, labels={"tumour": 1}
    )

    assert score.dsc == brute_force_dsc(reference, prediction)


def changed(value):
    """Labels as numbers with a point, one of which is something else."""
    array = organ_boxes().astype(np.float64)
    array[0, 0, 0] = value
    return array


NO_LABEL_MAPS = {
    "four axes": (lambda: organ_boxes()[np.newaxis], "F06", "three axes"),
    "two axes": (lambda: organ_boxes()[0], "F06", "three axes"),
    "no voxel": (lambda: np.zeros((0, 3, 3)), "F06", "impossible numbers of voxels"),
    "complex": (lambda: organ_boxes().astype(complex), "F06", "type complex128"),
    "objects": (lambda: organ_boxes().astype(object), "F06", "type object"),
    "NaN": (lambda: changed(np.nan), "F10", "found nan"),
    "a fraction": (lambda: changed(0.5), "F10", "found 0.5"),
    "another size": (lambda: organ_boxes()[1:], "F07", "size is 20 x 16 x 9 voxels"),
    "a label": (lambda: changed(9), "F11", "unknown label 9"),
}


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [*REFUSED.values(), *NO_LABEL_MAPS.values()],
    ids=[*REFUSED, *(f"array: {name}" for name in NO_LABEL_MAPS)],
)
def test_what_an_evaluation_refuses_is_refused(make, code, words):
    """And is the organisers' fault in the reference, where it can be seen there."""
    wrong, good, more = make(), image(organ_boxes()), {}
    if isinstance(wrong, np.ndarray):
        good, more = organ_boxes(), {"spacing": SPACING}

    error = error_of(flare.SubmissionError, flare.score_pair, good, wrong, **more)

    assert str(error).startswith("prediction: ")
    assert words in str(error)
    assert error.code == code
    assert "\n" not in str(error)
    if code in ("F06", "F10"):  # which come before the grid
        with pytest.raises(flare.OrganiserError, match=f"reference: .*{words}"):
            flare.score_pair(wrong, good, **more)


def test_an_array_beside_an_image_of_another_spacing_is_refused():
    with pytest.raises(
        flare.SubmissionError, match=r"voxel size is 0\.8 x 0\.8 x 3 mm"
    ):
        flare.score_pair(image(organ_boxes()), organ_boxes(), spacing=(3, 0.8, 0.8))


LIVER = {"liver": 1}

NO_ARGUMENTS = {
    "no spacing": ({"spacing": None}, TypeError, "spacing must be 3 numbers.*: None"),
    "two numbers": ({"spacing": (1, 1)}, ValueError, "spacing must be 3 numbers"),
    "below 0": ({"spacing": (1, -1, 1)}, ValueError, "must be positive and finite: -1"),
    "tolerance": ({"tolerance": 1}, ValueError, "tolerance goes with labels"),
    "both": (
        {"labels": LIVER, "challenge": "flare22"},
        *(ValueError, "a challenge or labels, not both"),
    ),
    "a list": ({"labels": [1]}, TypeError, "a mapping .* not list"),
    "none": ({"labels": {}}, ValueError, "at least one organ"),
    "turned": (
        {"labels": {1: "liver"}},
        *(ValueError, r"organs\[1\].label is 'liver', expected a whole"),
    ),
    "a label": (
        {"labels": {"liver": 300}},
        *(ValueError, r"organs\[1\].label is 300, expected .* 255"),
    ),
    "no tolerance": (
        {"labels": LIVER, "tolerance": 0},
        *(ValueError, r"tolerance_mm is 0\.0, expected above 0"),
    ),
}
"""Arguments beside a spacing, and what is said of them."""


@pytest.mark.parametrize("name", NO_ARGUMENTS)
def test_arguments_that_do_not_go_together_are_refused(name):
    changes, error, words = NO_ARGUMENTS[name]
    arguments = {"spacing": SPACING} | changes

    with pytest.raises(error, match=words) as caught:
        flare.score_pair(organ_boxes(), organ_boxes(), **arguments)

    assert "\n" not in str(caught.value)


def test_what_is_no_argument_is_refused():
    with pytest.raises(TypeError, match=r"reference must be .* not list"):
        flare.score_pair(organ_boxes().tolist(), "x.nii.gz")
    with pytest.raises(ValueError, match="spacing goes with arrays"):
        flare.score_pair(image(organ_boxes()), "x.nii.gz", spacing=SPACING)
    with pytest.raises(ValueError, match="grid is 'Size', expected 'strict' or 'size'"):
        flare.score_pair("x", "y", grid="Size")


def test_a_reference_is_repaired_by_whoever_has_it():
    """In a training loop there are no organisers to ask."""
    labels = organ_boxes()

    with pytest.raises(flare.OrganiserError, match="expected three axes") as shape:
        flare.score_pair(labels[None, None], labels, spacing=SPACING)
    image = nib.Nifti1Image(labels.T, AFFINE)
    image.header["pixdim"][1] = 0
    with pytest.raises(flare.OrganiserError, match="a voxel size of 0") as size:
        flare.score_pair(image, image)

    assert shape.value.remedy.startswith("Take the argmax over the classes")
    assert size.value.remedy == "Repair the reference, or write it anew."
