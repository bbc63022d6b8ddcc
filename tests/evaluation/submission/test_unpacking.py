"""Zip files of label maps are unpacked to be checked, and nothing else is."""

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


NO_ZIP = "s.zip: it is no zip file, or a damaged one ("

FILES = {
    "a tar of label maps": ("team.tar.gz", packed, "H01", ": these are label maps, not"
                            " an image (maps/validation_00"),
    "a text": ("notes.txt", lambda _: b"x", "H01", "it is neither a folder, nor a zip,"
               " nor an image"),
    "a password": ("s.zip", locked, "H06", "s.zip: it is encrypted, or not"),
    "a zip within the zip": ("s.zip", doubled, "F01", "inner.zip: it is an archive"
                             " within the zip, which is not opened"),
    **{f"only called a zip: {content}": ("s.zip", lambda _, c=content: c, "H06", NO_ZIP)
       for content in (b"PK\x03\x04", b"", b"PK\x05\x06")},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_zip_of_label_maps_is_refused(tmp_path, name):
    file, make, code, words = FILES[name]
    (tmp_path / file).write_bytes(make(tmp_path / file))

    run = run_flare("check", tmp_path / file)

    assert run.returncode == 1
    said = run.stdout + run.stderr
    assert words in said
    assert f"[{code}]" in said


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
