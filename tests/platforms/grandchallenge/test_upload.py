"""Zip files, odd ones above all, as the platform's own program unpacks them.

Every outcome in ZIPS is what sagemaker-shim 0.7.0 (b20f0a7, extract.safe_extract and
the errors that InferenceIO.download catches) made of the same bytes on Python 3.12.
"""

import json
import random
import struct
import zipfile
from pathlib import Path

import pytest

from flare.evaluation.errors import UploadError
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
    "a link": (with_a_link, ["a", "link.nii.gz"]),
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


# --- Many more --------------------------------------------------------------------

WORDS = ("a", "b", "s", "s", "..", ".", "", "inputs.json", ".DS_Store", "__MACOSX")


def drawn_names(random):
    """Up to five names of up to four words, some rooted."""
    for _ in range(random.randint(1, 5)):
        words = random.choices(WORDS, k=random.randint(1, 4))
        yield random.choice(["", "", "", "/"]) + "/".join(words)


class Refused(Exception):  # noqa: N818  an outcome
    """What a participant would read."""


def expected_files(names):
    """What each file holds: the number of its entry; by a file system in a dictionary.

    Written from the rules: names of folders end with a slash; junk is dropped; what
    all names begin with is cut off, as so many characters; a path is put in order,
    word by word, and may not lead up; of two entries of one name the later one is read.
    """
    last = {name: number for number, name in enumerate(names)}
    kept = [n for n in names if not n.endswith("/")]
    kept = [n for n in kept if "__MACOSX" not in n and ".DS_Store" not in n]
    disk = {(): None}  # a folder is None
    for name in kept:
        place = name[cut_of(kept) :]
        path = ordered(place)
        if path is None:
            raise Refused(INVALID)
        for depth in range(1, len(path)):
            if disk.setdefault(path[:depth], None) is not None:
                raise Refused(UNEXPECTED)
        if path in disk and disk[path] is None:
            raise Refused(UNEXPECTED)
        disk[path] = last[name]
    if ("inputs.json",) in disk and disk["inputs.json",] is None:
        raise Refused(UNEXPECTED)
    files = {"/".join(path): number for path, number in disk.items()}
    return {
        name: number
        for name, number in files.items()
        if number is not None and name != "inputs.json"
    }


def cut_of(names):
    """How many characters all names lose."""
    split = [[w for w in name.split("/") if w not in ("", ".")] for name in names]
    rooted = {name.startswith("/") for name in names}
    if len(names) == 1:
        shared = split[0][:-1]
        root = "//" if names[0].startswith("//") and names[0][2] != "/" else "/"
    else:
        root = "/"
        if len(rooted) == 2:
            raise Refused(UNEXPECTED)
        shared = []
        for words in zip(*split, strict=False):
            if len(set(words)) > 1:
                break
            shared.append(words[0])
    text = (root if True in rooted else "") + "/".join(shared)
    return len(text) + 1 if text else 0


def ordered(place):
    """The words of a path once it is in order; None if it leads out."""
    if place.startswith("/"):
        return None
    words = []
    for word in place.split("/"):
        if word == ".." and words:
            words.pop()
        elif word == "..":
            return None
        elif word not in ("", "."):
            words.append(word)
    return tuple(words)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_400_odd_zips_are_unpacked_by_the_rules(tmp_path):
    """Names that lead through files, up, nowhere, or to the platform's own file."""
    different, refused = [], 0
    for seed in range(400):
        names = [*drawn_names(random.Random(seed))]
        folder = tmp_path / str(seed)
        folder.mkdir()
        with zipfile.ZipFile(tmp_path / "upload.zip", "w") as archive:
            for number, name in enumerate(names):
                archive.writestr(zipfile.ZipInfo(name), str(number))
        try:
            expected = expected_files(names)
        except Refused as error:
            expected, refused = str(error), refused + 1
        try:
            prepare_input(tmp_path / "upload.zip", folder)
            (folder / "inputs.json").unlink()
            found = {
                path.relative_to(folder).as_posix(): int(path.read_text())
                for path in folder.rglob("*")
                if path.is_file()
            }
        except UploadError as error:
            (found,) = (t for t in (INVALID, UNEXPECTED) if f'"{t}"' in str(error))
        if found != expected:
            different.append((names, found, expected))

    assert different == []
    assert 50 < refused < 350


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["s/t/a", "s/u/b"], ["t/a", "u/b"]),
        (["s/t/a"], ["a"]),
        (["s/a", "s/b", "x"], ["s/a", "s/b", "x"]),
        (["__MACOSX/s/._a", "s/.DS_Store", "s/a", "s/b"], ["a", "b"]),
        ([".DS_Store"], []),
    ],
)
def test_a_folder_is_taken_for_its_zip(tmp_path, names, expected):
    assert unpacked(write_folder(tmp_path / "upload", names), tmp_path) == expected


def test_the_message_is_the_participants_and_has_the_cause(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_zip(Path("upload.zip"), ["a", "a/b", "c"])

    with pytest.raises(UploadError) as caught:
        unpacked(Path("upload.zip"), tmp_path)

    line = 'upload.zip: the participant would read "An unexpected error occurred" (file'
    assert str(caught.value).startswith(f"{line} exists). ")


@pytest.mark.parametrize("kind", ["zip", "folder", "jobs"])
def test_the_platforms_inputs_json_wins(tmp_path, kind):
    """It says in which kind of phase this is."""
    (tmp_path / "input").mkdir()
    if kind == "zip":
        source = write_zip(tmp_path / "upload.zip", ["inputs.json", "a.nii.gz"])
    elif kind == "folder":
        source = write_folder(tmp_path / "upload", ["inputs.json", "a.nii.gz"])
    else:
        source = write_jobs(tmp_path / "jobs", [job("pk", "a.mha")])

    prepare_input(source, tmp_path / "input")

    slug = "predictions-json-file" if kind == "jobs" else "predictions-zip-file"
    content = json.loads((tmp_path / "input" / "inputs.json").read_text())
    assert content == [{"socket": {"slug": slug}}]


def test_a_folder_of_the_platforms_name_cannot_be_unpacked(tmp_path):
    source = write_folder(tmp_path / "upload", ["inputs.json/x", "a"])

    with pytest.raises(UploadError, match=f"{UNEXPECTED}.*inputs.json is the platform"):
        unpacked(source, tmp_path)


def test_a_jobs_folder_is_taken_as_it_is(tmp_path):
    source = write_jobs(tmp_path / "jobs", [job("pk", "a.mha")])
    (tmp_path / "input").mkdir()

    prepare_input(source, tmp_path / "input")

    assert (tmp_path / "input" / "predictions.json").is_file()
    assert (tmp_path / "input" / "pk" / "output" / "images" / "organs").is_dir()


def test_a_link_in_a_zip_becomes_a_small_file(tmp_path):
    with_a_link(tmp_path / "upload.zip")
    (tmp_path / "input").mkdir()

    prepare_input(tmp_path / "upload.zip", tmp_path / "input")

    file = tmp_path / "input" / "link.nii.gz"
    assert not file.is_symlink()
    assert file.read_text() == "/etc/passwd"


def test_a_link_of_the_platforms_name_is_not_followed(tmp_path):
    source = write_jobs(tmp_path / "jobs", [job("pk", "a.mha")])
    (tmp_path / "mine").write_text("precious")
    (source / "inputs.json").unlink()
    (source / "inputs.json").symlink_to(tmp_path / "mine")
    (tmp_path / "input").mkdir()

    prepare_input(source, tmp_path / "input")

    assert (tmp_path / "mine").read_text() == "precious"


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


# --- Room -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("unpack", [prepare_input, unpack_zip])
def test_a_zip_that_tells_more_than_the_disk_has_is_not_begun(tmp_path, unpack):
    """Of 7,000 files, each says that it has 4 GiB: 27 TiB, from a zip of a MB."""
    file, target = tmp_path / "bomb.zip", tmp_path / "target"
    write_zip(file, [str(number) for number in range(7_000)], b"")
    content = bytearray(file.read_bytes())
    place = content.find(DIRECTORY)
    while place >= 0:
        struct.pack_into("<I", content, place + 24, 2**32 - 2)
        place = content.find(DIRECTORY, place + 4)
    file.write_bytes(content)
    target.mkdir()

    with pytest.raises(UploadError) as caught:
        unpack(file, target)

    assert ": it has no room here (28000.0 GiB). " in str(caught.value)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("unpack", [prepare_input, unpack_zip])
def test_a_zip_of_too_many_files_is_not_begun(tmp_path, monkeypatch, unpack):
    monkeypatch.setattr("flare.evaluation.submission.unpack.MOST_ENTRIES", 5)
    file, target = write_zip(tmp_path / "a.zip", "abcdef"), tmp_path / "target"
    target.mkdir()

    with pytest.raises(UploadError, match="it has 6 entries, at most 5"):
        unpack(file, target)

    assert list(target.iterdir()) == []
