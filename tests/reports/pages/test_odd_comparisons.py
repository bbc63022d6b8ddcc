"""The page of evaluations that have little in common, odd names, or nothing to test."""

from pathlib import Path

import pytest

from flare.reports.comparison import evaluation_names
from flare.reports.report import write_report
from tests.builders.pages import (
    FEW_HOSTILE,
    HOSTILE,
    Page,
    compare,
    metrics_content,
    numbered,
    write_json,
)

AUDIENCES = pytest.mark.parametrize(
    "audience", [True, False], ids=["organiser", "participant"]
)

OLD = {"liver": [0.5, 0.6, 0.7, 0.8, 0.9], "left_kidney": [0.91, 0.92, 0.93, 0.9, 1.0]}
NEW = {"liver": [0.6, 0.8, 0.7, 0.5, 0.94], "left_kidney": [0.9, 0.9, 0.9, 0.9, 0.9]}


@AUDIENCES
def test_an_evaluation_equals_itself(tmp_path, audience):
    """Both have the same name, too; nothing can be tested, and nothing is claimed."""
    source = write_json(tmp_path / "metrics.json", metrics_content(OLD))

    write_report([source, source], tmp_path / "page.html", is_organiser=audience)

    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Both have the same scores on every case: there is nothing to" in page.text
    (rows,) = (
        rows
        for name, rows in page.tables.items()
        if name.startswith("DSC, 2:") and "tests" in name
    )
    assert rows[1][-3:] == ["no test"] * 3


@AUDIENCES
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"liver": [0.9]}, {"liver": [0.8]}, id="one case"),
        pytest.param({"liver": [0.9, 1]}, {"liver": [0.8, 1]}, id="two cases"),
        pytest.param({"lesion": [0.0] * 5}, {"lesion": [1.0] * 5}, id="all found"),
        pytest.param(
            {"liver": [0.5] * 100}, {"liver": [n / 100 for n in range(100)]}, id="100"
        ),
        pytest.param(
            {"liver": [0.5] * 4}, {"liver": [0.5] * 4, "spleen": [1.0] * 4}, id="organs"
        ),
    ],
)
def test_few_and_many_scores_are_a_page_too(tmp_path, old, new, audience):
    contents = [metrics_content(old), metrics_content(new)]

    page = Page(compare(tmp_path, *contents, organiser=audience))

    rows = page.table("DSC, new against old: differences of each case")
    assert len(rows) == len(next(iter(old.values())))


@AUDIENCES
def test_scores_that_are_not_there_are_said_in_words(tmp_path, audience):
    """Of the kidney, no case has two scores; of the liver, one has not."""
    contents = [metrics_content(OLD), metrics_content(NEW)]
    del contents[0]["case"]["dsc_liver"]["1"]
    for number in "012":
        del contents[0]["case"]["dsc_left_kidney"][number]
    for number in "34":
        del contents[1]["case"]["dsc_left_kidney"][number]

    page = Page(compare(tmp_path, *contents, organiser=audience))

    rows = {r["case"]: r for r in page.table("DSC, new against old: differences")}
    assert rows["case_002"]["liver"] == "no result"
    tests = {r["organ"]: r for r in page.table("DSC, new against old: means")}
    kidney = tests["left kidney"]
    assert kidney["change"] == kidney["mean: old"] == "no result"
    assert kidney["p"] == "no test"
    assert [tests["liver"][head] for head in ("better", "equal", "worse")] == [
        *("2", "1", "1"),
    ]


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (("a/metrics.json", "b/metrics.json"), ("a", "b")),
        (("r/a.json", "r/b.json"), ("a", "b")),
        (("r/a.json", "r/b.json", "s/a.json"), ("r/a.json", "r/b.json", "s/a.json")),
        (("a/m.json", "a/m.json"), ("1: a/m.json", "2: a/m.json")),
        (("two\nlines/m.json", "b/m.json"), ("two\\nlines", "b")),
    ],
)
def test_evaluations_have_short_names_of_their_own(sources, names):
    assert evaluation_names([Path(source) for source in sources]) == names


def test_long_names_that_would_be_shortened_alike_are_numbered():
    """80 characters of each are shown."""
    sources = [Path("x" * 60 + middle + "x" * 60) / "m.json" for middle in "ab"]

    found = evaluation_names(sources)

    assert len({*found}) == 2
    assert [name[:3] for name in found] == ["1: ", "2: "]


def named_page(folder, word, *, audience):
    """A page with a word as a case, a reason, all of the provenance, and a folder."""
    old, new = metrics_content(OLD, failed={word: word}), metrics_content(NEW)
    for each in (old, new):
        files = numbered([f"case_00{number}.nii.gz" for number in range(1, 6)])
        each["case"]["gt_fname"] = each["case"]["alg_fname"] = files | {"1": word}
        each["evaluation"] |= {"challenge": word, word: {word: word}}
    new["low_scores"] = [{"reason": word, "cases": [word]}]
    names = ("old", word.replace("/", "").replace("\0", "")[:60])
    return Page(compare(folder, old, new, names=names, organiser=audience))


@pytest.fixture(scope="module")
def usual_pages(tmp_path_factory):
    """What these pages are with a harmless word, by audience."""
    folder = tmp_path_factory.mktemp("usual")
    return {
        audience: named_page(folder, "x", audience=audience)
        for audience in (True, False)
    }


@AUDIENCES
@pytest.mark.parametrize("name", FEW_HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_text(tmp_path, usual_pages, name, audience):
    page = named_page(tmp_path, name, audience=audience)

    hostile, usual = (
        [(tag, sorted({*found} - {"title"})) for tag, found in each.elements]
        for each in (page, usual_pages[audience])
    )
    assert hostile == usual  # no element, and no attribute, has come or gone
    assert not any(char in page.text for char in "\0\u202e\u2028\udc80")
