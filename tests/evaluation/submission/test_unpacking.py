"""Zip files of label maps are unpacked to be checked, and nothing else is."""

import io
import tarfile
import zipfile

import pytest

from flare.evaluation.errors import UploadError
from flare.evaluation.submission.unpack import unpack_zip
from tests.builders import case_names, run_flare, write_cases
from tests.builders.errors import told


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
    first, *rest = run.stdout.splitlines()
    assert first == "submission.zip: 2 files, 0 MB unpacked."
    assert rest == run_flare("check", folder).stdout.splitlines()


def test_a_tar_of_label_maps_is_no_image(folder, tmp_path):
    with tarfile.open(tmp_path / "team.tar.gz", "w:gz") as archive:
        archive.add(folder, "maps")

    run = run_flare("check", tmp_path / "team.tar.gz")

    assert run.returncode == 1
    assert ": these are label maps, not an image (maps/validation_00" in run.stderr
    assert "To submit them, zip them; to check them, give the zip or" in run.stderr


def test_a_file_that_is_neither_says_what_to_give(tmp_path):
    (tmp_path / "notes.txt").write_text("x")

    run = run_flare("check", tmp_path / "notes.txt")

    assert run.returncode == 1
    assert told(run.stderr)[0] == "H01"
    assert "it is neither a folder, nor a zip, nor an image" in run.stderr


@pytest.mark.parametrize(
    "name", ["a\\b.nii.gz", "../a.nii.gz", "/a.nii.gz", "a//b.nii.gz"]
)
def test_names_that_are_no_places_are_refused(tmp_path, name):
    archive = zip_of(tmp_path / "s.zip", {name: b"x"})
    (tmp_path / "target").mkdir()

    with pytest.raises(UploadError) as error:
        unpack_zip(archive, tmp_path / "target")

    what = "have backslashes" if "\\" in name else "lead elsewhere"
    assert told(error.value) == ("H06", "s.zip")
    assert f"its names {what}" in error.value.problem
    assert list((tmp_path / "target").iterdir()) == []


def test_a_password_is_refused(tmp_path):
    content = bytearray(zip_of(tmp_path / "s.zip", {"a.nii.gz": b"x"}).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "s.zip").write_bytes(content)

    run = run_flare("check", tmp_path / "s.zip")

    assert (run.returncode, run.stderr) == (1, "")
    assert told(run.stdout) == ("H06", "s.zip")
    assert "it is encrypted (a.nii.gz)" in run.stdout


def test_a_zip_within_the_zip_is_not_opened(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("validation_001.nii.gz", b"x")
    archive = zip_of(tmp_path / "s.zip", {"inner.zip": inner.getvalue()})

    run = run_flare("check", archive)

    assert run.returncode == 1
    assert (
        "inner.zip: it is an archive within the zip, which is not opened" in run.stdout
    )


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"", b"PK\x05\x06"])
def test_what_is_only_called_a_zip_is_refused(tmp_path, content):
    (tmp_path / "s.zip").write_bytes(content)

    run = run_flare("check", tmp_path / "s.zip")

    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.startswith("s.zip: it is no zip file, or a damaged one (")
