"""The page of an evaluation: every number, every warning, and why cases score low."""

import pytest

from flare.common.text import safe
from flare.reports.evaluation import organiser_page, participant_page
from flare.reports.scores import own_scores
from flare.results.errors import MetricsFileError
from flare.results.metrics_reading import read_evaluation
from tests.builders.errors import told
from tests.builders.pages import (
    content_of,
    metrics_content,
    numbered,
    parts_of,
    write_json,
    write_report,
)

SCORES = {
    "liver": [0.9123456789, 0.0, 0.8765432101, 0.95],
    "left_kidney": [1.0, 0.7123456701, 0.5, 0.0],
}
ROWS = {"mean of organs": "", "liver": "_liver", "left kidney": "_left_kidney"}


def page_of(folder, content, **more):
    return organiser_page(
        read_evaluation(write_json(folder / "metrics.json", content)), **more
    )


def test_every_score_of_every_case_is_there_in_full_precision(tmp_path):
    content = metrics_content(SCORES)

    page = page_of(tmp_path, content)

    for kind in ("dsc", "nsd"):
        found = content_of(page, f"{kind.upper()} of each case")
        rows = {row["case"]: row for row in found}
        for number, file in content["case"]["gt_fname"].items():
            row = rows[file.removesuffix(".nii.gz")]
            for title, end in ROWS.items():
                value = content["case"][f"{kind}{end}"][number]
                assert row[title].exact == value
                assert row[title] == f"{value:.3f}"


def test_means_and_their_kind_are_those_of_metrics_json(tmp_path):
    content = metrics_content(SCORES)

    page = page_of(tmp_path, content)

    told = content["aggregates"]
    for chart, tile, kind in zip(
        parts_of(page, "means"), page.tiles, ("dsc", "nsd"), strict=False
    ):
        means = [told[f"{kind}{end}_mean"] for end in ROWS.values()]
        assert chart.ends == tuple(f"{mean:.3f}" for mean in means)
        assert float(tile.exact) == means[0]
        rows = {r["organ"]: r for r in content_of(page, f"{kind.upper()} over 4")}
        for title, end in ROWS.items():
            for head, name in (
                *(("mean", "mean"), ("SD", "std"), ("median", "median")),
                *(("lowest", "min"), ("highest", "max")),
            ):
                assert rows[title][head].exact == told[f"{kind}{end}_{name}"]


def test_the_median_stands_beside_a_mean_of_distances(tmp_path):
    """Of 1, 2, 3 and 90 mm: the mean is 24, the median 2.5."""
    content = metrics_content(SCORES)
    for end in ROWS.values():
        content["case"][f"hd95{end}"] = numbered([1.0, 90.0, 2.0, 3.0])

    tile = page_of(tmp_path, content).tiles[2]

    assert (tile.name, tile.value, tile.note) == (
        *("Mean HD95 (mm)", "24.00", "median 2.50"),
    )


def test_the_worst_cases_come_first_with_the_organ_and_then_what_was_said(tmp_path):
    """Means of the liver: 0.685; of the kidney: 0.553."""
    content = metrics_content(
        SCORES,
        failed={"case_004": "no file was submitted"},
        low_scores=[{"reason": "label 14 is no organ", "cases": ["case_002"]}],
    )

    page = page_of(tmp_path, content)

    rows = content_of(page, "The 4 cases with the lowest DSC")
    assert {row["case"]: row["why"] for row in rows} == {
        "case_002": "no overlap with the reference: liver; label 14 is no organ",
        "case_004": "no file was submitted",
        "case_003": "farthest below its own mean: left kidney, DSC 0.500 (mean 0.553)",
        "case_001": "",  # no organ lies below its mean
    }
    assert [row["case"] for row in rows][:2] == ["case_002", "case_004"]
    rows = content_of(page, "DSC of each case and organ")
    assert [row["remark"] for row in rows if row["remark"]] == ["not scored"]
    (failed,) = content_of(page, "Cases that were not scored")
    assert failed["why"] == "no file was submitted"


def test_the_only_case_is_not_called_the_worst_one(tmp_path):
    page = page_of(tmp_path, metrics_content({"liver": [0.9]}))

    (row,) = content_of(page, "The only case")
    assert row["case"] == "case_001"


@pytest.mark.parametrize(
    ("scores", "failed", "expected"),
    [
        ({"liver": [0.9]}, {}, "No organ of a scored case is missed altogether."),
        (
            SCORES,
            {"case_004": "no file"},
            "1 of 4 cases not scored. No overlap with the reference: liver on 1 of 3"
            " cases.",
        ),
        ({"liver": [0.0]}, {"case_001": "no file"}, "1 of 1 case not scored."),
        (
            {"liver": [0.0, 0.5], "a_b": [0.0, 0.0]},
            {},
            "No overlap with the reference: a b on 2, liver on 1 of 2 cases.",
        ),
        (
            {f"organ_{n}": [0.0] for n in range(11)},
            {},
            "No overlap with the reference: "
            + ", ".join(f"organ {n} on 1" for n in range(10))
            + " and 1 more, of 1 case.",
        ),
    ],
)
def test_its_first_words_say_what_is_missed(tmp_path, scores, failed, expected):
    content = metrics_content(scores, failed=failed)

    page = page_of(tmp_path, content)

    assert [own.text for own in page.lead] == [expected]
    own = own_scores(read_evaluation(tmp_path / "metrics.json"))
    assert participant_page(own).lead == page.lead
    assert page.title.startswith("evaluation of")
    assert participant_page(own).title.startswith("FLARE 2021: your scores on")


def test_organs_that_neither_map_may_have_are_counted_for_organisers(tmp_path):
    """The mean of the others: (0.7 + 0.5) / 2."""
    scores = {"liver": [1.0, 0.7, 1.0, 0.5], "spleen": [0.9] * 4, "aorta": [1.0] * 4}
    page = page_of(tmp_path, metrics_content(scores))

    texts = [getattr(own, "text", "") for own in parts_of(page, "means")]
    assert (
        "DSC is exactly 1 where no voxel of an organ is wrong, as where neither the"
        " reference nor the prediction has it: liver on 2 (mean of the others 0.600),"
        " aorta on 4."
    ) in texts
    own = participant_page(own_scores(read_evaluation(tmp_path / "metrics.json")))
    assert not any("exactly" in getattr(p, "text", "") for p in parts_of(own, "means"))


def test_a_perfect_result_is_called_what_it_is(tmp_path):
    """No case of it is the worst, and organs need no absence to be right."""
    page = page_of(tmp_path, metrics_content({"liver": [1.0] * 5, "aorta": [1.0] * 5}))

    texts = [getattr(own, "text", "") for own in parts_of(page, "means")]
    assert "DSC is exactly 1 for each organ of every scored case." in texts
    assert not any("neither" in text for text in texts)
    rows = content_of(page, "DSC is 1.000 in every case")
    assert [row["why"] for row in rows] == [""] * 5


def test_warnings_and_provenance_are_whole(tmp_path):
    content = metrics_content(SCORES, warnings=["case_001.nii.gz: lies 1 mm off"])
    content["evaluation"] |= {"references_sha256": "0f" * 32, "rules": {"a": 1}}

    page = page_of(tmp_path, content)

    assert parts_of(page, "remarks")[-1].items == ["case_001.nii.gz: lies 1 mm off"]
    rows = content_of(page, "As metrics.json has it")
    assert [(row["what"], row["value"]) for row in rows] == [
        ("challenge", "flare21"),
        ("version", "0.2.0"),
        ("options", "none"),
        ("references sha256", "0f" * 32),
    ]


def test_a_score_that_is_not_there_is_said_in_words(tmp_path):
    content = metrics_content(SCORES)
    del content["case"]["dsc_liver"]["2"]

    page = page_of(tmp_path, content)

    rows = {r["case"]: r for r in content_of(page, "DSC of each case and organ")}
    assert rows["case_003"]["liver"] == "no result"
    mean = content["aggregates"]["dsc_liver_mean"]
    assert parts_of(page, "means")[0].ends[1] == f"{mean:.3f} (n = 3)"


SCORE = '{"case": {"gt_fname": {"0": "a"}, "dsc": {"0": %s}}, "evaluation": {}%s}'


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "{}", SCORE % ("90", ""), SCORE % ("NaN", "")),
        SCORE % ("1", ', "aggregates": {"dsc_mean": 1' + "0" * 400 + "}"),
        SCORE % ("1", ', "low_scores": [1]'),
    ],
    ids=["cut", "list", "empty", "percent", "nan", "huge", "low scores"],
)
def test_what_is_no_metrics_json_is_refused(tmp_path, text):
    source = tmp_path / "metrics.json"
    source.write_text(text)

    with pytest.raises(MetricsFileError) as caught:
        write_report([source], tmp_path / "page.html", is_organiser=True)

    assert told(caught.value) == ("G05", safe(source))
    assert not (tmp_path / "page.html").exists()
