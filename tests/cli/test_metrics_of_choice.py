"""Every command, by challenges that have other metrics than DSC and NSD."""

import numpy as np
import pytest

from flare.cli.main import main
from tests.builders import read_metrics, write_file, write_nifti

ORGANS = """
[[organs]]
label = 1
name = "liver"
[[organs]]
label = 2
name = "lesion"
"""
CASES = ("c1", "c2", "c3")


def write_maps(folder, shift):
    """A liver in each case, and a lesion in the first two; moved by some voxels."""
    for number, case in enumerate(CASES):
        labels = np.zeros((6, 8, 12), dtype=np.uint8)
        labels[1:5, 2:6, 1 + shift : 6 + shift] = 1
        if number < 2:
            labels[2:4, 3:5, 7 + shift : 9 + shift] = 2
        write_nifti(folder / f"{case}.nii.gz", labels)
    return folder


@pytest.fixture
def flare(tmp_path, monkeypatch, capfd):
    """Run a command on references, and on teams that are 1 and 2 voxels off."""
    monkeypatch.chdir(tmp_path)
    write_maps(tmp_path / "labels", 0)
    for shift, team in enumerate(("a", "b"), start=1):
        write_maps(tmp_path / "teams" / team, shift)

    def run(words, status=0):
        assert main(words.split()) == status, (words, capfd.readouterr())
        return capfd.readouterr()

    return run


COMMANDS = (
    "challenge validate mine.toml",
    "check-references labels --challenge mine.toml",
    "check teams/a --ground-truth labels --challenge mine.toml",
    "evaluate teams/a --ground-truth labels --challenge mine.toml --output e"
    " --csv e/a.csv",
    "score teams --ground-truth labels --challenge mine.toml --output r",
    "rank r --challenge mine.toml --output rank --by-organ",
    "rank rank/values.csv --challenge mine.toml --output again",
    "report e/metrics.json --output e.html",
    "report e/metrics.json --output e --audience organiser --ground-truth labels"
    " --predictions teams/a",
    "report rank --output rank-page --audience organiser",
    "report r --challenge mine.toml --output case --audience organiser --case c1"
    " --ground-truth labels --predictions teams",
    "report r/a/metrics.json r/b/metrics.json --output both --audience organiser",
    "phase-settings --challenge mine.toml",
)


@pytest.mark.parametrize("metrics", [["dsc"], ["hd95", "dsc"], ["assd"]])
def test_a_challenge_has_the_metrics_that_it_names_and_no_others(
    flare, tmp_path, metrics
):
    """Without NSD, no organ needs a tolerance; team a is the better one by all."""
    ranking = ""
    for name in metrics:
        better = "higher" if name == "dsc" else "lower"
        ranking += f'[[ranking]]\nmetric = "{name}"\nbetter = "{better}"\n'
    text = f'name = "Mine"\nmetrics = {metrics}\n{ORGANS}{ranking}'
    write_file(tmp_path / "mine.toml", text)

    for words in COMMANDS:
        assert flare(words).err == ""
    found = flare("doctor teams/a --ground-truth labels --challenge mine.toml", 1).out

    assert "1.0000 repaired" in found
    assert (tmp_path / "rank/ranking.csv").read_text().split("\n")[1].startswith("a,1,")
    columns = {name.split("_")[0] for name in read_metrics(tmp_path / "e")["case"]}
    assert columns == {*metrics, "alg", "gt"}
    pages = list(tmp_path.glob("**/*.html"))
    assert len(pages) > 8
    for page in pages:
        assert "NSD" not in page.read_text(), page
