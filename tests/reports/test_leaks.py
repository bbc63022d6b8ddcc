"""Participants' pages: nothing on them tells of the references."""

import random
import re
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest

from flare.challenge.metrics import METRICS, Better, _metric_named
from flare.reports.evaluation import organiser_page
from flare.reports.scores import OwnScores, own_scores
from flare.results.metrics_reading import read_evaluation
from tests.builders.measured import write_measured
from tests.builders.pages import (
    Page,
    compare,
    metrics_content,
    numbered,
    parts_of,
    write_json,
    write_report,
)

CASES = [f"case_{number:03}" for number in range(1, 13)]
ORGANS = ("liver", "pancreas")

KINDS = {
    "evaluation": 1,
    "groups": 1,
    "team": 1,
    "two evaluations": 2,
    "three evaluations": 3,
}
"""Of pages, and how many evaluations each is made from."""

of_each_kind = pytest.mark.parametrize("kind", KINDS)


def made_of(evaluation, references):
    """A metrics.json; other references change only digits that are rounded."""
    shared, own = random.Random(evaluation), random.Random(references + evaluation)
    rounded = {organ: [shared.randrange(1, 1000) for _ in CASES] for organ in ORGANS}
    scores = {organ: [v / 1000 for v in values] for organ, values in rounded.items()}
    content = metrics_content(scores)
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


def page_of_kind(folder, kind, references):
    """A participant's page of a kind, as HTML, and what it was made from."""
    contents = [made_of(name, references) for name in "abc"[: KINDS[kind]]]
    sources, more = [], {}
    for name, content in zip("abc", contents, strict=False):
        own = folder / references / name
        if kind == "team":
            off = 0.000_04 if references == "two" else 0.0
            write_measured(own, CASES, off=off, doubts=f"{references} voxels")
        sources.append(write_json(own / "metrics.json", content))
    if kind == "groups":
        more["groups"] = folder / "groups.csv"
        rows = (f"{case},{'AB'[n % 2]}\n" for n, case in enumerate(CASES))
        more["groups"].write_text("case,centre\n" + "".join(rows))
    page = folder / f"{references}.html"
    found = [source.parent for source in sources] if kind == "team" else sources
    page = write_report(found, page, is_organiser=False, **more)
    return page.read_text(encoding="utf-8"), contents


@of_each_kind
def test_references_with_equal_rounded_scores_give_equal_pages(tmp_path, kind):
    """Though means, digests, reasons, warnings and doubts of the evaluations differ."""
    (one, contents), (two, others) = (
        page_of_kind(tmp_path, kind, name) for name in ("one", "two")
    )

    assert contents[0]["aggregates"] != others[0]["aggregates"]
    assert one == two


@of_each_kind
def test_nothing_is_told_but_rounded_scores_and_their_means(tmp_path, kind):
    html, contents = page_of_kind(tmp_path, kind, "one")

    main = html.partition("</style>")[2].partition("<script>")[0]
    values = []
    for metric in ("dsc", "dsc_liver", "dsc_pancreas"):
        own = [[*content["case"][metric].values()] for content in contents]
        values += [value for each in own for value in each if metric != "dsc"]
        for old, new in pairwise(own):
            values += [b - a for a, b in zip(old, new, strict=True)] * (metric != "dsc")
        values += [content["aggregates"][f"{metric}_mean"] for content in contents]
    for value in values:
        assert repr(value) not in html
        assert repr(-value) not in html
    assert not re.search(r"\b[01]\.\d{4}|\d\.\d{6}", main)
    assert not re.search(r"\b(lowest score|largest gain|sha256|voxels)\b", main)
    assert "data-v" not in html
    if kind != "team":  # which sees more of its own times and memory
        assert not re.search(r"\b(median|highest|SD|quartile)\b", main)
        assert 'class="box"' not in main


def own_page(folder, content):
    source = write_json(folder / "metrics.json", content)
    page = write_report([source], folder / "page.html", is_organiser=False)
    return page.read_text(encoding="utf-8")


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
        ("case 2, not scored", "no file"),
        ("mine", ""),
    ]


@pytest.mark.parametrize("score", [0.912345, 912.0, True, 1001, -1.0])
def test_the_type_of_the_page_holds_no_digit_too_many(score):
    shown = {"challenge": "", "cases": ("a",), "organs": (), "failed": {}}
    with pytest.raises(ValueError, match="not as it is told"):
        OwnScores(values={"dsc": (score,)}, **shown)
    with pytest.raises(ValueError, match="mean of dsc"):
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
        tells_cases=is_told,
        tells_means=is_told,
    )
    monkeypatch.setitem(METRICS, "far", distance)
    _metric_named.cache_clear()
    old, new = (metrics_content({"liver": [0.9, 0.8, 0.7]}) for _ in range(2))
    for content, values in ((old, [9.0, 8.0, 7.0]), (new, [9.04, 6.0, 8.5])):
        content["case"]["far"] = content["case"]["far_liver"] = numbered(values)

    html = compare(tmp_path, old, new)
    found = read_evaluation(tmp_path / "new" / "metrics.json")

    (row,) = Page(html).table("Far, new against old: means")
    assert [row[head] for head in ("mean: old", "mean: new", "change", "better")] == [
        *("8.0", "7.8", "-0.2", "1")  # lower is better, on one case
    ]
    charts = parts_of(organiser_page(found), "means")
    assert charts[2].ends == ("7.8",)
    assert [text for _, text in charts[2].axis] == ["0", "5", "10"]
    assert ("Far" in own_page(tmp_path, new)) == is_told
    assert ("Far" in compare(tmp_path, old, new, is_organiser=False)) == is_told
    if is_told:
        assert own_scores(found).values["far_liver"] == (9.0, 6.0, 8.5)
