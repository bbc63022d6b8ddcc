"""The files around the code: requirements, scripts, what git and Docker may see."""

import gzip
import re
import stat
import subprocess
import tarfile
import tomllib

import pytest

from tests.builders import ROOT

SCRIPTS = sorted(path.name for path in ROOT.glob("*.sh"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirement_name(line):
    return re.split(r"[=<>!;\[ ]", line, maxsplit=1)[0].casefold().replace("_", "-")


def call(script, *arguments, **environment):
    """Run a script with hardly any environment."""
    return subprocess.run(
        [ROOT / script, *arguments],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_requirements_are_exact_versions_of_all_dependencies():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert all(re.match(r"[\w.-]+==\d[\w.]*(;|$)", pin) for pin in pins)
    names = {requirement_name(pin) for pin in pins}
    assert {requirement_name(d) for d in PYPROJECT["project"]["dependencies"]} <= names


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself(script):
    path = ROOT / script
    first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first == "#!/usr/bin/env bash"
    assert path.stat().st_mode & stat.S_IXUSR

    run = call(script, "--help")

    assert (run.returncode, run.stderr) == (0, "")
    assert f"Usage: ./{script}" in run.stdout


@pytest.mark.parametrize("script", ["build.sh", "export.sh"])
def test_an_unknown_argument_is_one_line(script):
    run = call(script, "--nonsense")

    assert run.returncode == 2
    assert run.stderr == (
        f"{script}: unknown argument --nonsense; see ./{script} --help\n"
    )


@pytest.mark.parametrize("script", ["build.sh", "export.sh"])
def test_without_an_engine_scripts_say_what_to_install(script, tmp_path):
    for tool in ("bash", "env", "dirname", "sed"):
        (tmp_path / tool).symlink_to(subprocess.getoutput(f"command -v {tool}"))

    run = call(script, PATH=str(tmp_path))

    assert run.returncode == 1
    assert run.stderr == (
        "Neither docker nor podman is installed. Install one of them.\n"
    )


@pytest.mark.parametrize("script", ["demo.sh", "test.sh"])
@pytest.mark.parametrize(
    ("python", "message"),
    [
        pytest.param(
            "exit 1",
            "No Python 3.11 or newer was found. Install it, for example with: sudo apt"
            " install python3 python3-venv\n",
            id="no python",
        ),
        pytest.param(
            '[ "$1" = -c ] || { echo "No module named venv"; exit 1; }',
            "python3 cannot make a virtual environment in {venv}. Install its venv"
            " module, for example with: sudo apt install python3-venv\n",
            id="no venv",
        ),
        pytest.param(
            '[ "$1" = -c ] || { printf "More\\nNo space left\\n"; exit 1; }',
            "python3 cannot make a virtual environment in {venv}. No space left\n",
            id="no space",
        ),
    ],
)
def test_without_python_or_venv_scripts_say_what_to_install(
    script, python, message, tmp_path
):
    for tool in ("bash", "env", "dirname", "sed", "cat", "cksum", "tr", "rm"):
        (tmp_path / tool).symlink_to(subprocess.getoutput(f"command -v {tool}"))
    (tmp_path / "python3").write_text(f"#!/bin/sh\n{python}\n")
    (tmp_path / "python3").chmod(0o755)

    run = call(script, PATH=str(tmp_path), FLARE_VENV=str(tmp_path / "venv"))

    assert run.returncode == 1
    assert run.stderr == message.format(venv=tmp_path / "venv")
    assert not (tmp_path / "venv").exists()


@pytest.fixture
def engine(tmp_path):
    """A stand-in for docker: an image with certain labels, which may fail to be saved.

    The real engine takes most of a minute for an export; test_image.py has one.
    """

    def make(*labels, save="echo an archive"):
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
    ],
)
def test_export_knows_the_demonstration_set(
    engine, tmp_path, labels, arguments, is_exported
):
    folder = tmp_path / "out"
    folder.mkdir()
    settings = {"FLARE_ENGINE": engine(*labels), "FLARE_IMAGE": "an/image"}

    run = call("export.sh", *arguments, str(folder), **settings)

    assert run.returncode == (0 if is_exported else 1)
    names = ["image-ground-truth.tar.gz", "image.tar.gz"] if is_exported else []
    assert sorted(path.name for path in folder.iterdir()) == names
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1] == "rm the-container"
    if is_exported:
        assert gzip.decompress((folder / names[1]).read_bytes()) == b"an archive\n"
        with tarfile.open(folder / names[0]) as archive:
            files = [member.name for member in archive if member.isfile()]
        assert sorted(files) == sorted(f"./{label}" for label in labels)
        assert run.stdout.count("Wrote ") == 2
    else:
        assert "holds only the demonstration set" in run.stderr


@pytest.mark.parametrize(
    "save", ["echo the first half; exit 1", "echo half; kill -9 $$"], ids=str
)
def test_an_export_that_fails_leaves_no_archive(engine, tmp_path, save):
    folder = tmp_path / "out"
    folder.mkdir()

    run = call(
        "export.sh", str(folder), FLARE_ENGINE=engine("case_1.nii.gz", save=save)
    )

    assert run.returncode != 0
    assert list(folder.iterdir()) == []


def test_an_export_needs_a_folder(engine, tmp_path):
    run = call("export.sh", str(tmp_path / "none"), FLARE_ENGINE=engine())

    assert run.returncode == 1
    assert run.stderr == f"There is no folder {tmp_path / 'none'}.\n"


def test_a_broken_virtual_environment_is_made_anew(tmp_path):
    """Its Python is gone, or pip is; the stamp of what was installed is not trusted."""
    for tool in ("bash", "env", "dirname", "sed", "cat", "cksum", "tr", "rm", "touch"):
        (tmp_path / tool).symlink_to(subprocess.getoutput(f"command -v {tool}"))
    (tmp_path / "python3").write_text(
        '#!/bin/sh\n[ "$1" = -c ] || { echo "made anew"; exit 1; }\n'
    )
    (tmp_path / "python3").chmod(0o755)
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "installed-123").touch()

    run = call("demo.sh", PATH=str(tmp_path), FLARE_VENV=str(venv))

    assert run.returncode == 1
    assert "made anew" in run.stderr
    assert not venv.exists()


def test_git_sees_no_labels_but_the_demonstration_set():
    """Real labels, submissions and archives are never pushed by accident."""
    ignored = (
        *("ground-truth/validation_001.nii.gz", "ground-truth/a/demo_001.nii.gz"),
        *("LABELS/a.nii.gz", "a.nii", "a.mha", "examples/predictions/a.nii.gz"),
        *("labels.tar.gz", "flare-eval.tar.gz", "submission.zip", "results/x.json"),
    )
    seen = ("ground-truth/demo_001.nii.gz", "examples/predictions/demo_001.nii.gz")

    run = subprocess.run(
        ["git", "check-ignore", *ignored, *seen],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stdout.split() == list(ignored)


def test_a_challenge_of_ones_own_does_not_take_the_name_of_another(tmp_path):
    """The results would say that they are by the rules of FLARE21."""
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / "flare21.toml").write_text('name = "Mine"')

    run = call(
        "build.sh",
        *("--challenge", str(tmp_path / "flare21.toml")),
        PATH=f"{tmp_path}:/usr/bin:/bin",
    )

    assert run.returncode == 2
    assert run.stderr == (
        "build.sh: flare21.toml has the name of a challenge that comes with the"
        " program; give it another one\n"
    )


def test_an_engine_that_is_not_there_is_told():
    run = call("build.sh", FLARE_ENGINE="no-such-engine")

    assert run.returncode == 1
    assert run.stderr == (
        "no-such-engine is not installed. Install it, or set FLARE_ENGINE to docker or"
        " podman.\n"
    )
