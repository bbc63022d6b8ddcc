"""The page of several evaluations: every number of every case."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from flare.challenge.metrics import METRICS
from flare.common.errors import OutputError
from flare.reports.comparison import read_comparison
from flare.reports.comparison_page import comparison_page
from flare.reports.report import Report
from flare.reports.scores import evaluation_names
from tests.builders.pages import (
    BOTH,
    Page,
    compare,
    compared,
    content_of,
    content_of_columns,
    metrics_content,
    numbered,
    parts_of,
    write_json,
)
from tests.builders.schemas import file_problems

OLD = {"liver": [0.5, 0.6, 0.7, 0.8, 0.9], "left_kidney": [0.91, 0.92, 0.93, 0.9, 1.0]}
NEW = {"liver": [0.6, 0.8, 0.7, 0.5, 0.94], "left_kidney": [0.9, 0.9, 0.9, 0.9, 0.9]}


def random_content(seed, cases=30):
    """A metrics.json with scores of two organs that are often 0, and often equal."""
    generator = np.random.default_rng(seed)
    base = np.random.default_rng(0).beta(8, 2, size=(2, cases))
    noise = generator.normal(0.01, 0.02, size=base.shape)
    noise *= generator.random(base.shape) < 0.8
    values = np.clip(base + noise, 0, 1) * (generator.random(base.shape) > 0.05)
    return metrics_content(
        {"liver": values[0].tolist(), "pancreas": values[1].tolist()}
    )


def by_metric(metric, old, new):
    """Two evaluations of a liver, which have these values by a metric, too."""
    contents = []
    for values in (old, new):
        contents.append(metrics_content({"liver": [0.5] * len(values)}))
        for end in ("", "_liver"):
            contents[-1]["case"][f"{metric}{end}"] = numbered(values)
    return contents


def column(content, metric):
    files = content["case"]["gt_fname"]
    return {
        files[number].removesuffix(".nii.gz"): value
        for number, value in content["case"][metric].items()
    }


def test_equal_steps_are_ties_though_binary_fractions_are_not(tmp_path):
    """0.9 - 0.8 and 0.8 - 0.7 differ by 1e-16; one rank for both makes the effect 0."""
    contents = [metrics_content({"liver": own}) for own in ([0.8, 0.8], [0.9, 0.7])]

    page = compared(tmp_path, *contents)

    (row,) = content_of(page, "DSC, new against old: means")
    assert row["effect"].exact == 0


def test_every_number_is_that_of_the_files_and_of_scipy(tmp_path):
    """By the definition of Holm's method: the smallest p times the number of tests.

    Means are a family of 4 tests, two scores of two evaluations; organs one of 8.
    """
    first, *others = contents = [random_content(seed) for seed in (1, 2, 3)]
    organs = {"mean of organs": "", "liver": "_liver", "pancreas": "_pancreas"}

    page = compared(tmp_path, *contents)

    tested = {4: [], 8: []}
    for score in ("dsc", "nsd"):
        overview = content_of(page, f"Mean difference of {score.upper()} to old")
        by_organ = {row["organ"]: row for row in overview}
        means = content_of(page, f"Mean {score.upper()} over 30 cases")
        for row, content in zip(means, contents, strict=True):
            for organ, end in organs.items():
                told = content["aggregates"][f"{score}{end}_mean"]
                assert row[organ].exact == told
        for name, other in zip(("new", "next"), others, strict=True):
            title = f"{score.upper()}, {name} against old"
            changes = content_of(page, f"{title}: differences of each case")
            rows = {row["case"]: row for row in changes}
            losses = [row["mean of organs"].exact for row in changes]
            assert losses == sorted(losses)
            for own in content_of(page, f"{title}: means"):
                end = organs[own["organ"]]
                old, new = (column(content, score + end) for content in (first, other))
                differences = [round(new[case] - old[case], 12) for case in old]
                assert [rows[c][own["organ"]].exact for c in old] == differences
                assert own["change"].exact == math.fsum(differences) / 30
                assert by_organ[own["organ"]][name].exact == own["change"].exact
                changed = np.array([value for value in differences if value])
                ranks = rankdata(abs(changed)) * np.sign(changed)
                effect = ranks.sum() / abs(ranks).sum()
                assert own["effect"].exact == pytest.approx(effect)
                counts = [sum(np.sign(differences) == sign) for sign in (1, 0, -1)]
                assert [int(own[h]) for h in ("better", "equal", "worse")] == counts
                found = wilcoxon(differences, correction=True, method="asymptotic")
                assert own["p"].exact == pytest.approx(found.pvalue)
                adjusted = (own["p"].exact, own["p (Holm)"].exact)
                tested[8 if end else 4].append(adjusted)
    for size, family in tested.items():
        smallest = 0.0
        assert len(family) == size
        for place, (p, adjusted) in enumerate(sorted(family)):
            smallest = max(smallest, min(1, (size - place) * p))
            assert adjusted == pytest.approx(smallest)
    words = "adjusts for the 4 tests of means, and by themselves for the 8 of organs"
    assert words in parts_of(page, "method")[0].text


def test_nine_better_cases_of_nine_are_enough_beside_thirteen_organs(tmp_path):
    """Of 9 unlike gains p is 0.0092: twice that is 0.018, 28 times would be 0.26."""
    organs = [f"organ_{number}" for number in range(13)]
    old = {organ: [0.5] * 9 for organ in organs}
    new = {organ: [0.51 + 0.01 * n for n in range(9)] for organ in organs}

    page = compared(tmp_path, metrics_content(old), metrics_content(new))

    assert page.lead[0].text.startswith(
        "new is significantly better than old: DSC +0.050 (p 0.018) and NSD +0.025"
    )


def test_a_distance_that_falls_is_told_as_better_and_one_that_rises_as_worse(tmp_path):
    """From 26.8 mm to 0 on average; and back. Three tests of means: 3 x 0.00915."""
    far = [20.0 + 1.7 * n for n in range(9)]
    contents = by_metric("hd95", far, [0.0] * 9)

    better, worse = (compared(tmp_path, *own) for own in (contents, contents[::-1]))

    lead = "new is significantly {} than old: HD95 26.80 mm {} ({}, p 0.027) on 9 cases"
    assert better.lead[0].text.startswith(lead.format("better", "lower", "better"))
    assert worse.lead[0].text.startswith(lead.format("worse", "higher", "worse"))
    (row,) = content_of(better, "HD95, new against old: means")
    assert [row[head] for head in ("mean: old", "mean: new", "change")] == [
        *("26.80", "0.00", "-26.80"),
    ]
    assert row["change"].note == "significantly better"
    assert row["effect"] == "+1.00"
    rows = content_of(better, "HD95, new against old: differences")
    assert [row["liver"] for row in rows][:2] == ["-20.00", "-21.70"]
    chart = next(
        own for own in parts_of(better) if getattr(own, "title", "")[:4] == "HD95"
    )
    assert chart.title == "HD95 (mm): how much lower in each case"
    assert chart.ends == ("26.80 lower",)
    assert chart.rows[0].mean > 0.5


@BOTH
def test_a_case_that_was_not_scored_does_not_stretch_the_axis(tmp_path, is_organiser):
    """Of 1, 2, -1 and, without a prediction, 1000 mm more: the axis ends at 2 mm."""
    contents = by_metric("hd95", [9.0] * 4, [8.0, 7.0, 10.0, 1000.0])
    contents[1]["failed"] = {"case_004": "no file"}

    page = compared(tmp_path, *contents, is_organiser=is_organiser)

    charts = {own.title[:4]: own for own in parts_of(page) if hasattr(own, "axis")}
    chart = charts["HD95"]
    assert [text for _, text in chart.axis] == ["-2", "0", "+2"]
    assert chart.rows[0].places == pytest.approx([0.75, 1, 0.25])
    told = "Without a dot, but in the means: 1 case that one of both has not scored."
    assert told in chart.note
    assert chart.ends == ("247.25 higher",)
    assert len(charts["DSC:"].rows[0].places) == 4
    assert told not in charts["DSC:"].note


def test_a_volume_difference_adds_up_and_is_not_tested(tmp_path):
    """From -0.063 to 0 on average is +0.063; neither end is the good one."""
    contents = by_metric("volume_difference", [-0.063] * 9, [0.0] * 9)

    page = compared(tmp_path, *contents)

    (row,) = content_of(page, "Volume difference, new against old: means")
    assert [*row.values()] == [
        *("liver", "-0.063", "0.000", "+0.063", "none", "9", "0", "0"),
        *["no test"] * 3,
    ]
    assert "Volume" not in page.lead[0].text
    assert "adjusts for the 2 tests of means," in parts_of(page, "method")[0].text


@pytest.mark.parametrize(
    ("metric", "old", "new", "css"),
    [
        ("hd95", [9.0, 9.0, 9.0, 9.0], [8.5, 3.9, 14.5, 40.0], ["", "g2", "s4", "s5"]),
        ("volume_difference", [0.5, 0.1, -0.2], [0.4, -0.1, -0.5], ["g2", "", "s5"]),
    ],
)
def test_differences_of_other_metrics_are_shaded_too(tmp_path, metric, old, new, css):
    """In mm by 1, 5 and 20; nothing that rounds to 0 has a sign."""
    page = compared(tmp_path, *by_metric(metric, old, new))

    title = METRICS[metric].title
    rows = content_of(page, f"{title}, new against old: differences of each case")
    shown = {row["case"]: row["liver"] for row in rows}
    assert [shown[case].css for case in sorted(shown)] == css
    assert "-0.000" not in shown.values()
    keys = [own.key[0][1] for own in parts_of(page) if getattr(own, "key", ())]
    unit = " mm" if metric == "hd95" else ""
    assert keys[-1] == f"loss above {'20' if unit else '0.20'}{unit}"


def test_gains_on_most_cases_with_a_lower_mean_are_told_as_such(tmp_path):
    """20 small gains, and 2 organs that are missed now: the sum falls by 1.21."""
    old = {"liver": [0.8] * 22}
    new = {"liver": [0.81 + 0.001 * n for n in range(20)] + [0.0, 0.0]}

    page = compared(tmp_path, metrics_content(old), metrics_content(new))

    (row,) = content_of(page, "DSC, new against old: means")
    assert (row["change"], row["change"].note) == ("-0.055", "significantly better")
    assert page.lead[0].text.startswith(
        "new is significantly better on most cases, but worse on average, than old:"
        " DSC -0.055 (p"
    )


def test_cases_that_not_all_have_are_named_and_left_out(tmp_path):
    contents = [metrics_content(OLD), metrics_content(NEW)]
    contents[1]["case"]["gt_fname"]["0"] = "extra.nii.gz"

    page = compared(tmp_path, *contents)

    assert content_of(page, "Cases that are left out") == [
        {"case": "case_001", "old": "there", "new": "not there"},
        {"case": "extra", "old": "not there", "new": "there"},
    ]
    cases = [
        r["case"] for r in content_of(page, "DSC, new against old: differences of each")
    ]
    assert sorted(cases) == [f"case_00{number}" for number in (2, 3, 4, 5)]
    liver = content_of(page, "DSC, new against old: means")[1]
    # Without the first case: from (0.6 + 0.7 + 0.8 + 0.9) / 4.
    assert (liver["mean: old"], liver["change"]) == ("0.750", "-0.015")


def test_cases_that_were_not_scored_are_told_and_count(tmp_path):
    old = metrics_content(OLD, failed={"case_002": "no file was submitted"})
    new = metrics_content(
        NEW, low_scores=[{"reason": "labels are swapped", "cases": ["case_003"]}]
    )

    page = compared(tmp_path, old, new)

    said = content_of(page, "Cases of which something is said")
    assert [[*row.values()] for row in said] == [
        ["case_002", "not scored: no file was submitted", "scored"],
        ["case_003", "scored", "labels are swapped"],
    ]
    rows = content_of(page, "DSC, new against old: differences of each case")
    assert {row["case"]: row["remark"] for row in rows if row["remark"]} == {
        "case_002": "not scored: old"
    }


def test_provenance_stands_side_by_side_and_what_differs_is_marked(tmp_path):
    contents = [metrics_content(OLD), metrics_content(NEW)]
    contents[0]["evaluation"]["references_sha256"] = "a" * 64
    contents[1]["evaluation"]["references_sha256"] = "b" * 64
    del contents[1]["evaluation"]["options"]

    page = compared(tmp_path, *contents)

    made = content_of(page, "How the evaluations were made")
    assert [[*row.values()] for row in made] == [
        ["challenge", "", "flare21", "flare21"],
        ["version", "", "0.2.0", "0.2.0"],
        ["options", "differs", "none", "not told"],
        ["references sha256", "differs", "a" * 64, "b" * 64],
    ]
    assert "; left kidney changed most (DSC -0.032)." in page.lead[0].text
    assert "were not made alike: other reference labels." in page.lead[1].text


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        # From -0.2 to 0.2, 0.1 is a quarter of the width.
        ((0.5, 0.5, 0.7), (0.7, 0.6, 0.5), [1, 0.75, 0]),
        # From -0.2 to 0.2, as 0.12 is thrice the upper quartile: -1 is at the edge.
        ((1.0, *[0.5] * 4), (0.0, *[0.54] * 4), [0, *[0.6] * 4]),
        # Most have changed much: 0.25 and 0.1 are a quarter and a tenth of a half.
        ((1.0, 0.5, 0.5), (0.0, 0.75, 0.6), [0, 0.625, 0.55]),
        ((0.5, 0.5), (0.5, 0.5), [0.5, 0.5]),
    ],
    ids=["linear", "beyond", "all differ", "no difference"],
)
def test_dots_lie_where_the_differences_are(tmp_path, old, new, places):
    contents = [metrics_content({"liver": own}) for own in (old, new)]

    page = compared(tmp_path, *contents, is_organiser=False)

    charts = parts_of(page)[:2]
    assert charts[0].rows[0].places == pytest.approx(places)
    if places == [1, 0.75, 0]:  # NSD is half of DSC, and on the same axis
        assert charts[1].rows[0].places == pytest.approx([0.75, 0.625, 0.25])
    assert [chart.zero for chart in charts] == [0.5, 0.5]
    is_beyond = len(places) == 5
    assert charts[0].rows[0].edges == ("\u25c2 -1.00" if is_beyond else "", "")
    assert ("beyond the axis" in charts[0].note) == is_beyond


@pytest.mark.parametrize(
    ("output", "name"),
    [("pages", "pages/comparison.json"), ("a.html", "a.comparison.json")],
)
def test_organisers_alone_get_the_numbers_as_data(tmp_path, output, name):
    """Of the liver, 0.04 and 0.1 and 0.2 are gained, and 0.3 is lost; one is equal.

    Ranks 1 + 2 + 3 are better, 4 is worse: the effect is 2 / 10. z is (6 - 5 - 0.5) /
    sqrt(7.5) = 0.1826, beyond which lie 2 x 0.4276. The kidney only loses: 10 of 10, z
    is 1.643; the smallest of 4 tests of organs counts four times.
    """
    sources = [
        write_json(tmp_path / name / "metrics.json", metrics_content(scores))
        for name, scores in (("old", OLD), ("new", NEW))
    ]
    file = tmp_path / name

    for audience in ("organiser", "participant"):
        report = Report(
            sources=tuple(sources), output=tmp_path / output, audience=audience
        )
        report.write()
        if audience == "organiser":
            assert file_problems(file, "comparison") == []
            content = json.loads(file.read_text(encoding="utf-8"))

    assert not file.exists()
    assert content["evaluations"] == ["old", "new"]
    pairs = {(p["metric"], p["organ"]): p for p in content["differences"]}
    assert len(pairs) == 6
    liver, kidney = (pairs["dsc", organ] for organ in ("liver", "left_kidney"))
    assert [liver[key] for key in ("cases", "better", "equal", "worse")] == [5, 3, 1, 1]
    assert [liver["before"], liver["after"]] == pytest.approx([0.7, 0.708])
    assert liver["difference"] == pytest.approx(0.008)
    assert liver["differences"] == liver["gains"] == [0.1, 0.2, 0, -0.3, 0.04]
    assert [liver["effect"], liver["interval"]] == [pytest.approx(0.2), None]
    assert [liver["p"], kidney["p"]] == pytest.approx([0.8551, 0.1003], abs=1e-4)
    assert kidney["p_holm"] == pytest.approx(4 * kidney["p"])
    assert liver["method"].startswith("two-sided Wilcoxon")


@pytest.mark.parametrize("audience", ["organiser", "participant"])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path, audience):
    source = write_json(tmp_path / "metrics.json", metrics_content(OLD))

    with pytest.raises(OutputError):
        Report(sources=(source, source), output=source, audience=audience).write()


# --- Odd ones ---------------------------------------------------------------------


@BOTH
def test_an_evaluation_equals_itself(tmp_path, is_organiser):
    """Both have the same name, too; nothing can be tested, and nothing is claimed."""
    source = write_json(tmp_path / "metrics.json", metrics_content(OLD))

    page = comparison_page(read_comparison([source, source], is_organiser=is_organiser))

    assert "has the scores of" in page.lead[0].text
    tests = parts_of(page, "differences-1")[2]
    assert [cell.text for cell in tests.rows[0][-3:]] == ["no test"] * 3


@BOTH
def test_what_is_left_out_of_all_cases_is_not_equal(tmp_path, is_organiser):
    names = "dsc", "nsd", "dsc_liver", "nsd_liver"
    values = {"old": [0.5, 0.6], "new": [None, None]}
    sources = []
    for name, scores in values.items():
        content = content_of_columns(dict.fromkeys(names, scores))
        sources.append(write_json(tmp_path / name / "metrics.json", content))

    page = comparison_page(read_comparison(sources, is_organiser=is_organiser))

    assert page.lead[0].text == "No case has values of both new and old."


@BOTH
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"liver": [0.9]}, {"liver": [0.8]}, id="one case"),
        pytest.param({"liver": [0.9, 1]}, {"liver": [0.8, 1]}, id="two cases"),
        pytest.param({"lesion": [0.0] * 5}, {"lesion": [1.0] * 5}, id="all found"),
        pytest.param(
            {"liver": [0.5] * 100}, {"liver": [n / 100 for n in range(100)]}, id="100"
        ),
        pytest.param({"liver": [0.5] * 6}, {"liver": [0.6, 0.4] * 3}, id="six cases"),
        pytest.param({"liver": [0.5]}, {"liver": [0.6], "spleen": [1.0]}, id="organs"),
    ],
)
def test_few_and_many_scores_are_a_page_too(tmp_path, old, new, is_organiser):
    contents = [metrics_content(old), metrics_content(new)]

    page = compared(tmp_path, *contents, is_organiser=is_organiser)

    rows = content_of(page, "DSC, new against old: differences of each case")
    assert len(rows) == len(next(iter(old.values())))
    # Of 7 that all differ, p can be 0.022, and twice that, for DSC and NSD, 0.045.
    too_few, lead = "it takes 7 cases that differ", page.lead[0].text
    assert (too_few in lead) == (len(rows) < 7)
    assert ("equally good" in lead) <= (len(rows) >= 7)


@BOTH
def test_scores_that_are_not_there_are_said_in_words(tmp_path, is_organiser):
    """Of the kidney, no case has two scores; of the liver, one has not.

    So 3 tests of organs are left: the kidney's NSD counts three times, 3 x 0.1003.
    """
    contents = [metrics_content(OLD), metrics_content(NEW)]
    del contents[0]["case"]["dsc_liver"]["1"]
    for number in "012":
        del contents[0]["case"]["dsc_left_kidney"][number]
    for number in "34":
        del contents[1]["case"]["dsc_left_kidney"][number]

    page = compared(tmp_path, *contents, is_organiser=is_organiser)

    rows = {r["case"]: r for r in content_of(page, "DSC, new against old: differences")}
    assert rows["case_002"]["liver"] == "no result"
    tests = {r["organ"]: r for r in content_of(page, "DSC, new against old: means")}
    kidney = tests["left kidney"]
    assert kidney["change"] == kidney["mean: old"] == "no result"
    assert kidney["p"] == "no test"
    _, _, kidney = content_of(page, "NSD, new against old: means")
    assert (kidney["p"], kidney["p (Holm)"]) == ("0.100", "0.301")
    words = "for the 2 tests of means, and by themselves for the 3 of organs"
    assert words in parts_of(page, "method")[0].text
    assert [tests["liver"][head] for head in ("better", "equal", "worse")] == [
        *("2", "1", "1"),
    ]


def test_long_names_that_would_be_shortened_alike_are_numbered():
    sources = [Path("x" * 60 + middle + "x" * 60) / "m.json" for middle in "ab"]

    assert [name[:3] for name in evaluation_names(sources)] == ["1: ", "2: "]


# --- Participants -----------------------------------------------------------------


def test_differences_are_those_of_rounded_scores(tmp_path):
    """From 0.5004 to 0.5006 is a thousandth; from 0.5006 to 0.5014 is nothing."""
    old = metrics_content({"liver": [0.5004, 0.5006]})
    new = metrics_content({"liver": [0.5006, 0.5014]})

    page = compared(tmp_path, old, new, is_organiser=False)

    rows = content_of(page, "DSC, new against old: differences of each case")
    assert {row["case"]: row["liver"] for row in rows} == {
        "case_001": "+0.001",
        "case_002": "0.000",
    }
    (row,) = content_of(page, "DSC, new against old: means")
    assert [row[head] for head in ("better", "equal", "worse")] == ["1", "1", "0"]


def test_cases_are_called_by_the_participants_own_files(tmp_path):
    contents = [metrics_content({"liver": [0.9, 0.0, 0.5]}) for _ in range(2)]
    for number, content in enumerate(contents):
        secrets = {"0": "secret_1", "1": "secret_2", "2": f"secret_{3 + number}"}
        content["case"]["gt_fname"] = secrets
        content["case"]["alg_fname"] = {"0": "mine.nii.gz", "1": "", "2": f"z{number}"}
    contents[1]["failed"] = {"secret_2": "no file"}

    html = compare(tmp_path, *contents, is_organiser=False)

    assert "secret" not in html
    page = Page(html)
    rows = page.table("DSC, new against old: differences of each case")
    assert [row["case"] for row in rows] == ["mine", "case 2, not scored"]
    left_out = page.table("Cases that are left out")
    assert [row["case"] for row in left_out] == ["z0", "z1"]
    (row,) = page.table("Cases of which")
    assert [*row.values()] == [
        *("case 2, not scored", "scored", "not scored: no file"),
    ]


def test_files_of_one_name_are_told_apart(tmp_path):
    """A case that was scored is not said to have failed as its namesake has."""
    contents = [metrics_content({"liver": [0.9, 0.0, 0.5]}) for _ in range(2)]
    for content in contents:
        content["case"]["alg_fname"] = dict.fromkeys("012", "mine.nii.gz")
    contents[1]["failed"] = {"case_002": "it ended"}

    page = Page(compare(tmp_path, *contents, is_organiser=False))

    rows = page.table("DSC, new against old: differences of each case")
    assert sorted((row["case"], row["remark"]) for row in rows) == [
        ("mine (1)", ""),
        ("mine (2)", "not scored: new"),
        ("mine (3)", ""),
    ]
