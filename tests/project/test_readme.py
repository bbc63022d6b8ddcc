"""What README says is true."""

import re
import shlex

import numpy as np
import pytest

from tests.builders import ROOT, run_flare, run_program, write_cases

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
]
QUICK = ("check", "explain", "phase-settings")
TRIED = {
    "./demo.sh": "test_demo.py",
    "./test.sh": "by which this test is run",
    **dict.fromkeys(("./build.sh", "./rehearse.sh", "./export.sh"), "test_image.py"),
    "examples/teams/make.sh": "../measuring/test_measure.py",
    **dict.fromkeys(("demonstration", "measure"), "../measuring/test_measure.py"),
    **dict.fromkeys(("simulate", "rank"), "../ranking/test_simulation.py"),
    "report": "../cli/test_report.py",
    "score": "../cli/test_score.py",
}
"""Commands of README that take longer, and the tests that run them."""


def name_of(command):
    """The program, or the command of flare."""
    return command[1] if command[0] == "./flare.sh" else command[0]


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if name_of(c) in QUICK], ids=name_of
)
def test_a_command_of_readme_runs(command):
    run = run_flare(*command[1:])

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


def test_every_command_of_readme_is_run_by_a_test():
    assert {name_of(command) for command in COMMANDS} == {*QUICK, *TRIED}


def test_the_demonstration_prints_what_readme_shows(output):
    """But for the times."""
    quoted = re.search(r"```text\n(flare .*?)```", README, flags=re.DOTALL)[1]

    run = run_program(
        *("--input", "examples/predictions", "--ground-truth", "ground-truth"),
        *("--output", output, "--workers", "2"),
    )

    def lines(text):
        return [re.sub(r"\d\.\d\d s$", "", line).rstrip() for line in text.splitlines()]

    assert lines(run.stdout.decode())[:-1] == lines(quoted)[:-1]


def test_the_example_in_python_runs(tmp_path, monkeypatch):
    example = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)[1]
    write_cases(tmp_path / "predictions", ["case_1", "case_2"])
    write_cases(tmp_path / "labels", ["case_1", "case_2"])
    monkeypatch.chdir(tmp_path)
    mask = np.ones((2, 3, 4), dtype=bool)

    exec(example, {"reference": mask, "prediction": mask})

    assert (tmp_path / "results" / "metrics.json").exists()


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"\]\((?!http)([^)#]+)\)", README)))
)
def test_links_lead_somewhere(path):
    assert (ROOT / path).exists()


def test_readme_stays_short():
    assert len(README.splitlines()) <= 160
