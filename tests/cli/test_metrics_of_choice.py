"""Every command, by challenges that have other metrics than DSC and NSD."""

import json

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


LEFT_OUT = """
metrics = ["dsc"]
absent_organs = { in_both = "left_out", in_reference = "left_out" }
[[ranking]]
metric = "dsc_lesion"
better = "higher"
[[ranking]]
metric = "dsc_liver"
better = "higher"
"""


def test_what_is_left_out_ranks_nobody_and_is_said_wherever_a_mean_stands(
    flare, tmp_path
):
    """The third case has no lesion, so team b cannot gain there by finding one."""
    write_file(tmp_path / "mine.toml", f'name = "Mine"{LEFT_OUT}{ORGANS}')
    labels = np.zeros((6, 8, 12), dtype=np.uint8)
    labels[1:5, 2:6, 3:8] = 1
    labels[0, 0, 0] = 2
    write_nifti(tmp_path / "teams" / "b" / "c3.nii.gz", labels)

    for words in COMMANDS:
        said = flare(words)
        assert said.err == ""
        if words.startswith(("evaluate", "rank r ")):
            assert "2 of 3" in said.out

    # Of lesions, the means are of the first two cases: 2 of 4 voxels a row are shared,
    # or none. Ranks are 1 and 2 on five places, not on six.
    rows = (tmp_path / "rank/ranking.csv").read_text().split("\n")[1:3]
    assert rows == ["a,1,0.5,1,1", "b,2,1,2,2"]
    means = (tmp_path / "rank/means.csv").read_text()
    assert "dsc_lesion,,a,2,0,0.5,0.0," in means
    assert "dsc_lesion,,b,2,0,0.0,0.0," in means
    assert json.loads((tmp_path / "rank/ranking.json").read_text())["missing"] == []
    for name in ("values", "case_ranks"):
        text = (tmp_path / f"rank/{name}.csv").read_text()
        assert "b,c3,dsc_lesion,left_out\n" in text
        again = (tmp_path / f"again/{name}.csv").read_text()
        assert set(again.split("\n")) <= set(text.split("\n"))
    aggregates = read_metrics(tmp_path / "e")["aggregates"]
    assert aggregates["dsc_lesion_mean"] == 0.5
    for page in ("rank-page/index.html", "rank-page/teams/b.html", "case/index.html"):
        assert "lesion on 1 of 3" in (tmp_path / page).read_text(), page
    assert "e,c3,dsc_lesion,left_out\n" in (tmp_path / "e/a.csv").read_text()


@pytest.mark.parametrize(
    ("absent", "is_fair"),
    [
        ('in_both = "left_out"', False),
        ('in_reference = "left_out"', False),
        ('in_both = "left_out", in_reference = "left_out"', True),
        ('in_both = "left_out", in_reference = "left_out", in_prediction = "left_out"',
         False),
    ],
)  # fmt: skip
def test_ranks_on_each_case_are_refused_where_leaving_out_could_gain(
    flare, tmp_path, absent, is_fair
):
    text = LEFT_OUT.replace('in_both = "left_out", in_reference = "left_out"', absent)
    write_file(tmp_path / "mine.toml", f'name = "Mine"{text}{ORGANS}')
    write_file(tmp_path / "t.csv", "team,case,metric,value\na,c,dsc_lesion,0.5\n")

    said = flare("challenge validate mine.toml").out
    assert ("cannot be ranked on each case, as one could gain" in said) != is_fair
    words = "rank t.csv --output o --metrics dsc_lesion --challenge mine.toml"
    assert flare(words, status=1 - is_fair).err.startswith("" if is_fair else "mine: ")


def test_teams_are_not_ranked_on_a_case_that_is_left_out_of_one_alone(flare, tmp_path):
    write_file(tmp_path / "mine.toml", f'name = "Mine"{LEFT_OUT}{ORGANS}')
    rows = ["a,c1,dsc_lesion,0.5", "b,c1,dsc_lesion,left_out", "a,c2,dsc_lesion,1"]
    write_file(tmp_path / "t.csv", "\n".join(["team,case,metric,value", *rows, ""]))

    words = "rank t.csv --output o --metrics dsc_lesion --challenge mine.toml"
    error = flare(words, status=1).err

    assert error.startswith("t.csv: b c1 dsc_lesion is left_out, and another team's is")


def test_ranks_of_means_take_values_that_are_left_out_of_one_team_alone(
    flare, tmp_path
):
    """The mean of a is (0.5 + 0.9) / 2; of b, which lacks a result, (0.6 + 0.6) / 3.

    Of c all is left out: it is last, and has no case in common with another team.
    """
    rule = LEFT_OUT.replace("in_both", "in_prediction", 1).replace("dsc_lesion", "dsc")
    scheme = '[scheme]\nkind = "means"\n'
    write_file(tmp_path / "mine.toml", f'name = "Mine"{rule}{ORGANS}{scheme}')
    rows = [("a", "0.5", "left_out", "0.9"), ("b", "0.6", "0.6", "")]
    rows.append(("c", *["left_out"] * 3))
    lines = ["team,case,metric,value"]
    for team, *values in rows:
        for case, value in enumerate(values):
            lines.append(f"{team},{case},dsc,{value}")
    write_file(tmp_path / "t.csv", "\n".join([*lines, ""]))

    assert not flare("rank t.csv --output o --metrics dsc --challenge mine.toml").err
    flare("report o --output pages")

    means = (tmp_path / "o/means.csv").read_text().split("\n")[1:3]
    assert [line.split(",")[2:6] for line in means] == [
        ["a", "2", "0", "0.7"],
        ["b", "3", "1", "0.39999999999999997"],
    ]
    ranking = (tmp_path / "o/ranking.csv").read_text().split("\n")
    assert (ranking[1], ranking[3]) == ("a,1,0.3333333333333333,1", "c,3,1,3")
    assert "0.700" in (tmp_path / "pages/teams/a.html").read_text()
    assert "a,1,dsc,left_out\n" in (tmp_path / "o/values.csv").read_text()
