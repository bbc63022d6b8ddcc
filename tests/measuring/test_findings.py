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
import signal
import subprocess
import tarfile
from pathlib import Path

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
    flare_command,
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

KERNEL = "/proc/self/fd/7"

OUTSIDE = "which lies outside of it"
NOT_A_TEAM = "a file of the results has this name, or one with its ending"
HOOKED = "which may reach the host"

PROBLEMS = {
    # C1: a second list of images, which an engine unpacks over the one that was read
    "absolute": f"it holds /manifest.json, {OUTSIDE}",
    "upwards": f"it holds ../manifest.json, {OUTSIDE}",
    "linked": "it holds x, a link that leads to no layer",
    # C1b: an index that gives a name of the organiser's, leads to nothing, to an image
    # that nobody has read, or to one of the organiser's
    "named": f"its tags are named:latest, {VICTIM}:latest; expected named:latest alone",
    "absent": f"it names blobs/sha256/{'c' * 64}, which is not in it, or no JSON",
    "unread": f"it holds /manifest.json, {OUTSIDE}",
    BORROWED: "it names blobs/sha256/",
    # C6: another predict.sh behind the first member of a layer
    "hidden": "predict.sh has Windows line ends",
    # C8: CVE-2024-21626, with a decoy where the folder seems to be; CVE-2025-23266
    "workdir": f"its working directory {KERNEL} is one of the kernel's",
    "preload": f"its environment sets LD_PRELOAD, {HOOKED}",
    "audit": f"its environment sets LD_AUDIT, {HOOKED}",
    "libraries": "its environment has /proc/self/cwd in LD_LIBRARY_PATH",
    # C10: a folder in the place of a file would end every later run
    "refused.csv": NOT_A_TEAM,
    "ledger.csv": NOT_A_TEAM,
    # C11: what no engine takes
    "file": "/workspace/outputs cannot be a folder: /workspace/outputs is a file",
    "wrong": "its layer 1 of 2 is not the one that its configuration names",
    "damaged": "its layer 1 of 2 cannot be read: ",
}
"""Why each team is refused."""

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


def index_of(digest, name="latest"):
    """An index.json that leads to a manifest, and gives it a name."""
    annotations = {"org.opencontainers.image.ref.name": name}
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


def retagging(make):
    """Archives that want tags: their own, one of the organiser's, one of a rival's."""
    for team, names in {
        "absolute": ["/manifest.json"],
        "upwards": ["../manifest.json"],
        "linked": ["x", "x/manifest.json"],
    }.items():
        config = sha256(config_of(make.base, tar({SCRIPT: saying(team)})))
        tags = [f"{team}:latest", f"{VICTIM}:latest", "zlast:latest"]
        second = list_of(f"{config}.json", tags, "0/layer.tar", "1/layer.tar")
        yield make(team, more=dict.fromkeys(names, "-> .") | {names[-1]: second})


def misleading(make):
    """Archives whose index.json leads elsewhere; the last two were believed."""
    nothing = "c" * 64
    yield make("named", more=index_of(nothing, f"docker.io/library/{VICTIM}:latest"))
    yield make("absent", more=index_of(nothing))
    layer = tar({SCRIPT: saying("this was not read")})
    config = config_of(make.base, layer)
    more = {
        "unread.json": config,
        "unread.tar": layer,
        "/manifest.json": list_of(
            "unread.json", ["unread:latest"], "0/layer.tar", "unread.tar"
        ),
    }
    yield make("unread", more=index_of(sha256(config)) | more)
    (image,) = tags_of([BORROWED]).values()
    yield make(BORROWED, more=index_of(image.removeprefix("sha256:")))


def escaping(make):
    """Archives that lead out of a container, or of the hook of a GPU."""
    decoy = {f"{KERNEL[1:]}/predict.sh": saying("decoy")}
    yield make("workdir", decoy, WorkingDir=KERNEL)
    yield make("preload", Env=["LD_PRELOAD=/proc/self/cwd/x.so"])
    yield make("audit", Env=["LD_AUDIT=/proc/self/cwd/x.so"])
    yield make("libraries", Env=["LD_LIBRARY_PATH=/usr/lib:/proc/self/cwd"])


def odd(make):
    """Archives of layers that are read in another way, or not at all, and of names."""
    first = {"workspace/notes": b"x"}
    seen, hidden = {SCRIPT: saying("seen")}, {SCRIPT: saying("hidden\r")}
    yield make("hidden", seen, first | hidden, pack=in_members)
    behind = first | {SCRIPT: saying("parallel")}
    yield make("parallel", behind, pack=in_members)
    yield make("packed", pack=zstd.compress)
    for team in ("refused.csv", "ledger.csv", "zlast"):
        yield make(team)
    yield make("file", {SCRIPT: saying("file"), "workspace/outputs": b"x"})
    wrong = tar({SCRIPT: saying("wrong")})
    diff_ids = [f"sha256:{sha256(layer)}" for layer in (wrong, make.base)]
    yield make("wrong", wrong, rootfs={"type": "layers", "diff_ids": diff_ids})
    yield make("damaged", pack=lambda layer: gzip.compress(layer, 1)[:-9])
    yield make(ENGINE_REFUSED, with_capability())


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
    """All archives, by team, while two images of the organiser's are there."""
    for name in (VICTIM, BORROWED):
        docker("tag", BASE, f"{name}:latest")
    makers = (retagging, misleading, escaping, odd)
    files = [file for maker in makers for file in maker(make)]
    yield {file.name.removesuffix(".tar.gz"): file for file in files}
    docker("image", "rm", VICTIM, BORROWED)


@pytest.fixture(scope="module")
def measured(sent, one_case, tmp_path_factory):
    """The results, what was said, and what tags stood for before and after."""
    folder = tmp_path_factory.mktemp("measured")
    names = [VICTIM, "python", *sent]
    before = tags_of(names)
    said, _ = measure_teams(folder, one_case, *sent.values(), status=1)
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


@pytest.mark.parametrize("team", PROBLEMS, ids=lambda team: team.rstrip("0123456789"))
def test_a_hostile_archive_is_refused_by_name_and_never_run(measured, team):
    results, said, _, _ = measured
    line = f"{team}.tar.gz: {PROBLEMS[team]}"

    assert line in said
    assert refused(results)[team].startswith(line)
    assert not (results / team).is_dir()


def test_what_only_the_engine_refuses_is_refused_by_name_as_well(measured):
    """C11: it is the archive's fault, in refused.csv like all others."""
    results, said, _, _ = measured
    problem = refused(results)[ENGINE_REFUSED]

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


def test_only_who_is_measured_is_in_the_ledger(measured):
    """C10: it is a file, whatever teams are called."""
    results, _, _, _ = measured

    assert set(column(results / "ledger.csv", "team")) == {*HONEST, ENGINE_REFUSED}


@pytest.mark.parametrize("team", ["upwards", "absent", "hidden", "workdir", "damaged"])
def test_checking_alone_says_the_same(sent, team):
    _, stderr = said = flare_command("check", sent[team], status=1)

    assert f"{team}.tar.gz: {PROBLEMS[team]}" in "".join(said)
    assert stderr == ""


def test_what_lies_behind_the_first_member_is_counted(make):
    """C6: a hundred MiB of zeros; all else is far less than that."""
    zeros = {SCRIPT: saying("bomb"), "workspace/zeros": bytes(100 * 2**20)}
    archive = make("bomb", zeros, pack=in_members)
    assert archive.stat().st_size < 10 * 2**20

    text, _ = flare_command("check", archive)

    megabytes = int(text.partition(" MB unpacked")[0].split()[-1])
    assert 100 < megabytes < 120


def test_versions_and_security_of_the_engine_are_on_record(measured):
    """C8: what the engine says itself, where the program does not look."""
    results, _, _, _ = measured
    record = json.loads((results / "zlast" / "measurement.json").read_text())
    (session,) = record["sessions"]
    engine, version, info = session["engine"], docker("version"), docker("info")

    for name in ("containerd", "runc"):
        first = version.partition(f" {name}:\n")[2].splitlines()[0]
        assert first.split() == ["Version:", engine[name]]
    assert engine["security"]
    for option in engine["security"]:
        kind = option.partition(",")[0].removeprefix("name=")
        assert f"\n  {kind}\n" in info


# --- kill -9 while an image is loaded ---------------------------------------------


@pytest.fixture
def kill(make, one_case, tmp_path):
    """Measure a team, and kill the program while the engine is loading its image.

    The `docker` that is found first hands everything on, but for the loading of an
    image: then it does what some lines of shell say, and makes a file `begun`. The ID
    of the image, which is no other test's, is returned.
    """
    layer = tar({SCRIPT: saying(tmp_path)})
    archive = make("killed", layer)
    real = shutil.which("docker")
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    command = [*BRISK, "measure", archive, *LIMITS]
    command += ["--images", one_case / "images", "--output", tmp_path / "results"]
    command = [*map(str, command), "--no-warm-up"]

    def run(lines):
        program.write_text(
            f"#!/bin/sh\ncd {tmp_path}\ndocker={real}\n"
            f'if [ "$1 $2" = "image load" ]; then\n{lines}\nfi\n'
            'exec "$docker" "$@"\n'
        )
        program.chmod(0o755)
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        wait_until((tmp_path / "begun").exists)
        assert list((tmp_path / "results").glob("killed/.work-*/loading"))
        process.send_signal(signal.SIGKILL)
        process.wait()
        return sha256(config_of(make.base, layer))

    run.again = lambda: subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    return run


def nothing_is_left(folder):
    """Whether no image, folder or mark is left of what was measured into a folder."""
    return not left_behind(folder) and not list(folder.rglob(".work*"))


def has_image(image):
    """Whether the engine has an image of this ID."""
    words = ["docker", "image", "inspect", f"sha256:{image}"]
    return not subprocess.run(words, capture_output=True, check=False).returncode


def is_running(process):
    """Whether there is a process of this number that has not ended."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


IN_THE_MIDDLE = """
echo $$ > client
mkfifo pipe
exec 3<&0
(head -c 3000000 > pipe; touch begun) <&3 &
exec "$docker" "$@" <> pipe"""
"""The real client has half of the image, and waits for the rest, which never comes."""


def test_a_load_that_is_cut_off_by_kill_leaves_nothing(kill, tmp_path):
    image = kill(IN_THE_MIDDLE)

    client = (tmp_path / "client").read_text().strip()
    wait_until(lambda: not is_running(client))
    wait_until(lambda: nothing_is_left(tmp_path / "results"))
    assert not has_image(image)


AFTERWARDS = """
cat > image.tar
(sleep 5; "$docker" "$@" < image.tar && touch loaded) > /dev/null 2>&1 &
touch begun
exec sleep 600"""
"""The engine has all of the image, and finishes when the program is dead already."""


def test_what_the_engine_loads_after_a_kill_is_removed(kill, tmp_path):
    """And the same command goes on."""
    image = kill(AFTERWARDS)

    wait_until((tmp_path / "loaded").exists)
    wait_until(lambda: not has_image(image))
    wait_until(lambda: nothing_is_left(tmp_path / "results"))
    kill.again()
    assert rows_of(tmp_path / "results" / "killed")[CASE]["status"] == "ok"
    assert left_behind(tmp_path / "results") == []
    assert not has_image(image)
