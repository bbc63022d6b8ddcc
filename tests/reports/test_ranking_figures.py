"""The figures of a ranking: their numbers are those of ranking.json."""

import csv
import json
import re
import xml.etree.ElementTree as ET

import pytest

from flare.reports.paper_figures import write_ranking_figures
from flare.reports.ranking.organisers import metric_values, organiser_page
from flare.reports.ranking.page import public_ranking
from flare.reports.ranking.ranking import rank
from flare.results.groups_csv import Grouping
from tests.builders.pages import HOSTILE
from tests.builders.results import write_table, write_teams

pytestmark = pytest.mark.tools(package="matplotlib")

CENTRE = Grouping(column="centre", groups=(("A", (0, 1, 2, 3)), ("B", (4, 5, 6))))


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    """Four teams, of which one has a case without a time."""
    folder = write_teams(tmp_path_factory.mktemp("results"))
    return rank(folder, bootstrap=30).analysis


@pytest.fixture(scope="module")
def told(analysis, tmp_path_factory):
    """What flare rank writes of them."""
    from flare.reports.ranking.files import write_analysis

    folder = tmp_path_factory.mktemp("ranking")
    write_analysis(analysis, folder)
    return folder


def write(analysis, folder, *groupings):
    """Write all figures of a ranking."""
    public = public_ranking(analysis, groupings, is_organiser=True)
    told = analysis, public, metric_values(analysis), groupings
    write_ranking_figures(*told, organiser_page(*told, {}), folder)


def undrawn(analysis, folder, *groupings):
    """The numbers of all figures, by their names, without drawing them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flare.reports.paper_figures.WIDTHS_MM", {})
        write(analysis, folder, *groupings)
    texts = {file.stem: file.read_text() for file in folder.glob("*.csv")}
    return {n: list(csv.DictReader(text.splitlines())) for n, text in texts.items()}


@pytest.fixture(scope="module")
def tables(analysis, tmp_path_factory):
    """The numbers of all figures, by their names."""
    return undrawn(analysis, tmp_path_factory.mktemp("figures"))


METRICS = ("dsc", "nsd", "runtime_s", "max_gpu_memory_mb")


def number(cell):
    """What a cell of numbers holds; None if it is empty."""
    return float(cell) if cell else None


def test_ranks_draws_and_schemes_are_those_of_ranking_json(tables, told):
    known = json.loads((told / "ranking.json").read_text())
    assert set(tables) == {
        *("mean_ranks", "ranks_over_draws", "other_schemes", "cases_dsc", "cases_nsd"),
        *(f"{kind}_{metric}" for kind in ("values", "tests") for metric in METRICS),
    }
    for row, team in zip(tables["mean_ranks"], known["ranking"], strict=True):
        assert (row["team"], int(row["rank"])) == (team["team"], team["rank"])
        assert float(row["score"]) == team["score"]
        assert {m: float(row[m]) for m in METRICS} == team["mean_ranks"]
    drawn = zip(tables["ranks_over_draws"], known["bootstrap"]["teams"], strict=True)
    for row, team in drawn:
        assert row["team"] == team["team"]
        assert [int(row["lowest"]), int(row["highest"])] == team["interval"]
        assert [float(row[f"rank_{n}"]) for n in range(1, 5)] == team["frequencies"]
    rows = {(r["scheme"], r["team"]): r for r in tables["other_schemes"]}
    for scheme in known["schemes"]:
        for team, rank_of_team in scheme["ranks"].items():
            row = rows[scheme["scheme"], team]
            assert int(row["rank"]) == rank_of_team
            assert number(row["kendall_tau"]) == scheme["kendall_tau"]
            assert (row["rank"] != row["rank_before"]) == (team in scheme["moved"])
    tests = known["tests"]
    for test in tests["pairs"]:
        rows = {(r["team"], r["other"]): r for r in tables[f"tests_{test['metric']}"]}
        row = rows[test["team"], test["other"]]
        assert len(rows) == 4 * 3
        assert float(row["effect"]) == test["effect"]
        is_sure = test["p_holm"] <= tests["alpha"]
        assert row["significant"] == ("yes" if is_sure else "no")


def test_values_are_those_of_values_csv_hardest_case_first(tables, told):
    with (told / "values.csv").open() as file:
        known = {
            (r["team"], r["case"], r["metric"]): number(r["value"])
            for r in csv.DictReader(file)
        }
    for metric in METRICS:
        for row in tables[f"values_{metric}"]:
            assert number(row[metric]) == known[row["team"], row["case"], metric]
    means = []
    for case, *own in (row.values() for row in tables["cases_dsc"]):
        assert list(map(number, own)) == [
            known[team, case, "dsc"] for team in list(tables["cases_dsc"][0])[1:]
        ]
        means.append(sum(number(cell) or 0 for cell in own))
    assert means == sorted(means)


def test_a_ranking_of_one_team_has_no_tests_nor_schemes(tmp_path):
    source = write_table(tmp_path / "table.csv", [("a", "1", "dsc", 0.9)])
    analysis = rank(source, metrics=["dsc"], bootstrap=0).analysis

    names = undrawn(analysis, tmp_path / "out")

    assert {*names} == {"mean_ranks", "values_dsc", "cases_dsc"}


# --- Groups -----------------------------------------------------------------------


def test_ranks_and_means_of_groups(analysis, tmp_path):
    """Those of running times have no interval."""
    plates = undrawn(analysis, tmp_path, CENTRE)

    ranks = plates["groups_1_centre_ranks"]
    assert {(r["group"], r["cases"]) for r in ranks} == {("A", "4"), ("B", "3")}
    means = {(r["team"], r["group"]): r for r in plates["groups_1_centre_dsc"]}
    row = means["team_0", "B"]
    values = [0.9 - n * 5 % 11 / 40 for n in (4, 5, 6)]  # as they were made
    assert float(row["mean"]) == pytest.approx(sum(values) / 3, abs=1e-15)
    assert 0 <= float(row["low"]) < float(row["mean"]) < float(row["high"]) <= 1
    times = plates["groups_1_centre_runtime_s"]
    assert list(times[0]) == ["team", "group", "cases", "missing", "mean"]
    (row,) = (r for r in times if (r["team"], r["group"]) == ("team_3", "A"))
    assert (row["cases"], row["missing"]) == ("4", "1")
    measured = [5 + (3 * 7 + n) % 9 for n in (0, 1, 3)]
    assert float(row["mean"]) == pytest.approx(sum(measured) / 3)
    text = (tmp_path / "groups.tex").read_text()
    assert " to " not in text.partition("Running time (s) by")[2].partition("end{t")[0]
    assert "team & all cases & A (4 cases) & B (3 cases)" in text


# --- Files ------------------------------------------------------------------------


@pytest.mark.slow
def test_hostile_teams_are_text_and_nobody_is_warned(tmp_path, capfd):
    """And teams whose names are formulas, or mathematics."""
    teams = [name for name in HOSTILE if name.isprintable()]
    teams += ["$x_1^2$ \\frac", "=1+1", "100% & more"]
    rows = [
        (team, case, "dsc", (n * 7 + m * 3) % 10 / 10)
        for n, team in enumerate(teams)
        for m, case in enumerate(teams[:4])
    ]
    source = write_table(tmp_path / "table.csv", rows)
    analysis = rank(source, metrics=["dsc"], bootstrap=20).analysis
    out = tmp_path / "out"
    grouping = Grouping(column="=a$b", groups=((HOSTILE[0], (0, 1)), ("$c", (2, 3))))

    write(analysis, out, grouping)

    assert capfd.readouterr() == ("", "")
    for file in out.glob("*.svg"):
        ET.parse(file)
    for file in out.glob("*.pdf"):
        content = file.read_bytes()
        assert b"/FontFile2" in content
        assert b"/Type3" not in content
    for file in out.glob("*.csv"):
        with file.open(encoding="utf-8", newline="") as cells:
            for row in csv.reader(cells):
                # A negative number is no formula.
                assert not any(re.match(r"[=+@]|-[^\d]", cell) for cell in row)
    latex = (out / "ranking.tex").read_text()
    assert r"\$x\_1\textasciicircum{}2\$ \textbackslash{}frac" in latex
    assert r"100\% \& more" in latex
    assert r"\textless{}!--" in latex
