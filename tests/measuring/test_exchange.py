"""What an engine hands over of a container's output, and what is taken of it."""

import io
import stat
import tarfile

import pytest

from flare.common.errors import EngineError
from flare.measuring import exchange
from flare.measuring.engines.docker import Docker
from flare.measuring.exchange import (
    DEEPEST,
    MOST_ENTRIES,
    MOST_FILES,
    WrongOutputError,
    files_of,
    take_out,
)
from tests.builders import error_of

MOST_BYTES = 1000


def entry(name, kind=tarfile.REGTYPE, size=0, mode=0o644, link=""):
    found = tarfile.TarInfo(name)
    found.type, found.size, found.mode, found.linkname = kind, size, mode, link
    return found


def tar(*entries):
    """A tar file of entries, whose files hold the letter x."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for found in entries:
            archive.addfile(found, io.BytesIO(b"x" * found.size))
    return content.getvalue()


INFO = """{ echo '{"ServerVersion": "1"}'; exit; }"""
"""What an engine says of itself that is there."""


@pytest.fixture
def take(tmp_path):
    def run(content, status=0, is_alive=True, answer_files=()):
        (tmp_path / "content").write_bytes(content)
        program = tmp_path / "engine"
        program.write_text(
            f"#!/bin/sh\n[ $1 = cp ] || {INFO if is_alive else 'exit 1'}\n"
            f'cat "{tmp_path}/content"\nexit {status}\n'
        )
        program.chmod(0o755)
        folder = tmp_path / "outputs"
        folder.mkdir()
        engine = Docker(str(program))
        return folder, take_out(engine, "holder", folder, MOST_BYTES, answer_files)

    return run


def test_files_are_taken_as_they_are(take):
    folder, others = take(
        tar(
            entry("./", tarfile.DIRTYPE),
            entry("./b.nii.gz", size=3),
            entry("./c.json", size=5),
            entry("./d/", tarfile.DIRTYPE, mode=0),
            entry("./d/a.nii.gz", size=MOST_BYTES),
        )
    )

    assert (files_of(folder), others) == (["b.nii.gz", "c.json", "d/a.nii.gz"], {})
    assert (folder / "b.nii.gz").read_bytes() == b"xxx"
    assert (folder / "c.json").read_bytes() == b"", "only its name counts"
    assert (folder / "d" / "a.nii.gz").stat().st_size == MOST_BYTES


def test_answers_are_taken_with_their_bytes(take):
    folder, _ = take(tar(entry("./a/b.csv", size=5)), answer_files={"b.csv"})

    assert (folder / "a" / "b.csv").read_bytes() == b"xxxxx"


def test_answers_of_any_size_are_not_taken(take, monkeypatch):
    monkeypatch.setattr(exchange, "MOST_ANSWER_BYTES", 4)
    with pytest.raises(WrongOutputError, match=r"^b\.csv: 5 bytes are more than the 4"):
        take(tar(entry("./b.csv", size=5)), answer_files={"b.csv"})


def test_nothing_but_the_bytes_is_taken(take):
    """Neither programs that change the user, nor what may not be read."""
    modes = {"./a": 0o6755, "./b": 0}
    folder, _ = take(tar(*(entry(n, size=1, mode=m) for n, m in modes.items())))

    for name in modes:
        mode = (folder / name).stat().st_mode
        assert not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IXUSR)
        assert mode & stat.S_IRUSR


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.FIFOTYPE, "no regular file"),
        (tarfile.CHRTYPE, "no regular file"),
        (tarfile.BLKTYPE, "no regular file"),
    ],
)
def test_what_is_no_file_is_only_named(take, kind, what):
    folder, others = take(tar(entry("./x.nii.gz", kind, link="/etc/passwd")))

    assert others == {"x.nii.gz": what}
    assert list(folder.iterdir()) == []


REFUSED = {
    "large": ([entry("./a", size=MOST_BYTES + 1)], "a: 1001 bytes are more than any "),
    "deep": ([entry("d/" * DEEPEST + "a", size=1)], ": it lies deeper than 20 folders"),
    "maps": (
        [entry(f"./{n}.nii.gz", size=MOST_BYTES) for n in range(5)],
        "its files take more than 4 label maps of this CT",
    ),
    "holes": (
        [entry(f"./{n}.txt", size=MOST_BYTES) for n in range(5)],
        "its files take more than 4 label maps of this CT",
    ),
    "above": ([entry("../a", size=1)], "../a: it lies deeper than 20 folders"),
    "files": (
        [entry(f"./{n}", size=0) for n in range(MOST_FILES + 1)],
        "there are more than 100 files",
    ),
    "folders": (
        [entry(f"./{n}", tarfile.DIRTYPE) for n in range(1001)],
        "there are more than 1000 files and folders",
    ),
    "twice": ([entry("./a", size=1)] * 2, "the engine cannot read it"),
    "both": ([entry("./a", size=1), entry("./a/b", size=1)], "the engine cannot read"),
}


UNREAD = {
    "endless header": entry("./a", tarfile.GNUTYPE_LONGNAME, size=2**31).tobuf(),
    "nothing": b"",
    "text": b"no tar" * 200,
    "cut": tar(entry("./a", size=9))[:515],
}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        *((tar(*entries), problem) for entries, problem in REFUSED.values()),
        *((content, "the engine cannot read it") for content in UNREAD.values()),
        # What only claims to be large is not waited for.
        (entry("./a", size=2**43).tobuf(), "a: 8796093022208 bytes are more than any"),
    ],
    ids=[*REFUSED, *UNREAD, "claim"],
)
def test_a_wrong_output_is_refused_and_nothing_of_it_stays(
    take, tmp_path, monkeypatch, content, problem
):
    """With a tenth of the entries that are allowed: to write so many takes a while."""
    monkeypatch.setattr(exchange, "MOST_ENTRIES", MOST_ENTRIES // 10)

    assert problem in str(error_of(WrongOutputError, take, content))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["content", "engine", "outputs"]


def test_an_engine_that_fails_at_the_end(take):
    with pytest.raises(WrongOutputError, match="the engine cannot read it"):
        take(tar(entry("./a", size=9)), status=1)


def test_an_engine_that_is_gone_is_no_team_s_fault(take):
    with pytest.raises(EngineError):
        take(b"", status=1, is_alive=False)
