"""flare doctor: each cause by itself and in pairs, all cases, and honest mistakes."""

import shutil

import nibabel as nib
import numpy as np
import pytest
import scipy
import SimpleITK as sitk
from scipy import ndimage

import flare
from flare.cli.main import main
from flare.common.errors import InputError, OutputError
from flare.evaluation.check import check_submission
from flare.evaluation.doctor.folder import challenge_of_labels
from flare.evaluation.doctor.judge import Judge
from flare.evaluation.doctor.words import cause_texts
from flare.evaluation.errors import EmptyError, FractionError, GroundTruthError
from tests.builders import error_of, read_metrics, run_evaluate

SPACING_XYZ = (1.0, 1.5, 2.5)
AFFINE = np.diag((*SPACING_XYZ, 1.0)) + np.array(
    [[0, 0, 0, -40.0], [0, 0, 0, 30.0], [0, 0, 0, 100.0], [0, 0, 0, 0]]
)
"""A CT whose axes x, y, z run to the right, front and top."""


def body(case=0):
    """Four organs in 40 x 32 x 24 voxels (x, y, z), of no symmetry."""
    labels = np.zeros((40, 32, 24), dtype=np.uint8)
    d = case % 3
    labels[4 : 18 + d, 5:20, 8:19] = 1
    labels[24:32, 6 : 14 + d, 6:13] = 2
    labels[25:36, 18:27, 12 : 20 + d] = 3
    labels[12:22, 22:28, 3 : 7 + d] = 4
    return labels


def as_sitk(labels):
    """The image that SimpleITK reads from a file of nibabel."""
    image = sitk.GetImageFromArray(np.ascontiguousarray(labels.T))
    image.SetSpacing(SPACING_XYZ)
    image.SetDirection((-1, 0, 0, 0, -1, 0, 0, 0, 1))
    image.SetOrigin((40, -30, 100))
    return image


def canonical_on_one_side():
    """The model turned the CT from RAS to LPS; its labels got the header of the CT."""
    turned = sitk.DICOMOrient(as_sitk(body()), "LPS")
    return sitk.GetArrayFromImage(turned).T


def half_as_fine(labels):
    """Every second voxel, which stands for two: its centre lies between theirs."""
    steps = np.diag((2.0, 2.0, 2.0, 1.0))
    steps[:3, 3] = 0.5
    return labels[::2, ::2, ::2], AFFINE @ steps


def moved(labels, shift):
    """Labels that lie some voxels further along x, y, z."""
    return ndimage.shift(labels, shift, order=0)


def without_background(labels):
    """Labels with -1 around the organs, and 300 at a voxel."""
    labels = np.where(labels > 0, labels.astype(np.int16), -1)
    labels[0, 0, 0] = 300
    return labels


def renumbered(labels, numbers):
    table = np.arange(256, dtype=np.uint8)
    table[list(numbers)] = list(numbers.values())
    return table[labels]


CROP = (slice(3, 37), slice(4, 28), slice(2, 23))
SWAP = {1: 3, 3: 1}

MIRRORED = "mirrored left to right"


def axes_are(axes):
    return f"axes are ({axes}) instead of (x, y, z)"


TRANSPOSED = axes_are("z, y, x")
HEADER = "the header is not that of the CT"
REGRID = "on another grid than the CT, as its header says"
OUTSIDE = "labels outside of 0 to 255"
CUT = "cropped or padded, and not put back"
SWAPPED = "given other numbers (liver and spleen are swapped)"
KINDS = {
    "as it is": (body(), AFFINE, ""),
    "x reversed": (body()[::-1], AFFINE, MIRRORED),
    "y reversed": (body()[:, ::-1], AFFINE, "mirrored front to back"),
    "z reversed": (body()[:, :, ::-1], AFFINE, "mirrored head to feet"),
    "RAS for LPS": (canonical_on_one_side(), AFFINE, f"{MIRRORED} and front to back"),
    "zyx for xyz": (sitk.GetArrayFromImage(as_sitk(body())), AFFINE, TRANSPOSED),
    # As nii2dcm's slices are read back, or rt-utils' masks are saved.
    "yxz for xyz": (body().transpose(1, 0, 2), AFFINE, axes_are("y, x, z")),
    "yzx for xyz": (body().transpose(1, 2, 0), AFFINE, axes_are("y, z, x")),
    "lost header": (body(), np.eye(4), HEADER),
    "other origin": (body(), AFFINE + np.eye(4, k=3) * 25, HEADER),
    "coarse": (*half_as_fine(body()), REGRID),
    "coarse, lost header": (
        *(body()[::2, ::2, ::2], np.eye(4)),
        "resampled to another size, and not back",
    ),
    "cropped": (body()[CROP], AFFINE, CUT),
    "shifted": (
        *(moved(body(), (0, 0, 4)), AFFINE),
        "shifted by 4 slices (10 mm) towards the head",
    ),
    "swapped": (renumbered(body(), SWAP), AFFINE, SWAPPED),
    "as in FLARE22": (
        *(renumbered(body(), {2: 13}), AFFINE),
        "given other numbers (13 is kidney)",
    ),
    "outside": (without_background(body()), AFFINE, OUTSIDE),
    "mirrored, outside, swapped": (
        *(without_background(renumbered(body()[::-1], SWAP)), AFFINE),
        f"{MIRRORED}; {OUTSIDE}; {SWAPPED}",
    ),
    "mirrored, header": (body()[::-1], np.eye(4), f"{MIRRORED}; {HEADER}"),
    "mirrored, cropped": (body()[::-1][CROP], AFFINE, f"{MIRRORED}; {CUT}"),
    "mirrored, swapped": (
        *(renumbered(body()[::-1], SWAP), AFFINE),
        f"{MIRRORED}; {SWAPPED}",
    ),
}
"""What was done to a label map, and what is said of it."""


@pytest.fixture
def folders(tmp_path):
    for name in ("predictions", "labels"):
        (tmp_path / name).mkdir()
    return tmp_path / "predictions", tmp_path / "labels"


def write(folder, case, labels, affine=AFFINE):
    image = nib.Nifti1Image(np.ascontiguousarray(labels), affine)
    nib.save(image, folder / f"{case}.nii.gz")


def write_cases(folders, predictions, references=None):
    """Write case_0, case_1, ...: arrays; the references are bodies where not named."""
    references = references or [body(number) for number in range(len(predictions))]
    for number, pair in enumerate(zip(predictions, references, strict=True)):
        for folder, labels in zip(folders, pair, strict=True):
            write(folder, f"case_{number}", labels)


def diagnosed(folders, **options):
    return flare.diagnose(*folders, **{"challenge": "flare21", **options})


def said(diagnosis):
    texts = cause_texts(diagnosis.findings[0], diagnosis.challenge)
    return "; ".join(cause.text for cause in texts)


UNMOVED = ("regrid", "header", "cut")
"""Causes that no line of NumPy by itself mends."""


@pytest.mark.newest
@pytest.mark.parametrize("kind", KINDS)
def test_each_cause_is_named_and_mended_as_promised(folders, tmp_path, kind):
    """Copies score what was promised, and the line of code makes the same array."""
    labels, affine, text = KINDS[kind]
    write(folders[0], "case_1", labels, affine)
    write(folders[1], "case_1", body())

    diagnosis = diagnosed(folders)
    diagnosis.write_repaired(tmp_path / "fixed")

    assert said(diagnosis) == text
    assert diagnosis.is_sound == (not text)
    results = flare.evaluate(tmp_path / "fixed", folders[1], challenge="flare21")
    finding = diagnosis.findings[0]
    promised = finding.after or finding.before
    assert results.cases[0].organs == promised.organs
    assert promised.dsc >= 0.75
    ct = nib.Nifti1Image(body(), AFFINE)
    scope = {"labels": labels, "numpy": np, "scipy": scipy, "ct": ct}
    causes = cause_texts(finding, diagnosis.challenge)
    for cause in causes:
        if cause.name not in UNMOVED:
            exec(cause.code.split("; nibabel")[0], scope)
    if not {"regrid", "cut"} & {cause.name for cause in causes}:
        (fixed,) = (tmp_path / "fixed").iterdir()
        assert np.array_equal(scope["labels"], nib.load(fixed).dataobj)


def test_labels_outside_of_bytes_are_told_where_they_make_a_case_0(folders):
    lesion = (body() == 1).astype(np.uint8)
    write_cases(folders, [without_background(lesion)], [lesion])

    diagnosis = diagnosed(folders, challenge="flare24-lesion")

    assert said(diagnosis) == OUTSIDE
    assert diagnosis.findings[0].before.dsc == 0
    assert diagnosis.lines[-1].endswith(f"{OUTSIDE} (-1 and 300)")


def test_a_lost_header_is_not_told_where_sizes_alone_are_compared(folders):
    write(folders[0], "case_1", body()[::-1], np.eye(4))
    write(folders[1], "case_1", body())

    assert said(diagnosed(folders, challenge="flare22")) == MIRRORED


def nibabel_array_by_sitk(folder):
    image = sitk.GetImageFromArray(body())
    image.SetSpacing(SPACING_XYZ)
    sitk.WriteImage(image, folder / "case_1.nii.gz")


def sitk_without_copy_information(folder):
    array = sitk.GetArrayFromImage(as_sitk(body()))
    sitk.WriteImage(sitk.GetImageFromArray(array), folder / "case_1.nii.gz")


def oriented_by_sitk(folder):
    """It has a header of its own, which is right."""
    turned = sitk.DICOMOrient(as_sitk(body()), "PSL")
    sitk.WriteImage(turned, folder / "case_1.nii.gz")


def resampled_by_sitk(folder):
    """To 2.5 mm and nowhere back."""
    image, spacing = as_sitk(body()), (2.5, 2.5, 2.5)
    sizes = [round(n * s / 2.5) for n, s in zip(body().shape, SPACING_XYZ, strict=True)]
    identity, nearest = sitk.Transform(), sitk.sitkNearestNeighbor
    origin, direction = image.GetOrigin(), image.GetDirection()
    coarse = sitk.Resample(image, sizes, identity, nearest, origin, spacing, direction)
    sitk.WriteImage(coarse, folder / "case_1.nii.gz")


TRAPS = {
    nibabel_array_by_sitk: TRANSPOSED,
    sitk_without_copy_information: HEADER,
    oriented_by_sitk: REGRID,
    resampled_by_sitk: REGRID,
}
"""Code that makes a mistake of participants, and what is said of it."""


@pytest.mark.parametrize("make", TRAPS)
def test_traps_are_named_as_their_code_makes_them(folders, make):
    make(folders[0])
    write(folders[1], "case_1", body())

    diagnosis = diagnosed(folders)

    assert said(diagnosis) == TRAPS[make]
    assert diagnosis.findings[0].after.dsc >= 0.75


NPZ = """
name = "archives"
organs = [{label = 1, name = "liver", tolerance_mm = 1.0}]
npz = {prediction = "segs", reference = "gts", spacing = "zyx"}
unknown_labels = {prediction = "ignore", reference = "ignore"}
"""


@pytest.mark.parametrize(
    ("labels", "spacing", "text"),
    [
        (body().T.copy(), SPACING_XYZ, HEADER),
        (body(), SPACING_XYZ[::-1], TRANSPOSED),
    ],
    ids=["spacing x, y, z", "array x, y, z"],
)
def test_archives_of_numpy_are_mended_as_well(folders, tmp_path, labels, spacing, text):
    """The challenge asks for z, y, x in both."""
    challenge = tmp_path / "npz.toml"
    challenge.write_text(NPZ)
    prediction = {"segs": labels, "spacing": spacing}
    reference = {"gts": body().T.copy(), "spacing": SPACING_XYZ[::-1]}
    np.savez_compressed(folders[0] / "case_1.npz", **prediction)
    np.savez_compressed(folders[1] / "case_1.npz", **reference)

    diagnosis = diagnosed(folders, challenge=challenge)
    diagnosis.write_repaired(tmp_path / "fixed")

    assert said(diagnosis) == text
    results = flare.evaluate(tmp_path / "fixed", folders[1], challenge=challenge)
    assert results.metrics["dsc"] == (1,)


def test_crops_at_other_places_are_one_cause(folders):
    crops = []
    for number in range(3):
        box = (slice(1 + number, 38), slice(2, 30 - number), slice(number, 23))
        crops.append(body(number)[box])
    write_cases(folders, crops)

    lines = diagnosed(folders).lines

    assert lines[0] == f"3 of 3 cases: {CUT} (case_0, case_1, case_2)"
    assert lines[-1].endswith("(its corner is at x, y, z = 3, 2, 2 of the CT)")


def test_a_table_of_labels_is_one_cause_though_a_patient_lacks_an_organ(folders):
    references = [renumbered(body(), {4: 0}), body(1), body(2)]
    numbers = {1: 101, 2: 102, 3: 103, 4: 104}
    write_cases(folders, [renumbered(r, numbers) for r in references], references)

    lines = diagnosed(folders).lines

    assert lines[0].startswith("3 of 3 cases: given other numbers (101 is liver, ")
    assert "table[[101, 102, 103, 104]] = [1, 2, 3, 4]" in "".join(lines)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({3: 4}, "4 is et"),  # as BraTS had it until 2022
        ({1: 2, 2: 1}, "label 1 and label 2 are swapped"),
    ],
)
def test_numbers_of_regions_are_told_by_label(folders, table, text):
    """The whole tumour fits as it is, where only its parts are exchanged."""
    reference = renumbered(body(), {4: 0})
    write_cases(folders, [renumbered(reference, table)], [reference])

    diagnosis = diagnosed(folders, challenge="brats23-gli")

    assert said(diagnosis) == f"given other numbers ({text})"
    assert "  Lesion-wise DSC (BraTS 2023 GLI) 0." in "\n".join(diagnosis.lines)
    assert diagnosis.findings[0].after.dsc == 1


def test_one_cause_shows_in_other_ways_where_axes_lie_otherwise(folders):
    other = AFFINE[:, [2, 1, 0, 3]]  # the first axis of the file goes to the head
    for number, affine in enumerate((AFFINE, AFFINE, other)):
        write(folders[0], f"case_{number}", body(number)[::-1], affine)
        write(folders[1], f"case_{number}", body(number), affine)

    lines = diagnosed(folders).lines

    others = "mirrored head to feet (case_2)"
    assert lines[0] == f"3 of 3 cases: {MIRRORED} (case_0, case_1), {others}"


def test_a_cause_of_few_cases_tells_how_the_header_differs_and_to_look_at_them(folders):
    for number, affine in enumerate((AFFINE, AFFINE, np.eye(4))):
        write(folders[0], f"case_{number}", body(number), affine)
        write(folders[1], f"case_{number}", body(number), AFFINE)

    lines = diagnosed(folders).lines

    assert lines[0] == f"1 of 3 cases: {HEADER} (case_2)"
    assert "tell the organisers." in lines[5]
    assert lines[-1].endswith("its header was lost (voxel size 1, origin 0))")


def with_own_vectors(labels, vectors):
    """Each organ moved by a vector of its own."""
    found = np.zeros_like(labels)
    for label, vector in enumerate(vectors, start=1):
        found[moved(labels == label, vector) > 0] = label
    return found


def eroded(labels):
    found = np.zeros_like(labels)
    for label in range(1, 5):
        found[ndimage.binary_erosion(labels == label, iterations=2)] = label
    return found


HONEST = {
    "eroded": eroded(body()),
    "each organ by a third of its size": with_own_vectors(
        body(), [(5, 0, 0), (0, -3, 0), (0, 0, -3), (-3, 0, 0)]
    ),
    "one organ missing": renumbered(body(), {2: 0}),
    "all merged": (body() > 0).astype(np.uint8),
    "half a body": np.where(np.arange(24) < 12, body(), 0).astype(np.uint8),
}


@pytest.mark.newest
@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_mistake_is_the_segmentation_itself(folders, kind):
    write_cases(folders, [HONEST[kind]])

    diagnosis = diagnosed(folders)

    assert said(diagnosis) == ""
    assert diagnosis.is_sound
    assert "1 of 1 case: the segmentation itself" in diagnosis.lines[0]


def test_an_empty_prediction_is_not_searched_for(folders, monkeypatch):
    write_cases(folders, [body() * 0, body()[2:] * 0])
    monkeypatch.delattr(Judge, "climbed")

    diagnosis = diagnosed(folders)

    assert "1 of 2 cases: the segmentation itself" in "".join(diagnosis.lines)


def test_a_shift_by_one_slice_is_seen_if_most_cases_have_it(folders):
    write_cases(folders, [moved(body(number), (0, 0, 1)) for number in range(5)])

    lines = diagnosed(folders).lines

    cause = "shifted by 1 slice (2.5 mm) towards the head"
    assert lines[0].startswith(f"5 of 5 cases: {cause} (case_0, case_1, ")


@pytest.mark.newest
def test_organs_that_lie_elsewhere_in_each_case_share_no_shift(folders):
    """Their median shift helps two of the three, by chance."""
    vectors = np.array([(3, 0, 1), (0, 4, 2), (-1, 2, 3), (4, -2, 0)])
    predictions = []
    for number in range(5):
        turned = np.roll(vectors, number, axis=1) * (1 - 2 * (number % 2))
        predictions.append(with_own_vectors(body(number), turned))
    write_cases(folders, predictions)

    assert diagnosed(folders).is_sound


@pytest.mark.newest
@pytest.mark.parametrize("turn", [np.copy, np.flipud], ids=["exchanged", "mirrored"])
def test_exchanged_files_are_told_by_whose_they_are(folders, tmp_path, turn):
    """Patient 1 has other organs, 2 those of 0; one file has a label of no organ."""
    vectors = [(0, 0, 3), (5, -5, -4), (4, 5, -3), (-2, 4, -1)]
    other = with_own_vectors(body(), vectors)
    with_stray = other.copy()
    with_stray[0, 0, 0] = 99
    labels = [turn(with_stray), turn(body()), turn(body())]
    write_cases(folders, labels, [body(), other, body()])

    diagnosis = diagnosed(folders)
    diagnosis.write_repaired(tmp_path / "fixed")

    donors = [finding.donor for finding in diagnosis.findings]
    assert donors == ["case_1", "case_0", ""]
    assert said(diagnosis).startswith("the file holds the labels of another case")
    results = flare.evaluate(tmp_path / "fixed", folders[1], challenge="flare21")
    assert results.metrics["dsc"] == (1, 1, 1)


def test_a_label_that_was_displaced_closes_the_circle_though_a_stray_has_its_organ(
    folders,
):
    """Organ 14 is saved as 13, a part of it as 5; 14 lies nowhere, and 13 is absent."""
    reference = renumbered(body(), {1: 11, 2: 12, 3: 13, 4: 14})
    labels = renumbered(reference, {13: 0, 14: 13})
    labels[tuple(np.argwhere(labels == 13)[:20].T)] = 5
    labels[:4, :4, :4] = 14
    write_cases(folders, [labels], [reference])

    (finding,) = flare.diagnose(*folders).findings

    assert finding.cause.labels == ((5, 14), (13, 14), (14, 13))


def test_means_say_how_many_cases_were_refused_and_empty_cases_have_no_worst(folders):
    empty = np.zeros_like(body())
    bad = renumbered(body(), {1: 0, 2: 0, 3: 0})
    references = [body(), body(), empty, body()]
    write_cases(folders, [body()[::-1], body()[::-1], empty, bad], references)
    write(folders[0], "case_0", body()[::-1], np.eye(4))

    lines = diagnosed(folders).lines

    assert any("(1 refused) as submitted, 1.0000 rep" in line for line in lines)
    assert [line.split(":")[0].strip() for line in lines if "worst is" in line] == [
        "case_3"
    ]


def test_predictions_without_any_organ_are_refused_as_by_evaluate(folders):
    write_cases(folders, [np.zeros_like(body())] * 2, [body(), body()])

    diagnosis = diagnosed(folders)

    error = error_of(EmptyError, flare.evaluate, *folders)
    assert not diagnosis.is_sound
    assert diagnosis.lines[0] == str(error)


def test_empty_predictions_are_right_where_no_reference_has_an_organ(folders):
    """As in a phase of cases without lesions."""
    write_cases(folders, *[[np.zeros_like(body())] * 2] * 2)

    assert diagnosed(folders).is_sound
    rules = flare.read_challenge("flare21")
    assert not check_submission(folders[0], rules, ground_truth=folders[1]).problems
    assert flare.evaluate(*folders, challenge="flare21").mean("dsc") == 1


def test_without_a_challenge_the_labels_of_the_references_are_organs(folders):
    reference = renumbered(body(), {1: 11, 2: 12, 3: 13, 4: 14})
    write_cases(folders, [reference[::-1]], [reference])

    diagnosis = flare.diagnose(*folders)

    names = [organ.name for organ in diagnosis.challenge.organs]
    assert names == ["label_11", "label_12", "label_13", "label_14"]
    assert said(diagnosis) == MIRRORED


@pytest.mark.parametrize("label", [-1, 255, 1000])
@pytest.mark.parametrize("is_whole", [False, True], ids=["a voxel", "all"])
def test_without_a_challenge_labels_of_no_reference_are_told(
    folders, tmp_path, capfd, label, is_whole
):
    """Only a challenge knows whether they are refused: no label map is called empty."""
    labels = body().astype(np.int16)
    labels[labels > 0 if is_whole else (0, 0, 0)] = label
    write_cases(folders, [labels])

    diagnosis = flare.diagnose(*folders)

    assert not diagnosis.is_sound
    assert diagnosis.lines[0] == (
        f"By these references label {label} is no organ and counts as background, in 1"
        " of 1 files: --challenge says what it refuses."
    )
    assert "F12" not in " ".join(diagnosis.lines)
    words = [folders[0], "--ground-truth", folders[1], "--fix", tmp_path / "fixed"]
    _, output = run_main(capfd, "doctor", *words)
    text = "fixed, with each label from 1 to 255, also of no reference: --challenge"
    assert (text in output.out) != is_whole  # of which there is nothing to write


def test_references_without_any_label_are_refused(folders):
    write(folders[1], "case_1", np.zeros((4, 4, 4), dtype=np.uint8))

    with pytest.raises(GroundTruthError, match="no reference has a label"):
        challenge_of_labels(folders[1])


def test_what_cannot_be_read_is_told_with_its_own_advice(folders):
    write_cases(folders, [body().astype(np.float32) * 0.5, body(1)])
    (folders[0] / "case_1.nii.gz").rename(folders[0] / "case_1.mgz")

    diagnosis = diagnosed(folders)

    assert not diagnosis.is_sound
    assert diagnosis.lines[0].startswith("case_1.mgz: its format is not accepted.")
    assert diagnosis.lines[1].startswith("case_0: refused, and --fix cannot mend it.")
    assert "[F10]" in diagnosis.lines[1]


@pytest.mark.parametrize("labels", [body(), body()[::-1]], ids=["right", "mirrored"])
def test_files_with_wrong_names_are_looked_at_as_what_they_are_meant_to_be(
    folders, tmp_path, capfd, labels
):
    write_cases(folders, [labels, body()], [body(), body()])
    (folders[0] / "case_0.nii.gz").rename(folders[0] / "case_0_0000.nii.gz")

    words = ["--ground-truth", folders[1], "--challenge", "flare21"]
    _, output = run_main(
        capfd, "doctor", folders[0], *words, "--fix", tmp_path / "fixed"
    )

    cause = "the file is not called as its case"
    assert output.out.startswith(f"1 of 2 cases: {cause}")
    assert "Mend it: save it as CASE.nii.gz" in output.out
    row = next(line for line in output.out.splitlines() if line.startswith("case_0 "))
    assert row.split()[1:3] == ["refused", "1.0000"]
    assert f"{cause} (case_0_0000.nii.gz)" in row
    status, output = run_main(capfd, "check", tmp_path / "fixed", *words)
    assert (status, output.out.splitlines()[-1][:16]) == (0, "Nothing is wrong")


def test_jobs_of_a_platform_are_refused_as_their_cases_are_secret(folders):
    write(folders[1], "case_1", body())
    (folders[0] / "predictions.json").write_text("[]")

    with pytest.raises(InputError, match="whose cases are secret"):
        diagnosed(folders)


# --- The command ------------------------------------------------------------------


@pytest.fixture
def mirrored(folders):
    write_cases(folders, [body(number)[::-1] for number in range(3)])
    return folders


def run_main(capfd, *words):
    status = main([*map(str, words), "--workers", "1"])
    return status, capfd.readouterr()


def test_the_command_says_cause_reason_and_remedy(mirrored, tmp_path, capfd):
    words = [mirrored[0], "--ground-truth", mirrored[1], "--challenge", "flare21"]
    status, output = run_main(capfd, "doctor", *words, "--fix", tmp_path / "fixed")

    assert (status, output.err) == (1, "")
    lines = output.out.splitlines()
    assert lines[0] == f"3 of 3 cases: {MIRRORED} (case_0, case_1, case_2)"
    assert lines[1].strip().endswith("1.0000 repaired")
    assert "Usually: an axis was reversed" in output.out
    assert "Mend it: labels = numpy.flip(labels, (0,));" in output.out

    words[0] = tmp_path / "fixed"
    status, output = run_main(capfd, "doctor", *words)
    assert (status, output.err) == (0, "")
    assert output.out.startswith("3 of 3 cases: nothing to mend (mean DSC 1.0000)")

    before = {file: file.read_bytes() for file in words[0].iterdir()}
    status, output = run_main(capfd, "doctor", *words, "--fix", words[0])
    assert status == 1
    assert "it is there already. Name a new folder with --fix." in output.err
    assert {file: file.read_bytes() for file in words[0].iterdir()} == before


def test_repaired_copies_go_nowhere_near_the_predictions(mirrored, tmp_path, capfd):
    words = [mirrored[0], "--ground-truth", mirrored[1], "--fix"]
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    problems = {
        tmp_path / "link": "it is there already",
        mirrored[0] / "fixed": "it would lie among the predictions",
        mirrored[1] / "fixed": "it would lie among the references",
    }

    for folder, problem in problems.items():
        status, output = run_main(capfd, "doctor", *words, folder)
        # Nothing was diagnosed before.
        assert (status, output.out) == (1, "")
        assert problem in output.err
        assert not folder.exists()


REFUSED = {
    "F07": (body()[1:], AFFINE),
    "F08": (body(), np.eye(4)),
    "F10": (body() * 0.5, AFFINE),
    "F11": (renumbered(body(), {1: 99}), AFFINE),
}


@pytest.mark.parametrize("code", REFUSED)
def test_check_leads_from_what_the_doctor_knows_to_the_doctor(folders, capfd, code):
    write(folders[0], "case_1", *REFUSED[code])
    write(folders[1], "case_1", body())

    words = ["check", folders[0], "--ground-truth", folders[1]]
    _, output = run_main(capfd, *words, "--challenge", "flare21")

    assert f"[{code}]" in output.out
    assert output.out.splitlines()[-1].startswith("flare doctor PREDICTIONS --ground-")


HINT = f"3 of 3 cases that were looked at: {MIRRORED}"


def test_check_and_evaluate_end_with_the_cause_of_most_cases(
    mirrored, tmp_path, capfd, monkeypatch
):
    monkeypatch.delenv("FLARE_INPUT", raising=False)
    words = ["--ground-truth", mirrored[1]]

    status, output = run_main(capfd, "check", mirrored[0], *words)
    assert status == 0
    assert f"Nothing is refused, but {HINT}" in output.out

    words += ["--input", mirrored[0], "--output", tmp_path / "out"]
    status, output = run_main(capfd, "evaluate", *words)
    assert (status, output.err) == (0, "")
    assert HINT in output.out.splitlines()[-1]


def test_the_container_says_no_more_than_before(mirrored, tmp_path):
    """As in the image, where FLARE_INPUT is set."""
    shutil.copytree(mirrored[0], tmp_path / "input")
    env = {"FLARE_INPUT": str(tmp_path / "input")}
    run = run_evaluate(tmp_path / "input", mirrored[1], tmp_path / "out", env=env)

    assert (run.returncode, run.stderr) == (0, b"")
    assert b"mirror" not in run.stdout
    assert "mirror" not in str(read_metrics(tmp_path / "out"))


def write_scaled(folder, labels, slope, intercept):
    """A file whose header scales what is stored in it."""
    image = nib.Nifti1Image(np.ascontiguousarray(labels).astype(np.int16), AFFINE)
    image.header.set_slope_inter(slope, intercept)
    nib.save(image, folder / "case_1.nii.gz")


def scaled_by_nibabel(dtype):
    def write_labels(folder):
        image = nib.Nifti1Image(body().astype(np.float64), AFFINE)
        image.header.set_data_dtype(dtype)
        nib.save(image, folder / "case_1.nii.gz")

    return write_labels


SCALED = "scl_slope and scl_inter of the header change the labels"
ROUNDED = "labels are whole numbers but for what scaling does"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda folder: write_scaled(folder, body(), 1, -1024), SCALED),
        (lambda folder: write_scaled(folder, body(), 0.5, 0), SCALED),
        (lambda folder: write_scaled(folder, body(), 300, 0), SCALED),
        (
            lambda folder: write_scaled(folder, body()[::-1], 1, -1024),
            f"{SCALED}; {MIRRORED}",
        ),
        (scaled_by_nibabel(np.int16), ROUNDED),
        (scaled_by_nibabel(np.uint8), ROUNDED),
    ],
    ids=["CT", "halves", "hundreds", "CT, mirrored", "1.00002", "1.00392"],
)
@pytest.mark.parametrize("challenge", ["flare21", "flare22"])
def test_what_a_header_scales_is_read_as_it_was_meant(
    folders, tmp_path, make, text, challenge
):
    make(folders[0])
    write(folders[1], "case_1", body())

    diagnosis = diagnosed(folders, challenge=challenge)
    diagnosis.write_repaired(tmp_path / "fixed")

    assert said(diagnosis) == text
    (fixed,) = (tmp_path / "fixed").iterdir()
    assert np.array_equal(nib.load(fixed).dataobj, body())


def small_organs(random):
    """Four of 5 to 8 voxels across, some of which touch."""
    labels = np.zeros((24, 24, 24), dtype=np.uint8)
    places = np.moveaxis(np.indices(labels.shape), 0, -1)
    for organ in range(1, 5):
        centre, radii = random.uniform(6, 18, 3), random.uniform(2.5, 4, 3)
        labels[(((places - centre) / radii) ** 2).sum(axis=-1) <= 1] = organ
    return labels


@pytest.mark.newest
def test_an_honest_folder_that_has_grown_is_not_shifted(folders):
    """Each organ grows over those of lower numbers: a shift by a voxel raises DSC."""
    random = np.random.default_rng(4)
    for number in range(5):
        reference = small_organs(random)
        grown = ndimage.grey_dilation(reference, (3, 3, 3))
        for folder, labels in zip(folders, (grown, reference), strict=True):
            write(folder, f"case_{number}", labels, np.eye(4))

    assert diagnosed(folders).is_sound


def test_no_advice_empties_a_label_map(folders):
    write_cases(folders, [(body() > 0) * np.int16(1000) - 990])  # 10, and -990 around

    (finding,) = diagnosed(folders).findings

    assert finding.after is None or not finding.after.is_empty


def test_copies_that_would_be_refused_are_left_out_and_named(folders, tmp_path, capfd):
    write_cases(folders, [body() * np.float32(0.4), body(1)[::-1], body(2)])
    words = [folders[0], "--ground-truth", folders[1], "--challenge", "flare21"]
    fixed = tmp_path / "fixed"
    (tmp_path / ".fixed.part").mkdir()  # of a call that was killed
    (tmp_path / ".fixed.part" / "old").touch()

    _, output = run_main(capfd, "doctor", *words, "--fix", fixed)

    assert sorted(f.name for f in fixed.iterdir()) == ["case_1.nii.gz", "case_2.nii.gz"]
    assert output.out.endswith("; without case_0, which would be refused\n")
    assert not (tmp_path / ".fixed.part").exists()


def test_what_is_copied_is_read_again(folders, tmp_path):
    write_cases(folders, [body(), body(1)[::-1]])
    diagnosis = diagnosed(folders)

    write(folders[0], "case_0", body() * 0.5)

    with pytest.raises(FractionError):
        diagnosis.write_repaired(tmp_path / "fixed")
    assert not [*tmp_path.glob("*fixed*")]


def test_half_a_folder_never_has_its_name(folders, tmp_path, monkeypatch):
    write_cases(folders, [body(number)[::-1] for number in range(2)])
    diagnosis = diagnosed(folders)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nib, "save", full)
    with pytest.raises(OutputError):
        diagnosis.write_repaired(tmp_path / "fixed")

    assert not [*tmp_path.glob("*fixed*")]


def test_without_labels_it_says_what_it_needs(folders, capfd):
    status, output = run_main(capfd, "doctor", folders[0])

    assert status == 1
    assert "shows beside its reference alone. Give a folder of labels" in output.err
