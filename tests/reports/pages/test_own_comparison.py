"""A participant's comparison: nothing on it tells of the references."""

import random
import re

from tests.builders.pages import Page, compare, metrics_content, numbered


def own_page(folder, *contents):
    """The participant's page of evaluations with these contents, as HTML."""
    return compare(folder, *contents, organiser=False)


def content_of(evaluation, references):
    """A metrics.json; other references change only digits that are rounded."""
    shared, own = random.Random(evaluation), random.Random(references + evaluation)
    rounded = {
        organ: [shared.randrange(1, 1000) for _ in range(12)]
        for organ in ("liver", "pancreas")
    }
    content = metrics_content(
        {organ: [value / 1000 for value in values] for organ, values in rounded.items()}
    )
    exact = {
        f"dsc_{organ}": [(value + own.uniform(-0.49, 0.49)) / 1000 for value in values]
        for organ, values in rounded.items()
    }
    for metric, values in exact.items():
        content["case"][metric] = numbered(values)
        content["aggregates"][f"{metric}_mean"] = sum(values) / len(values)
    content["evaluation"] |= {"references_sha256": references, "commit": references}
    content["warnings"] = [f"{references} voxels are missing"]
    content["low_scores"] = [{"reason": references, "cases": ["case_001"]}]
    return content


def test_references_with_equal_rounded_scores_give_equal_pages(tmp_path):
    """Though means, digests, reasons and warnings differ."""
    every = [
        [content_of(evaluation, references) for evaluation in "abc"]
        for references in ("one", "two")
    ]
    assert every[0][0]["aggregates"] != every[1][0]["aggregates"]

    for count in (2, 3):
        first, second = (
            own_page(tmp_path / f"{n}-{count}", *contents[:count])
            for n, contents in enumerate(every)
        )
        assert first == second


def test_no_score_and_no_difference_is_there_in_full_precision(tmp_path):
    contents = [content_of("a", "one"), content_of("b", "one")]

    html = own_page(tmp_path, *contents)

    values = {
        metric: [[*content["case"][metric].values()] for content in contents]
        for metric in ("dsc_liver", "dsc_pancreas")
    }
    for old, new in values.values():
        for a, b in zip(old, new, strict=True):
            for value in (a, b, b - a, a - b):
                assert repr(value) not in html
                assert f"{value:.4f}" not in html
    for content in contents:
        for metric in values:
            assert repr(content["aggregates"][f"{metric}_mean"]) not in html
    assert "data-v" not in html


def test_differences_are_those_of_rounded_scores(tmp_path):
    """From 0.5004 to 0.5006 is a thousandth; from 0.5006 to 0.5014 is nothing."""
    old = metrics_content({"liver": [0.5004, 0.5006]})
    new = metrics_content({"liver": [0.5006, 0.5014]})

    page = Page(own_page(tmp_path, old, new))

    rows = page.table("DSC, new against old: differences of each case")
    assert {row["case"]: row["liver"] for row in rows} == {
        "case_001": "+0.001",
        "case_002": "0.000",
    }
    (row,) = page.table("DSC, new against old: means")
    assert [row[head] for head in ("better", "equal", "worse")] == ["1", "1", "0"]


def test_neither_median_nor_ends_nor_digests_are_told(tmp_path):
    html = own_page(tmp_path, content_of("a", "one"), content_of("b", "two"))

    page = Page(html)
    main = html.partition("<main")[2]
    assert not re.search(r"\b(median|largest gain|SD|quartile|sha256)\b", main)
    assert 'class="box"' not in html
    assert "voxels" not in html
    assert "were not made alike: other reference labels. What" in page.text
    assert [*page.table("DSC, new against old: how the")[0]] == [
        *("organ", "better", "equal", "worse", "mean"),
    ]


def test_cases_are_called_by_the_participants_own_files(tmp_path):
    contents = [metrics_content({"liver": [0.9, 0.0, 0.5]}) for _ in range(2)]
    for number, content in enumerate(contents):
        secrets = {"0": "secret_1", "1": "secret_2", "2": f"secret_{3 + number}"}
        content["case"]["gt_fname"] = secrets
        content["case"]["alg_fname"] = {"0": "mine.nii.gz", "1": "", "2": f"z{number}"}
    contents[1]["failed"] = {"secret_2": "no file"}

    html = own_page(tmp_path, *contents)

    assert "secret" not in html
    page = Page(html)
    rows = page.table("DSC, new against old: differences of each case")
    assert [row["case"] for row in rows] == ["mine", "case 2, without a file"]
    assert [row["case"] for row in page.table("Cases that are left out")] == [
        "z0",
        "z1",
    ]
    assert page.table("Cases of which") == [
        {
            "case": "case 2, without a file",
            "old": "scored",
            "new": "not scored: no file",
        }
    ]
