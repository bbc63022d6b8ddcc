"""Zip files, odd ones above all, as the platform's own program unpacks them.

Every outcome in `tests/builders/shim.json` is what sagemaker-shim 0.8.3 (safe_extract
and the errors that InferenceIO.download catches) made of the same zips on Python 3.12.
"""

import json
import zipfile
from pathlib import Path

import pytest

from flare.evaluation.errors import UploadError
from flare.evaluation.submission.jobs import read_sockets
from flare.evaluation.submission.unpack import unpack_zip
from flare.platforms.grandchallenge.upload import prepare_input
from tests.builders import error_of, write_file
from tests.builders.jobs import job, write_jobs
from tests.builders.shim import CONTENT, OUTCOMES, ZIPS, with_a_link, write_zip

OUTCOMES_OF_ZIPS = json.loads(OUTCOMES.read_text("utf-8"))["zips"]


def write_folder(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(CONTENT)
    return folder


def unpacked(source, tmp_path):
    """What lies in /input afterwards, but for the platform's own file."""
    folder = tmp_path / "input"
    folder.mkdir()
    prepare_input(source, folder)
    (folder / "inputs.json").unlink()
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in files)


@pytest.mark.parametrize("name", ZIPS)
def test_a_zip_is_unpacked_as_the_platform_does(tmp_path, name):
    file, outcome = tmp_path / "upload.zip", OUTCOMES_OF_ZIPS[name]
    ZIPS[name](file)

    if isinstance(outcome, list):
        assert unpacked(file, tmp_path) == outcome
    else:
        error = error_of(UploadError, unpacked, file, tmp_path)
        line = f'upload.zip: the participant would read "{outcome}"'
        assert line in str(error)
    assert not (tmp_path / "a").exists()


BACKSLASHES = ("backslashes", "a drive", "a drive, alone")
"""The platform takes these zips, and no file in them has the name of a case."""


@pytest.mark.parametrize("name", ZIPS)
def test_check_and_score_take_the_zips_that_the_platform_takes(tmp_path, name):
    """And their files lie where they lie there."""
    file, outcome = tmp_path / "upload.zip", OUTCOMES_OF_ZIPS[name]
    ZIPS[name](file)
    folder = tmp_path / "folder"
    folder.mkdir()

    if isinstance(outcome, list) and name not in BACKSLASHES:
        unpack_zip(file, folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        names = {path.relative_to(folder).as_posix() for path in files}
        assert sorted(names - {"inputs.json"}) == outcome
    else:
        with pytest.raises(UploadError, match=r"upload\.zip: ") as refusal:
            unpack_zip(file, folder)
        # Bombs are made so: as Python since 3.11.8, it is refused before it is begun.
        if name in ("overlapping", "overlapping, alone"):
            assert "(a overlaps what follows)" in str(refusal.value)
            assert list(folder.iterdir()) == []


REASONS = {
    "Deflate64": "compressed by Deflate64, as by Windows Explorer from 2 GB on, which"
    " the platform cannot unpack (a). In their folder, on Windows: tar -a -c -f"
    " ../submission.zip .",
    "backslashes": "its names have backslashes, which are no folders on the platform"
    " (s\\a). In their folder, on Windows: tar -a -c -f ../submission.zip .",
    "PPMd": "compressed by PPMd, which the platform cannot unpack (a). Zip the files"
    " anew, by Deflate.",
    "Zstandard": "compressed by Zstandard, which the platform cannot unpack (a). Zip"
    " the files anew, by Deflate.",
    "a password": "it has a password (a). Zip the files anew, without a password.",
    "a password, AES": "it has a password (a). Zip the files anew, without a password.",
    "up": "its names lead elsewhere: they have .., // or a single / before them (../a)."
    " Zip the files from within their folder, without paths before their names.",
    "a folder inputs.json": "a folder has the name of the platform's file, inputs.json"
    " (inputs.json/x). Rename that folder.",
    "a name too long": "it cannot be unpacked (file name too long). Give the files"
    " shorter names.",
}


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_has_its_own_words(tmp_path, name):
    ZIPS[name](tmp_path / "upload.zip")

    error = error_of(UploadError, unpack_zip, tmp_path / "upload.zip", tmp_path)

    assert str(error) == f"upload.zip: {REASONS[name]} [H06]"


def test_a_zip_that_asks_for_much_memory_is_refused(tmp_path):
    """An LZMA dictionary of 4 GiB, of which nothing has to be there."""
    file = write_zip(tmp_path / "a.zip", ["a"], method=zipfile.ZIP_LZMA)
    content = bytearray(file.read_bytes())
    content[30 + 1 + 5 : 30 + 1 + 9] = b"\xff\xff\xff\xff"
    file.write_bytes(content)

    with pytest.raises(UploadError, match="its LZMA dictionary has 4095 MiB, at most"):
        unpack_zip(file, tmp_path)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["s/t/a", "s/u/b", "s/.DS_Store", "__MACOSX/s/._a"], ["t/a", "u/b"]),
        ([".DS_Store"], []),
    ],
)
def test_a_folder_is_taken_for_its_zip(tmp_path, names, expected):
    assert unpacked(write_folder(tmp_path / "upload", names), tmp_path) == expected


@pytest.mark.parametrize("kind", ["zip", "folder", "jobs", "link"])
def test_the_platforms_inputs_json_wins(tmp_path, kind):
    """It says in which kind of phase this is, and is not written through a link."""
    (tmp_path / "input").mkdir()
    (tmp_path / "mine").write_text("precious")
    if kind == "zip":
        source = write_zip(tmp_path / "upload.zip", ["inputs.json", "a.nii.gz"])
    elif kind == "folder":
        source = write_folder(tmp_path / "upload", ["inputs.json", "a.nii.gz"])
    else:
        source = write_jobs(tmp_path / "jobs", [job("pk", "a.mha")])
    if kind == "link":
        (source / "inputs.json").unlink()
        (source / "inputs.json").symlink_to(tmp_path / "mine")

    prepare_input(source, tmp_path / "input")

    is_job = kind in ("jobs", "link")
    slug = "predictions-json-file" if is_job else "predictions-zip-file"
    content = json.loads((tmp_path / "input" / "inputs.json").read_text())
    assert content == [{"socket": {"slug": slug}}]
    assert (tmp_path / "mine").read_text() == "precious"
    assert (tmp_path / "input" / "predictions.json").is_file() == is_job
    organs = tmp_path / "input" / "pk" / "output" / "images" / "organs"
    assert organs.is_dir() == is_job


def test_a_predictions_json_of_answers_is_a_participants(tmp_path):
    """The platform's lists jobs; a folder with another one is taken for its zip."""
    source = write_folder(tmp_path / "upload", ["mine/predictions.json"])
    answers = source / "mine" / "predictions.json"
    answers.write_text('[{"ImageName": "a.png", "Answer": "B"}]')

    assert unpacked(source, tmp_path) == ["predictions.json"]


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
def test_a_table_by_itself_gets_the_platforms_name(tmp_path, begin):
    table = write_file(tmp_path / "results.csv", begin + b"name,prediction\na,0.5\n")
    (tmp_path / "input").mkdir()

    prepare_input(table, tmp_path / "input")

    copied = tmp_path / "input" / "predictions.csv"
    assert copied.read_bytes() == table.read_bytes()
    assert read_sockets(tmp_path / "input" / "inputs.json") == {"predictions-csv-file"}


LONG_ANSWER = b'[{"a": "' + b"x" * 2048

KINDS_OF_JSON = {
    b'[{"a": 1}]': "application/json",
    b'\n {"a": 1}\n{"a": 2}\n': "application/x-ndjson",
    b'{"a": 1}\n{"a": 2}\n' * 200: "application/x-ndjson",
    b'{"a": 1}' + b" " * 3000: "application/json",
    b'["' + b"a" * 2044 + b'"]': "application/json",
    b'["' + b"a" * 2045 + b'"]': "text/plain",
    LONG_ANSWER + b'"}]': "text/plain",
    b"\xef\xbb\xbf[1, 2]": "text/plain",
    b"[1, 2": "text/plain",
}
"""By libmagic 5.44 of their first 2,048 bytes, at which the platform looks."""


@pytest.mark.parametrize("content", KINDS_OF_JSON, ids=range(len(KINDS_OF_JSON)))
def test_json_by_itself_is_a_text_where_its_beginning_is_not_whole(tmp_path, content):
    file = write_file(tmp_path / "predictions.json", content)
    kind = KINDS_OF_JSON[content]

    if kind == "text/plain":
        assert unpacked(file, tmp_path) == ["predictions.csv"]
    else:
        with pytest.raises(UploadError, match=f'"{kind} files are not supported'):
            unpacked(file, tmp_path)


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        (["a", "a/b", "c"], "file exists"),
        (["inputs.json/x", "a"], "inputs.json is the"),
    ],
)
def test_the_message_is_the_participants_and_has_the_cause(
    tmp_path, monkeypatch, names, cause
):
    monkeypatch.chdir(tmp_path)
    write_zip(Path("upload.zip"), names)

    refusal = error_of(UploadError, unpacked, Path("upload.zip"), tmp_path)

    line = 'upload.zip: the participant would read "An unexpected error occurred" ('
    assert str(refusal).startswith(f"{line}{cause}")


def test_a_link_in_a_zip_becomes_a_small_file(tmp_path):
    with_a_link(tmp_path / "upload.zip")

    assert unpacked(tmp_path / "upload.zip", tmp_path) == ["a", "link.nii.gz"]
    file = tmp_path / "input" / "link.nii.gz"
    assert not file.is_symlink()
    assert file.read_text() == "/etc/passwd"


@pytest.mark.parametrize(
    "change",
    [lambda content: b"MZ" + content, lambda content: content[20:]],
    ids=["self-extracting", "the last part of several"],
)
def test_a_file_that_does_not_begin_as_a_zip_is_refused(tmp_path, change):
    """The platform looks at its first bytes, and zipfile at its last."""
    file = write_zip(tmp_path / "upload.zip", ["a", "b"])
    file.write_bytes(change(file.read_bytes()))
    assert zipfile.is_zipfile(file)

    with pytest.raises(UploadError, match="the platform takes a zip file"):
        unpacked(file, tmp_path)
    with pytest.raises(UploadError, match="it does not begin as a zip"):
        unpack_zip(file, tmp_path)


# --- Room -------------------------------------------------------------------------


@pytest.mark.parametrize("unpack", [prepare_input, unpack_zip])
@pytest.mark.parametrize(
    ("most", "told_bytes", "problem"),
    [
        (5, 1, "it has 6 entries, at most 5"),
        (6, 2**48, r"no room here \(262144\.0 GiB"),
    ],
)
def test_a_zip_that_does_not_fit_is_not_begun(
    tmp_path, monkeypatch, unpack, most, told_bytes, problem
):
    """Of too many files, or whose directory tells more than the disk has."""
    monkeypatch.setattr("flare.evaluation.submission.unpack.MOST_ZIP_ENTRIES", most)
    file, target = write_zip(tmp_path / "a.zip", "abcdef"), tmp_path / "target"
    target.mkdir()
    real = zipfile.ZipFile.infolist

    def infolist(archive):
        entries = real(archive)
        entries[0].file_size = told_bytes
        return entries

    monkeypatch.setattr(zipfile.ZipFile, "infolist", infolist)

    with pytest.raises(UploadError, match=problem):
        unpack(file, target)

    assert list(target.iterdir()) == []
