"""What README and the other pages say is true: their commands and examples run."""

import os
import re
import shlex
import shutil
import sys

import numpy as np
import pytest

import flare
from flare.ranking.simulation import write_simulation
from tests.builders import ROOT, run_command, run_flare, run_program, write_cases
from tests.builders.results import FLARE21

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.replace("\\\n", "").splitlines()
]
QUICK = ("check", "explain", "phase-settings")


def name_of(command):
    return command[1] if command[0] == "./flare.sh" else command[0]


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if name_of(c) in QUICK], ids=name_of
)
def test_a_command_of_readme_runs(command):
    run = run_flare(*command[1:])

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


def test_the_demonstration_prints_what_readme_shows(output):
    """But for the times."""
    quoted = re.search(r"```text\n(flare .*?)```", README, flags=re.DOTALL)[1]

    run = run_program(
        *("--input", "examples/predictions", "--ground-truth", "ground-truth"),
        *("--output", output, "--workers", "2"),
    )

    def lines(text):
        text = re.sub(r"(?m)^Metrics are counted by NumPy.*\n", "", text)
        return [re.sub(r"\d\.\d\d s$", "", line).rstrip() for line in text.splitlines()]

    assert lines(run.stdout.decode())[:-1] == lines(quoted)[:-1]


@pytest.mark.parametrize("page", ["README.md", "docs/python/index.md"])
def test_the_examples_in_python_run(page, tmp_path, monkeypatch):
    """One after the other, in a folder that has what they name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    for folder in ("predictions", "labels"):
        write_cases(tmp_path / folder, ["case_1", "case_2"])
    write_simulation(FLARE21, tmp_path / "measured", teams=2, cases=3)
    (tmp_path / "measured" / "team_01").rename(tmp_path / "measured" / "team_a")
    traces = tmp_path / "measured" / "team_a" / "traces"
    traces.mkdir()
    (traces / "case_001.csv").write_text("seconds,gpu_memory_mb\n0.1,800\n")
    monkeypatch.chdir(tmp_path)
    mask = np.ones((2, 3, 4), dtype=bool)

    exec("".join(examples), {"reference": mask, "prediction": mask})

    assert (tmp_path / "results" / "metrics.json").exists()


def test_every_public_name_is_described():
    page = (ROOT / "docs" / "python" / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: flare\.(\w+)$", page, re.M)) == flare.__all__


INTERNAL = {"FLARE_COMMIT", "FLARE_COMPLETE", "FLARE_PROGRAM"}
"""Variables that nobody sets by hand, or that the first page has."""


def test_every_variable_that_is_read_is_in_the_table():
    files = [*ROOT.glob("*.sh"), *ROOT.glob("scripts/*.sh"), ROOT / "Dockerfile"]
    files += [*ROOT.glob("flare/**/*.py"), *ROOT.glob("examples/**/*.sh")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    page = (ROOT / "docs/organisers/container.md").read_text(encoding="utf-8")

    found = set(re.findall(r"\bFLARE_[A-Z_]*[A-Z]", page.split("## Environment")[1]))

    assert found == set(re.findall(r"\bFLARE_[A-Z_]*[A-Z]", text)) - INTERNAL


# --- A page that is followed ------------------------------------------------------

FENCE = (
    r"^(?:<!-- (?:(not run): [^\n]+|ends with status (\d)) -->\n)?```(\w+)\n(.*?)^```$"
)


def plain(text):
    """A text without times and versions, in lines that have an end."""
    text = re.sub(r"\b\d+\.\d\d s\b", "TIME", text.strip("\n"))
    text = re.sub(r"\b\d+\.\d+\.\d+\b", "VERSION", text)
    return [f"{line.rstrip()}\n" for line in text.split("\n")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "number"), [("organisers/index.md", 5), ("reference/answers.md", 4)]
)
def test_the_commands_of_a_page_print_what_it_shows(tmp_path, page, number):
    """Each goes on with what those before have made."""
    place = tmp_path / "checkout"
    for name in ("examples", "ground-truth"):
        shutil.copytree(ROOT / name, place / name)
    (tmp_path / "flare").write_text(f'#!/bin/sh\nexec {sys.executable} -m flare "$@"\n')
    (tmp_path / "flare").chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FLARE_")}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(FENCE, text, re.MULTILINE | re.DOTALL)
    runs = 0
    for own, (_, _, language, shown) in zip(found, [*found[1:], [""] * 4], strict=True):
        not_run, status, kind, script = own
        if kind != "sh" or not_run:
            continue
        words = ("bash", "-e", "-c", f"exec 2>&1\n{script}")
        run = run_command(*words, cwd=place, env=environment)
        assert run.returncode == int(status or 0), run.stdout
        if language == "text":
            lines = (".*" if s == "...\n" else re.escape(s) for s in plain(shown))
            printed = "".join(plain(run.stdout))
            assert re.fullmatch("".join(lines), printed, re.DOTALL), run.stdout
        runs += 1
    assert runs >= number
