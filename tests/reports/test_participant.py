"""A participant's page: nothing on it tells of the references."""

import random
import re

import pytest

from flare.challenge.metrics import METRICS, Better, Metric
from flare.reports.report import write_report
from flare.reports.scores import OwnScores
from tests.builders.pages import Page, compare, metrics_content, numbered, write_json


def own_page(folder, content):
    """The participant's page of a metrics.json with this content, as HTML."""
    source = write_json(folder / "metrics.json", content)
    write_report([source], folder / "page.html", is_organiser=False)
    return (folder / "page.html").read_text(encoding="utf-8")


def scores(seed):
    """Scores of 12 cases whose first three decimals do not depend on the seed."""
    shared, own = random.Random(0), random.Random(seed)

    def values():
        rounded = [shared.randrange(1, 1000) for _ in range(12)]
        return [(r + own.uniform(-0.49, 0.49)) / 1000 for r in rounded]

    return {organ: values() for organ in ("liver", "pancreas")}


def content_of(seed):
    """A metrics.json; NSD and means are rounded, too, as they may differ otherwise."""
    content = metrics_content(scores(seed))
    for metric in ("dsc", "nsd", "nsd_liver", "nsd_pancreas"):
        own = content["case"][metric]
        content["case"][metric] = {n: round(v, 2) for n, v in own.items()}
    content["evaluation"] |= {"references_sha256": str(seed), "commit": str(seed)}
    content["warnings"] = [f"{seed} voxels are missing"]
    return content


def test_references_with_equal_rounded_scores_give_equal_pages(tmp_path):
    """Though means, digests and warnings of the two evaluations differ."""
    contents = [content_of(1), content_of(2)]
    assert contents[0]["aggregates"] != contents[1]["aggregates"]

    first, second = (own_page(tmp_path / str(n), c) for n, c in enumerate(contents))

    assert first == second


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


def test_no_score_is_there_with_more_than_three_decimals(tmp_path):
    content = metrics_content(scores(3))

    html = own_page(tmp_path, content)

    values = [v for m in ("dsc", "nsd") for v in content["case"][m].values()]
    values += [v for organ in ("liver", "pancreas")
               for v in content["case"][f"dsc_{organ}"].values()]  # fmt: skip
    values += [v for v in content["aggregates"].values() if v is not None]
    for value in values:
        assert repr(value) not in html
        assert f"{value:.4f}" not in html
    assert "data-v" not in html
    main = html.partition("</style>")[2]
    assert not re.search(r"\b[01]\.\d{4}", main.partition("<script>")[0])


def test_neither_lowest_nor_median_nor_quartile_is_told(tmp_path):
    html = own_page(tmp_path, metrics_content(scores(3)))

    assert not re.search(r"\b(median|lowest score|highest|quartile)\b", html)
    assert 'class="box"' not in html


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


@pytest.mark.parametrize("score", [0.912345, 912.0, True, 1001, -1])
def test_the_type_of_the_page_holds_nothing_but_thousandths(score):
    shown = {"challenge": "", "cases": ("a",), "organs": (), "failed": {}}
    with pytest.raises(ValueError, match="not in whole thousandths"):
        OwnScores(values={"dsc": (score,)}, **shown)
    with pytest.raises(ValueError, match="means of exact scores"):
        OwnScores(values={"dsc": (0.5,)}, means={"dsc": 0.5}, **shown)


def test_a_metric_that_is_declared_is_on_pages_but_no_distance_is_for_participants(
    tmp_path, monkeypatch
):
    """A third one needs nothing in reports/; in mm it would tell of the references."""
    hd95 = Metric(
        name="hd95",
        title="HD95",
        function="none:none",
        unit="mm",
        range=(0.0, 1000.0),
        better=Better.LOWER,
    )
    monkeypatch.setitem(METRICS, "hd95", hd95)
    old, new = (metrics_content({"liver": [0.9, 0.8, 0.7]}) for _ in range(2))
    for content, values in ((old, [9.0, 8.0, 7.0]), (new, [9.0, 6.0, 8.5])):
        content["case"]["hd95"] = content["case"]["hd95_liver"] = numbered(values)

    html = compare(tmp_path, old, new)
    write_report([tmp_path / "new" / "metrics.json"], tmp_path / "a.html",
                 is_organiser=True)  # fmt: skip

    (row,) = Page(html).table("HD95, new against old: means")
    assert [row[head] for head in ("mean: old", "mean: new", "change", "better")] == [
        *("8.000", "7.833", "+0.167", "1")  # lower is better: a gain
    ]
    page = Page((tmp_path / "a.html").read_text(encoding="utf-8"))
    (row,) = page.table("HD95 (mm) over 3 cases")
    assert (row["mean"], row["95 % interval"]) == ("7.833", "none")
    assert "HD95" not in own_page(tmp_path, new)
    assert "HD95" not in compare(tmp_path, old, new, organiser=False)
