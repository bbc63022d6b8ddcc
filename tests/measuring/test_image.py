"""How an image is loaded, with a program that stands in for the engine."""

import hashlib
import io
import json
import tarfile
import textwrap

import pytest

from flare.common.docker_words import is_of_content
from flare.common.errors import EngineError
from flare.measuring import image as loading_module
from flare.measuring.archive.reading import read_archive
from flare.measuring.archive.repack import write_image
from flare.measuring.errors import ArchiveError, LoadError
from flare.measuring.image import load_image
from tests.builders import ROOT

pytestmark = pytest.mark.slow

ARCHIVE = ROOT / "tests" / "data" / "archives" / "docker-20.archive"


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


def loading(**answers):
    """An engine that loads images; `answers` are lines for when it does."""
    return textwrap.dedent(
        f"""
        if words[:2] == ["info", "--format"]:
            print(json.dumps({{"DockerRootDir": "/nowhere", "ServerVersion": "1"}}))
        if words[:2] == ["image", "load"]:
            {answers.get("load", "state['loaded'] = len(sys.stdin.buffer.read())")}
        if words[:2] == ["image", "inspect"]:
            if state.get("loaded") and {answers.get("image")!r} in words:
                print({answers.get("image")!r}, {json.dumps(answers.get("tags"))!r})
            sys.exit(1)  # of the two names, one is not there
        """
    )


def test_an_image_is_loaded_under_a_tag_of_ours(make_engine, archive):
    image = f"sha256:{archive.image}"
    engine = make_engine(loading(image=image))

    assert load_image(engine, archive, "ours:latest") == archive.image

    state = make_engine.state()
    assert state["loaded"] > archive.unpacked_bytes
    assert state["calls"][-1] == ["tag", archive.image, "ours:latest"]


def test_an_image_that_is_removed_before_it_has_a_tag_is_loaded_again(
    make_engine, archive
):
    """As by the guard of another measurement of the same image that was ended."""
    often = "state['loads'] = state.get('loads', 0) + 1"
    read = "size = len(sys.stdin.buffer.read())"
    keep = "state['loaded'] = size * (state['loads'] > 1)"
    lines = loading(image=f"sha256:{archive.image}", load=f"{often}; {read}; {keep}")
    engine = make_engine(lines)

    assert load_image(engine, archive, "ours:latest") == archive.image

    assert make_engine.state()["loads"] == 2


def test_an_image_that_a_newer_engine_calls_by_its_manifest(make_engine, archive):
    engine = make_engine(loading(image=f"sha256:{archive.manifest}"))

    assert load_image(engine, archive, "ours:latest") == archive.manifest


def test_another_image_than_was_checked(make_engine, archive):
    """It has another ID than that of what was written: not what the archive holds."""
    engine = make_engine(loading(image="sha256:" + "1" * 64))

    with pytest.raises(EngineError) as caught:
        load_image(engine, archive, "ours:latest")

    assert archive.image[:12] in caught.value.finding
    assert ["tag"] not in [call[:1] for call in make_engine.state()["calls"]]


@pytest.mark.parametrize(
    "tag", ["flare-measure-team-0123456789abcdef:latest", "python:3.13-slim"]
)
def test_a_tag_that_comes_meanwhile_is_nobody_s_fault(make_engine, archive, tag):
    """Of another measurement, or of somebody else: D3 of what was tried."""
    image = f"sha256:{archive.image}"
    engine = make_engine(loading(image=image, tags=[tag]))

    assert load_image(engine, archive, "ours:latest") == archive.image


def test_tags_that_change_each_time_are_the_computer_s_fault(make_engine, archive):
    image = f"sha256:{archive.image}"
    lines = loading(image=image, tags=["TAG"]).replace(
        "'[\"TAG\"]'", "json.dumps(['x' + str(len(state['calls']))])"
    )
    engine = make_engine(lines)

    with pytest.raises(EngineError, match="tags of its image have changed"):
        load_image(engine, archive, "ours:latest")

    loads = [c for c in make_engine.state()["calls"] if c[:2] == ["image", "load"]]
    assert len(loads) == 3


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Error processing tar file(exit status 1): /x: invalid argument", LoadError),
        ("failed to register layer: lsetxattr security.capability /x", LoadError),
        ("failed to register layer: write /x: no space left on device", EngineError),
        ("error during connect: EOF", EngineError),
        ("no\nroom", EngineError),
    ],
)
def test_only_what_names_the_content_is_the_archive_s_fault(
    make_engine, archive, said, kind
):
    load = f"sys.stdin.buffer.read(); sys.exit({said!r})"
    engine = make_engine(loading(load=load))

    with pytest.raises(kind) as caught:
        load_image(engine, archive, "ours:latest")

    assert type(caught.value) is kind
    loads = [c for c in make_engine.state()["calls"] if c[:2] == ["image", "load"]]
    assert len(loads) == (1 if kind is LoadError else 3)


LAYER = "Error response from daemon: failed to register layer: "


@pytest.mark.parametrize(
    "said",
    [
        LAYER + "lsetxattr /usr/bin/pkill: operation not supported",
        LAYER + "lsetxattr /opt/memory/timeout.py: operation not supported",
        LAYER + "lsetxattr /a no space left on device/x: operation not supported",
        LAYER + "lsetxattr /a: no space left on device: operation not supported",
        LAYER + "lchown /usr/bin/pkill: invalid argument: unknown",
        LAYER + "lsetxattr security.capability /usr/bin/pkill",
        LAYER + 'invalid symlink "/x" -> "a: no space left on device"',
        LAYER + r'invalid symlink "/x" -> "a\": no space left on device"',
        "Error processing tar file(lsetxattr /bin/kill: not supported): exit status 1",
    ],
)
def test_names_in_an_image_do_not_make_its_fault_the_computer_s(said):
    assert is_of_content(said)


@pytest.mark.parametrize(
    "said",
    [
        "Error response from daemon: open /opt/unpack/xattr: device or resource busy",
        'Error response from daemon: rename "/unpack" "/xattr": permission denied',
        LAYER + "write /usr/bin/x: no space left on device",
        LAYER + "write /usr/bin/pkill: no space left on device: unknown",
        LAYER + "write /usr/bin/a name: input/output error",
        "Error processing tar file(write /x: no space left on device): exit status 1",
        "Error processing tar file(signal: killed): ",
        "processing tar file: i/o timeout",
    ],
)
def test_names_in_an_image_do_not_make_the_computer_s_fault_its_own(said):
    assert not is_of_content(said)


def test_an_engine_that_ends_while_it_loads_is_no_team_s_fault(make_engine, archive):
    """It says nothing of itself any more."""
    load = "sys.stdin.buffer.read(); sys.exit('EOF')"
    engine = make_engine(loading(load=load).replace("ServerVersion", "Nothing"))

    with pytest.raises(EngineError, match="no engine answers"):
        load_image(engine, archive, "ours:latest")


def test_loading_has_an_end(make_engine, archive, monkeypatch):
    monkeypatch.setattr(loading_module, "LOAD_S", 0.5)
    engine = make_engine(loading(load="time.sleep(600)"))

    with pytest.raises(EngineError, match="loading it takes too long"):
        load_image(engine, archive, "ours:latest")


def test_loading_is_ended_when_it_takes_too_much_of_the_disk(
    make_engine, archive, monkeypatch
):
    monkeypatch.setattr(loading_module.DiskWatch, "is_alarming", lambda _: True)
    engine = make_engine(loading(load="time.sleep(600)"))

    with pytest.raises(EngineError, match="loading it takes too much of the disk"):
        load_image(engine, archive, "ours:latest")


def test_an_archive_that_changes_while_it_is_loaded(make_engine, archive):
    """The engine never gets the end of it."""
    archive.path.write_bytes(archive.path.read_bytes()[:-3000])
    engine = make_engine(loading())

    with pytest.raises(ArchiveError, match="it has changed since it was checked"):
        load_image(engine, archive, "ours:latest")


def test_a_digest_of_the_archive_s_own_making(archive):
    """What is loaded is found again by what it is made of."""
    assert archive.image == hashlib.sha256(archive.configuration).hexdigest()
    content = io.BytesIO()
    write_image(archive, content)
    with tarfile.open(fileobj=io.BytesIO(content.getvalue())) as written:
        names = written.getnames()
    assert f"blobs/sha256/{archive.image}" in names
    assert f"blobs/sha256/{archive.manifest}" in names
