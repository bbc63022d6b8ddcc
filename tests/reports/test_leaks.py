"""Participants' pages of evaluations: nothing on them tells of the references."""

import random
import re
from itertools import pairwise

import pytest

from tests.builders.measured import write_measured
from tests.builders.pages import metrics_content, numbered, write_json, write_report

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


def own_page(folder, kind, references):
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
    write_report(found, page, is_organiser=False, **more)
    return page.read_text(encoding="utf-8"), contents


@of_each_kind
def test_references_with_equal_rounded_scores_give_equal_pages(tmp_path, kind):
    """Though means, digests, reasons, warnings and doubts of the evaluations differ."""
    (one, contents), (two, others) = (
        own_page(tmp_path, kind, name) for name in ("one", "two")
    )

    assert contents[0]["aggregates"] != others[0]["aggregates"]
    assert one == two


@of_each_kind
def test_nothing_is_told_but_rounded_scores_and_their_means(tmp_path, kind):
    html, contents = own_page(tmp_path, kind, "one")

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
