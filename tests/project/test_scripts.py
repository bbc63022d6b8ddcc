"""The scripts around the code: what they install, build, export and refuse."""

import gzip
import json
import re
import shutil
import stat
import tarfile
import time

import pytest

from tests.builders import ROOT, needs_checkout, run_command
from tests.builders.engine import LOCAL_BASE

pytestmark = pytest.mark.newest

CONTAINER = ROOT / "scripts" / "container"
"""What both images are made of, beside the Dockerfile."""

SCRIPTS = [
    *sorted(path.name for path in ROOT.glob("*.sh")),
    *("scripts/emulate.sh", "scripts/lock.sh", "scripts/lowest.sh"),
    *("scripts/renew-base.sh", "scripts/sanitize.sh"),
]


def call(script, *arguments, **environment):
    return run_command(
        ROOT / script, *arguments, env={"PATH": "/usr/bin:/bin", **environment}
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself(script):
    path = ROOT / script
    first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first == "#!/usr/bin/env bash"
    assert path.stat().st_mode & stat.S_IXUSR

    run = call(script, "--help")

    assert (run.returncode, run.stderr) == (0, "")
    assert f"Usage: ./{script}" in run.stdout


def test_the_help_of_a_rehearsal_names_all_phases():
    (line,) = re.findall(r"^ +--phase  +(.*)$", call("rehearse.sh", "-h").stdout, re.M)

    assert {"sanity", "validation", "test", "external"} <= {*re.findall("[a-z]+", line)}


BASICS = (
    *("bash", "env", "dirname", "sed", "cat", "cksum", "tr", "rm", "touch", "basename"),
    *("true", "mktemp", "cp", "chmod", "ls", "find"),
)


@pytest.fixture
def basics(tmp_path):
    """A folder of the few programs that every system has; none is an engine."""
    for tool in BASICS:
        (tmp_path / tool).symlink_to(shutil.which(tool))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("build.sh --nonsense", 2, "build.sh: unknown argument --nonsense; see"),
        ("export.sh", 1, "Neither docker nor podman is installed. Install one"),
        ("build.sh --decimals 16", 2, "build.sh: --decimals is 16, expected 0 to 15"),
        (
            "FLARE_ENGINE=FOLDER/true build.sh --challenge FOLDER/flare21.toml",
            2,
            "build.sh: flare21.toml has",
        ),
        *(
            (f"FLARE_IMAGE=--privileged {script}", 2, "FLARE_IMAGE is --privileged, wh")
            for script in ("build.sh", "export.sh", "rehearse.sh x")
        ),
        ("FLARE_ENGINE=none build.sh", 1, "none is not installed. Install it, or set"),
        ("FLARE_VENV=FOLDER/v demo.sh", 1, "No Python 3.11 or newer was found."),
    ],
)
def test_what_a_script_refuses_is_one_line(basics, words, status, message):
    (basics / "flare21.toml").write_text('name = "Mine"')
    *settings, script = words.replace("FOLDER", str(basics)).partition(".sh")[0].split()
    arguments = words.replace("FOLDER", str(basics)).partition(".sh")[2].split()
    environment = dict(setting.split("=") for setting in settings)

    run = call(f"{script}.sh", *arguments, PATH=str(basics), **environment)

    assert (run.returncode, run.stderr.count("\n")) == (status, 1)
    assert run.stderr.startswith(message)


def test_where_venv_is_missing_scripts_say_what_to_install(basics):
    """A virtual environment whose Python is gone is made anew: its stamp is nothing."""
    missing = '[ "$1" = -c ] || { echo "No module named venv"; exit 1; }'
    (basics / "python3").write_text(f"#!/bin/sh\n{missing}\n")
    (basics / "python3").chmod(0o755)
    venv = basics / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "installed-123").touch()

    run = call("demo.sh", PATH=str(basics), FLARE_VENV=str(venv))

    said = f"python3 cannot make a virtual environment in {venv}. Install its venv"
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert run.stderr.startswith(said)


@pytest.fixture
def engine(tmp_path):
    """A stand-in for docker: an image with certain labels, which may fail to be saved.

    The real engine takes most of a minute for an export; test_image.py has one.
    """

    def make(
        *labels, tags=(["an/image:latest"],), save=f"tar -C {tmp_path} -c manifest.json"
    ):
        manifest = [{"Config": "c", "RepoTags": names, "Layers": []} for names in tags]
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        for label in labels:
            path = tmp_path / "app" / "ground-truth" / label
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        script = tmp_path / "engine"
        script.write_text(
            f"""#!/bin/bash
            echo "$@" >> {tmp_path}/calls
            case $1 in
              create) echo the-container ;;
              cp) tar -C {tmp_path}/app -cf - ground-truth ;;
              save) {save} ;;
            esac
            """
        )
        script.chmod(0o755)
        return str(script)

    return make


@pytest.mark.parametrize(
    ("labels", "arguments", "is_exported"),
    [
        (["demo_001.nii.gz", "demo_002.nii.gz"], [], False),
        (["demo_001.nii.gz", "demo_002.nii.gz"], ["--demonstration"], True),
        (["demo_001.nii.gz", "case_1.nii.gz"], [], True),
        (["nested/demo_/case_1.nii.gz"], [], True),
        (["reference.csv"], [], True),
    ],
)
def test_export_knows_the_demonstration_set(
    engine, tmp_path, labels, arguments, is_exported
):
    folder = tmp_path / "uploads" / "out"
    settings = {"FLARE_ENGINE": engine(*labels), "FLARE_IMAGE": "an/image"}

    run = call("export.sh", *arguments, str(folder), **settings)

    assert run.returncode == (0 if is_exported else 1), run.stderr
    assert folder.exists() == is_exported
    if is_exported:
        names = ["image-ground-truth.tar.gz", "image.tar.gz"]
        assert sorted(path.name for path in folder.iterdir()) == names
        with tarfile.open(folder / names[0]) as archive:
            files = [member.name for member in archive if member.isfile()]
        assert sorted(files) == sorted(f"./{label}" for label in labels)
    else:
        assert "holds only the demonstration set" in run.stderr


def test_an_export_says_which_folder_cannot_be_made(engine, tmp_path):
    folder = tmp_path / "engine" / "out"
    settings = {"FLARE_ENGINE": engine("case_1.nii.gz")}

    run = call("export.sh", str(folder), **settings)

    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / "engine") in run.stderr
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "rm the-container"


@pytest.mark.parametrize(
    ("image", "made", "saved"),
    [
        ("flare-eval", {}, "flare-eval:latest"),
        ("host:5000/flare-eval", {}, "host:5000/flare-eval:latest"),
        ("host:5000/flare-eval:2021", {}, "host:5000/flare-eval:2021"),
        ("image", {"tags": [["image:latest"], ["image:old"]]}, ""),
        ("image", {"tags": [["image:latest", "image:old"]]}, ""),
        ("image@sha256:" + "0" * 64, {"tags": [None]}, ""),
        ("image", {"save": "echo the first half; exit 1"}, ""),
    ],
)
def test_an_export_is_of_one_image_and_one_tag(engine, tmp_path, image, made, saved):
    """The platform would refuse any other; one that fails leaves no archive."""
    folder = tmp_path / "out"
    folder.mkdir()
    settings = {"FLARE_ENGINE": engine("case_1.nii.gz", **made)}

    run = call("export.sh", str(folder), **settings, FLARE_IMAGE=image)

    assert (run.returncode == 0) == bool(saved), run.stderr
    if saved:
        assert f"save {saved}" in (tmp_path / "calls").read_text().splitlines()
    else:
        assert list(folder.iterdir()) == []


def test_labels_have_the_same_bytes_unless_they_are_renewed(engine, tmp_path):
    """The platform refuses a tarball that it has in any phase of any challenge."""
    labels = tmp_path / "flare-eval-ground-truth.tar.gz"
    stand_in = engine("case_1.nii.gz")
    before = int(time.time())
    found = []
    for arguments in ([], [], ["--renew-labels"]):
        run = call("export.sh", *arguments, str(tmp_path), FLARE_ENGINE=stand_in)
        assert run.returncode == 0, run.stderr
        found.append(labels.read_bytes())

    first, second, renewed = found
    assert first == second != renewed
    assert first[4:8] == bytes(4)
    assert gzip.decompress(first) == gzip.decompress(renewed)
    assert before <= int.from_bytes(renewed[4:8], "little") <= time.time()


@pytest.mark.tools("git")
@needs_checkout
def test_git_sees_no_labels_but_the_demonstration_set():
    """Real labels, submissions and archives are never pushed by accident."""
    ignored = (
        *("ground-truth/validation_001.nii.gz", "ground-truth/a/demo_001.nii.gz"),
        *("LABELS/a.nii.gz", "a.nii", "a.mha", "examples/predictions/a.nii.gz"),
        *("labels.tar.gz", "flare-eval.tar.gz", "submission.zip", "results/x.json"),
    )
    seen = ("ground-truth/demo_001.nii.gz", "examples/predictions/demo_001.nii.gz")

    run = run_command("git", "check-ignore", *ignored, *seen)

    assert run.stdout.split() == list(ignored)


@pytest.mark.parametrize("options", [(), LOCAL_BASE], ids=["pinned", "local"])
def test_a_build_takes_the_pinned_image_or_asks_no_registry(engine, tmp_path, options):
    run = call("build.sh", *options, FLARE_ENGINE=engine())

    assert (run.returncode, run.stderr) == (0, "")
    (line,) = re.findall("^build .*$", (tmp_path / "calls").read_text(), re.MULTILINE)
    assert ("--pull" in line.split()) == (not options)
    pinned = (CONTAINER / "base-image.txt").read_text(encoding="utf-8").strip()
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", pinned)
    base = "python:3.13-slim" if options else pinned
    assert f"BASE={base}" in line.split()


@pytest.mark.parametrize(
    ("names", "contents"),
    [
        (["demo_001.nii.gz"], "label maps: 1.\nThese are the demonstration set."),
        (["demo_001.nii.gz", "a.mha"], "label maps: 2.\nNext:"),
        (["x/reference.csv", "val.json"], "label maps: 0, tables and JSON: 2.\nNext:"),
    ],
)
def test_a_build_counts_label_maps_and_answers(engine, tmp_path, names, contents):
    for name in names:
        file = tmp_path / "references" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    options = ("--ground-truth", str(tmp_path / "references"), *LOCAL_BASE)

    run = call("build.sh", *options, FLARE_ENGINE=engine())

    assert (run.returncode, run.stderr) == (0, "")
    assert f"challenge flare21, reference {contents}" in run.stdout


def test_the_container_of_the_service_copies_no_labels():
    lines = (CONTAINER / "Dockerfile.service").read_text("utf-8")
    copied = re.findall(r"^COPY (?!--from)(\S+) ", lines, re.MULTILINE)
    assert copied == ["scripts/container/requirements-service.txt", "flare"]


def test_every_image_that_a_build_begins_with_is_pinned():
    """There is no default base: whoever builds gives that of base-image.txt."""
    lines = (CONTAINER / "Dockerfile.service").read_text("utf-8")
    base, cli = re.findall(r"^ARG (?:BASE|CLI)(.*)$", lines, re.MULTILINE)
    assert base == ""
    assert re.fullmatch(r"=docker:28-cli@sha256:[0-9a-f]{64}", cli)


DIGESTS = {
    "python:3.13-slim": "sha256:" + "1" * 64,
    "docker:28-cli": "sha256:" + "2" * 64,
}


def test_both_images_are_renewed(tmp_path):
    """The engine knows the digest from another registry, too, and of another image."""
    container = tmp_path / "scripts" / "container"
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    digests = ""
    for tag, digest in DIGESTS.items():
        own = f"a.b/{tag.partition(':')[0]}@{digest}"
        digests += f"*{tag}) echo other@sha256:{'3' * 64}; echo {own};;\n"
    engine = tmp_path / "engine"
    engine.write_text(
        f'#!/bin/sh\n[ "$1" = image ] || exit 0\ncase $5 in\n{digests}esac\n'
    )
    engine.chmod(0o755)

    for said in ("Wrote", "is up to date"):
        run = run_command(
            tmp_path / "scripts/renew-base.sh",
            env={"PATH": "/usr/bin:/bin", "FLARE_ENGINE": str(engine)},
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.count(said) == 2

    base, cli = DIGESTS.items()
    assert (container / "base-image.txt").read_text() == f"{'@'.join(base)}\n"
    before = (CONTAINER / "Dockerfile.service").read_text("utf-8")
    after = (container / "Dockerfile.service").read_text("utf-8")
    assert after == re.sub("docker:28-cli@.*", "@".join(cli), before)
