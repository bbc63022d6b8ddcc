"""What we make of an engine's answers, with a program that stands in for it."""

import hashlib
import io
import json
import os
import sys
import tarfile
import textwrap

import pytest

from flare.common.errors import EngineError
from flare.measuring import engine as engine_module
from flare.measuring.archive.reading import read_archive
from flare.measuring.archive.repack import write_image
from flare.measuring.engine import Engine
from flare.measuring.errors import ArchiveError
from flare.measuring.image import load_image
from tests.builders import ROOT

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


@pytest.fixture
def make_engine(tmp_path):
    """An engine that is a Python program, told what to do by some lines of Python.

    They get `words`, the command, and may use `state`, a dictionary that is kept.
    """

    def make(*lines):
        program = tmp_path / "docker"
        code = textwrap.dedent("\n".join(lines))
        program.write_text(
            f"#!{sys.executable}\n"
            "import atexit, json, pathlib, sys, time\n"
            f"file = pathlib.Path({str(tmp_path / 'state')!r})\n"
            "state = json.loads(file.read_text()) if file.exists() else {}\n"
            "words = sys.argv[1:]\n"
            "state.setdefault('calls', []).append(words)\n"
            "atexit.register(lambda: file.write_text(json.dumps(state)))\n"
            f"{code}\n"
        )
        program.chmod(0o755)
        return Engine(str(program))

    make.state = lambda: json.loads((tmp_path / "state").read_text())
    return make


def loading(**answers):
    """An engine that loads images; `answers` are lines for when it does."""
    return textwrap.dedent(
        f"""
        if words[:2] == ["info", "--format"]:
            print(json.dumps({{"DockerRootDir": "/nowhere", "ServerVersion": "1"}}))
        if words[:2] == ["image", "load"]:
            {answers.get("load", "state['loaded'] = len(sys.stdin.buffer.read())")}
        if words[:2] == ["image", "inspect"]:
            found = state.get("loaded") and words[-1] in {answers.get("image")!r}
            if not found:
                sys.exit(1)
            if words[3] == "{{{{.Id}}}}":
                print({answers.get("image")!r})
            else:
                print(json.dumps({answers.get("tags", [])!r}))
        """
    )


def test_an_image_is_loaded_under_a_tag_of_ours(make_engine, archive):
    image = f"sha256:{archive.image}"
    engine = make_engine(loading(image=image))

    assert engine.load(archive, "ours:latest") == archive.image

    state = make_engine.state()
    assert state["loaded"] > archive.unpacked_bytes
    assert state["calls"][-1] == ["tag", archive.image, "ours:latest"]


def test_an_image_that_a_newer_engine_calls_by_its_manifest(make_engine, archive):
    engine = make_engine(loading(image=f"sha256:{archive.manifest}"))

    assert engine.load(archive, "ours:latest") == archive.manifest


def test_another_image_than_was_checked(make_engine, archive):
    engine = make_engine(loading(image="sha256:" + "1" * 64))

    with pytest.raises(EngineError) as caught:
        engine.load(archive, "ours:latest")

    assert str(caught.value) == (
        f"{archive.path.name}: loading it gave no image {archive.image[:12]}. Do not"
        " run it; ask the team. [H05]"
    )
    assert ["tag"] not in [call[:1] for call in make_engine.state()["calls"]]


def test_a_tag_that_loading_has_moved(make_engine, archive):
    """Whatever the engine makes of what it gets: no tag but ours is on the image."""
    image = f"sha256:{archive.image}"
    engine = make_engine(loading(image=image, tags=["python:3.13-slim"]))

    with pytest.raises(EngineError, match="loading it has given a tag to its image"):
        engine.load(archive, "ours:latest")


def test_an_engine_that_cannot_load(make_engine, archive):
    load = "sys.stdin.buffer.read(); sys.exit('no\\nroom')"
    engine = make_engine(loading(load=load))

    with pytest.raises(EngineError, match=r"docker image: no\. See that Docker runs"):
        engine.load(archive, "ours:latest")


def test_an_image_that_no_engine_loads_is_its_team_s_fault(make_engine, archive):
    """The engine has just made an image of ours, so it is none of its faults."""
    load = "sys.stdin.buffer.read(); sys.exit('bad capability')"
    engine = make_engine(loading(load=load))

    with pytest.raises(ArchiveError) as caught:
        load_image(archive, engine, "ours:latest")

    assert str(caught.value).startswith(
        f"{archive.path.name}: the engine cannot load it ("
    )
    assert "bad capability" in str(caught.value)


def test_an_engine_that_ends_while_it_loads_is_no_team_s_fault(make_engine, archive):
    """It says nothing of itself any more."""
    load = "sys.stdin.buffer.read(); sys.exit('EOF')"
    engine = make_engine(loading(load=load).replace("ServerVersion", "Nothing"))

    with pytest.raises(EngineError, match="no engine answers"):
        load_image(archive, engine, "ours:latest")


def test_loading_has_an_end(make_engine, archive, monkeypatch):
    monkeypatch.setattr(engine_module, "LOAD_S", 0.5)
    engine = make_engine(loading(load="time.sleep(600)"))

    with pytest.raises(EngineError, match="loading it takes too long"):
        engine.load(archive, "ours:latest")


def test_loading_is_ended_when_it_takes_too_much_of_the_disk(
    make_engine, archive, monkeypatch
):
    monkeypatch.setattr(engine_module.DiskWatch, "is_alarming", lambda _: True)
    engine = make_engine(loading(load="time.sleep(600)"))

    with pytest.raises(EngineError, match="loading it takes too much of the disk"):
        engine.load(archive, "ours:latest")


def test_an_archive_that_changes_while_it_is_loaded(make_engine, archive):
    """The engine never gets the end of it."""
    archive.path.write_bytes(archive.path.read_bytes()[:-3000])
    engine = make_engine(loading())

    with pytest.raises(ArchiveError, match="it has changed since it was checked"):
        engine.load(archive, "ours:latest")


def test_what_an_engine_is(make_engine, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    info = {
        "ServerVersion": "20.10.24",
        "SecurityOptions": ["name=seccomp,profile=default"],
        "Runtimes": {"runc": {}, "crun": {}},
        "DefaultRuntime": "runc",
        "MemoryLimit": True,
        "SwapLimit": False,
        "PidsLimit": True,
    }
    parts = {"Components": [{"Name": "containerd", "Version": "1.6.20"},
                            {"Name": "runc", "Version": "1.1.5"}]}  # fmt: skip
    engine = make_engine(
        f"if words[0] == 'info': print({json.dumps(info)!r})",
        f"if words[0] == 'version': print({json.dumps(parts)!r})",
    )

    found = engine.describe()

    assert (found["version"], found["containerd"], found["runc"]) == (
        *("20.10.24", "1.6.20", "1.1.5"),
    )
    assert found["security"] == ["name=seccomp,profile=default"]
    assert found["runtimes"] == ["crun", "runc"]
    assert found["limits"] == ["swap"]
    assert found["nvidia_toolkit"] == ""


@pytest.mark.parametrize("program", ["nvidia-ctk", "nvidia-container-cli"])
def test_the_version_of_the_toolkit(make_engine, tmp_path, monkeypatch, program):
    engine = make_engine('print(\'{"ServerVersion": "1"}\')')
    file = tmp_path / "bin" / program
    file.parent.mkdir()
    file.write_text("#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.17.4'\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")

    assert engine.describe()["nvidia_toolkit"] == "1.17.4"


def test_an_engine_that_does_not_answer(make_engine):
    engine = make_engine("time.sleep(600)")

    with pytest.raises(EngineError) as caught:
        engine.call("ps", timeout_s=0.3)

    assert str(caught.value).endswith(
        "docker ps: no answer for 0 s. Restart Docker, and go on. [H05]"
    )


def test_a_container_that_cannot_be_removed(make_engine):
    engine = make_engine("if words[0] == 'ps': print('0123456789abcdef')")

    with pytest.raises(EngineError, match="container 0123456789ab cannot be removed"):
        engine.remove_container("0123456789abcdef")


def test_a_volume_goes_even_if_its_container_cannot_be_made(make_engine):
    engine = make_engine(
        "if words[0] == 'volume' and words[1] == 'create': print('v')",
        "if words[0] == 'create': sys.exit('no')",
    )

    with pytest.raises(EngineError), engine.volume("empty", "key", "1g", 10):
        pass

    calls = [call[:2] for call in make_engine.state()["calls"]]
    assert calls == [["volume", "create"], ["create", "--label"], ["volume", "rm"]]


def test_the_volume_of_an_output(make_engine):
    engine = make_engine(
        "if words[0] == 'volume' and words[1] == 'create': print('v')",
        "if words[0] == 'create': print('c')",
    )

    with engine.volume("empty", "key", "2g", 10) as found:
        assert found == ("v", "c")

    create, hold, start, *rest = make_engine.state()["calls"]
    assert create[-1] == "o=size=2g,nr_inodes=10,mode=0777,nosuid,nodev"
    assert "flare.measure=key" in create
    assert "flare.measure=key" in hold
    assert start == ["start", "c"]
    assert [call[0] for call in rest] == ["rm", "ps", "volume"]


def test_a_digest_of_the_archive_s_own_making(archive):
    """What is loaded is found again by what it is made of."""
    assert archive.image == hashlib.sha256(archive.configuration).hexdigest()
    content = io.BytesIO()
    write_image(archive, content)
    with tarfile.open(fileobj=io.BytesIO(content.getvalue())) as written:
        names = written.getnames()
    assert f"blobs/sha256/{archive.image}" in names
    assert f"blobs/sha256/{archive.manifest}" in names
