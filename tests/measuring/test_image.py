"""How an image is loaded, by an engine whose images are scripted."""

import errno
import json
import tarfile
from subprocess import PIPE, Popen
from types import SimpleNamespace

import pytest

from flare.common.errors import EngineError
from flare.measuring import host
from flare.measuring import image as loading_module
from flare.measuring.archive.reading import read_archive
from flare.measuring.engines.docker import Docker, is_of_content
from flare.measuring.image import LoadError, load_image
from tests.builders import ROOT, error_of, run_command
from tests.builders.archives import FILES, OF_NO_ENGINE, save

ARCHIVE = ROOT / "tests" / "data" / "archives" / "docker-20.archive"

OURS = "ours:latest"

FREE = 2**30
"""Bytes of a disk that have to stay free."""


@pytest.fixture
def archive(tmp_path):
    """A real archive, whose team is called as its tag says."""
    with tarfile.open(ARCHIVE) as content:
        (entry,) = json.load(content.extractfile("manifest.json"))
    (tag,) = entry["RepoTags"]
    file = tmp_path / f"{tag.partition(':')[0]}.tar.gz"
    file.write_bytes(ARCHIVE.read_bytes())
    found = read_archive(file)
    assert found.problems == ()
    return found


class Idle:
    """A disk of which nothing is alarming."""

    def is_alarming(self):
        return False


class Loader(Docker):
    """Has one image once a program has been given what is loaded `after` times."""

    def __init__(
        self, image="", *, words=("sh", "-c", "wc -c > /dev/null"), after=1, tags=()
    ):
        super().__init__()
        self.image, self.words, self.after, self.tags = image, words, after, tags
        self.loads, self.tagged = [], []

    def folder(self):
        return None

    def describe(self):
        return {}

    def begin_load(self):
        self.loads.append(Popen(self.words, stdin=PIPE, stderr=PIPE))
        return self.loads[-1]

    def tags_of(self, *names):
        is_there = len(self.loads) >= self.after and f"sha256:{self.image}" in names
        return {self.image: frozenset(self.tags)} if is_there else {}

    def tag(self, image, tag):
        self.tagged.append((image, tag))


def saying(text):
    return ("sh", "-c", 'cat > /dev/null; printf %s "$1" >&2; exit 1', "", text)


def test_an_image_is_loaded_under_a_tag_of_ours(archive, tmp_path):
    count = tmp_path / "count"
    engine = Loader(archive.image, words=("sh", "-c", f"wc -c > {count}"))

    assert load_image(engine, archive, OURS) == archive.image

    assert engine.tagged == [(archive.image, OURS)]
    assert int(count.read_text()) > archive.unpacked_bytes
    # As a newer engine calls it.
    assert load_image(Loader(archive.manifest), archive, OURS) == archive.manifest


def test_an_image_that_is_removed_before_it_has_a_tag_is_loaded_again(archive):
    """As by the guard of another measurement of the same image that was ended."""
    engine = Loader(archive.image, after=2)

    assert load_image(engine, archive, OURS) == archive.image

    assert len(engine.loads) == 2


def test_an_image_with_the_wrong_id_under_a_right_name(archive, monkeypatch):
    """It has another image, or answers with another than it was asked for."""
    engine, other = Loader("1" * 64), Loader()
    monkeypatch.setattr(other, "tags_of", lambda *_: {"1" * 64: frozenset()})

    for each in (engine, other):
        with pytest.raises(EngineError, match=archive.image[:12]):
            load_image(each, archive, OURS)

    assert engine.tagged == other.tagged == []


@pytest.mark.parametrize(
    ("said", "kind", "loads"),
    [
        ("Error processing tar file(exit status 1): /x: invalid", LoadError, 1),
        ("failed to register layer: lsetxattr security.capability /x", LoadError, 1),
        ("json: cannot unmarshal number into Go struct field X", LoadError, 1),
        # Of neither: the engine has taken an image of ours just before.
        ("no such\nthing", LoadError, 3),
        ("failed to register layer: write /x: no space left on device", EngineError, 3),
        ("error during connect: EOF", EngineError, 3),
        ("", EngineError, 3),
    ],
)
def test_whose_fault_it_is_that_an_image_cannot_be_loaded(archive, said, kind, loads):
    engine = Loader(words=saying(said))

    assert type(error_of(kind, load_image, engine, archive, OURS)) is kind
    assert len(engine.loads) == loads


def test_an_engine_that_ends_while_it_loads_is_no_team_s_fault(archive, monkeypatch):
    """It says nothing of itself any more."""
    engine = Loader(words=saying("EOF"))
    answers = iter(())
    monkeypatch.setattr(engine, "describe", lambda: next(answers))

    with pytest.raises(StopIteration):  # as whatever it raises
        load_image(engine, archive, OURS)

    assert len(engine.loads) == 1


@pytest.mark.parametrize("reason", ["takes too long", "takes too much of the disk"])
def test_loading_has_an_end(archive, monkeypatch, reason):
    monkeypatch.setattr(loading_module, "LOOK_S", 0.01)
    if reason == "takes too long":
        monkeypatch.setattr(loading_module, "LOAD_S", 0.02)
    else:
        monkeypatch.setattr(loading_module.DiskWatch, "is_alarming", lambda _: True)
    engine = Loader(words=("sleep", "600"))

    with pytest.raises(EngineError, match=f"loading it {reason}"):
        load_image(engine, archive, OURS)

    assert [process.returncode for process in engine.loads] == [-9] * 3


def test_small_files_may_take_the_disk_and_the_time_that_they_need(
    tmp_path, monkeypatch
):
    """3,000 of a byte, each in a folder: 9,000 blocks, three times, and a GiB.

    So are images of many files: of 330,000, loading took "too much of the disk".
    """
    limits = []
    monkeypatch.setattr(
        loading_module, "DiskWatch", lambda _, most: limits.append(most) or Idle()
    )
    layer = {f"{n}": None for n in range(3000)} | {f"{n}/f": b"x" for n in range(3000)}
    archive = read_archive(save(tmp_path, FILES, layer))

    load_image(Loader(archive.image), archive, OURS)

    assert limits == [3 * (9000 + 8) * 4096 + 2**30]


def test_a_disk_that_cannot_be_looked_at_ends_loading(archive, monkeypatch):
    """It would wait for ever for an engine that does not go on."""

    def lost(_):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(loading_module.DiskWatch, "is_alarming", lost)

    with pytest.raises(EngineError, match=r"be looked at \(stale file handle\)"):
        load_image(Loader(words=("sleep", "60")), archive, OURS)


# --- What a real engine says --------------------------------------------------------


@pytest.mark.docker
@pytest.mark.parametrize(("settings", "_"), OF_NO_ENGINE, ids=lambda value: str(value))
def test_no_engine_loads_what_is_refused_before_it(docker, tmp_path, settings, _):
    file = save(tmp_path, **settings, compress=False, tags=[])

    with file.open("rb") as content:
        run = run_command(docker, "image", "load", "--quiet", stdin=content)

    assert run.returncode == 1
    assert is_of_content(run.stderr)


@pytest.mark.parametrize(
    ("layers", "total", "problem"),
    [
        # By hand: 2 x 100 MiB beside what stays free, where 2 x 1 MiB would fit.
        ([{"w": bytes(2**20)}] * 100, FREE + 2**27, "w.tar.gz: it lists the same"),
        ([{"w": bytes(2**20)}] * 100, FREE + 2**20, "w.tar.gz: 1.0 GiB are free in"),
        ([{"w": bytes(2**27)}], FREE + 2**27, "w.tar.gz: 1.1 GiB are free in"),
        ([{}] * 100, FREE + 2**27, ""),
    ],
)
def test_layers_that_are_listed_again(bench, monkeypatch, layers, total, problem):
    """No disk grows for them: the team's fault, and not that of a full disk."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=total))
    monkeypatch.setattr(host, "room", lambda _: host.Room(total, 10**6))
    files = FILES | {"workspace/predict.sh": b"true\n"}
    archive = save(bench.sent, files, *layers, name="w.tar.gz", tags=["w:latest"])

    error = str(bench.measure(archive, cases=1).get("w", ""))

    assert error.startswith(problem)
    assert bool(error) == bool(problem)
    assert ("[F15]" in error) == ("lists the same layers again" in error)
