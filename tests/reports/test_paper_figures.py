"""The figures of an evaluation: their numbers are those of metrics.json."""

import csv
from dataclasses import replace

import pytest

from flare.reports.methods import evaluation_methods
from flare.reports.paper_figures import write_evaluation_figures
from flare.reports.scores import mean_interval
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import read_evaluation
from tests.builders.pages import metrics_content, write_json

pytestmark = pytest.mark.tools(package="matplotlib")

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
    monkeypatch.setattr("flare.reports.paper_figures.WIDTHS_MM", {})

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


@pytest.mark.parametrize(
    ("more", "far"),
    [
        ({}, "the diagonal of the reference's grid"),
        ({"worst_distance_mm": 80.0}, "80 mm"),
    ],
)
def test_the_methods_say_how_far_a_missing_organ_is(tmp_path, content, more, far):
    metrics = "dsc, nsd, hd95, assd, volume_difference"
    content["evaluation"] |= {"rules": RULES | {"metrics": metrics} | more}
    source = write_json(tmp_path / "metrics.json", content)

    text = evaluation_methods(read_evaluation(source))

    assert f"alone has an organ, HD95 and ASSD counted as {far}." in text
    assert "DSC, NSD, HD95 and ASSD of a case are the means over its" in text
    assert "volume" not in text.partition("Where one")[2].partition("Computed")[0]


def test_the_methods_are_those_that_metrics_json_tells(tmp_path, content):
    source = write_json(tmp_path / "metrics.json", content)
    assert "is not on record." in evaluation_methods(read_evaluation(source))
    content["evaluation"] |= {"rules": RULES, "options": {"on_bad_case": "worst"}}
    content["evaluation"]["rules_note"] = "rules as reported"
    content["failed"] = {"case_002": "no file"}
    source = write_json(tmp_path / "metrics.json", content)

    text = evaluation_methods(read_evaluation(source))

    for sentence in (
        "Label maps of 4 cases were scored.",
        "Label maps were scored by rules as reported.",
        "Tolerances were 3 mm (left kidney); 5 mm (liver).",
        "An organ in neither label map scored 1, one that only the prediction has 0,"
        " and one that only the reference has 0.",
        "DSC and NSD of a case are the means over its organs without left kidney.",
        "liver: scored only between the lowest and the highest slice of the reference"
        " (top slice included).",
        "The NSD of an organ was 0 where its DSC was below 0.2.",
        "DSC and NSD of organs were rounded to 4 decimals.",
        "Cases that were not scored, and got the worst value instead: 1.",
        "Options of the evaluation: on_bad_case worst.",
        "Computed with the FLARE evaluation kit 0.2.0, challenge file flare21 (SHA-256"
        " unknown).",
    ):
        assert sentence in text
    assert "\n" not in text


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
