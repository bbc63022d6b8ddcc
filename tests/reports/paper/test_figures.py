"""Figures for papers: their numbers are those of metrics.json and ranking.json."""

import csv
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations

import pytest

from flare.challenge.metrics import LEFT_OUT, Better
from flare.challenge.reading import read_challenge, scoring_rules
from flare.challenge.rules import RankedMetric
from flare.ranking.rank import analyse
from flare.ranking.rules import RankingOptions, RankingRules
from flare.reports.charts import field_chart, rank_ticks
from flare.reports.paper.figures import write_evaluation_figures, write_ranking_figures
from flare.reports.paper.files import write_analysis
from flare.reports.paper.scoring import evaluation_methods
from flare.reports.rank import rank
from flare.reports.ranking.organisers import (
    mean_table,
    organiser_page,
    schemes_chart,
    values_chart,
)
from flare.reports.ranking.page import public_ranking
from flare.reports.ranking.values import WholeRanking, metric_values
from flare.reports.ranking.words import scheme_title
from flare.reports.render.paper import paper_figure
from flare.reports.render.style import drawing_style
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import read_evaluation
from flare.statistics.bootstrap import mean_interval
from tests.builders.pages import HOSTILE, metrics_content, write_json
from tests.builders.results import FLARE21, by_key, make_table, write_table, write_teams

pytestmark = pytest.mark.tools(package="matplotlib")


@pytest.fixture(autouse=True)
def fewest(monkeypatch):
    """Intervals of three values, so that they can be looked at by hand."""
    monkeypatch.setattr("flare.statistics.bootstrap.FEWEST_VALUES", 3)
    # Of these values, another test may have asked for an interval.
    monkeypatch.setattr("flare.reports.scores._interval", mean_interval)


SCORES = {
    "liver": [0.9123456789, 0.0, 0.8765432101, 0.95],
    "left_kidney": [1.0, 0.7123456701, 0.5, 0.1],
}
TITLES = {"mean of organs": "", "liver": "_liver", "left kidney": "_left_kidney"}
CENTRE = Grouping(column="centre", groups=(("Asia", (0, 2, 3)), ("not given", (1,))))


@pytest.fixture
def content():
    return metrics_content(SCORES)


@pytest.fixture
def found(tmp_path, content):
    return read_evaluation(write_json(tmp_path / "metrics.json", content))


@pytest.fixture
def undrawn(tmp_path, monkeypatch):
    """Write all figures without drawing them: their numbers, and the folder."""
    monkeypatch.setattr("flare.reports.paper.figures.WIDTHS_MM", {})

    def write(found, *groupings):
        folder = tmp_path / "out"
        write_evaluation_figures(found, folder, groupings)
        texts = {file.stem: file.read_text() for file in folder.glob("*.csv")}
        rows = {n: list(csv.DictReader(text.splitlines())) for n, text in texts.items()}
        return rows, folder

    return write


@pytest.mark.parametrize("score", ["dsc", "nsd"])
def test_figures_are_of_the_scores_of_metrics_json(found, undrawn, content, score):
    """Cases with the lowest DSC first."""
    plates, folder = undrawn(found)

    def known(organ, case):
        number = int(case.removeprefix("case_")) - 1
        return content["case"][f"{score}{TITLES[organ]}"][str(number)]

    dots = plates[f"organs_{score}"]
    assert len(dots) == 3 * 4
    for row in dots:
        assert float(row[score]) == known(row["organ"], row["case"])
    rows = plates[f"cases_{score}"]
    assert [row["case"][-1] for row in rows] == ["2", "4", "3", "1"]
    for row in rows:
        for organ in TITLES:
            assert float(row[organ]) == known(organ, row["case"])
    low, high = mean_interval(SCORES["liver"])
    mean = content["aggregates"]["dsc_liver_mean"]
    text = (folder / "organs.tex").read_text()
    assert f"\nliver & {mean:.3f} & {low:.3f} to {high:.3f} & " in text
    assert [text.count(f"{own} over 4 cases}}") for own in ("DSC", "NSD")] == [1, 1]


RULES = {
    "absent_organs.in_both": 1.0,
    "absent_organs.in_prediction": 0.0,
    "absent_organs.in_reference": 0.0,
    "decimals": 4,
    "in_mean of liver": True,
    "in_mean of left_kidney": False,
    "smallest_dsc_for_nsd": 0.2,
    "tolerance_mm of liver": 5.0,
    "tolerance_mm of left_kidney": 3.0,
    "z_range.organs": "liver",
    "z_range.top_slice": "included",
}

DISTANCES = RULES | {"metrics": "dsc, nsd, hd95, assd, volume_difference"}
OF_DISTANCES = (
    "By DSC and NSD, an organ in neither label map scored 1, one that only the"
    " prediction has 0, and one that only the reference has 0.",
    "By HD95 and ASSD, an organ in neither label map scored 0 mm, one that only the"
    " prediction has FAR, and one that only the reference has FAR.",
    "By volume difference, an organ in neither label map scored 0, one that only the"
    " prediction has 1, and one that only the reference has -1.",
    "DSC, NSD, HD95, ASSD and volume difference of a case are the means over its",
    "and got the worst value instead: 1. That is 0 by DSC and NSD, FAR by HD95 and"
    " ASSD, -1 by volume difference.",
)
"""Sentences, with how far an organ is that is missing."""


@pytest.mark.parametrize(
    ("rules", "sentences", "far"),
    [
        (RULES, (
            "Label maps of 4 cases were scored.",
            "Label maps were scored by rules as reported.",
            "Tolerances were 3 mm (left kidney); 5 mm (liver).",
            "An organ in neither label map scored 1, one that only the prediction has"
            " 0, and one that only the reference has 0.",
            "DSC and NSD of a case are the means over its organs without left kidney.",
            "liver: scored only between the lowest and the highest slice of the"
            " reference (top slice included).",
            "The NSD of an organ was 0 where its DSC was below 0.2.",
            "DSC and NSD of organs were rounded to 4 decimals.",
            "Cases that were not scored, and got the worst value instead: 1.",
            "Options of the evaluation: on_bad_case worst.",
            "Computed with the FLARE evaluation kit 0.2.0, challenge file flare21"
            " (SHA-256 unknown).",
        ), ""),
        (DISTANCES, OF_DISTANCES, "the diagonal of the reference's grid"),
        (DISTANCES | {"worst_distance_mm": 80.0}, OF_DISTANCES, "80 mm"),
        (DISTANCES | {"absent_organs.in_both": LEFT_OUT}, (
            "By HD95 and ASSD, an organ in neither label map scored no value, one that",
        ), ""),
        (scoring_rules(read_challenge("brats23-gli")) | {"labels of lesion": "each"}, (
            "Regions were the voxels of several labels: tc (1, 3); wt (1, 2, 3).",
            "Each label of either label map was one lesion, compared by itself;",
        ), ""),
        ({}, ("By which tolerances and rules is not on record.",), ""),
    ],
    ids=["most", "diagonal", "a distance", "left out", "regions", "none"],
)  # fmt: skip
def test_the_methods_are_those_that_metrics_json_tells(
    tmp_path, content, rules, sentences, far
):
    content["evaluation"] |= {"rules": rules, "options": {"on_bad_case": "worst"}}
    content["evaluation"]["rules_note"] = "rules as reported"
    content["failed"] = {"case_002": "no file"}
    source = write_json(tmp_path / "metrics.json", content)

    text = evaluation_methods(read_evaluation(source))

    for sentence in sentences:
        assert sentence.replace("FAR", far) in text
    assert "\n" not in text
    assert ("Tolerances" in text) == ("tolerance_mm of liver" in rules)


# --- Groups -----------------------------------------------------------------------


def test_tables_of_groups_have_means_with_intervals(found, undrawn):
    same = Grouping(column="Cent-re", groups=CENTRE.groups[:1])
    alike = replace(same, column="cent re")
    tables, folder = undrawn(found, CENTRE, same, alike)
    assert {"groups_2_cent_re", "groups_3_cent_re"} <= {*tables}
    names = {file.name for file in folder.iterdir()}
    assert {"captions.txt", "methods.txt", "organs.tex", "groups.tex"} <= names
    values = [SCORES["liver"][n] for n in (0, 2, 3)]
    low, high = mean_interval(values)

    rows = tables["groups_1_centre"]
    (row,) = (
        r
        for r in rows
        if (r["group"], r["organ"], r["metric"]) == ("Asia", "liver", "dsc")
    )
    assert float(row["mean"]) == pytest.approx(sum(values) / 3, abs=1e-15)
    assert (float(row["low"]), float(row["high"])) == (low, high)
    assert (row["cases"], row["missing"]) == ("3", "0")
    latex = (folder / "groups.tex").read_text()
    assert f"Asia & 3 & liver & 0.913 & {low:.3f} to {high:.3f} " in latex
    assert "not given & 1 & liver & 0.000 & too few cases " in latex
    shrunk = latex.count("\\linewidth\\else\\width\\fi}{!}{%\n\\begin{tabular}")
    assert shrunk == latex.count("\\begin{tabular}") > 0


# --- A ranking --------------------------------------------------------------------

HALVES = Grouping(column="centre", groups=(("A", (0, 1, 2, 3)), ("B", (4, 5, 6))))


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    """Four teams, of which one has a case without a time."""
    folder = write_teams(tmp_path_factory.mktemp("results"))
    return rank(folder, bootstrap=30).analysis


@pytest.fixture(scope="module")
def told(analysis, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranking")
    write_analysis(analysis, folder)
    return folder


def write_figures(analysis, folder, *groupings):
    public = public_ranking(analysis, groupings, is_organiser=True)
    ranking = WholeRanking(analysis, public, metric_values(analysis), groupings)
    write_ranking_figures(ranking, organiser_page(ranking, {}), folder)


def numbers_of(analysis, folder, *groupings):
    """The numbers of all figures, by their names, without drawing them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flare.reports.paper.figures.WIDTHS_MM", {})
        write_figures(analysis, folder, *groupings)
    texts = {file.stem: file.read_text() for file in folder.glob("*.csv")}
    return {n: list(csv.DictReader(text.splitlines())) for n, text in texts.items()}


@pytest.fixture(scope="module")
def tables(analysis, tmp_path_factory):
    return numbers_of(analysis, tmp_path_factory.mktemp("figures"))


METRICS = ("dsc", "nsd", "runtime_s", "max_gpu_memory_mb")


def number(cell):
    return float(cell) if cell else None


def test_ranks_draws_and_schemes_are_those_of_ranking_json(tables, told):
    known = json.loads((told / "ranking.json").read_text())
    assert set(tables) == {
        *("mean_ranks", "ranks_over_draws", "other_schemes", "cases_dsc", "cases_nsd"),
        *(f"{kind}_{metric}" for kind in ("values", "tests") for metric in METRICS),
        *(f"dsc_against_{metric}" for metric in METRICS[2:]),
    }
    with (told / "means.csv").open() as file:
        means = {
            (r["team"], r["metric"]): float(r["mean"]) for r in csv.DictReader(file)
        }
    for row in tables["dsc_against_runtime_s"]:
        assert float(row["dsc"]) == means[row["team"], "dsc"]
        assert float(row["runtime_s"]) == means[row["team"], "runtime_s"]
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

    names = numbers_of(analysis, tmp_path / "out")

    assert {*names} == {"mean_ranks", "values_dsc", "cases_dsc"}


def test_ranks_and_means_of_groups(analysis, tmp_path):
    """Those of running times have no interval."""
    plates = numbers_of(analysis, tmp_path, HALVES)

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


DIAGONALS = {"c0": 10.0, "c1": 20.0, "c2": 30.0, "c3": 1000.0}
PAIRS = Grouping(column="centre", groups=(("A", (0, 1)), ("B", (2, 3))))


@pytest.fixture(scope="module")
def distances():
    """A ranking by HD95, in which a has no fourth case, and c none at all."""
    values = {"a": (2.0, 4.0, 8.0, None), "b": (1.0,) * 4, "c": (None,) * 4}
    rows = {team: zip(distances, strict=True) for team, distances in values.items()}
    table = replace(
        make_table(by_key(rows, ["hd95"])), worst_values={"hd95": DIAGONALS}
    )
    rules = RankingRules(metrics=(RankedMetric(metric="hd95", better=Better.LOWER),))
    return analyse(table, FLARE21, rules, options=RankingOptions(bootstrap=0))


COUNTED = "a missing result counts as HD95 (mm) the diagonal of the case's grid"


def test_a_missing_result_counts_in_means_of_groups(distances, tmp_path):
    """(8 + 1000) / 2 = 504; a team without any result has no mean."""
    plates = numbers_of(distances, tmp_path, PAIRS)

    rows = {(r["team"], r["group"]): r for r in plates["groups_1_centre_hd95"]}
    row = rows["a", "B"]
    assert (row["cases"], row["missing"], row["mean"]) == ("2", "1", "504.0")
    assert rows["a", "A"]["mean"] == "3.0"
    assert (rows["c", "B"]["missing"], rows["c", "B"]["mean"]) == ("2", "")
    dots = [r["hd95"] for r in plates["values_hd95"] if r["team"] == "a"]
    assert dots == ["2.0", "4.0", "8.0", ""]
    (values,) = metric_values(distances)
    table = mean_table(PAIRS, values)
    texts = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert texts == {
        "a": ["3.00", "504.00, 1 missing"],
        "b": ["1.00", "1.00"],
        "c": ["no result", "no result"],
    }
    assert table.caption.endswith(COUNTED)
    assert f"In boxes and means, {COUNTED}." in (tmp_path / "captions.txt").read_text()


def test_a_missing_result_counts_in_statistics_and_does_not_stretch_the_axis(distances):
    """2, 4, 8 and 1000: a mean of 253.5, quartiles 2 + 1.5, 6 and 8 + 992 / 4."""
    (values,) = metric_values(distances)
    chart = values_chart(values)

    texts = {row[0].text: [cell.text for cell in row[1:]] for row in chart.table.rows}
    assert texts["a"] == ["1", "253.50", "2.00", "3.50", "6.00", "256.00", "1000.00"]
    assert texts["c"] == ["4", *["no result"] * 6]
    assert chart.table.caption.endswith(COUNTED)
    assert chart.axis[-1] == (1.0, "10")
    marks = dict(zip(values.teams, chart.rows, strict=True))
    dots = marks["a"]
    assert dots.places == pytest.approx([mm / 10 for mm in (2, 4, 8)])
    assert dots.box == pytest.approx([0.35, 0.6, 1])
    assert dots.mean == 1
    assert dots.missing == 1


def test_captions_tell_what_counts_only_where_something_is_missing(analysis, distances):
    """A time is left out; nothing is missing of b, which is first by distances."""
    times = metric_values(analysis)[2]
    assert mean_table(HALVES, times).caption.endswith("; a missing result is left out")
    (values,) = metric_values(distances)
    values = replace(values, teams=values.teams[:1], rows=values.rows[:1])
    assert mean_table(PAIRS, values).caption == "HD95 (mm) by centre: means"
    caption = values_chart(values).table.caption
    assert caption == "HD95 (mm): statistics of all cases"


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

    write_figures(analysis, out, grouping)

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


@pytest.mark.parametrize("width", ["column", "page"])
def test_other_schemes_are_named_in_whole_with_their_tau_and_moves(analysis, width):
    """As on the page: a metric has its title, and only who moves has a number."""
    from matplotlib.text import Text

    chart = schemes_chart(analysis.schemes)

    with drawing_style():
        drawn = paper_figure(chart, width).findobj(Text)

    texts = [text.get_text() for text in drawn]
    whole = [s for s in analysis.schemes if s.left_out is None]
    moving = [s for s in whole if s.moved and s.tau is not None]
    assert {scheme_title(scheme) for scheme in moving} <= {*texts}
    assert not any("..." in text or "dsc" in text for text in texts)
    assert [texts.count(tau) >= 1 for tau in chart.ends] == [True] * len(moving)
    numbers = [text for text in texts if text[:1] in ("+", "-") and text[1:].isdigit()]
    assert len(numbers) == sum(len(scheme.moved) for scheme in moving) > 0
    assert "+0" not in numbers


WAYS = ["efficiency only where DSC is at least 0.5", "rank, then median"]
FIVE = ["DSC", "NSD", "HD95 (mm)", "ASSD (mm)", "Running time (s)"]


@pytest.mark.parametrize("names", [[str(n) for n in range(1, 12)], FIVE])
def test_no_words_in_a_column_of_a_paper_touch_each_other(names):
    """Where long names of rows leave fields no room for their numbers, these go."""
    from matplotlib.text import Text

    of_ways = names is not FIVE
    chart = field_chart(
        WAYS if of_ways else ["1 北京协和医学影像分割队伍", "2 team"],
        names,
        [[-10.0] * len(names)] * 2,
        lambda value: "s2",
        "+.0f" if of_ways else ".2f",
        title="ways",
        summary="",
        axis=rank_ticks(len(names)) if of_ways else (),
        has_whole_labels=of_ways,
    )

    with drawing_style(chart.labels):
        figure = paper_figure(chart, "column")
        figure.draw_without_rendering()
        boxes = []
        for text in figure.findobj(Text):
            if text.get_text() and text.get_visible():
                boxes.append(text.get_window_extent())
    assert len(boxes) >= 7
    for first, second in combinations(boxes, 2):
        assert not first.overlaps(second)
