"""What attackers have found in archives, repeated with a real engine.

The archives are written here byte by byte, as no honest program would write them. All
are measured together, beside an honest team, which is the last and must get what it
deserves. What attackers do in containers is in test_hostile_images.py.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest
from backports import zstd

from tests.builders import ROOT, wait_until
from tests.builders.archives import configuration, save, tar
from tests.builders.teams import (
    BASE,
    BRISK,
    LIMITS,
    PREDICT,
    docker,
    left_behind,
    measure_teams,
    root_files,
    rows_of,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]

CASE = "validation_001"

SCRIPT = "workspace/predict.sh"

VICTIM = f"flare-test-victim-{os.getpid()}"
"""The name of an image of the organiser's."""

BORROWED = f"borrowed{os.getpid()}"
"""A team with the name of another one."""

PROBLEMS = {
    # A second list of images, which an engine unpacks over the one that was read
    "absolute": "it holds /manifest.json, which lies outside of it",
    "linked": "it holds x, a link that leads to no layer",
    # An index that leads to nothing, or to an image of the organiser's
    "absent": f"it names blobs/sha256/{'c' * 64}, which is not in it, or no JSON",
    BORROWED: "it names blobs/sha256/",
    # Another predict.sh behind the first member of a layer
    "hidden": "predict.sh has Windows line ends",
}
"""Why each team is refused; archive/test_hostile_archives.py has all that is known."""

ENGINE_REFUSED = "attributes"
"""A team whose layer has an attribute that no kernel takes: only the engine sees it."""

HONEST = ("parallel", "packed", "zlast")
"""What else is measured: layers as several tools write them."""


# --- What is sent -----------------------------------------------------------------


def saying(word):
    """A predict.sh that says a word, and predicts what is right."""
    return f"echo {word}\n{PREDICT}".encode()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def list_of(config, tags, *layers):
    """A manifest.json of one image."""
    entry = {"Config": config, "RepoTags": tags, "Layers": list(layers)}
    return json.dumps([entry]).encode()


def index_of(digest):
    """An index.json that leads to a manifest."""
    annotations = {"org.opencontainers.image.ref.name": "latest"}
    entry = {"digest": f"sha256:{digest}", "annotations": annotations}
    return {"index.json": json.dumps({"manifests": [entry]}).encode()}


def in_members(layer):
    """A layer as parallel compressors write it: here, its first file is a member."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        start = [*(entry.offset for entry in archive), len(layer)][1]
    return gzip.compress(layer[:start], 1) + gzip.compress(layer[start:], 1)


@pytest.fixture(scope="module")
def make(docker, tmp_path_factory):
    """Write the archive of a team, whose layers lie on a layer with bash."""
    base, folder = root_files(), tmp_path_factory.mktemp("teams")

    def write(team, *layers, **settings):
        layers = layers or ({SCRIPT: saying(team)},)
        name, tags = f"{team}.tar.gz", [f"{team}:latest"]
        return save(folder, base, *layers, name=name, tags=tags, **settings)

    write.base = base
    return write


def config_of(*layers):
    return json.dumps(configuration(*layers)).encode()


def hostile(make):
    """Archives that want tags of others, or that an engine reads in another way."""
    for team, names in {
        "absolute": ["/manifest.json"],
        "linked": ["x", "x/manifest.json"],
    }.items():
        config = sha256(config_of(make.base, tar({SCRIPT: saying(team)})))
        tags = [f"{team}:latest", f"{VICTIM}:latest", "zlast:latest"]
        second = list_of(f"{config}.json", tags, "0/layer.tar", "1/layer.tar")
        yield make(team, more=dict.fromkeys(names, "-> .") | {names[-1]: second})
    yield make("absent", more=index_of("c" * 64))
    (image,) = tags_of([BORROWED]).values()
    yield make(BORROWED, more=index_of(image.removeprefix("sha256:")))
    seen, hidden = {SCRIPT: saying("seen")}, {SCRIPT: saying("hidden\r")}
    first = {"workspace/notes": b"x"}
    yield make("hidden", seen, first | hidden, pack=in_members)
    yield make(ENGINE_REFUSED, with_capability())
    # Honest ones.
    yield make("parallel", first | {SCRIPT: saying("parallel")}, pack=in_members)
    yield make("packed", pack=zstd.compress)
    yield make("zlast")


def with_capability():
    """A layer whose predict.sh has a capability that makes no sense."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo(SCRIPT)
        entry.size = len(PREDICT)
        entry.pax_headers = {"SCHILY.xattr.security.capability": "none"}
        archive.addfile(entry, io.BytesIO(PREDICT.encode()))
    return content.getvalue()


def tags_of(names):
    """What the tags of some names stand for on this computer."""
    form = "{{.Repository}} {{.Tag}} {{.ID}}"
    found = docker("image", "ls", "--no-trunc", "--format", form)
    lines = [line.split() for line in found.splitlines()]
    return {(name, tag): image for name, tag, image in lines if name in names}


@pytest.fixture(scope="module")
def sent(team_base, make):
    """All archives, while two images of the organiser's are there."""
    for name in (VICTIM, BORROWED):
        docker("tag", BASE, f"{name}:latest")
    yield [*hostile(make)]
    docker("image", "rm", VICTIM, BORROWED)


@pytest.fixture(scope="module")
def measured(sent, one_case, tmp_path_factory):
    """The results, what was said, and what tags stood for before and after."""
    folder = tmp_path_factory.mktemp("measured")
    names = [VICTIM, "python", *HONEST]
    before = tags_of(names)
    said, _ = measure_teams(folder, one_case, *sent, status=1)
    return folder / "results", said, before, tags_of(names)


# --- What comes of it -------------------------------------------------------------


def log_of(results, team):
    """What a container has said: which image was run."""
    return (results / team / "logs" / f"{CASE}.log").read_text(encoding="utf-8")


def column(file, name):
    with file.open(encoding="utf-8") as content:
        return [row[name] for row in csv.DictReader(content)]


def refused(results):
    """Why teams were refused."""
    file = results / "refused.csv"
    return dict(zip(column(file, "team"), column(file, "problem"), strict=True))


def test_no_tag_of_the_computer_is_touched(measured):
    """C1: neither the organiser's nor a rival's, and none has come."""
    results, _, before, after = measured

    assert (VICTIM, "latest") in before
    assert after == before
    assert left_behind(results) == []


def test_hostile_archives_are_refused_by_name_and_never_run(measured):
    """Also what only the engine sees: it is the archive's fault like all others."""
    results, said, _, _ = measured
    found = refused(results)

    for team, problem in PROBLEMS.items():
        line = f"{team}.tar.gz: {problem}"
        assert line in said
        assert found[team].startswith(line)
        assert not (results / team).is_dir()
    problem = found[ENGINE_REFUSED]
    assert problem.startswith(f"{ENGINE_REFUSED}.tar.gz: the engine cannot load it (")
    assert problem.endswith("[F15]")
    assert f"{ENGINE_REFUSED}: not measured to the end: {problem}\n" in said
    assert not (results / ENGINE_REFUSED / "efficiency.csv").exists()


@pytest.mark.parametrize("team", HONEST)
def test_every_honest_team_is_measured(measured, team):
    """C6, C11: layers of several members, or zstd; whatever others send."""
    results, _, _, _ = measured

    assert rows_of(results / team)[CASE]["status"] == "ok"
    assert log_of(results, team) == f"{team}\n"


# --- kill -9 while an image is loaded ---------------------------------------------


LOAD_LATER = """#!/bin/sh
if [ "$1 $2" = "image load" ]; then
    cd FOLDER
    cat > image.tar
    (sleep 5; REAL "$@" < image.tar && touch loaded) > /dev/null 2>&1 &
    touch begun
    exec sleep 600
fi
exec REAL "$@"
"""
"""The `docker` that is found first: it hands everything on, but loads an image when all
of it has come, and the program is dead already."""


def has_image(image):
    """Whether the engine has an image of this ID."""
    words = ["docker", "image", "inspect", f"sha256:{image}"]
    return not subprocess.run(words, capture_output=True, check=False).returncode


def test_what_the_engine_loads_after_a_kill_is_removed(make, one_case, tmp_path):
    """And the same command goes on."""
    layer, results = tar({SCRIPT: saying(tmp_path)}), tmp_path / "results"
    image = sha256(config_of(make.base, layer))  # which is no other test's
    command = [*BRISK, "measure", make("killed", layer), *LIMITS, "--no-warm-up"]
    command += ["--images", one_case / "images", "--output", results]
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    script = LOAD_LATER.replace("REAL", shutil.which("docker"))
    program.write_text(script.replace("FOLDER", str(tmp_path)))
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    settings = {"cwd": ROOT, "stdout": subprocess.DEVNULL}

    process = subprocess.Popen(command, env=os.environ | {"PATH": path}, **settings)
    wait_until((tmp_path / "begun").exists)
    assert list(results.glob("killed/.work-*/loading"))
    process.kill()
    process.wait()

    wait_until((tmp_path / "loaded").exists)
    wait_until(lambda: not has_image(image))
    wait_until(lambda: not left_behind(results) and not [*results.rglob(".work*")])
    subprocess.run(command, check=True, **settings)
    assert rows_of(results / "killed")[CASE]["status"] == "ok"
    assert left_behind(results) == []
    assert not has_image(image)
