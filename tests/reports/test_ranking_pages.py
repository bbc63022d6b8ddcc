"""The pages of a ranking: the numbers of ranking.json, and who may see which."""

import csv
import json
import time

import pytest

from flare.challenge.reading import read_challenge
from flare.ranking.rank import rank_results
from flare.ranking.rules import RankingOptions
from flare.ranking.simulation import write_simulation
from flare.reports import ranking_pages
from flare.reports.model import Chart
from flare.reports.rank import rank
from flare.reports.ranking.page import LOOKED_AT, alarms_of
from flare.reports.render.html import page_html
from tests.builders.pages import (
    BOTH,
    content_of,
    pages_of_ranking,
    parts_of,
    write_report,
)
from tests.builders.results import (
    CASES,
    write_team,
    write_teams,
    write_values,
)


@pytest.fixture
def results(tmp_path):
    return write_teams(tmp_path / "results")


def page_of(source, *, is_organiser=True, **options):
    # Fewer draws than usual, which take longer.
    options = {"is_organiser": is_organiser, "bootstrap": 30} | options
    return pages_of_ranking(source, has_teams=False, **options)["index.html"]


def words_of(page):
    parts = [*page.lead, *parts_of(page)]
    texts = [getattr(own, "text", "") for own in parts]
    return " ".join([*texts, *(t for own in parts for t in getattr(own, "items", ()))])


def ranking_json(source, tmp_path, **options):
    """What flare rank writes of the same results."""
    rank(source, **({"bootstrap": 30} | options)).write(tmp_path / "ranking")
    return json.loads((tmp_path / "ranking" / "ranking.json").read_text())


@BOTH
def test_the_ranking_is_that_of_the_files(results, tmp_path, is_organiser):
    """Also with options, which mean what they mean to flare rank."""
    options = {"bootstrap": 40, "seed": 7, "metrics": ("dsc", "runtime_s")}
    told = ranking_json(results, tmp_path, **options)
    with (tmp_path / "ranking" / "means.csv").open() as file:
        known = {(row["team"], row["metric"]): row for row in csv.DictReader(file)}

    page = page_of(results, is_organiser=is_organiser, **options)

    rows = content_of(page, "Means" if is_organiser else "Score and mean ranks")
    draws = content_of(page, "Ranks in 95 % of the draws")
    drawn = told["bootstrap"]["teams"]
    start = "" if is_organiser else "mean rank: "
    heads = {"dsc": f"{start}DSC", "runtime_s": f"{start}Running time (s)"}
    assert len(rows) == len(told["ranking"]) == 4
    for row, team, draw, own in zip(rows, told["ranking"], draws, drawn, strict=True):
        interval = "ranks in 95 % of samples"
        assert [*row] == ["rank", "team", interval, "score", *heads.values()]
        assert (row["team"].text, row["rank"].text) == (team["team"], str(team["rank"]))
        assert row["score"].exact == team["score"]
        ends = row[interval].text.split(" to ")
        assert [int(ends[0]), int(ends[-1])] == own["interval"]
        assert draw["team"].text == own["team"]
        assert [int(draw["from"].text), int(draw["to"].text)] == own["interval"]
        frequencies = [float(draw[str(n)].text or 0) / 100 for n in range(1, 5)]
        assert frequencies == pytest.approx(own["frequencies"], abs=5e-4)
        for metric, rank_of in team["mean_ranks"].items():
            cell, mean = row[heads[metric]], known[team["team"], metric]
            if is_organiser:
                missing = ", 1 missing" * (mean["missing"] == "1")
                assert cell.note == f"rank {rank_of:.2f}{missing}"
                assert cell.exact == float(mean["mean"])
            else:
                assert cell.text == f"{rank_of:.2f}"
    assert "40 times (seed 7)" in parts_of(page, "draws")[0].note


@pytest.mark.parametrize(
    ("values", "metrics", "sentence"),
    [
        (
            {"a": [(0.9,)] * 6},
            ("dsc",),
            "a is first. It is the only team: there is nothing to compare it with.",
        ),
        (
            {"a": [(0.9,)] * 6, "b": [(0.8,)] * 6},
            ("dsc",),
            "a is first in all of 30 bootstrap samples of the cases.",
        ),
        (
            {"a": [(0.9,)] * 6, "b": [(0.9,)] * 6},
            ("dsc",),
            "a and b share first place; first: a in all, b in all of 30 bootstrap"
            " samples of the cases.",
        ),
        (
            # The ranks: a 1 and 3, b 2 and 1, c 3 and 2.
            {"a": [(0.9, 9.0)] * 6, "b": [(0.8, 2.0)] * 6, "c": [(0.7, 3.0)] * 6},
            ("dsc", "runtime_s"),
            "b is first in all of 30 bootstrap samples of the cases. Without running"
            " time, a would be first.",
        ),
        (
            {"a": [(0.9,)] * 5, "b": [(0.8,)] * 5},
            ("dsc",),
            "a is first. 5 cases are too few to say how sure that is; at least 6 are"
            " needed. On 5 cases, one of two equal teams is ahead on all by chance in 1"
            " of 16 rankings.",
        ),
    ],
    ids=["one team", "one is first", "two share it", "not without", "too few"],
)
def test_a_sentence_says_how_sure_first_place_is(tmp_path, values, metrics, sentence):
    source = write_values(tmp_path / "table.csv", values, metrics)

    page = page_of(source, is_organiser=False, metrics=metrics)

    assert [part.text for part in page.lead] == [sentence]
    has_intervals = "samples" in sentence
    assert ("ranks in 95 % of samples" in page.sections[0].parts[0].heads) == (
        has_intervals
    )


@pytest.mark.parametrize(
    ("cases", "unlike", "is_few"),
    [(7, 0.01, True), (8, 0.01, False), (6, 0, True), (7, 0, False)],
)
def test_too_few_cases_for_a_test_are_told(tmp_path, cases, unlike, is_few):
    """Of three teams each of the 6 pairs needs p <= 0.05 / 6, which 8 cases give.

    Of 7 equal steps W is 28, its mean 14 and its variance 28: z is 2.55, p 0.0054.
    """
    values = {}
    for number, team in enumerate("abc"):
        steps = (0.1 + unlike * case for case in range(cases))
        values[team] = [(0.9 - number * step,) for step in steps]
    source = write_values(tmp_path / "table.csv", values)

    page = page_of(source, metrics=("dsc",))

    assert "under 48 of 48 choices of rules with all metrics." in page.lead[0].text
    assert ("it takes 8 until any difference" in words_of(page)) == is_few
    charts = [part for part in parts_of(page, "tests") if isinstance(part, Chart)]
    assert bool(charts) != is_few


def test_effects_and_schemes_are_those_of_ranking_json(tmp_path):
    cases = [f"case_{number}" for number in range(12)]
    for number in range(4):
        scores = {c: (number * 3 + n * 5) % 11 / 20 for n, c in enumerate(cases)}
        efficiency = [(c, "ok", 5, 9 * number + n) for n, c in enumerate(cases)]
        write_team(tmp_path / "more" / f"team_{number}", scores, efficiency)
    told = ranking_json(tmp_path / "more", tmp_path)

    page = page_of(tmp_path / "more")

    teams = [team["team"] for team in told["ranking"]]
    titles = {"dsc": "DSC", "max_gpu_memory_mb": "GPU memory (MB)"}
    charts = {chart.title: chart for chart in parts_of(page, "tests")[1:]}
    for metric, title in titles.items():
        rows = content_of(page, f"{title}: effect of row against column")
        for test in told["tests"]["pairs"]:
            if test["metric"] == metric:
                row = rows[teams.index(test["team"])]
                star = "*" if test["p_holm"] <= told["tests"]["alpha"] else ""
                cell = row[str(teams.index(test["other"]) + 1)]
                assert cell.text == f"{test['effect']:+.2f}{star}"
                field = charts[title].rows[teams.index(test["team"])]
                shade = f"e{sum(test['effect'] > bound for bound in (0.25, 0.5, 0.75))}"
                shown = field.classes[teams.index(test["other"])]
                assert shown == shade * bool(star)
    schemes = {row["scheme"].text: row for row in content_of(page, "Other schemes")}
    for scheme in told["schemes"]:
        if scheme["moved"]:
            name = scheme["scheme"]
            for metric, title in titles.items():
                within = title.replace(" (MB)", "")
                name = name.replace(f"without {metric}", f"without {within}")
            row = schemes[name]
            tau = scheme["kendall_tau"]
            assert row["tau"].exact == tau
            moved = [move.split()[0] for move in row["who moves"].text.split(", ")]
            assert moved == scheme["moved"]


def test_maps_are_in_the_order_of_their_metric_and_tell_who_moves(tmp_path):
    """By DSC b, a, c; by memory a, c, b: together a, b, c, with ranks of 3, 4 and 5."""
    for team, dsc, memory in (("a", 0.8, 10), ("b", 0.9, 90), ("c", 0.7, 50)):
        scores = {f"case_{n}": dsc - n / 1000 for n in range(12)}
        efficiency = [(case, "ok", 5, memory) for case in scores]
        write_team(tmp_path / "more" / team, scores, efficiency)

    page = page_of(tmp_path / "more", metrics=("dsc", "max_gpu_memory_mb"))

    charts = {chart.title: chart for chart in parts_of(page, "tests")[1:]}
    assert charts["DSC"].labels == ("1 b", "2 a", "3 c")
    assert charts["DSC"].ends == ("2 / 0", "1 / 1", "0 / 2")
    rows = content_of(page, "DSC: effect of row against column")
    assert [row["place"].text for row in rows] == ["2", "1", "3"]
    assert charts["DSC"].note.endswith(" Significantly better than a: b.")
    firsts, moves = parts_of(page, "schemes")
    # By DSC alone b is first; whatever has both metrics leaves a there.
    assert firsts.text.startswith("a is first in ")
    assert "; b without GPU memory." in firsts.text
    by_label = dict(zip(moves.labels, moves.rows, strict=True))
    assert moves.columns == ("a", "b", "c")
    assert by_label["without DSC"].texts == ["", "-1", "+1"]
    assert by_label["without DSC"].classes == ["", "s2", "g1"]
    assert by_label["without GPU memory"].texts == ["-1", "+1", ""]


def test_of_one_case_no_order_is_told(tmp_path):
    source = write_values(tmp_path / "table.csv", {"a": [(0.9,)], "b": [(0.8,)]})

    (hard,) = parts_of(page_of(source, metrics=("dsc",)), "cases")

    assert hard.note == "The only case is c0."


def test_tau_with_a_single_tie_has_one_word_in_all_places(tmp_path):
    """By tests of two cases, of which none can tell, both teams are first."""
    values = {"a": [(0.9,)] * 2, "b": [(0.8,)] * 2}
    source = write_values(tmp_path / "table.csv", values)

    page = page_of(source, metrics=("dsc",))

    rows = {row["scheme"].text: row for row in content_of(page, "Other schemes")}
    assert rows["tests (Holm), then rank"]["tau"].text == "undefined"
    *words, moves = parts_of(page, "schemes")
    assert "tests" not in words[0].text
    assert "mean of values, then rank" in moves.labels
    assert not any(label.startswith("tests") for label in moves.labels)
    text = str(rank(source, metrics=["dsc"], bootstrap=0))
    assert "tests (Holm), then rank                    undefined  b 2 to 1" in text


def test_what_is_to_be_looked_at_is_in_a_box_and_at_the_team(results):
    """Of many lines the first two, and a mirrored team before all others."""
    for name in "bcdefghijkl":
        scores, failed = dict.fromkeys(CASES, 0.0), dict.fromkeys(CASES, "crashed")
        write_team(results / name, scores, failed=failed)
    mirrored = "DSC would be 0.90 if mirrored from left to right"
    (results / "refused.csv").write_text("archive,team,problem\nm.zip,m,damaged\n")
    (results / "flags.csv").write_text(f"team,flag\nteam_1,{mirrored}\n")

    page = page_of(results)

    assert "status timed out" in words_of(page)
    flags = rank(results, bootstrap=0).analysis.flags
    box = page.lead[-1]
    assert box.title == f"{len(flags)} things to look at before it is published"
    rest = len(flags) - LOOKED_AT
    told = f"{rest} more: see To be looked at, below."
    assert list(box.items) == [*flags[:LOOKED_AT], told]
    assert (LOOKED_AT, flags[0]) == (2, f"team_1: {mirrored}")
    assert list(parts_of(page, "look")[0].items) == list(flags)
    alarms = {row["team"].text: row["team"].alarm for row in content_of(page, "Means")}
    for team, alarm in alarms.items():
        starts = (f"{team} ", f"{team}:")
        assert alarm == " ".join(line for line in flags if line.startswith(starts))
    assert alarms["b"]


def test_decisions_are_on_the_page_with_their_reasons(results, tmp_path):
    decisions = tmp_path / "decisions.toml"
    decisions.write_text(
        '[[withdrawn]]\ncase = "case_1"\nreason = "wrong kidney"\ndate = 2026-09-01\n'
        '[[out_of_competition]]\nteam = "team_2"\nreason = "ours"\ndate = 2026-09-02\n'
    )

    page = page_of(results, is_organiser=False, decisions=decisions)

    assert "Withdrawn: case case_1: wrong kidney (2026-09-01)" in words_of(page)
    last = content_of(page, "Score and mean ranks over 6 cases")[-1]
    texts = [last[head].text for head in ("team", "rank", "score")]
    assert texts == ["team_2", "-", ""]


def test_results_that_look_equal_give_everybody_the_same_means(tmp_path):
    """So the page tells nothing of any value beyond its rank, and a rounded mean."""
    sources = (
        write_teams(tmp_path / str(off), own=off, others=off) for off in (0.0, 4e-7)
    )
    first, second = (page_of(own, is_organiser=False, means=True) for own in sources)

    assert page_html(first) == page_html(second)


def test_means_are_for_everybody_only_where_that_is_chosen(results):
    page = page_of(results, is_organiser=False, means=True)

    rows, every = (content_of(own, "Means") for own in (page, page_of(results)))
    assert [[c.text for c in row.values()] for row in rows] == [
        [c.text for c in row.values()] for row in every
    ]
    # Nothing is behind what is shown: no digit more than it has.
    for row in rows:
        for head in ("DSC", "NSD", "Running time (s)", "GPU memory (MB)"):
            assert row[head].exact == float(row[head].text)


def test_a_ranking_without_scores_has_no_map_of_cases(results):
    page = page_of(results, metrics=("runtime_s",))

    assert "cases" not in [section.id for section in page.shown]
    assert content_of(page, "Running time (s): statistics of all cases")


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


def test_the_pages_of_teams_have_the_axes_of_the_ranking(tmp_path):
    """One of four teams has missed all, which stands at the edge of its own page."""
    values = {team: [(0.8, 80), (0.9, 90), (0.95, 95)] for team in "abc"}
    values["d"] = [(0.1, 10), (0.2, 20), (0.6, 60)]
    metrics = ("dsc", "runtime_s")
    source = write_values(tmp_path / "table.csv", values, metrics)

    found = pages_of_ranking(source, is_organiser=True, metrics=metrics)

    index, *teams = (parts_of(page, "values") for page in found.values())

    axes = [chart.axis for chart in index]
    assert [text for _, text in axes[0]] == ["0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]
    assert len(teams) == 4
    for charts in teams:
        assert [chart.axis for chart in charts] == axes
    edges = [charts[0].rows[0].edges[0] for charts in teams]
    assert edges == ["", "", "", "\u25c2 2: 0.10 to 0.20"]


def test_teams_that_all_tie_are_told_so_in_each_way(tmp_path):
    for team in ("a", "b", "c"):
        scores = {f"case_{n}": 0.8 for n in range(12)}
        write_team(tmp_path / "tied" / team, scores)

    page = page_of(tmp_path / "tied", metrics=("dsc",))

    firsts, _ = parts_of(page, "schemes")
    assert firsts.text.startswith("a is first in ")


def test_a_remark_is_that_of_the_team_with_the_longest_name_it_begins_with():
    look = ["Team 2 has DSC 0", "Team: refused", "All teams have DSC 0"]

    alarms = alarms_of(["Team", "Team 2"], look)

    assert alarms == {"Team 2": ["Team 2 has DSC 0"], "Team": ["Team: refused"]}
