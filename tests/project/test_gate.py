"""The gate: what it runs, beside what, and that nothing gets past it that fails."""

import os
import re
import shutil
import subprocess

import pytest

from tests.builders import ROOT

GATE = ROOT / ".ci" / "run"

STAND_IN = """#!/bin/bash
echo "${0##*/} $*" >>"$GATE_CALLS"
[[ "${0##*/} $*" != *"$GATE_FAILS"* ]]
"""
"""A program that notes how it is called, and fails if it is told to."""


def rooms(name):
    """The rooms of a list of the gate."""
    (found,) = re.findall(rf"^{name}=\((.*)\)$", GATE.read_text(), re.MULTILINE)
    return set(found.split())


def test_slow_tests_of_each_room_are_run():
    folders = {
        file.relative_to(ROOT / "tests").parts[0]
        for file in (ROOT / "tests").rglob("test_*.py")
    }

    assert rooms("ROOMS_OLDEST") | rooms("ROOMS_NEWEST") == folders


@pytest.fixture
def gate(tmp_path):
    """Run the gate in a checkout all of whose programs are stand-ins."""
    checkout = tmp_path / "checkout"
    programs = tmp_path / "programs"
    tools = checkout / ".venv-3.11" / "bin"
    for folder, names in (
        (checkout, ("demo.sh", "test.sh", "docs.sh")),
        (programs, ("python3.11", "python3.13", "git", "tar", "apt-get")),
        (tools, ("ruff", "mypy", "shellcheck", "python")),
        (tmp_path / "shared" / "docker", ("start-engine",)),
    ):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(STAND_IN)
            (folder / name).chmod(0o755)
    (checkout / ".ci").mkdir()
    shutil.copy(GATE, checkout / ".ci")
    (checkout / "tests" / "a").mkdir(parents=True)
    for name, mark in (("docker", "docker"), ("others", "slow")):
        text = f"pytestmark = pytest.mark.{mark}\n"
        (checkout / "tests" / "a" / f"test_{name}.py").write_text(text)

    def run(fails="nothing"):
        calls = tmp_path / "calls"
        calls.write_text("")
        done = subprocess.run(
            [checkout / ".ci" / "run"],
            env={
                **os.environ,
                "PATH": f"{programs}:{os.environ['PATH']}",
                "GATE_CALLS": str(calls),
                "GATE_FAILS": fails,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done, calls.read_text().splitlines()

    # twine is asked in an environment of its own, which a stand-in does not make.
    script = checkout / ".ci" / "run"
    text = script.read_text()
    script.write_text(text.replace('"$work/venv/bin/', '"$python" "'))
    return run


def test_all_of_it_is_run(gate):
    done, calls = gate()

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1].startswith("== All passed (")
    tests = [call for call in calls if call.startswith("test.sh -")]
    tests = [call for call in tests if call != "test.sh --version"]  # which installs
    assert len([call for call in tests if "--all" not in call]) == 2
    (docker,) = [call for call in tests if "-m docker" in call]
    assert docker.endswith(" tests/a/test_docker.py")
    assert len([call for call in tests if "(slow or shared or browser)" in call]) == 2
    for call in tests:
        assert "--require shared --require tools" in call
    assert len([call for call in calls if call.startswith("demo.sh")]) == 2
    for wanted in (
        "docs.sh ",
        "docs.sh test -q --require docs",
        "ruff check .",
        "mypy ",
    ):
        assert wanted in calls
    assert any("twine check --strict" in call for call in calls)


@pytest.mark.parametrize(
    ("fails", "part"),
    [
        ("start-engine", "programs"),
        ("demo.sh", "prepared_newest"),
        ("-m docker", "docker"),
        ("tests/measuring", "oldest"),
        ("tests/reports", "newest"),
        ("docs.sh", "site"),
        ("docs.sh test", "site_tests"),
        ("ruff format", "form"),
        ("mypy", "form"),
    ],
)
def test_what_fails_is_named(gate, fails, part):
    done, _ = gate(fails)

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith(f"== Failed: {part} ")


def test_what_has_failed_ends_its_part_and_no_other(gate):
    """So that one run tells of all parts."""
    _, calls = gate("-m docker")

    assert "mypy " in calls
    _, calls = gate("demo.sh")
    assert not any(call.startswith("test.sh --all") for call in calls)
