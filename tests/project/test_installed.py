"""An installed copy, far from the checkout, is whole: every command works."""

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from flare.cli.main import command_names
from flare.common.archives import unpack_own
from tests.builders import ROOT

pytestmark = pytest.mark.slow

HIDDEN = ("validation_001.nii.gz", "demo_0001.nii.gz", "nested/demo_001.nii.gz")
"""Labels that an organiser may have put beside the demonstration set."""

DEMONSTRATION = {f"demo_{number:03}.nii.gz" for number in range(1, 6)}

BUILD = "import sys; from setuptools import build_meta; "


def build(source, folder, kind):
    """Build a distribution as pip would, but in this environment; returns its path."""
    folder.mkdir(parents=True)
    run = subprocess.run(
        [sys.executable, "-c", f"{BUILD}build_meta.build_{kind}(sys.argv[1])", folder],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What a build needs of the checkout, with labels that nobody else may see."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("README.md", "LICENSE", "pyproject.toml", "setup.py", "evaluate.py"):
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
    """Run the installed program in an empty folder."""

    def run_program(*words):
        return subprocess.run(
            [installed / "flare", *map(str, words)],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
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
    """The files of a wheel, by their names."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_no_label_of_an_organiser_is_in_a_distribution(wheel, source_distribution):
    with tarfile.open(source_distribution) as archive:
        sources = {name.rpartition("/")[2] for name in archive.getnames()}
    for names in ({name.rpartition("/")[2] for name in contents(wheel)}, sources):
        labels = {name for name in names if name.endswith(".nii.gz")}
        assert labels == DEMONSTRATION
    assert b"secret" not in contents(wheel).values()


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    found = {name for name in contents(wheel) if ".dist-info/" not in name}

    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "flare").rglob("*")
        if path.suffix in (".py", ".sh", ".toml", ".typed", ".json")
        or path.parent.name == "templates"
    }
    references = {f"flare/demonstration_set/{name}" for name in DEMONSTRATION}
    assert found == expected | references


def test_an_index_can_show_what_the_wheel_says_of_itself(wheel):
    """twine, which .ci/run asks, checks the form; here, that it is all there."""
    (text,) = (data for name, data in contents(wheel).items() if "METADATA" in name)
    metadata = email.message_from_bytes(text)

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "MICCAI FLARE" in metadata["Keywords"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata.get_payload(decode=True).decode().strip() == readme.strip()
    urls = [line.partition(", ")[2] for line in metadata.get_all("Project-URL")]
    assert len(urls) >= 2
    assert all(url.startswith("https://") for url in urls)


def test_the_wheel_holds_the_schemas(wheel):
    found = contents(wheel)

    schemas = list((ROOT / "flare" / "results" / "schemas").glob("*.schema.json"))
    assert len(schemas) > 10
    for file in schemas:
        assert found[f"flare/results/schemas/{file.name}"] == file.read_bytes()


def test_the_source_distribution_builds_the_same_wheel(
    wheel, source_distribution, tmp_path
):
    with tarfile.open(source_distribution) as archive:
        unpack_own(archive, tmp_path)
    (source,) = tmp_path.iterdir()

    again = build(source, tmp_path / "dist", "wheel")

    assert contents(again) == contents(wheel)


def test_the_copy_is_not_the_checkout(installed):
    run = subprocess.run(
        [installed / "python", "-c", "import flare; print(flare.__file__)"],
        cwd=installed,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.startswith(str(installed.parent))


@pytest.mark.parametrize("name", command_names())
def test_every_command_has_a_help(call, name):
    run = call(name, "--help")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"Usage: flare {name} ")


def test_it_tells_its_version_but_no_commit(call):
    run = call("--version")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count(" ") == 1


def test_the_bundled_references_are_those_of_the_demonstration(call, tmp_path):
    """And what the program says it bundles is what it writes."""
    run = call("check-references")

    assert (run.returncode, run.stderr) == (0, "")
    assert "5 reference label maps can be used" in run.stdout
    assert call("demonstration", "--output", tmp_path / "set").returncode == 0
    run = call("evaluate", "--input", tmp_path / "set" / "predictions", "--output", "x")
    assert (run.returncode, run.stderr) == (0, "")
    metrics = json.loads((tmp_path / "x" / "metrics.json").read_text())
    assert round(metrics["aggregates"]["dsc_mean"], 4) == 0.8590  # as README has it
    assert metrics["evaluation"]["references"] == "bundled"


def test_it_makes_the_settings_that_the_checkout_has(call, tmp_path):
    run = call("phase-settings")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (ROOT / "phase-settings.json").read_text(encoding="utf-8")


@pytest.fixture
def results(call, tmp_path):
    """A small challenge that was made up."""
    run = call("simulate", "--output", tmp_path / "results", "--teams=4", "--cases=5")
    assert (run.returncode, run.stderr) == (0, "")
    return tmp_path / "results"


def test_teams_are_ranked_by_either_rule(call, results, tmp_path):
    files = sorted(results.glob("*/metrics.json"))
    run = call("leaderboard", *files, "--output", "board.csv")
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "board.csv").exists()

    run = call("rank", results, "--output", "ranking", "--bootstrap", "20")
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "ranking" / "ranking.json").exists()


@pytest.mark.tools(package="jinja2")
def test_a_page_is_made_of_results(call, results, tmp_path):
    run = call("report", results / "team_01" / "metrics.json", "--output", "page.html")

    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")


def test_a_phase_that_is_none_is_refused_by_name(call, results):
    (file, *_) = results.glob("*/metrics.json")

    run = call("leaderboard", file, "--phase", "final")

    assert run.returncode == 1
    assert run.stderr.startswith("phase-settings of flare21: has no phase final")


def test_predictions_are_checked(call, tmp_path):
    assert call("demonstration", "--output", tmp_path / "set").returncode == 0

    run = call("check", tmp_path / "set" / "predictions")

    assert (run.returncode, run.stderr) == (0, "")
    assert "Nothing is wrong" in run.stdout


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["list"], "flare21 "),
        (["show", "flare22"], "# "),
        (["validate", "flare23"], "FLARE"),
    ],
)
def test_challenges_can_be_listed_shown_and_validated(call, words, start):
    run = call("challenge", *words)

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(start)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["measure", "none.tar.gz", "--images", ".", "--output", "x"], "H01"),
        (["rescore", "none", "--ground-truth", "."], "H01"),
        (["rehearse", ".", "--engine", "no-such-engine"], "H05"),
        (["download", "--phase", "4a46b539-119b-4889-90bf-18818ffa3dd8",
          "--output", "x"], "H09"),
    ],
)  # fmt: skip
def test_what_needs_more_than_is_there_says_so(call, words, code):
    """One line, with a code, and no fault of the program's."""
    run = call(*words)

    assert run.returncode == 1
    assert run.stderr.endswith(f"[{code}]\n")
    assert run.stderr.count("\n") == 1
