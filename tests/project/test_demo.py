"""``demo.sh``, in a copy without git: what it prints, and which files it leaves."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.builders import ROOT

pytestmark = pytest.mark.slow

COPIED = (
    *("demo.sh", "evaluate.py", "requirements.txt", "pyproject.toml"),
    *("flare", "scripts", "ground-truth", "examples"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of what the demonstration needs, and a .venv of what the tests have."""
    copy = tmp_path_factory.mktemp("demo")
    for name in COPIED:
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, copy)
    python = copy / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/bash\n[[ $2 != pip ]] || exit 0\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    return copy


@pytest.fixture(scope="module")
def printed(folder):
    """What it prints when it is started twice in a row, both times."""
    runs = [
        subprocess.run(
            [folder / "demo.sh"],
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(2)
    ]
    assert [(run.returncode, run.stderr) for run in runs] == [(0, "")] * 2
    return [run.stdout for run in runs]


def test_it_prints_the_same_again(printed):
    """But for the times, and that nothing is installed any more."""
    first, second = (
        re.sub(r"\d\.\d\d s$", "", text, flags=re.MULTILINE) for text in printed
    )

    assert first.partition("flare ")[2] == second.partition("flare ")[2]


def test_it_shows_scores_then_a_ranking(printed):
    """The first and the last of eleven are those that the simulation makes so."""
    _, scores, ranking, _ = re.split(
        r"^(?=flare \d|A ranking|Look at:)", printed[1], flags=re.MULTILINE
    )

    assert scores.rstrip().endswith("Wrote results/demo/metrics.json")
    _, table = ranking.rstrip().split("\n\n")
    header, *teams = table.splitlines()
    assert header.split()[:3] == ["rank", "team", "score"]
    assert len(teams) == 11
    assert teams[0].split()[:2] == ["1", "team_08"]
    assert teams[-1].split()[:2] == ["11", "crash"]


def test_what_is_to_be_looked_at_is_there(printed, folder):
    end = printed[1].rpartition("Look at:\n")[2]
    named = [line.split()[0] for line in end.splitlines()]

    assert len(named) >= 3
    assert [name for name in named if not (folder / name).stat().st_size] == []
