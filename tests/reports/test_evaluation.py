"""The organisers' page of an evaluation: every number, every warning, any name."""

import re

import pytest

from flare.common.text import safe
from flare.reports.report import write_report
from flare.results.errors import MetricsFileError
from tests.builders.pages import (
    Page,
    metrics_content,
    write_json,
)

SCORES = {
    "liver": [0.9123456789, 0.0, 0.8765432101, 0.95],
    "left_kidney": [1.0, 0.7123456701, 0.5, 0.0],
}


def organisers_page(tmp_path, content):
    """The page of a metrics.json with this content, as HTML."""
    source = write_json(tmp_path / "team" / "metrics.json", content)
    write_report([source], tmp_path / "page.html", is_organiser=True)
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_every_score_of_every_case_is_there_in_full_precision(tmp_path):
    content = metrics_content(SCORES)

    page = Page(organisers_page(tmp_path, content))

    for kind in ("dsc", "nsd"):
        rows = {row["case"]: row for row in page.table(f"{kind.upper()} of each case")}
        for number, file in content["case"]["gt_fname"].items():
            row = rows[file.removesuffix(".nii.gz")]
            for title, end in (
                ("mean of organs", ""),
                ("liver", "_liver"),
                ("left kidney", "_left_kidney"),
            ):
                value = content["case"][f"{kind}{end}"][number]
                assert row[title].exact == value
                assert row[title] == f"{value:.3f}"


def test_means_and_their_kind_are_those_of_metrics_json(tmp_path):
    content = metrics_content(SCORES)

    html = organisers_page(tmp_path, content)

    told = content["aggregates"]
    for kind in ("dsc", "nsd"):
        rows = {r["organ"]: r for r in Page(html).table(f"{kind.upper()} over 4 cases")}
        for title, end in (("mean of organs", ""), ("left kidney", "_left_kidney")):
            row = rows[title]
            for head, name in (
                *(("mean", "mean"), ("SD", "std"), ("median", "median")),
                *(("lowest", "min"), ("highest", "max")),
            ):
                assert row[head].exact == told[f"{kind}{end}_{name}"]
    tiles = re.findall(r'class="big" data-v="([^"]+)"', html)
    assert [float(text) for text in tiles] == [told["dsc_mean"], told["nsd_mean"]]


def test_the_worst_cases_come_first_with_the_reason(tmp_path):
    content = metrics_content(
        SCORES,
        failed={"case_004": "no file was submitted"},
        low_scores=[{"reason": "labels are swapped", "cases": ["case_002"]}],
    )

    page = Page(organisers_page(tmp_path, content))

    rows = page.table("The 4 cases with the lowest DSC")
    assert [(row["case"], row["why"]) for row in rows] == [
        ("case_002", "labels are swapped"),
        ("case_004", "no file was submitted"),
        (
            "case_003",
            "lowest organ: left kidney, DSC 0.500 (median of all cases 0.606)",
        ),
        ("case_001", "lowest organ: liver, DSC 0.912 (median of all cases 0.894)"),
    ]
    assert page.table("Cases that were not scored") == [
        {"case": "case_004", "why": "no file was submitted"}
    ]


def test_an_organ_that_is_missed_is_named(tmp_path):
    page = Page(organisers_page(tmp_path, metrics_content(SCORES)))

    rows = page.table("The 4 cases with the lowest DSC")

    assert rows[0]["why"] == "no overlap with the reference: liver"


def test_warnings_and_provenance_are_whole(tmp_path):
    content = metrics_content(SCORES, warnings=["case_001.nii.gz: lies 1 mm off"])
    content["evaluation"] |= {"references_sha256": "0f" * 32, "rules": {"a": 1}}

    page = Page(organisers_page(tmp_path, content))

    assert "case_001.nii.gz: lies 1 mm off" in page.text
    assert page.table("As metrics.json has it") == [
        {"what": "challenge", "value": "flare21"},
        {"what": "version", "value": "0.2.0"},
        {"what": "options", "value": "none"},
        {"what": "references sha256", "value": "0f" * 32},
    ]


@pytest.mark.parametrize("audience", [True, False], ids=["organiser", "participant"])
def test_two_pages_of_one_evaluation_have_the_same_bytes(tmp_path, audience):
    source = write_json(tmp_path / "metrics.json", metrics_content(SCORES))

    for name in ("a.html", "b.html"):
        write_report([source], tmp_path / name, is_organiser=audience)

    first, second = (tmp_path / name for name in ("a.html", "b.html"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("audience", [True, False], ids=["organiser", "participant"])
@pytest.mark.parametrize(
    "scores",
    [
        pytest.param({"liver": [0.9]}, id="one case of one organ"),
        pytest.param({"liver": [0.9, 0.0], "spleen": [1.0, 0.0]}, id="two cases"),
        pytest.param({"lesion": [0.0] * 5}, id="nothing found"),
    ],
)
def test_few_scores_are_a_page_too(tmp_path, scores, audience):
    source = write_json(tmp_path / "metrics.json", metrics_content(scores))

    write_report([source], tmp_path / "page.html", is_organiser=audience)

    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert len(page.table("DSC of each case and organ")) == len(*[*scores.values()][:1])


def test_a_score_that_is_not_there_is_said_in_words(tmp_path):
    content = metrics_content(SCORES)
    del content["case"]["dsc_liver"]["2"]

    page = Page(organisers_page(tmp_path, content))

    rows = {row["case"]: row for row in page.table("DSC of each case and organ")}
    assert rows["case_003"]["liver"] == "no result"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is not JSON in UTF-8"),
        ("[]", "it is not a JSON object"),
        ("{}", "it is no metrics.json that an evaluation has written"),
        (
            '{"case": {"gt_fname": {"0": "a"}, "dsc": {"0": 90}}, "evaluation": {}}',
            "a: dsc is 90.0, above 1; is it percent? Divide it by 100",
        ),
        (
            '{"case": {"gt_fname": {"0": "a"}, "dsc": {"0": NaN}}, "evaluation": {}}',
            "a: dsc is nan, which nothing that was measured is",
        ),
        (
            '{"case": {"gt_fname": {"0": "a"}, "dsc": {"0": 1}}, "evaluation": {},'
            ' "aggregates": {"dsc_mean": 1' + "0" * 400 + "}}",
            "it is no metrics.json that an evaluation has written",
        ),
        (
            '{"case": {"gt_fname": {"0": "a"}}, "evaluation": {}, "low_scores": [1]}',
            "it is no metrics.json that an evaluation has written",
        ),
    ],
)
def test_what_is_no_metrics_json_is_refused(tmp_path, text, problem):
    source = tmp_path / "metrics.json"
    source.write_text(text)

    with pytest.raises(MetricsFileError) as caught:
        write_report([source], tmp_path / "page.html", is_organiser=True)

    remedy = "Give the metrics.json that an evaluation has written."
    assert str(caught.value) == f"{safe(source)}: {problem}. {remedy} [G05]"
    assert not (tmp_path / "page.html").exists()
