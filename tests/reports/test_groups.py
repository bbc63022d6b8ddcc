"""Groups of cases on pages: what organisers see, and what participants do not."""

import pytest

from flare.ranking.rules import RankingOptions
from flare.results.errors import GroupsFileError
from tests.builders.pages import Page, metrics_content, write_json, write_report
from tests.builders.results import write_table


@pytest.fixture(autouse=True)
def fewest(monkeypatch):
    """Intervals of three values, so that they can be looked at by hand."""
    monkeypatch.setattr("flare.statistics.bootstrap.FEWEST_VALUES", 3)


SCORES = {
    "liver": [0.9, 0.8, 0.7, 0.96, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.3],
    "spleen": [1.0, 0.0, 0.5, 0.75, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1],
}
CASES = [f"case_{n:03}" for n in range(1, 12)]


def groups_file(tmp_path, groups):
    file = tmp_path / "cases.csv"
    rows = [f"{case},{group}\n" for case, group in zip(CASES, groups, strict=False)]
    file.write_text("case,centre\n" + "".join(rows))
    return file


def html_of(source, groups, **options):
    options["groups"] = groups_file(source.parent, groups)
    page = write_report([source], source.with_name("page.html"), **options)
    return page.read_text(encoding="utf-8")


def page_of(tmp_path, groups, *, is_organiser):
    source = write_json(tmp_path / "metrics.json", metrics_content(SCORES))
    return html_of(source, groups, is_organiser=is_organiser)


def test_the_means_of_each_group_and_organ(tmp_path):
    """By hand: A has cases 1 to 3, B has 4 and 5, and the others are not given."""
    html = page_of(tmp_path, "AAABB", is_organiser=True)

    rows = Page(html).table("DSC by centre and organ")
    found = {(row["group"], row["organ"]): row for row in rows}
    assert found["A", "liver"].keys() == {
        *("group", "cases", "organ", "mean", "95 % interval"),
    }
    for key, cases, mean in (
        (("A", "liver"), "3", 0.8),
        (("A", "spleen"), "3", 0.5),
        (("A", "mean of organs"), "3", 0.65),
        (("B", "liver"), "2", 0.73),
        (("not given", "liver"), "6", 4.3 / 6),
    ):
        assert found[key]["cases"] == cases
        assert found[key]["mean"].exact == pytest.approx(mean)
    assert found["B", "liver"]["95 % interval"] == "too few cases"
    assert found["A", "liver"]["95 % interval"] != "too few cases"


def test_a_group_of_all_cases_has_the_interval_of_the_evaluation(tmp_path):
    page = Page(page_of(tmp_path, "A" * 11, is_organiser=True))

    (own,) = (r for r in page.table("DSC by centre") if r["organ"] == "liver")
    (told,) = (r for r in page.table("DSC over 11 cases") if r["organ"] == "liver")
    assert own["95 % interval"] == told["95 % interval"]
    assert own["mean"] == told["mean"]


def test_participants_see_means_of_rounded_scores_and_no_case_of_a_group(tmp_path):
    html = page_of(tmp_path, "AAAAABBBBBB", is_organiser=False)

    rows = Page(html).table("DSC by centre and organ")
    found = {(row["group"], row["organ"]): row for row in rows}
    assert found["A", "liver"]["mean"] == "0.772"
    assert found["A", "liver"]["mean"].exact is None
    part = html.partition('id="groups"')[2]
    assert "dots" not in part.partition("</section>")[0]


def test_participants_are_told_nothing_by_a_column_with_a_small_group(tmp_path):
    html = page_of(tmp_path, "AAAAAAABBBB", is_organiser=False)

    page = Page(html)
    assert not any("centre" in caption for caption in page.tables)
    assert (
        "Nothing is told by centre, as a group has fewer than 5 cases: B."
        in " ".join(page.text.split())
    )


# --- A ranking --------------------------------------------------------------------

VALUES = {
    "a": (0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1),
    "b": (0.8, 0.8, 0.8, 0.8, 0.8, 0.2, 0.2, 0.2, 0.2, 0.2),
    "c": (0.7, 0.7, 0.7, 0.7, 0.7, 0.0, 0.0, 0.0, 0.0, None),
}


def ranking_page(tmp_path, groups, *, is_organiser, **options):
    source = write_table(
        tmp_path / "table.csv",
        [
            (team, case, "dsc", "" if value is None else value)
            for team, values in VALUES.items()
            for case, value in zip(CASES, values, strict=False)
        ],
    )
    ranking = RankingOptions(**{"metrics": ("dsc",), "bootstrap": 0} | options)
    return html_of(source, groups, is_organiser=is_organiser, ranking=ranking)


@pytest.mark.parametrize("is_organiser", [True, False])
def test_the_ranks_within_each_group(tmp_path, is_organiser):
    """Of the first five cases a is ahead, of the others b: they share rank 1."""
    html = ranking_page(tmp_path, "AAAAABBBBB", is_organiser=is_organiser)

    rows = Page(html).table("Ranks of the teams by centre")
    assert [list(row.values()) for row in rows] == [
        ["a", "1", "1", "2"],
        ["b", "1", "2", "1"],
        ["c", "3", "3", "3"],
    ]
    assert list(rows[0]) == ["team", "all cases", "A (5 cases)", "B (5 cases)"]


def test_means_of_teams_say_what_is_missing(tmp_path):
    html = ranking_page(tmp_path, "AAAAABBBBB", is_organiser=True)

    rows = Page(html).table("DSC by centre: means")
    cell = rows[2]["B (5 cases)"]
    assert cell == "0.000 (all cases alike), 1 missing"
    assert "95 % intervals; a missing result counts as DSC 0<" in html
    assert rows[0]["A (5 cases)"].exact == pytest.approx(0.9)


def test_everybody_sees_neither_means_nor_small_groups(tmp_path):
    public = ranking_page(tmp_path, "AAAAABBBBB", is_organiser=False)
    small = ranking_page(tmp_path, "AAAAAABBBB", is_organiser=False)

    assert "DSC by centre" not in public
    assert "Ranks of the teams by centre" not in small
    assert "Nothing is told by centre" in small


def test_a_withdrawn_case_may_have_a_group(tmp_path):
    decisions = tmp_path / "decisions.toml"
    decisions.write_text(
        '[[withdrawn]]\ncase = "case_001"\nreason = "r"\ndate = 2026-09-01\n'
    )

    html = ranking_page(tmp_path, "AAAAABBBBB", is_organiser=True, decisions=decisions)

    assert "A (4 cases)" in html


@pytest.mark.parametrize("is_organiser", [True, False])
def test_a_case_that_was_not_scored_is_refused(tmp_path, is_organiser):
    with pytest.raises(GroupsFileError, match="line 12: there is no case case_011"):
        ranking_page(tmp_path, "AAAAABBBBBB", is_organiser=is_organiser)
    assert not (tmp_path / "page.html").exists()
