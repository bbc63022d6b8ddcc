"""The tables of means, beside pandas, SciPy, and what is worked out by hand."""

import json
import math
from dataclasses import replace
from itertools import permutations

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

import flare
from flare.challenge.metrics import METRICS, Better, Metric, _metric_named
from flare.challenge.reading import challenge_text
from flare.cli.main import main
from flare.ranking.decisions import Decisions, TeamDecision
from flare.ranking.means import ranking_means, team_means
from flare.ranking.rank import analyse
from flare.ranking.rules import MissingRule, RankingOptions, RankingRules
from flare.reports.paper.tables import mean_files, mean_tables, page_text
from flare.reports.ranking.page import public_ranking
from flare.reports.render.html import page_html
from tests.builders import case_names, organ_boxes, write_cases
from tests.builders.pages import content_of, pages_of_ranking, rows_of
from tests.builders.results import DSC, FLARE21, TIME, make_table

RULES = RankingRules(metrics=(DSC, TIME))
VALUE = RankingRules(
    metrics=(replace(DSC, failed=0.0), replace(TIME, failed=3600.0)),
    missing=MissingRule.VALUE,
)


def analysis_of(values, rules=RULES, guests=(), challenge=FLARE21):
    """A ranking of values by team and metric, a value for each case."""
    table = make_table(
        {
            (team, f"c{case:02}", metric): value
            for team, by_metric in values.items()
            for metric, own in by_metric.items()
            for case, value in enumerate(own)
        }
    )
    others = tuple(name for name in table.metrics if name not in rules.names)
    table = replace(table, metrics=rules.names, others=others)
    out = tuple(TeamDecision(team=t, reason="ours", date="today") for t in guests)
    decisions = Decisions(out_of_competition=out)
    return analyse(table, challenge, rules, decisions, RankingOptions(bootstrap=0))


def random_values(teams, columns=("dsc", "dsc_liver", "dsc_spleen"), cases=12):
    """Made-up scores in hundredths, so that some of them tie; a bit better by team."""
    generator = np.random.default_rng(5)
    return {
        team: {
            column: (generator.integers(40 + 6 * n, 80 + 6 * n, cases) / 100).tolist()
            for column in columns
        }
        for n, team in enumerate(teams)
    }


def test_numbers_are_those_of_pandas(tmp_path):
    values = random_values("abc")
    rules = RankingRules(metrics=(DSC,))
    texts = dict(mean_files(ranking_means(analysis_of(values, rules)), "Test"))
    (tmp_path / "means.csv").write_text(texts["means.csv"])

    found = pd.read_csv(tmp_path / "means.csv", keep_default_na=False)

    assert len(found) == 3 * 3
    for row in found.itertuples():
        column = f"{row.metric}_{row.organ}" if row.organ else row.metric
        own = pd.Series(values[row.team][column])
        quartiles = own.quantile([0.25, 0.5, 0.75]).tolist()
        assert [row.first_quartile, row.median, row.third_quartile] == pytest.approx(
            quartiles, abs=1e-12
        )
        assert (row.mean, row.sd) == pytest.approx((own.mean(), own.std()), abs=1e-12)
        assert (row.n, row.missing) == (12, 0)


@pytest.mark.parametrize(
    ("rules", "expected", "note"),
    [
        (RULES, [("0.400 \u00b1 0.529\u2020", "6.0 \u00b1 1.4 (n = 2)")],
         "counts as DSC 0; of Running time (s), it is left out."),
        (VALUE, [("0.400 \u00b1 0.529\u2020", "1204.0 \u00b1 2075.0\u2020")],
         "counts as DSC 0, Running time (s) 3600."),
    ],
)  # fmt: skip
def test_a_missing_result_counts_as_the_challenge_says(rules, expected, note):
    """DSC 0.2, 1, 0 (0.5292 = sqrt(0.28)), times 5, 7 and perhaps 3600."""
    values = {
        "a": {"dsc": [0.2, 1.0, None], "runtime_s": [5.0, 7.0, None]},
        "b": {"dsc": [0.5] * 3, "runtime_s": [4.0] * 3},
    }
    tables = dict(mean_tables(ranking_means(analysis_of(values, rules)), "Test"))

    rows = {row[0].text: row[1:] for row in tables["means"].rows}
    assert [tuple(cell.text for cell in rows["a"])] == expected
    assert (
        f"Test, 3 cases: mean \u00b1 standard deviation (n-1). A missing result {note}"
        in (tables["means"].caption)
    )
    median = {row[0].text: row[1].text for row in tables["medians"].rows}["a"]
    assert median == "0.200 (0.100 to 0.600)"


@pytest.mark.parametrize(("worst", "n", "mean"), [(300.0, 3, 102.0), (None, 2, 3.0)])
def test_a_missing_distance_counts_as_the_worst_one_of_the_challenge(worst, n, mean):
    values = {"a": {"dsc": [0.5] * 3, "hd95": [2.0, 4.0, None]}}
    analysis = analysis_of(values, RankingRules(metrics=(DSC,)))
    challenge = replace(analysis.challenge, worst_distance_mm=worst)

    for means in (
        ranking_means(replace(analysis, challenge=challenge)),
        team_means(analysis.table, challenge),
    ):
        (row,) = (row for row in means.rows if row.metric == "hd95")
        assert (row.n, row.missing) == (n, 1)
        assert row.mean == pytest.approx(mean)


def test_a_case_left_out_costs_the_diagonal_of_its_grid_in_every_table(tmp_path):
    """As in metrics.json and on a board; also on pages of a written ranking."""
    known, labels = case_names(3), organ_boxes()
    references = write_cases(tmp_path / "labels", known)
    header = nib.load(references / f"{known[2]}.nii.gz").header
    diagonal = math.hypot(*np.multiply(header.get_data_shape(), header.get_zooms()))
    own, results, told = tmp_path / "own.toml", tmp_path / "results", {}
    own.write_text(
        'metrics = ["dsc", "nsd", "hd95", "assd"]\n'
        + challenge_text("flare21").partition("[[ranking]]")[0]
        + '[[ranking]]\nmetric = "hd95"\nbetter = "lower"\n'
    )
    for team, cases in {"all": known, "most": known[:2]}.items():
        maps = write_cases(tmp_path / team, cases, labels=labels)
        found = flare.evaluate(
            maps, references, challenge=own, on_bad_case="worst", workers=1
        )
        told[team] = flare.write_metrics(found, results / team).read_text()
    expected = json.loads(told["most"])["aggregates"]
    assert expected["hd95_mean"] == pytest.approx(diagonal / 3)

    main(
        ["rank", str(results), "--challenge", str(own), "--output", str(tmp_path / "r")]
    )

    for row in pd.read_csv(tmp_path / "r" / "means.csv", keep_default_na=False).iloc:
        column = "_".join(filter(None, (row.metric, row.organ, "mean")))
        if row.team == "most":
            assert (row.n, row["mean"]) == (3, pytest.approx(expected[column]))
    for is_written, source in ((False, results), (True, tmp_path / "r")):
        for is_organiser in (True, False):
            options = {"is_written": is_written, "challenge": str(own)}
            pages = pages_of_ranking(source, is_organiser=is_organiser, **options)
            row = content_of(pages["teams/most.html"], "Means and mean ranks")[0]
            assert float(row["mean"].text) == pytest.approx(diagonal / 3, abs=0.06)
            text = page_html(pages["teams/most.html"])
            assert "HD95 (mm) the diagonal of the case&#39;s grid" in text


def test_a_page_has_the_mean_of_a_team_of_which_half_the_times_are_missing():
    values = {"a": {"dsc": [0.5, None], "runtime_s": [5.0, None]}}
    found = public_ranking(replace(analysis_of(values), shows_means=True))

    assert found.means == {"dsc": [(0.25, 1)], "runtime_s": [(5.0, 1)]}


def told_apart(columns):
    """Ordered pairs of which SciPy and Holm say that the first is better."""
    pairs = list(permutations(columns, 2))
    p = [
        wilcoxon(columns[a], columns[b], alternative="greater", correction=True,
                 method="approx").pvalue
        for a, b in pairs
    ]  # fmt: skip
    order = sorted(range(len(p)), key=p.__getitem__)
    told, largest = set(), 0.0
    for place, number in enumerate(order):
        largest = max(largest, (len(p) - place) * p[number])
        if largest <= 0.05:
            told.add(pairs[number])
    return told


@pytest.mark.parametrize("column", ["dsc", "dsc_liver", "dsc_spleen"])
def test_bold_is_the_best_and_marked_what_the_test_does_not_tell_from_it(column):
    """By organ, which is not ranked, too; a team out of competition never is."""
    values = random_values("abcde", cases=15)
    rules = RankingRules(metrics=(DSC,))
    means = ranking_means(analysis_of(values, rules, guests="e"))

    columns = {team: np.array(values[team][column]) for team in "abcd"}
    best = max(columns, key=lambda team: columns[team].mean())
    told = told_apart(columns)
    expected = {team for team in "abcd" if (best, team) not in told}
    organ = column.partition("_")[2]
    found = [
        {own.team for own in rows if own.organ == organ}
        for rows in (means.best, means.level)
    ]
    assert found == [{best}, expected - {best}]
    assert 1 < len(expected) < 4, "or else the test would say little"
    name, head = ("means_dsc", organ) if organ else ("means", "DSC")
    table = dict(mean_tables(means, "T"))[name]
    for row in rows_of(table):
        marked = row[head].text.endswith("\u2020")
        assert marked == (row["Team"].text in expected - {best})
        assert (row[head].css == "best") == (row["Team"].text == best)
    assert "Holm over all ordered pairs of teams" in table.caption
    assert "Out of competition: e." in table.caption
    assert table.quiet == [4]


def test_ranking_md_has_teams_out_of_competition_and_means_where_they_may_be_told():
    """Of the metrics of the ranking alone, and of no organ."""
    values = {t: {"dsc": [dsc] * 3, "nsd": [0.5] * 3, "dsc_liver": [0.1] * 3}
              for t, dsc in (("a", 0.8), ("b", 0.9))}  # fmt: skip
    analysis = analysis_of(values, RankingRules(metrics=(DSC,)), guests="b")

    assert page_text(analysis) == (
        "| rank | team | score | mean rank: DSC |\n"
        "|---|---|---|---|\n"
        "| 1 | a | 1.0000 | 1.00 |\n"
        "| - | b |  | 1.00 |\n\n"
        "Last ones: out of competition, without rank or score; ranked on each case as"
        " if it alone had joined the 1 team.\n\n"
        "- Out of competition: b: ours (today)"
    )
    text = page_text(replace(analysis, shows_means=True))
    assert "| Team | DSC |\n|---|---|\n| a | **0.800 \u00b1 0.000** |\n" in text
    assert "| b | 0.900 \u00b1 0.000 |\n\n- Out of" in text
    assert "NSD" not in text
    assert "0.100" not in text


def test_ranking_md_has_no_means_where_no_ranked_metric_may_be_told(tmp_path):
    """A challenge may rank by a column of its own alone, whose meaning nobody knows."""
    rules, rows = tmp_path / "mine.toml", tmp_path / "results.csv"
    rules.write_text(
        'name = "Mini"\n[[organs]]\nlabel = 1\nname = "liver"\ntolerance_mm = 1\n'
        '[[ranking]]\nmetric = "mine"\nbetter = "lower"\n'
    )
    rows.write_text("team,case,metric,value\na,c1,mine,1\nb,c1,mine,2\n")

    output = tmp_path / "r"
    words = ["rank", rows, "--challenge", rules, "--output", output, "--means"]
    assert main([*map(str, words)]) == 0

    text = (output / "ranking.md").read_text()
    places = "| 1 | a | 0.5000 | 1.00 |\n| 2 | b | 1.0000 | 2.00 |\n"
    assert text.endswith(places)


def test_of_distances_the_smallest_is_bold_and_of_signed_values_none(monkeypatch):
    """A missing distance is left out, and never makes a mean the best."""
    common = {"definition": "x", "function": "none:none", "worst": None}
    for metric in (
        Metric(name="far", title="Far", unit="mm", better=Better.LOWER, decimals=1,
               **common),
        Metric(name="signed", title="Signed", better=None, **common),
    ):  # fmt: skip
        monkeypatch.setitem(METRICS, metric.name, metric)
    _metric_named.cache_clear()
    values = {
        "a": {"dsc": [0.5, 0.5], "far": [2.0, 3.0], "signed": [-0.1, 0.0]},
        "b": {"dsc": [0.6, 0.6], "far": [1.0, None], "signed": [0.3, 0.1]},
        "c": {"dsc": [0.5, 0.7], "far": [None, None], "signed": [None, None]},
    }
    means = team_means(analysis_of(values, RankingRules(metrics=(DSC,))).table, FLARE21)

    best = {(own.metric, own.team) for own in means.best}
    assert best == {("dsc", "b"), ("dsc", "c"), ("far", "a")}
    found = dict(mean_tables(means, "T"))["means"]
    assert [[cell.text for cell in row[2:]] for row in found.rows] == [
        ["2.5 \u00b1 0.7", "-0.050 \u00b1 0.071"],
        ["1.0 (n = 1)", "0.200 \u00b1 0.141"],
        ["no result", "no result"],
    ]
    assert "A missing result is left out." in found.caption
    assert found.caption.endswith("best mean of all cases; no test was made.")


def test_tables_are_no_wider_than_a_page():
    organs = [organ.name for organ in flare.read_challenge("flare22").organs]
    values = {"a": {c: [0.5] for c in ("dsc", *(f"dsc_{o}" for o in organs))}}
    rules = RankingRules(metrics=(DSC,))
    analysis = analysis_of(values, rules, challenge=flare.read_challenge("flare22"))

    tables = dict(mean_tables(ranking_means(analysis), "T"))

    assert [name for name in tables if name.startswith("means")] == [
        *("means", "means_dsc", "means_dsc_2", "means_dsc_3"),
    ]
    heads = [
        head for name in ("", "_2", "_3") for head in tables[f"means_dsc{name}"].heads
    ]
    assert [h for h in heads if h != "Team"] == [o.replace("_", " ") for o in organs]


PDF = r"% In the preamble: \usepackage{booktabs,graphicx}"
T1 = rf"{PDF} \usepackage[T1]{{fontenc}}"
LUA = (
    r"% Compile with lualatex; in the preamble: \usepackage{booktabs,graphicx,fontspec}"
    r" \setmainfont{a font that has all names, such as Noto Serif CJK SC}"
)


@pytest.mark.parametrize(
    ("team", "first", "row"),
    [
        ("b & c", PDF, r"b \& c & "),
        ("[x]", PDF, "{}[x] & "),
        ("*", PDF, "{}* & "),
        ("W\u0105\u017c", T1, "W\u0105\u017c & "),
        ("\u0127al", LUA, "\u0127al & "),
        ("\u533b\u7597\u961f", LUA, "\u533b\u7597\u961f & "),
    ],
)
def test_latex_says_what_it_needs_and_takes_any_name(team, first, row):
    """Each of these was compiled so, by TeX Live 2022."""
    values = {team: {"dsc": [0.5, 0.6]}, "plain": {"dsc": [0.1, 0.1]}}
    means = team_means(analysis_of(values, RankingRules(metrics=(DSC,))).table, FLARE21)
    text = dict(mean_files(means, "T"))["means.tex"]

    assert text.splitlines()[0] == first
    assert f"\n{row}\\textbf{{0.550 $\\pm$ 0.071}} \\\\\n" in text
    assert r"\label{tab:medians}" in text
