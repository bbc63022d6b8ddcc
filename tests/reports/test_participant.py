"""A participant's page: nothing on it tells of the references."""

from dataclasses import replace
from math import inf

import pytest

from flare.challenge.metrics import METRICS, Better
from flare.reports.evaluation import organiser_page
from flare.reports.scores import OwnScores, own_scores
from flare.results.metrics_reading import read_evaluation
from tests.builders.pages import (
    Page,
    compare,
    metrics_content,
    numbered,
    parts_of,
    write_json,
    write_report,
)


def own_page(folder, content):
    """The participant's page of a metrics.json with this content, as HTML."""
    source = write_json(folder / "metrics.json", content)
    write_report([source], folder / "page.html", is_organiser=False)
    return (folder / "page.html").read_text(encoding="utf-8")


def test_means_are_those_of_the_rounded_scores(tmp_path):
    """Whose mean lies half way: of the scores themselves, the third decimal differs."""
    pages = []
    for name, off in (("above", 0.0004), ("below", -0.0004)):
        content = metrics_content({"liver": [0.5 + off, 0.501 + off]})
        content["case"]["nsd"] = content["case"]["nsd_liver"] = {"0": 0.5, "1": 0.5}
        assert f"{content['aggregates']['dsc_mean']:.3f}" == (
            "0.501" if off > 0 else "0.500"
        )
        pages.append(own_page(tmp_path / name, content))

    assert pages[0] == pages[1]


def test_a_case_is_called_by_the_participants_own_file(tmp_path):
    content = metrics_content({"liver": [0.9, 0.0]}, failed={"secret_2": "no file"})
    content["case"]["gt_fname"] = {"0": "secret_1.nii.gz", "1": "secret_2.nii.gz"}
    content["case"]["alg_fname"] = {"0": "mine.nii.gz", "1": ""}

    html = own_page(tmp_path, content)

    assert "secret" not in html
    rows = Page(html).table("The 2 cases with the lowest DSC")
    assert [(row["case"], row["why"]) for row in rows] == [
        ("case 2, without a file", "no file"),
        ("mine", ""),
    ]


@pytest.mark.parametrize("score", [0.912345, 912.0, True, 1001, -1.0])
def test_the_type_of_the_page_holds_no_digit_too_many(score):
    shown = {"challenge": "", "cases": ("a",), "organs": (), "failed": {}}
    with pytest.raises(ValueError, match="not as it is told"):
        OwnScores(values={"dsc": (score,)}, **shown)
    with pytest.raises(ValueError, match="means of exact scores"):
        OwnScores(values={"dsc": (0.5,)}, means={"dsc": 0.5}, **shown)
    with pytest.raises(ValueError, match="not for participants"):
        OwnScores(values={"runtime_s": (0.5,)}, **shown)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_metric_that_is_declared_is_on_pages_as_its_record_says(
    tmp_path, monkeypatch, is_told
):
    """It needs nothing in reports/; from some, volumes of the references follow."""
    distance = replace(
        METRICS["dsc"],
        name="far",
        title="Far",
        unit="mm",
        range=(0.0, inf),
        better=Better.LOWER,
        decimals=1,
        for_participants=is_told,
    )
    monkeypatch.setitem(METRICS, "far", distance)
    old, new = (metrics_content({"liver": [0.9, 0.8, 0.7]}) for _ in range(2))
    for content, values in ((old, [9.0, 8.0, 7.0]), (new, [9.04, 6.0, 8.5])):
        content["case"]["far"] = content["case"]["far_liver"] = numbered(values)

    html = compare(tmp_path, old, new)
    found = read_evaluation(tmp_path / "new" / "metrics.json")

    (row,) = Page(html).table("Far, new against old: means")
    assert [row[head] for head in ("mean: old", "mean: new", "change", "better")] == [
        *("8.0", "7.8", "+0.2", "1")  # lower is better: a gain
    ]
    charts = parts_of(organiser_page(found), "means")
    assert charts[2].ends == ("7.8",)
    assert [text for _, text in charts[2].axis] == ["0", "5", "10"]
    assert ("Far" in own_page(tmp_path, new)) == is_told
    assert ("Far" in compare(tmp_path, old, new, organiser=False)) == is_told
    if is_told:
        assert own_scores(found).values["far_liver"] == (9.0, 6.0, 8.5)
