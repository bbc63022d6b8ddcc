"""A page for each team of a ranking: what it may know, and what organisers look at."""

import csv
import json
import re

import pytest

from flare.ranking.rules import RankingOptions
from flare.reports.rank import rank
from tests.builders.fewer import few_fast
from tests.builders.measured import write_measured
from tests.builders.pages import BOTH, HOSTILE, Page, write_report
from tests.builders.results import write_table, write_teams, write_values

OPTIONS = {"bootstrap": 30}


def pages_of(source, folder, *, is_organiser=False, **options):
    """All pages of results, as HTML by the names of their files."""
    ranking = RankingOptions(**(OPTIONS | options))
    write_report([source], folder, is_organiser=is_organiser, ranking=ranking)
    return {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8")
        for file in sorted(folder.rglob("*.html"))
    }


def links_of(html):
    return [attributes["href"] for tag, attributes in Page(html).elements if tag == "a"]


@BOTH
def test_teams_are_linked_from_the_ranking_but_not_to_each_other(
    tmp_path, is_organiser
):
    source = write_teams(tmp_path / "results")

    pages = pages_of(source, tmp_path / "pages", is_organiser=is_organiser)

    teams = [f"teams/team_{number}.html" for number in range(4)]
    assert sorted(pages) == ["index.html", *teams]
    leading = [link for link in links_of(pages["index.html"]) if link[0] != "#"]
    assert sorted(leading) == teams
    for team in teams:
        leading = [link for link in links_of(pages[team]) if link[0] != "#"]
        # That of a participant is sent alone.
        assert leading == ["../index.html"] * is_organiser
    missing = Page(pages["teams/team_3.html"]).table("Results that are not there")
    assert [tuple(row.values())[:2] for row in missing] == [
        ("case_3", "DSC, NSD, Running time (s), GPU memory (MB)")
    ]
    assert 'id="missing"' not in pages["teams/team_1.html"]

    options = {"is_organiser": is_organiser, "ranking": RankingOptions(**OPTIONS)}
    page = write_report([source], tmp_path / "a.html", **options)
    links = links_of(page.read_text(encoding="utf-8"))
    assert all(link.startswith("#") for link in links)


def test_a_team_s_own_page_has_the_numbers_of_the_ranking(tmp_path):
    """Those of ranking.json and case_ranks.csv; scores in thousandths."""
    source = write_teams(tmp_path / "results", own=0.000_123_4)
    rank(source, **OPTIONS).write(tmp_path / "ranking")
    told = json.loads((tmp_path / "ranking" / "ranking.json").read_text())
    (team,) = (own for own in told["ranking"] if own["team"] == "team_1")

    page = Page(pages_of(source, tmp_path / "pages")["teams/team_1.html"])

    assert f"{team['rank']} of 4" in page.text
    assert f"Score{team['score']:.4f}" in page.text
    rows = page.table("Means and mean ranks")
    found = [row["mean rank"] for row in rows]
    assert found == [f"{m:.2f}" for m in team["mean_ranks"].values()]
    for row, (name, mean_rank) in zip(rows, team["mean_ranks"].items(), strict=True):
        all_ranks = [own["mean_ranks"][name] for own in told["ranking"]]
        better = [rank for rank in all_ranks if rank < mean_rank]
        assert row["place by it"] == str(len(better) + 1)
        scheme = next(s for s in told["schemes"] if s["scheme"] == f"without {name}")
        assert row["whole rank without it"] == str(scheme["ranks"]["team_1"])
    # DSC: 0.825, 0.7, 0.85, 0.725, 0.875, 0.75, 0.9; seconds: 12, 13, 5, 6, 7, 8, 9.
    assert float(rows[0]["mean"]) == pytest.approx(5.625 / 7, abs=0.0006)
    assert rows[2]["mean"] == "8.6"
    (draws,) = (t for t in told["bootstrap"]["teams"] if t["team"] == "team_1")
    low, high = draws["interval"]
    assert f"{low} to {high} in 95 % of draws of the cases" in page.text
    assert "no result is missing" in page.text
    (row,) = page.table("Ranks in 95 % of the draws")
    found = [float(row[str(number)] or 0) / 100 for number in range(1, 5)]
    assert found == pytest.approx(draws["frequencies"], abs=5e-4)
    rows = {row["case"]: row for row in page.table("Values and ranks of each case")}
    with (tmp_path / "ranking" / "case_ranks.csv").open() as file:
        for known in csv.DictReader(file):
            if known["team"] == "team_1" and known["metric"] == "dsc":
                assert rows[known["case"]]["rank: DSC"] == known["rank"]
    # 0.9 - (3 + 5) / 40, and 0.000123 more: 0.700; 5 + 7 + 1 s.
    assert rows["case_2"]["DSC"] == "0.700"
    assert rows["case_2"]["Running time (s)"] == "13.0"


def test_what_an_engine_says_of_the_organisers_computer_is_not_told(tmp_path):
    """Neither on a team's own page nor on its sheet; organisers look at it."""
    results = tmp_path / "results"
    cases, scores = ["case_1", "case_2"], {"liver": [0.9, 0.8]}
    failed = {"case_2": ("engine error", "the disk of host kuckuck is full")}
    write_measured(results / "a", cases, scores=scores, failed=failed)
    write_measured(results / "b", cases, scores=scores)

    own = pages_of(results, tmp_path / "pages")["teams/a.html"]
    rank(results, bootstrap=0).write(tmp_path / "ranking")

    sheet = (tmp_path / "ranking" / "sheets" / "a.md").read_text()
    for text in (own, sheet):
        assert "status engine error" in text
        assert "kuckuck" not in text
    looked_at = pages_of(results, tmp_path / "full", is_organiser=True)
    assert "kuckuck" in looked_at["teams/a.html"]


def test_values_of_others_change_nothing_on_a_team_s_own_page(tmp_path):
    """Nor do digits of its own scores that it must not see."""
    pages = [
        pages_of(write_teams(tmp_path / name, **more), tmp_path / f"{name}-pages")
        for name, more in (
            ("a", {}),
            ("b", {"others": 0.012_345}),
            ("c", {"own": 0.000_04}),
        )
    ]

    assert len({own["teams/team_1.html"] for own in pages}) == 1
    assert len({own["index.html"] for own in pages}) == 1
    assert pages[0]["teams/team_0.html"] != pages[1]["teams/team_0.html"]


def test_no_other_team_and_no_digit_too_many_is_on_a_team_s_own_page(tmp_path):
    source = write_teams(tmp_path / "results", own=0.012_345_6, others=0.023_456_7)

    pages = pages_of(source, tmp_path / "pages")

    for number in range(4):
        html = pages[f"teams/team_{number}.html"]
        main = html.partition("</style>")[2].partition("<script>")[0]
        others = {f"team_{n}" for n in range(4)} - {f"team_{number}"}
        assert not any(other in main for other in others)
        assert "data-v" not in main
        # Of Kendall's tau, which is public, the median is told; of values it is not.
        told = main.replace("ranking itself: median", "")
        assert not re.search(r"\b(median|lowest|highest|quartile)\b", told)
        score = re.search(r">(\d\.\d{4})</dd>", main).group(1)
        assert not re.search(r"\b[01]\.\d{4}", main.replace(score, ""))


def test_organisers_see_a_team_s_values_beside_the_median_of_the_others(tmp_path):
    """On case c0, others than b have 0.2, 0.6 and 0.7; on c1, one has a result."""
    dsc = {"a": (0.2, 0.9), "b": (0.8, 0.4), "c": (0.6, ""), "d": (0.7, "")}
    dsc |= {"e": ("", "")}
    values = {team: zip(own, strict=True) for team, own in dsc.items()}
    source = write_values(tmp_path / "table.csv", values)

    pages = pages_of(source, tmp_path / "pages", is_organiser=True, metrics=["dsc"])

    page = Page(pages["teams/b.html"])
    rows = page.table("Values and ranks of each case")
    assert [tuple(row.values()) for row in rows] == [
        ("c0", "0.800", "1", "0.600"),
        ("c1", "0.400", "2", "0.900"),
    ]
    # A missing result counts as 0: the means of the others are 0.55, 0.3, 0.35 and 0.
    (row,) = page.table("Means and mean ranks over 2 cases")
    assert [row["metric"], row["mean rank"]] == ["DSC", "1.50"]
    assert row["place by it"] == "1"
    assert "whole rank without it" not in row
    heads = ("mean", "others: lowest", "others: median", "others: highest")
    means = [row[head].exact for head in heads]
    assert means == pytest.approx([0.6, 0.0, 0.325, 0.55])


def test_decisions_change_which_pages_there_are(tmp_path):
    """Renamed, out of competition, or disqualified since the pages were written."""
    source = write_teams(tmp_path / "results")
    pages_of(source, tmp_path / "pages")
    decisions = tmp_path / "decisions.toml"
    decisions.write_text(
        '[[out_of_competition]]\nteam = "team_2"\nreason = "ours"\ndate = "x"\n'
        '[[names]]\nteam = "team_1"\nname = "\u00dcn\u00ef/c\u00f8"\n'
        'reason = "so"\ndate = "x"\n'
        '[[disqualified]]\nteam = "team_3"\nreason = "cheated"\ndate = "x"\n'
    )

    pages = pages_of(source, tmp_path / "pages", decisions=decisions)

    renamed = "teams/\u00dcn\u00ef_c\u00f8.html"
    assert {*pages} == {"index.html", "teams/team_0.html", "teams/team_2.html", renamed}
    assert "as if it alone had joined the 2 teams" in pages["teams/team_2.html"]
    assert 'id="draws"' not in pages["teams/team_2.html"]
    assert "\u00dcn\u00ef/c\u00f8 in the ranking" in pages[renamed]


@BOTH
@pytest.mark.parametrize(
    ("rows", "bootstrap"),
    [
        ([("a", "1", "dsc", 0.9)], 9),
        ([("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.9)], 0),
        ([("a", "1", "dsc", 0.9), ("b", "1", "dsc", "")], 9),
        ([(f"t{n}", "1", "dsc", n / 30) for n in range(25)], 9),
    ],
    ids=["one team, one case", "a tie, no bootstrap", "one without results", "many"],
)
def test_small_rankings_have_pages_of_teams(tmp_path, rows, bootstrap, is_organiser):
    source = write_table(tmp_path / "table.csv", rows)

    pages = pages_of(
        source,
        tmp_path / "pages",
        is_organiser=is_organiser,
        metrics=["dsc"],
        bootstrap=bootstrap,
    )

    assert len(pages) == 1 + len(rows)
    for html in pages.values():
        assert "Ranks when other cases are drawn" not in html


@pytest.mark.parametrize("is_organiser", few_fast([True, False], fast=[1]))
def test_hostile_teams_have_harmless_files_and_links(tmp_path, is_organiser):
    seen = [name for name in HOSTILE if name.isprintable()]
    rows = [(name, "1", "dsc", n / 99) for n, name in enumerate(seen)]
    source = write_table(tmp_path / "table.csv", rows)

    pages = pages_of(
        source, tmp_path / "pages", is_organiser=is_organiser, metrics=["dsc"]
    )

    assert len(pages) == 1 + len(seen)
    links = [link for link in links_of(pages["index.html"]) if link[0] != "#"]
    assert sorted(links) == sorted(set(pages) - {"index.html"})
    assert all(re.fullmatch(r"teams/[\w-]{1,64}\.html", link) for link in links)
    for html in pages.values():
        for tag, attributes in Page(html).elements:
            assert tag != "img"
            assert not any(k.startswith("on") or k == "style" for k in attributes)
