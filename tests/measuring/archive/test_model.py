"""Models beside images are unpacked as they are, or refused: a stranger wrote them."""

import bz2
import gzip
import hashlib
import os
import stat
import tarfile

import pytest

from flare.common.errors import InputError, OutputError
from flare.measuring.archive import model, strict
from flare.measuring.archive.model import read_model, unpack_model
from flare.measuring.archive.reading import read_archive
from flare.measuring.archive.strict import ModelError
from tests.builders import error_of, write_file
from tests.builders.archives import FILES, make_socket, save
from tests.builders.models import WEIGHTS, entry, model_bytes, write_model

LINK, HARD, FOLDER = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def link(name, target):
    return entry(name, type=LINK, linkname=target)


def unpacked(folder, *more, files=WEIGHTS):
    unpack_model(read_model(write_model(folder, files, *more)), folder / "model")
    return folder / "model"


def problem_of(file):
    """Why a model is refused; nothing is written for that."""
    error = error_of(ModelError, read_model, file)
    assert [*file.parent.iterdir()] == [file]
    return error.problem


# --- What is unpacked ---------------------------------------------------------------


def test_a_model_is_unpacked_for_whoever_the_image_is_run_as(tmp_path):
    """Not as it was written: owners, rights and the umask do not count."""
    before = os.umask(0o077)
    try:
        folder = unpacked(
            tmp_path,
            entry("run/tool", b"#!/bin/sh\n", mode=0o700, uid=4711),
            entry("secret", b"x", mode=0o4000),
            entry("empty", type=FOLDER, mode=0),
        )
    finally:
        os.umask(before)

    found = {
        str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
    }
    assert found == {
        "weights": "0o755",
        "weights/fold_0.pt": "0o644",
        "plans.json": "0o644",
        "run": "0o755",
        "run/tool": "0o755",
        "secret": "0o644",
        "empty": "0o755",
    }
    assert (folder / "weights" / "fold_0.pt").read_bytes() == b"\x00\x01" * 2000
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_what_is_known_of_a_model(tmp_path):
    """Three headers, 8 and 1 blocks, 2 of the end: filled up to 20 blocks of 512.

    It need not be compressed.
    """
    file = write_file(tmp_path / "team_a.model.tar.gz", model_bytes(pack=bytes))

    found = read_model(file)

    assert found.path == file
    assert found.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert found.unpacked_bytes == 10240
    unpack_model(found, tmp_path / "model")
    assert (tmp_path / "model" / "plans.json").read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a/latest.pt", "../weights/fold_0.pt"),
        ("latest.pt", "weights/fold_0.pt"),
        ("a/b/latest.pt", "../.././weights//fold_0.pt"),
        ("weights/latest.pt", "fold_0.pt"),
    ],
)
def test_links_within_a_model_are_kept(tmp_path, name, target):
    """Such as those of a cache of Hugging Face."""
    folder = unpacked(tmp_path, link(name, target))

    assert (folder / name).is_symlink()
    assert (folder / name).read_bytes() == WEIGHTS["weights/fold_0.pt"]


def test_a_link_to_a_link_stays_within(tmp_path):
    """Up leads to the top, and down/x through it to a file."""
    folder = unpacked(tmp_path, link("d/up", ".."), link("x", "d/up/plans.json"))

    assert (folder / "x").resolve() == (folder / "plans.json").resolve()


def test_a_folder_may_be_named_twice(tmp_path):
    folder = unpacked(
        tmp_path, entry("weights", type=FOLDER), entry("weights/", type=FOLDER)
    )

    assert (folder / "weights" / "fold_0.pt").exists()


# --- What is refused ----------------------------------------------------------------


def with_null():
    header, content = entry("x", b"")
    header.pax_headers = {"path": "a\0b"}
    return header, content


OUTSIDE, OUT = "which lies outside of it", "a link that may lead out of it"
DEVICE = "which is neither a file nor a folder"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([entry("/etc/x")], f"/etc/x, {OUTSIDE}"),
        ([entry("../x")], f"../x, {OUTSIDE}"),
        ([entry("a/../../x")], f"a/../../x, {OUTSIDE}"),
        ([entry("a/../x")], f"a/../x, {OUTSIDE}"),
        ([link("a", "/etc")], f"a, {OUT}"),
        ([link("a", "..")], f"a, {OUT}"),
        ([link("d/a", "../..")], f"d/a, {OUT}"),
        ([link("a", "b/..")], f"a, {OUT}"),
        ([link("d/e/up", "../.."), link("out", "d/e/up/..")], f"out, {OUT}"),
        ([link("a", "."), link("a", "..")], f"a, {OUT}"),
        ([link("a", "weights"), entry("a/x")], "a/x in a, which is a link"),
        ([entry("plans.json/x")], "plans.json/x in plans.json, which is a file"),
        ([link("a", "b"), entry("a")], "a twice"),
        ([entry("plans.json")], "plans.json twice"),
        ([entry("./plans.json")], "plans.json twice"),
        ([entry("weights")], "weights twice"),
        ([entry("plans.json", type=FOLDER)], "plans.json twice"),
        ([entry("a", type=HARD, linkname="plans.json")], "a, a hard link"),
        ([entry("a", type=HARD, linkname="/etc/passwd")], "a, a hard link"),
        ([entry("a", type=tarfile.CHRTYPE, devmajor=1, devminor=3)], f"a, {DEVICE}"),
        ([entry("a", type=tarfile.BLKTYPE)], f"a, {DEVICE}"),
        ([entry("a", type=tarfile.FIFOTYPE)], f"a, {DEVICE}"),
        ([entry("a", type=b"Z")], f"a, {DEVICE}"),
        # 255 bytes for a name, not characters, and 2048 for a path.
        ([entry("x" * 256)], "xxx"),
        ([entry("ü" * 128)], "üüü"),
        ([entry("/".join(["y" * 200] * 11))], "yyy"),
        ([with_null()], "a\\x00b, which is no name of a file"),
    ],
    ids=lambda value: "" if isinstance(value, list) else value,
)
def test_a_model_that_means_harm_is_refused(tmp_path, more, problem):
    found = problem_of(write_model(tmp_path, WEIGHTS, *more))

    if len(problem) > 3:
        assert found == f"it holds {problem}"
    else:
        assert found.startswith(f"it holds {problem}")
        assert found.endswith("a name that is too long")


def test_the_longest_names_that_are_unpacked(tmp_path):
    """Each of eight has 255 bytes: with seven slashes, the path has 2047."""
    name = "/".join(["ü" * 127 + "x"] * 7 + ["y" * 255])

    folder = unpacked(tmp_path, entry(name, b"deep"))

    assert len(os.fsencode(name)) == 2047
    assert (folder / name).read_bytes() == b"deep"


def test_a_bomb_of_bytes_is_not_gone_through(tmp_path, monkeypatch):
    """A file of 30 GiB by its header alone; and zeros that are really there."""
    monkeypatch.setattr(model, "MODEL_BYTES", 2**30)
    header, _ = entry("zeros")
    header.size = 30 * 2**30
    file = tmp_path / "team_a.model.tar.gz"
    file.write_bytes(gzip.compress(header.tobuf() + bytes(2**20)))

    assert problem_of(file) == "it holds more than 1 GiB, or more than 100000 files"

    monkeypatch.setattr(model, "MODEL_BYTES", 2**20)
    write_model(tmp_path, {"zeros": bytes(2**20)})
    assert problem_of(file) == "it holds more than 0 GiB, or more than 100000 files"


@pytest.mark.parametrize(
    "names",
    [
        [f"f{n}" for n in range(21)],
        ["/".join("abcdefghijklmnopqrstu") + "/f"],
        [f"{n}/f" for n in range(11)],
    ],
    ids=["files", "one below many folders", "both"],
)
def test_a_bomb_of_entries_is_not_gone_through(tmp_path, monkeypatch, names):
    """Folders that only the names of files tell of count, too."""
    monkeypatch.setattr(model, "MODEL_ENTRIES", 20)

    file = write_model(tmp_path, dict.fromkeys(names, b""))

    assert problem_of(file) == "it holds more than 64 GiB, or more than 20 files"


def spoiled_checksum():
    """A gzip file whose last byte of content has changed since."""
    data = bytearray(model_bytes())
    data[-5] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", strict._END),
        (b"PK\x03\x04" + bytes(999), "it is a zip file"),
        (model_bytes()[:-40], strict._END),
        (spoiled_checksum(), strict._END),
        (gzip.compress(model_bytes(pack=bytes)[:3000]), strict._END),
        (model_bytes(pack=bz2.compress), "it is compressed by bzip2, expected gzip or"),
        (model_bytes({}), "it holds no file"),
        (
            model_bytes(pack=lambda tar: gzip.compress(tar * 2)),
            "there are other data behind its end",
        ),
    ],
    ids=["empty", "zip", "cut", "spoiled", "cut tar", "bzip2", "no file", "two"],
)
def test_a_model_that_cannot_be_unpacked_is_refused(tmp_path, content, problem):
    file = write_file(tmp_path / "team_a.model.tar.gz", content)

    assert problem_of(file).startswith(problem)


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"model\.tar\.gz: it cannot be read"):
        read_model(tmp_path / "team_a.model.tar.gz")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, make_socket])
def test_a_model_that_is_no_file(tmp_path, make):
    make(tmp_path / "team_a.model.tar.gz")

    assert problem_of(tmp_path / "team_a.model.tar.gz") == "it is not a file"


@pytest.mark.parametrize(
    "change",
    [
        lambda file: write_model(file.parent, {**WEIGHTS, "plans.json": b"[]"}),
        lambda file: file.write_bytes(b""),
        lambda file: (file.unlink(), os.mkfifo(file)),
    ],
    ids=["another", "empty", "a pipe"],
)
def test_a_model_that_has_changed_since_it_was_read(tmp_path, change):
    file = write_model(tmp_path)
    found = read_model(file)
    change(file)

    with pytest.raises(ModelError, match="it has changed since it was checked"):
        unpack_model(found, tmp_path / "model")


def test_a_model_is_written_over_nothing(tmp_path):
    """Whoever made the folder, and whatever lies in it."""
    found = read_model(write_model(tmp_path))
    (tmp_path / "model").symlink_to(tmp_path)

    with pytest.raises(OutputError, match="the model cannot be unpacked"):
        unpack_model(found, tmp_path / "model")

    assert not (tmp_path / "plans.json").exists()


# --- With its image -----------------------------------------------------------------


def test_an_image_in_which_no_model_can_be_mounted(tmp_path):
    file = save(tmp_path, FILES | {"opt/ml": b"x"})

    archive = read_archive(file, model=write_model(tmp_path))

    assert [p.problem for p in archive.problems] == [
        "/opt/ml/model cannot be a folder: /opt/ml is a file"
    ]
    assert read_archive(file).problems == ()
