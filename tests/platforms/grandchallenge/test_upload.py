"""Zip files, odd ones above all, as the platform's own program unpacks them.

Every outcome in ZIPS is what sagemaker-shim 0.7.0 (b20f0a7, extract.safe_extract and
the errors that InferenceIO.download catches) made of the same bytes on Python 3.12.
"""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from flare.evaluation.errors import UploadError
from flare.evaluation.submission.jobs import read_sockets
from flare.evaluation.submission.unpack import unpack_zip
from flare.platforms.grandchallenge.upload import prepare_input
from tests.builders.jobs import job, write_jobs

INVALID = "Zip file contains invalid paths"
METHOD = "Zip file contains an unsupported compression method"
NOT_EXTRACTED = "Input zip file could not be extracted"
UNEXPECTED = "An unexpected error occurred"

CONTENT = b"some content " * 20


def write_zip(file, names, content=CONTENT, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in names:
            archive.writestr(name, content)
    return file


def write_folder(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(CONTENT)
    return folder


# --- The table --------------------------------------------------------------------


def of(*names, method=zipfile.ZIP_DEFLATED):
    """A zip of these names."""
    return lambda file: write_zip(file, names, method=method)


def of_odd(*names):
    """The same, of names that `writestr` makes no entry of in Python 3.11."""

    def make(file):
        with zipfile.ZipFile(file, "w") as archive:
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), CONTENT)

    return make


def changed(change, *names, method=zipfile.ZIP_DEFLATED):
    """A zip of a, b or these names, of whose bytes some are changed."""

    def make(file):
        write_zip(file, names or ("a", "b"), method=method)
        content = bytearray(file.read_bytes())
        file.write_bytes(bytes(change(content)))

    return make


LOCAL, DIRECTORY, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
"""What the three kinds of headers begin with."""


def put(content, header, offset, *values):
    """Numbers of two bytes into the first header of a kind."""
    where = content.index(header) + offset
    struct.pack_into(f"<{len(values)}H", content, where, *values)
    return content


def with_field(header, offset, *values):
    return changed(lambda content: put(content, header, offset, *values))


def with_flags_and_method(flags, method):
    """Both headers of the first file say so."""

    def change(content):
        put(content, DIRECTORY, 8, flags, method)
        return put(content, LOCAL, 6, flags, method)

    return changed(change)


def replaced(old, new, *names, method=zipfile.ZIP_DEFLATED, times=-1):
    return changed(lambda c: c.replace(old, new, times), *names, method=method)


def without_second_header(content):
    where = content.index(LOCAL, 4)
    content[where : where + 4] = b"none"
    return content


def damaged_data(content):
    content[31:41] = b"\xff" * 10
    return content


def grown(end):
    """The data of the first file, which is stored, go on to an end."""

    def change(content):
        (name_length,) = struct.unpack_from("<H", content, 26)
        data = content[30 + name_length : end(content)]
        sizes = zlib.crc32(data), len(data), len(data)
        struct.pack_into("<3I", content, content.index(DIRECTORY) + 16, *sizes)
        return content

    return change


into_the_next = grown(lambda content: content.index(DIRECTORY))
into_the_directory = grown(lambda content: content.index(DIRECTORY) + 1)


def with_a_link(file):
    entry = zipfile.ZipInfo("s/link.nii.gz")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
        archive.writestr("s/a", CONTENT)


def with_folders(file):
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("s/", "s/t/", "s/empty/"):
            archive.mkdir(name)
        archive.writestr("s/t/a", CONTENT)
        archive.writestr("s/t/b", CONTENT)


def nested(file):
    inner = write_zip(file.with_name("inner.zip"), ["a"])
    write_zip(file, ["s/inner.zip"], inner.read_bytes())


def twice(first, *others):
    """A zip whose first name is there twice, of which zipfile warns."""

    def make(file):
        with pytest.warns(UserWarning, match="Duplicate name"):
            write_zip(file, [first, first, *others])

    return make


LONG = "n" * 300

ZIPS = {
    # Which folders are cut off.
    "flat": (of("a", "b"), ["a", "b"]),
    "one folder": (of("s/a", "s/b"), ["a", "b"]),
    "two folders": (of("s/t/a", "s/t/b"), ["a", "b"]),
    "not all shared": (of("s/t/a", "s/u/b"), ["t/a", "u/b"]),
    "a stray file": (of("s/a", "s/b", "x"), ["s/a", "s/b", "x"]),
    "names that begin alike": (of("st/a", "s/b"), ["s/b", "st/a"]),
    "a single file": (of("s/t/a"), ["a"]),
    "a single hidden folder": (of(".s/a"), ["a"]),
    "entries of folders": (with_folders, ["a", "b"]),
    "a dot before": (of("./s/a", "./s/b"), ["s/a", "s/b"]),
    "a dot within": (of("s/./a", "s/./b"), ["a", "b"]),
    # Junk.
    "junk": (
        of("__MACOSX/s/._a", "s/.DS_Store", "s/a", "s/b", "desktop.ini"),
        ["a", "b"],
    ),
    "junk within names": (
        of("s/old__MACOSX/x", "s/a.DS_Store", "s/desktop_ini", "s/a", "s/b"),
        ["a", "b"],
    ),
    "only junk": (of("__MACOSX/._a", ".DS_Store"), []),
    "other junk": (of("s/._a", "s/Thumbs.db"), ["._a", "Thumbs.db"]),
    # Names.
    "rooted, nothing shared": (of("/a", "/b"), UNEXPECTED),
    "rooted, one letter": (of("/x", "/yy"), UNEXPECTED),
    "rooted, longer": (of("/aa", "/bb"), ["a", "b"]),
    "rooted, in folders": (of("/ss/a", "/tt/b"), ["s/a", "t/b"]),
    "rooted, one folder": (of("/s/a", "/s/b"), ["a", "b"]),
    "rooted, alone": (of("/a"), UNEXPECTED),
    "rooted, alone in a folder": (of("/s/a"), ["a"]),
    "rooted and not": (of("/a", "b"), UNEXPECTED),
    "two slashes": (of("s//a", "s//b"), INVALID),
    "two slashes, alone": (of("s//a"), INVALID),
    "two slashes before": (of("//a", "//b"), ["a", "b"]),
    "up": (of("../a", "b"), INVALID),
    "up, shared": (of("../a", "../b"), ["a", "b"]),
    "up, alone": (of("../a"), ["a"]),
    "up from a folder": (of("s/../../a", "b"), INVALID),
    "up and down": (of("s/../a", "t/b"), ["a", "t/b"]),
    "just up": (of("s/..", "t/b"), UNEXPECTED),
    "through a file": (of("a", "a/../b", "c"), ["a", "b", "c"]),
    "through the platform's file": (
        of("inputs.json", "inputs.json/../x", "c"),
        ["c", "x"],
    ),
    "through a folder that is not there": (of("a/../b", "c"), ["b", "c"]),
    "backslashes": (of("s\\a", "s\\b"), ["s\\a", "s\\b"]),
    "a drive": (of("C:\\a", "C:\\b"), ["C:\\a", "C:\\b"]),
    "a name too long": (of(LONG, "a"), UNEXPECTED),
    "a file and a folder": (of("a", "a/b", "c"), UNEXPECTED),
    "a folder and a file": (of("a/b", "a", "c"), UNEXPECTED),
    "one name twice": (twice("a"), UNEXPECTED),
    "one name of two twice": (twice("s/a", "s/b"), ["a", "b"]),
    "a line break": (of("s/a\nb", "s/c"), ["a\nb", "c"]),
    "bad UTF-8": (replaced("ää".encode(), b"\xff\xff\xff\xff", "ää", "b"), UNEXPECTED),
    "another code page": (replaced(b"aaaa", b"a\x84\x84a", "aaaa", "b"), ["aääa", "b"]),
    "an empty name": (of_odd("", "../a"), UNEXPECTED),
    "an empty name behind one that leads up": (of_odd("../a", ""), INVALID),
    "a null byte": (replaced(b"a0b", b"a\x00b", "a0b", "c"), ["a", "c"]),
    "names that differ": (
        replaced(b"aaaa", b"bbbb", "aaaa", "c", times=1),
        NOT_EXTRACTED,
    ),
    "a file inputs.json": (of("inputs.json", "a"), ["a"]),
    "a folder inputs.json": (of("inputs.json/x", "a"), UNEXPECTED),
    # Contents.
    "no file": (of(), []),
    "a zip": (nested, ["inner.zip"]),
    "stored": (of("a", method=zipfile.ZIP_STORED), ["a"]),
    "bzip2": (of("a", method=zipfile.ZIP_BZIP2), ["a"]),
    "LZMA": (of("a", method=zipfile.ZIP_LZMA), ["a"]),
    "Deflate64": (with_flags_and_method(0, 9), METHOD),
    "Zstandard": (with_flags_and_method(0, 93), METHOD),
    "shrunk": (with_flags_and_method(0, 1), METHOD),
    "a method that is none": (with_flags_and_method(0, 200), METHOD),
    "a password": (with_flags_and_method(1, 8), UNEXPECTED),
    "a password and Zstandard": (with_flags_and_method(1, 93), UNEXPECTED),
    "patched data": (with_flags_and_method(0x20, 8), UNEXPECTED),
    "strong encryption": (with_flags_and_method(0x40, 8), UNEXPECTED),
    "a version to come": (with_field(DIRECTORY, 6, 99), UNEXPECTED),
    "overlapping": (
        changed(into_the_next, method=zipfile.ZIP_STORED),
        NOT_EXTRACTED,
    ),
    "overlapping, alone": (
        changed(into_the_directory, "a", method=zipfile.ZIP_STORED),
        NOT_EXTRACTED,
    ),
    "overlapping, junk": (
        changed(into_the_next, "desktop.ini", "b", method=zipfile.ZIP_STORED),
        ["b"],
    ),
    "bad deflate data": (changed(damaged_data), UNEXPECTED),
    "a bad checksum": (
        replaced(b"some content", b"none content", method=zipfile.ZIP_STORED),
        NOT_EXTRACTED,
    ),
    "a bad directory": (replaced(b"PK\x01\x02", b"PK\x01\x03"), NOT_EXTRACTED),
    "a bad local header": (changed(without_second_header), NOT_EXTRACTED),
    "no end": (changed(lambda c: c[: c.index(END)]), NOT_EXTRACTED),
    "cut off": (changed(lambda c: c[: len(c) // 2]), NOT_EXTRACTED),
    "split, its first part": (
        changed(lambda c: b"PK\x07\x08" + c[: len(c) // 2]),
        NOT_EXTRACTED,
    ),
    "of several disks": (with_field(END, 4, 1, 1), ["a", "b"]),
    "split into one": (changed(lambda c: b"PK00" + c), ["a", "b"]),
}


def unpacked(source, tmp_path):
    """What lies in /input afterwards, but for the platform's own file."""
    folder = tmp_path / "input"
    folder.mkdir()
    prepare_input(source, folder)
    (folder / "inputs.json").unlink()
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in files)


@pytest.mark.parametrize(("make", "expected"), ZIPS.values(), ids=list(ZIPS))
def test_a_zip_is_unpacked_as_the_platform_does(tmp_path, make, expected):
    file = tmp_path / "upload.zip"
    make(file)

    if isinstance(expected, list):
        assert unpacked(file, tmp_path) == expected
    else:
        with pytest.raises(UploadError) as caught:
            unpacked(file, tmp_path)
        line = f'upload.zip: the participant would read "{expected}"'
        assert line in str(caught.value)
    assert not (tmp_path / "a").exists()


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
    table = tmp_path / "results.csv"
    table.write_bytes(begin + b"name,prediction\na,0.5\n")
    (tmp_path / "input").mkdir()

    prepare_input(table, tmp_path / "input")

    copied = tmp_path / "input" / "predictions.csv"
    assert copied.read_bytes() == table.read_bytes()
    assert read_sockets(tmp_path / "input" / "inputs.json") == {"predictions-csv-file"}


@pytest.mark.parametrize("content", [b'[{"a": 1}]', b'\n {"a": 1}\n{"a": 2}\n'])
def test_json_by_itself_fails_as_on_the_platform(tmp_path, content):
    file = tmp_path / "predictions.json"
    file.write_bytes(content)

    with pytest.raises(UploadError, match='"application/json files are not supported'):
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

    with pytest.raises(UploadError) as caught:
        unpacked(Path("upload.zip"), tmp_path)

    line = 'upload.zip: the participant would read "An unexpected error occurred" ('
    assert str(caught.value).startswith(f"{line}{cause}")


def test_a_link_in_a_zip_becomes_a_small_file(tmp_path):
    with_a_link(tmp_path / "upload.zip")

    assert unpacked(tmp_path / "upload.zip", tmp_path) == ["a", "link.nii.gz"]
    file = tmp_path / "input" / "link.nii.gz"
    assert not file.is_symlink()
    assert file.read_text() == "/etc/passwd"


def self_extracting(content):
    return b"MZ" + content


def last_part_of_several(content):
    return content[20:]


@pytest.mark.parametrize("change", [self_extracting, last_part_of_several])
def test_a_file_that_does_not_begin_as_a_zip_is_refused(tmp_path, change):
    """The platform looks at its first bytes, and zipfile at its last."""
    file = write_zip(tmp_path / "upload.zip", ["a", "b"])
    file.write_bytes(change(file.read_bytes()))
    assert zipfile.is_zipfile(file)

    with pytest.raises(UploadError, match="the platform takes a zip file"):
        unpacked(file, tmp_path)


@pytest.mark.parametrize("change", [into_the_next, into_the_directory])
def test_a_zip_whose_files_overlap_is_refused_before_it_is_unpacked(tmp_path, change):
    """As Python refuses it since 3.11.8; bombs are made so."""
    changed(change, method=zipfile.ZIP_STORED)(tmp_path / "a.zip")
    (tmp_path / "target").mkdir()

    with pytest.raises(UploadError, match=r"a\.zip: .*\(a overlaps what follows\)"):
        unpack_zip(tmp_path / "a.zip", tmp_path / "target")

    assert list((tmp_path / "target").iterdir()) == []


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
