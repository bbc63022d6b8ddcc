"""What README says is true."""

import re

import numpy as np
import pytest

from tests.builders import ROOT, run_program, write_cases

README = (ROOT / "README.md").read_text(encoding="utf-8")


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
