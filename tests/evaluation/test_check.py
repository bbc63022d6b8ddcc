"""`flare check` says what the evaluation says, before anything is submitted."""

import errno
import os
import re
import tarfile
import zipfile

import numpy as np
import pytest

import flare
from flare.common.errors import InputError, OutputError
from flare.common.text import safe
from flare.evaluation.check import check_submission
from flare.evaluation.errors import UploadError
from flare.evaluation.submission.unpack import unpack_zip
from tests.builders import (
    case_names,
    error_of,
    nifti_bytes,
    organ_boxes,
    run_flare,
    run_program,
    write_cases,
    write_gzip,
    write_nifti,
)
from tests.builders.errors import told
from tests.builders.fewer import few_fast
from tests.evaluation.refusals import MESSAGES, REFUSALS

FLARE21 = flare.read_challenge("flare21")


@pytest.fixture
def images(tmp_path):
    """Images of the three cases: the grid of their labels, and other voxels.

    They are no CTs in HU, which have air: organs are not looked at.
    """
    for name in case_names(3):
        ct = np.linspace(-400, 1000, organ_boxes().size).reshape(organ_boxes().shape)
        write_nifti(tmp_path / "images" / f"{name}_0000.nii.gz", ct, dtype="<i2")
    return tmp_path / "images"


def run_check(*arguments):
    run = run_program("check", *arguments, program=("-m", "flare"))
    return run.returncode, run.stdout.decode(), run.stderr.decode()


OF_A_FILE = ("truncated", "bit-flipped", "non-integer", "another edition", "duplicate")


@pytest.mark.parametrize("name", few_fast(REFUSALS, fast=range(0, len(REFUSALS), 4)))
def test_with_the_cts_alone_the_words_are_the_same(predictions, images, name):
    """But where an example is named: any of the cases serves."""
    REFUSALS[name](predictions)

    report = check_submission(predictions, FLARE21, images=images, workers=1)

    assert " ".join(report.lines) == MESSAGES[name]
    if name in OF_A_FILE:  # it tells so itself
        report = check_submission(predictions, FLARE21, workers=1)
        assert " ".join(report.lines) == MESSAGES[name]


def test_a_good_submission_gets_a_summary(predictions, ground_truth):
    labels = organ_boxes()
    labels[labels == 4] = 0
    write_nifti(predictions / "validation_002.nii.gz", labels)

    status, stdout, stderr = run_check(predictions, "--ground-truth", ground_truth)

    assert (status, stderr) == (0, "")
    assert stdout == (
        "Checked 3 label maps by the rules of FLARE 2021. They have:\n"
        "  liver     in 3 of 3\n"
        "  kidney    in 3 of 3\n"
        "  spleen    in 3 of 3\n"
        "  pancreas  in 2 of 3\n"
        "Nothing is wrong with this submission.\n"
    )


def test_a_summary_ends_with_the_labels_that_are_no_organs(predictions):
    """FLARE22 has labels 1 to 13; the second file has 5, 10, 15 and 20."""
    write_nifti(predictions / "validation_002.nii.gz", organ_boxes() * 5)

    report = check_submission(predictions, flare.read_challenge("flare22"))

    assert report.lines == ()
    assert report.summary.splitlines()[-1] == (
        "Labels 15 and 20 are no organs and count as background, in 1 of 3 files."
    )


@pytest.mark.parametrize("end", ["_0000", ""], ids=["a channel", "none"])
def test_a_good_submission_passes_beside_images_of_any_ending(predictions, images, end):
    for file in images.iterdir():
        file.rename(images / file.name.replace("_0000", end))

    report = check_submission(predictions, FLARE21, images=images)

    assert report.lines == ()


@pytest.mark.parametrize("wrong", [0, 2, 3])
def test_where_no_name_fits_the_challenge_may_be_another(predictions, images, wrong):
    """It says what files are called; a single wrong name is a slip."""
    files = sorted(images.iterdir())
    for file in files[:wrong]:
        file.rename(images / file.name.replace("validation_", "other"))

    status, stdout, stderr = run_check(predictions, "--images", images)

    hint = "No name fits: is --challenge flare21 the right one?"
    assert (status, stderr) == (int(wrong > 0), "")
    assert (stdout.splitlines()[-1] == hint) == (wrong == 3)
    assert stdout.count("--challenge") == (wrong == 3)


def test_a_check_of_predictions_alone_says_what_to_add(predictions):
    report = check_submission(predictions, FLARE21)

    assert report.lines == ()
    status, stdout, _ = run_check(predictions)
    assert status == 0
    assert "the files themselves; add --images" in stdout.splitlines()[-1]


def test_a_check_of_answers_alone_says_what_tells_missing_ones(tmp_path):
    """It has no CTs to compare with."""
    (tmp_path / "prediction.csv").write_text("name,prediction\nc1,0.5\n")

    status, stdout, _ = run_check(tmp_path, "--challenge", "flare25-foundation")

    assert status == 0
    assert "add --ground-truth, where references are" in stdout.splitlines()[-1]


def test_cts_in_the_place_of_predictions(images):
    """Their voxels are no labels; and a folder is not compared with itself."""
    report = check_submission(images, FLARE21)

    assert "it looks like a CT instead of a label map" in report.lines[0]
    with pytest.raises(InputError, match="these are the predictions as well"):
        check_submission(images, FLARE21, images=images)


def test_labels_under_the_scaling_of_a_ct(predictions, images):
    file = predictions / "validation_002.nii.gz"
    write_nifti(file, organ_boxes(), dtype="<i2", slope=1, intercept=-1024)

    (line,) = check_submission(predictions, FLARE21, images=images).lines

    assert told(line) == ("F11", "validation_002.nii.gz")
    assert "-1024, -1023, -1022, -1021 and -1020: scl_inter -1024 of its header" in line


@pytest.mark.parametrize("option", ["predictions", "ground_truth", "images"])
@pytest.mark.parametrize("name", ["none", "mine.zip"])
def test_what_is_not_a_folder_is_refused_by_its_option(
    predictions, tmp_path, option, name
):
    (tmp_path / "mine.zip").write_bytes(b"")
    folders = {"predictions": predictions, option: tmp_path / name}

    with pytest.raises(InputError, match=f"{name}: the folder cannot be read") as e:
        check_submission(challenge=FLARE21, **folders)

    assert ("unzip it first" in e.value.problem) == (name == "mine.zip")


UNSIZED = nifti_bytes(organ_boxes(), dtype="<i2", spacing=(2.5, 0.8, 0))


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"none", "it is not a NIfTI"), (UNSIZED, "size of 0")],
    ids=["damaged", "no voxel size"],
)
def test_a_ct_that_cannot_be_is_named_as_it_is(predictions, images, content, problem):
    write_gzip(images / "validation_002_0000.nii.gz", content)

    error = error_of(InputError, check_submission, predictions, FLARE21, images=images)

    assert told(error) == ("H01", safe(images))
    assert "validation_002_0000.nii.gz: " in error.finding
    assert problem in error.finding


@pytest.fixture
def folder(tmp_path):
    return write_cases(tmp_path / "predictions", case_names(2))


def zip_of(path, entries, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def test_a_zip_is_checked_as_its_folder_is(folder, tmp_path):
    files = {f"x/{file.name}": file.read_bytes() for file in folder.iterdir()}
    archive = zip_of(tmp_path / "submission.zip", files)

    run = run_flare("check", archive)

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == run_flare("check", folder).stdout


def locked(file):
    content = bytearray(zip_of(file, {"a.nii.gz": b"x"}).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def packed(file):
    with tarfile.open(file, "w:gz") as archive:
        archive.add(write_cases(file.parent / "maps", case_names(2)), "maps")
    return file.read_bytes()


def doubled(file):
    inner = zip_of(file, {"validation_001.nii.gz": b"x"}).read_bytes()
    return zip_of(file, {"inner.zip": inner}).read_bytes()


def rooted(file):
    names = [f"/{name}.nii.gz" for name in case_names(3)]
    return zip_of(file, dict.fromkeys(names, b"x")).read_bytes()


def linked(file):
    entry = zipfile.ZipInfo("validation_001.nii.gz")
    entry.external_attr = 0o120777 << 16
    return zip_of(file, {entry: b"../out/validation_001.nii.gz"}).read_bytes()


NO_ZIP = "s.zip: it is no zip file, or a damaged one ("

FILES = {
    "a tar of label maps": ("team.tar.gz", packed, "F15", "it has no manifest.json"),
    "called .tar": ("a.tar", packed, "F15", "(label maps belong into a zip)"),
    "an image's name": ("a.tgz", packed, "F15", "not end in .tar.gz. Call it TEAMNAME"),
    "a text": ("notes.txt", lambda _: b"x", "H06", "notes.txt: it is no zip file"),
    "a password": ("s.zip", locked, "H06", "s.zip: it has a password (a.n"),
    "a zip within the zip": ("s.zip", doubled, "F01", "inner.zip: it is an archive"
                             " within the zip, which is not opened"),
    **{f"only called a zip: {content}": ("s.zip", lambda _, c=content: c, "H06", NO_ZIP)
       for content in (b"PK\x03\x04", b"", b"PK\x05\x06")},
    "rooted": ("s.zip", rooted, "F03", "its names begin with /, and the platform cuts"
               " off a letter: zip them from"),
    "a link": ("s.zip", linked, "F06", "validation_001.nii.gz: it is a symbolic link,"
               " of which a zip has the path"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_zip_of_label_maps_is_refused(tmp_path, ground_truth, name):
    """Also what the platform takes, and nobody can score."""
    file, make, code, words = FILES[name]
    (tmp_path / file).write_bytes(make(tmp_path / file))

    cases = ("--ground-truth", ground_truth) if code == "F03" else ()
    run = run_flare("check", tmp_path / file, *cases)

    assert run.returncode == 1
    lines = (run.stdout + run.stderr).splitlines()
    (line,) = [line for line in lines if words in line]
    assert line.endswith(f"[{code}]")


@pytest.mark.parametrize("names", ["a\\b.nii.gz", "b ../a.nii.gz", "/a", "a//b.nii.gz"])
def test_names_that_are_no_places_are_refused(tmp_path, names):
    archive = zip_of(tmp_path / "s.zip", dict.fromkeys(names.split(), b"x"))
    (tmp_path / "target").mkdir()

    error = error_of(UploadError, unpack_zip, archive, tmp_path / "target")

    what = "have backslashes" if "\\" in names else "lead elsewhere"
    assert told(error) == ("H06", "s.zip")
    assert f"its names {what}" in error.problem
    assert list((tmp_path / "target").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, OutputError, "/target: it cannot be written (no space left on"),
        (errno.EIO, UploadError, "s.zip: it cannot be unpacked (input/output error)"),
    ],
)
def test_a_full_disk_is_not_called_a_fault_of_the_zip(
    tmp_path, monkeypatch, number, kind, words
):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("shutil.copyfileobj", fail)
    archive, target = zip_of(tmp_path / "s.zip", {"a": b"x"}), tmp_path / "target"
    target.mkdir()

    with pytest.raises(kind, match=re.escape(words)):
        unpack_zip(archive, target)


def test_no_more_is_written_than_a_zip_says(tmp_path):
    """The directory says 10 bytes of a file that has a million: it is damaged."""
    archive = tmp_path / "s.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.nii.gz", bytes(10**6))
    content = archive.read_bytes()
    size = (10**6).to_bytes(4, "little")
    assert content.count(size) == 2
    archive.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    (tmp_path / "target").mkdir()
    with pytest.raises(UploadError, match="damaged"):
        unpack_zip(archive, tmp_path / "target")
    assert (tmp_path / "target" / "a.nii.gz").stat().st_size <= 10
