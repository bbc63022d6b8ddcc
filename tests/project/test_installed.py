"""An installed copy, far from the checkout, is whole: every command works."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.builders import ROOT, run_command

pytestmark = pytest.mark.slow

HIDDEN = ("validation_001.nii.gz", "demo_0001.nii.gz", "nested/demo_001.nii.gz")
"""Labels that an organiser may have put beside the demonstration set."""

DEMONSTRATION = {f"demo_{number:03}.nii.gz" for number in range(1, 6)}

BUILD = "import sys; from setuptools import build_meta; "


def build(source, folder, kind):
    """Build a distribution as pip would, but in this environment; returns its path."""
    folder.mkdir(parents=True)
    run = run_command(
        sys.executable,
        "-c",
        f"{BUILD}build_meta.build_{kind}(sys.argv[1])",
        folder,
        cwd=source,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What a build needs of the checkout, with labels that nobody else may see."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("README.md", "LICENSE", "pyproject.toml", "evaluate.py"):
        shutil.copy(ROOT / name, folder)
    for name in ("flare", "ground-truth"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in HIDDEN:
        (folder / "ground-truth" / name).parent.mkdir(exist_ok=True)
        (folder / "ground-truth" / name).write_bytes(b"secret")
    return folder


@pytest.fixture(scope="module")
def source_distribution(sources, tmp_path_factory):
    return build(sources, tmp_path_factory.mktemp("sdist") / "dist", "sdist")


@pytest.fixture(scope="module")
def wheel(sources, tmp_path_factory):
    return build(sources, tmp_path_factory.mktemp("wheel") / "dist", "wheel")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of the programs of an environment that has the wheel.

    What it depends on is that of this environment; nothing is downloaded.
    """
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", folder / "bin" / "python"),
            *("install", "--quiet", "--no-deps", "--no-index"),
            *("--disable-pip-version-check", wheel),
        ],
        env=clean_environment(),
        check=True,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith("-packages")]
    (packages / "dependencies.pth").write_text("\n".join(ours) + "\n")
    return folder / "bin"


@pytest.fixture
def call(installed, tmp_path):
    def run_program(*words):
        return run_command(
            installed / "flare", *map(str, words), cwd=tmp_path, env=clean_environment()
        )

    return run_program


def clean_environment():
    """Nothing that leads to the checkout, or changes a default."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FLARE_", "PYTHON"))
    }


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_no_label_of_an_organiser_is_in_a_distribution(wheel, source_distribution):
    with tarfile.open(source_distribution) as archive:
        sources = {name.rpartition("/")[2] for name in archive.getnames()}
    for names in ({name.rpartition("/")[2] for name in contents(wheel)}, sources):
        labels = {name for name in names if name.endswith(".nii.gz")}
        assert labels == DEMONSTRATION
    assert b"secret" not in contents(wheel).values()
    assert "kernel.c" in sources  # which is compiled where it is installed
    assert not any(name.endswith(".so") for name in sources)


@pytest.mark.tools(package="jinja2")
def test_each_kind_of_work_is_done(call, installed, tmp_path):
    """And the references are those of the demonstration, as README tells."""

    def done(*words):
        run = call(*words)
        assert (run.returncode, run.stderr) == (0, ""), words
        return run.stdout

    import_it = [installed / "python", "-c", "import flare; print(flare.__file__)"]
    where = run_command(*import_it, cwd=tmp_path, env=clean_environment())
    assert where.stdout.startswith(str(installed.parent))
    assert done("--version").splitlines()[0].count(" ") == 1  # and no commit
    assert "5 reference label maps can be used" in done("check-references")
    settings = (ROOT / "phase-settings.json").read_text(encoding="utf-8")
    assert done("phase-settings") == settings
    done("demonstration", "--output", "set")
    assert "Nothing is wrong" in done("check", "set/predictions")
    done("evaluate", "--input", "set/predictions", "--output", "x")
    metrics = json.loads((tmp_path / "x" / "metrics.json").read_text())
    assert round(metrics["aggregates"]["dsc_mean"], 4) == 0.8590
    assert metrics["evaluation"]["references"] == "bundled"
    done("simulate", "--output", "results", "--teams=4", "--cases=5")
    files = sorted((tmp_path / "results").glob("*/metrics.json"))
    done("leaderboard", *files, "--output", "board.csv")
    done("rank", "results", "--output", "ranking", "--bootstrap", "20")
    done("report", files[0], "--output", "page.html")
    for name in ("board.csv", "ranking/ranking.json", "page.html"):
        assert (tmp_path / name).stat().st_size > 0
    for name in ("list", "show flare22", "validate flare23"):
        assert done("challenge", *name.split())
