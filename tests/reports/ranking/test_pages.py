"""The pages of a ranking: the numbers of ranking.json, and who may see which."""

import csv
import json
import re
import time

import pytest

from flare.challenge.reading import read_challenge
from flare.ranking.options import RankingOptions
from flare.ranking.rank import rank_results
from flare.ranking.simulation import write_simulation
from flare.reports.ranking import pages as ranking_pages
from flare.reports.ranking.organisers import hardest_first
from flare.reports.ranking.ranking import rank
from flare.reports.report import write_report
from tests.builders.pages import Page
from tests.builders.results import write_table, write_team

CASES = [f"case_{number}" for number in range(1, 8)]


def make_results(folder, teams=4, shift=0.0):
    """Teams whose ranks on each case do not depend on the shift of their values."""
    for number in range(teams):
        scores = {
            case: 0.9 - (number * 3 + n * 5) % 11 / 40 + shift
            for n, case in enumerate(CASES)
        }
        efficiency = [
            (case, "ok", 5 + (number * 7 + n) % 9 + shift, 1000 * number + 1 + shift)
            for n, case in enumerate(CASES)
        ]
        if number == 3:
            efficiency[2] = (CASES[2], "timed out", "", "")
        write_team(folder / f"team_{number}", scores, efficiency)
    return folder


@pytest.fixture
def results(tmp_path):
    return make_results(tmp_path / "results")


def page_of(source, tmp_path, *, is_organiser=True, **options):
    """The page of results, as HTML."""
    output = tmp_path / "page.html"
    # Fewer draws than usual, which take longer.
    ranking = RankingOptions(**({"bootstrap": 30} | options))
    write_report([source], output, is_organiser=is_organiser, ranking=ranking)
    return output.read_text(encoding="utf-8")


def ranking_json(source, tmp_path, **options):
    """What flare rank writes of the same results."""
    rank(source, **({"bootstrap": 30} | options)).write(tmp_path / "ranking")
    return json.loads((tmp_path / "ranking" / "ranking.json").read_text())


BOTH = pytest.mark.parametrize(
    "is_organiser", [True, False], ids=["organiser", "participant"]
)


@BOTH
def test_the_ranking_is_that_of_ranking_json(results, tmp_path, is_organiser):
    told = ranking_json(results, tmp_path)

    page = Page(page_of(results, tmp_path, is_organiser=is_organiser))

    rows = page.table("Score and mean ranks over 7 cases")
    assert len(rows) == len(told["ranking"]) == 4
    for row, team in zip(rows, told["ranking"], strict=True):
        assert (row["team"], row["rank"]) == (team["team"], str(team["rank"]))
        assert row["score"].exact == team["score"]
        means = [row[head].exact for head in row if head.startswith("mean rank")]
        assert means == list(team["mean_ranks"].values())


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.9, 0.8, 0.7), "First place\nt0"),
        ((0.9, 0.9, 0.7), "First place, shared\nt0 and t1"),
        ((0.9, 0.9, 0.9), "First place, shared\n3 teams"),
    ],
    ids=["one", "two", "three"],
)
def test_the_head_of_the_page_says_who_is_first(tmp_path, values, text):
    rows = [(f"t{n}", "1", "dsc", value) for n, value in enumerate(values)]
    source = write_table(tmp_path / "table.csv", rows)

    html = page_of(source, tmp_path, is_organiser=False, metrics=["dsc"])

    assert re.search(r"<dt>(First place.*?)<.*?>(t0.*?|3 teams)<", html).groups() == (
        tuple(text.split("\n"))
    )


@BOTH
def test_the_draws_are_those_of_ranking_json(results, tmp_path, is_organiser):
    """Also with options, which mean what they mean to flare rank."""
    options = {"bootstrap": 40, "seed": 7, "metrics": ["dsc", "runtime_s"]}
    told = ranking_json(results, tmp_path, **options)["bootstrap"]

    html = page_of(results, tmp_path, is_organiser=is_organiser, **options)

    rows = Page(html).table("Ranks in 95 % of the draws")
    for row, team in zip(rows, told["teams"], strict=True):
        assert row["team"] == team["team"]
        assert [int(row["from"]), int(row["to"])] == team["interval"]
        frequencies = [float(row[str(n)] or 0) / 100 for n in range(1, 5)]
        assert frequencies == pytest.approx(team["frequencies"], abs=5e-4)
    assert "40 times (seed 7)" in html


def test_effects_and_schemes_are_those_of_ranking_json(results, tmp_path):
    told = ranking_json(results, tmp_path)

    page = Page(page_of(results, tmp_path))

    teams = [team["team"] for team in told["ranking"]]
    titles = {"dsc": "DSC", "max_gpu_memory_mb": "GPU memory (MB)"}
    for metric, title in titles.items():
        rows = page.table(f"{title}: effect of row against column")
        for test in told["tests"]["pairs"]:
            if test["metric"] == metric:
                row = rows[teams.index(test["team"])]
                star = "*" if test["p_holm"] <= told["tests"]["alpha"] else ""
                cell = row[str(teams.index(test["other"]) + 1)]
                assert cell == f"{test['effect']:+.2f}{star}"
    schemes = {row["scheme"]: row for row in page.table("Other schemes")}
    for scheme in told["schemes"]:
        if scheme["moved"]:
            row = schemes[scheme["scheme"]]
            assert row["tau"].exact == scheme["kendall_tau"]
            moved = [move.split()[0] for move in row["who moves"].split(", ")]
            assert moved == scheme["moved"]


def test_the_values_of_every_case_are_there_hardest_first(results, tmp_path):
    page = Page(page_of(results, tmp_path))

    rows = page.table("DSC of each case and team")
    means = []
    for row in rows:
        own = [row[f"team_{n}"] for n in range(4)]
        means.append(sum(0 if v == "no result" else float(v) for v in own))
    assert means == sorted(means)
    case_3 = next(row for row in rows if row["case"] == "case_3")
    assert case_3["team_3"] == "no result"
    times = {r["team"]: r for r in page.table("Running time (s): all statistics")}
    with (results / "team_1" / "efficiency.csv").open() as file:
        known = [float(row["runtime_s"]) for row in csv.DictReader(file)]
    assert times["team_1"]["mean"] == f"{sum(known) / 7:.1f}"
    assert (times["team_1"]["no result"], times["team_3"]["no result"]) == ("none", "1")


def test_flags_recount_and_missing_results_are_in_words(results, tmp_path):
    told = ranking_json(results, tmp_path)

    text = " ".join(Page(page_of(results, tmp_path)).text.split())

    assert told["flags"]
    for flag in told["flags"]:
        assert flag in text
    assert "keeps first place" in text
    assert "1 of 7 cases (case_3): status timed out" in text


def test_decisions_are_on_the_page_with_their_reasons(results, tmp_path):
    decisions = tmp_path / "decisions.toml"
    decisions.write_text(
        '[[withdrawn]]\ncase = "case_1"\nreason = "wrong kidney"\ndate = 2026-09-01\n'
        '[[out_of_competition]]\nteam = "team_2"\nreason = "ours"\ndate = 2026-09-02\n'
    )

    page = Page(page_of(results, tmp_path, is_organiser=False, decisions=decisions))

    assert "Withdrawn: case case_1: wrong kidney (2026-09-01)" in page.text
    rows = page.table("Score and mean ranks over 6 cases")
    assert (rows[-1]["team"], rows[-1]["rank"], rows[-1]["score"]) == (
        "team_2",
        "-",
        "",
    )


def test_results_with_equal_ranks_give_everybody_the_same_page(tmp_path):
    """So the page tells nothing of any value."""
    first, second = (
        page_of(
            make_results(tmp_path / name, shift=shift), tmp_path, is_organiser=False
        )
        for name, shift in (("a", 0.0), ("b", 0.0123456))
    )

    assert first == second


@BOTH
def test_two_pages_of_one_ranking_have_the_same_bytes(results, tmp_path, is_organiser):
    first, second = (
        page_of(results, tmp_path, is_organiser=is_organiser) for _ in range(2)
    )

    assert first == second


@BOTH
@pytest.mark.parametrize(
    ("rows", "options"),
    [
        pytest.param([("a", "1", "dsc", 0.9)], {}, id="one team, one case"),
        pytest.param(
            [("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.9)],
            {"bootstrap": 0},
            id="two that tie, no bootstrap",
        ),
        pytest.param(
            [("a", "1", "dsc", 0.9), ("b", "1", "dsc", "")],
            {},
            id="one without results",
        ),
        pytest.param(
            [(f"t{n}", "1", "dsc", n / 30) for n in range(25)], {}, id="many teams"
        ),
    ],
)
def test_small_and_large_rankings_are_pages_too(tmp_path, rows, options, is_organiser):
    source = write_table(tmp_path / "table.csv", rows)

    html = page_of(
        source, tmp_path, is_organiser=is_organiser, metrics=["dsc"], **options
    )

    page = Page(html)
    assert len(page.table("Score and mean ranks over 1 case;")) == len(rows)
    assert ('id="draws"' in html) == (options.get("bootstrap") != 0)
    assert ("no result" in html.partition("<main")[2]) == (
        is_organiser  # in the key at least
    )


def test_a_ranking_without_scores_has_no_map_of_cases(results, tmp_path):
    html = page_of(results, tmp_path, metrics=["runtime_s"])

    assert 'id="cases"' not in html
    assert "Running time (s): all statistics" in html


def test_the_hardest_case_is_the_one_with_the_lowest_mean():
    """Sums of 0.9, 0.5 and, with a missing result, 0.6."""
    assert hardest_first([(0.5, 0.3, 0.6), (0.4, 0.2, None)]) == [1, 2, 0]


@pytest.mark.slow
@pytest.mark.parametrize("is_organiser", [True, False])
def test_fifty_teams_and_a_hundred_cases(tmp_path, monkeypatch, is_organiser):
    """No page has more than a megabyte; all 51 take 5 s beyond the ranking itself."""
    write_simulation(read_challenge("flare21"), tmp_path / "results", teams=50)
    options = RankingOptions(bootstrap=100)
    found = rank_results(tmp_path / "results", read_challenge("flare21"), options)
    monkeypatch.setattr(ranking_pages, "rank_results", lambda *_: found)
    start = time.process_time()

    write_report([tmp_path / "results"], tmp_path / "pages", is_organiser=is_organiser)

    assert time.process_time() - start < 5
    sizes = [file.stat().st_size for file in (tmp_path / "pages").rglob("*.html")]
    assert len(sizes) == 51
    assert max(sizes) <= 1_000_000
