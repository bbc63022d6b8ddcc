"""What the pages about Python say is true."""

import json
import re

import numpy as np

import flare
from flare.ranking.simulation import write_simulation
from tests.builders import ROOT, write_cases
from tests.builders.results import FLARE21

FOLDER = ROOT / "docs" / "python"
PAGE = (FOLDER / "index.md").read_text(encoding="utf-8")
NOTEBOOK = json.loads((FOLDER / "notebook.ipynb").read_text(encoding="utf-8"))


def test_every_public_name_is_described():
    described = re.findall(r"^::: flare\.(\w+)$", PAGE, flags=re.MULTILINE)

    assert sorted(described) == flare.__all__


def test_the_examples_run(tmp_path, monkeypatch):
    """One after the other, in a folder that has what they name."""
    for folder in ("predictions", "labels"):
        write_cases(tmp_path / folder, ["case_1", "case_2"])
    write_simulation(FLARE21, tmp_path / "measured", teams=2, cases=3)
    (tmp_path / "measured" / "team_01").rename(tmp_path / "measured" / "team_a")
    traces = tmp_path / "measured" / "team_a" / "traces"
    traces.mkdir()
    (traces / "case_001.csv").write_text("seconds,gpu_memory_mb\n0.1,800\n")
    monkeypatch.chdir(tmp_path)
    mask = np.ones((2, 3, 4), dtype=bool)
    examples = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)

    exec("".join(examples), {"reference": mask, "prediction": mask})

    assert len(examples) == 2
    assert (tmp_path / "results" / "metrics.json").exists()
    assert (tmp_path / "ranking" / "ranking.csv").exists()


def test_the_notebook_is_stored_without_what_it_shows():
    """The site runs it: what was stored would be shown by nobody, and grow old."""
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]

    assert cells
    for cell in cells:
        assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_what_the_notebook_shows_is_what_it_tells():
    """Of the first case, whose pancreas is missed."""
    results = flare.evaluate(ROOT / "examples" / "predictions", ROOT / "ground-truth")

    assert results.metrics["dsc_pancreas"][0] == 0
