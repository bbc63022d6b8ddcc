"""FLARE's ranking, worked out by hand, and compared with challengeR."""

import csv
import itertools
import json
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from flare.challenge.metrics import Better
from flare.challenge.rules import RankedMetric
from flare.ranking.decisions import apply_decisions, read_decisions
from flare.ranking.options import MissingRule, RankingOptions, Ties
from flare.ranking.rules import RankingRules, rules_of
from flare.ranking.standings import rank_teams
from flare.ranking.table import read_results
from flare.results.errors import RankingError
from tests.builders import run_flare
from tests.builders.results import (
    DSC,
    FLARE21,
    FLARE22,
    METRICS21,
    METRICS22,
    ROWS,
    TIME,
    make_table,
    ranked,
    values_of,
    write_table,
    write_team,
)
from tests.oracles import naive_ranks


def rank(tmp_path, rows, rules):
    """Rank, score and mean ranks by team, in the order of the ranking."""
    table = read_results(write_table(tmp_path / "results.csv", rows), rules.metrics)
    return {
        s.team: (s.rank, s.score, dict(s.mean_ranks))
        for s in rank_teams(table, rules).standings
    }


# --- Ranks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        # Values 1 2 2 2 5: the three take places 2, 3 and 4.
        (Ties.MIN, [1, 2, 2, 2, 5]),
        (Ties.AVERAGE, [1, 3, 3, 3, 5]),
        (Ties.MAX, [1, 4, 4, 4, 5]),
    ],
)
def test_ties(ties, expected):
    values = dict(zip("abcde", (1.0, 2.0, 2.0, 2.0, 5.0), strict=True))
    table = make_table({(team, "1", "runtime_s"): v for team, v in values.items()})

    ranks = rank_teams(table, RankingRules(metrics=(TIME,), ties=ties)).case_ranks

    assert ranks.to_list() == expected


@pytest.mark.parametrize("ties", Ties)
@pytest.mark.parametrize("missing", [MissingRule.LAST, MissingRule.WORST_PLUS_ONE])
def test_ranks_equal_those_of_a_slow_twin(ties, missing):
    """Thirty cases of seven teams, with many ties and missing results."""
    chance = random.Random(3)
    given = {
        (team, f"{case:02}", metric): chance.choice((1.0, 2.0, 3.0, None))
        for team in "abcdefg"
        for case in range(30)
        for metric in ("dsc", "runtime_s")
    }
    table = make_table(given)
    rules = RankingRules(metrics=(DSC, TIME), ties=ties, missing=missing)

    ranks = rank_teams(table, rules).case_ranks

    for case, metric in itertools.product(table.cases, table.metrics):
        values = [given[team, case, metric] for team in table.teams]
        if metric == "dsc":
            values = [None if value is None else -value for value in values]
        expected = naive_ranks(values, ties.value, missing.value)
        assert [ranks[team, case, metric] for team in table.teams] == expected


def test_two_metrics_on_two_cases(tmp_path):
    """Three teams: DSC ranks, then time ranks, case by case."""
    rows = [
        ("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.8), ("c", "1", "dsc", 0.7),
        ("a", "2", "dsc", 0.5), ("b", "2", "dsc", 0.6), ("c", "2", "dsc", 0.6),
        ("a", "1", "runtime_s", 30), ("b", "1", "runtime_s", 10),
        ("c", "1", "runtime_s", 20),
        ("a", "2", "runtime_s", 5), ("b", "2", "runtime_s", 5),
        ("c", "2", "runtime_s", 9),
    ]  # fmt: skip

    found = rank(tmp_path, rows, RankingRules(metrics=(DSC, TIME)))

    # a: DSC 1 and 3, time 3 and 1: 8 / 4 / 3. b: 2 and 1, 1 and 1: 5 / 4 / 3.
    # c: 3 and 1, 2 and 3: 9 / 4 / 3.
    assert found == {
        "b": (1, Fraction(5, 12), {"dsc": Fraction(3, 2), "runtime_s": 1}),
        "a": (2, Fraction(8, 12), {"dsc": 2, "runtime_s": 2}),
        "c": (3, Fraction(9, 12), {"dsc": 2, "runtime_s": Fraction(5, 2)}),
    }


def test_weights(tmp_path):
    """DSC counts 1, time a half: (1 * 1 + 2 / 2) / 1.5 / 2 = 2/3, and 5/6."""
    half = RankedMetric(metric="runtime_s", better=Better.LOWER, weight=0.5)
    rows = [
        *(("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.8)),
        *(("a", "1", "runtime_s", 9), ("b", "1", "runtime_s", 8)),
    ]

    found = rank(tmp_path, rows, RankingRules(metrics=(DSC, half)))

    assert [score for _, score, _ in found.values()] == [Fraction(2, 3), Fraction(5, 6)]


def test_a_tolerance_makes_all_below_it_equal(tmp_path):
    memory = RankedMetric(metric="memory", better=Better.LOWER, tolerance=2048.0)
    rows = [(team, "1", "memory", value) for team, value in
            (("a", 0), ("b", 2048), ("c", 2049), ("d", 5000))]  # fmt: skip

    found = rank(tmp_path, rows, RankingRules(metrics=(memory,)))

    assert [place for place, _, _ in found.values()] == [1, 1, 3, 4]


def test_values_are_rounded_as_the_challenge_says(tmp_path):
    """To two decimals, 0.904 and 0.896 are both 0.9; 0.894 is not."""
    rounded = RankedMetric(metric="dsc", better=Better.HIGHER, decimals=2)
    rows = [
        ("a", "1", "dsc", 0.904),
        ("b", "1", "dsc", 0.896),
        ("c", "1", "dsc", 0.894),
    ]

    found = rank(tmp_path, rows, RankingRules(metrics=(rounded,)))

    assert [place for place, _, _ in found.values()] == [1, 1, 3]


@pytest.mark.parametrize("name", ["nsd", "dsc_liver"])
def test_a_gate_leaves_the_scores(name):
    score = RankedMetric(metric=name, better=Better.HIGHER)
    table = make_table({(t, "1", m): v for t, m, v in (
        ("a", "dsc", 0.9), ("b", "dsc", 0.1), ("a", name, 0.2), ("b", name, 0.3),
    )})  # fmt: skip

    ranks = rank_teams(
        table, RankingRules(metrics=(DSC, score), gate_dsc=0.5)
    ).case_ranks

    assert (ranks["a", "1", name], ranks["b", "1", name]) == (2, 1)


def test_a_gate_takes_the_efficiency_of_bad_cases(tmp_path):
    """B is fast because it finds nothing: below a DSC of 0.5 its time is missing."""
    rows = [
        *(("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.1), ("c", "1", "dsc", 0.5)),
        *(("a", "1", "runtime_s", 9), ("b", "1", "runtime_s", 1),
          ("c", "1", "runtime_s", 5)),
    ]  # fmt: skip

    found = rank(tmp_path, rows, RankingRules(metrics=(DSC, TIME), gate_dsc=0.5))

    # c: DSC 2, time 1; a: DSC 1, time 2; b: 3 and 3. Without the gate b's time is 1st.
    assert {team: means for team, (_, _, means) in found.items()} == {
        "a": {"dsc": 1, "runtime_s": 2},
        "c": {"dsc": 2, "runtime_s": 1},
        "b": {"dsc": 3, "runtime_s": 3},
    }
    with pytest.raises(RankingError, match="efficiency depends on the DSC"):
        rules_of(FLARE21, RankingOptions(metrics=["nsd", "runtime_s"], gate=0.5))


# --- FLARE22 ----------------------------------------------------------------------


def test_flare22_by_hand():
    """Weights 1, 1, 1, 1/2 and 1/2; team c was stuck on the only case."""
    values = {
        "a": (0.9, 0.9, 20.0, 3000.0, 500.0),
        "b": (0.8, 0.8, 10.0, 3000.0, 400.0),
        "c": (None,) * 5,
    }
    table = make_table(
        {
            (team, "1", metric): value
            for team, own in values.items()
            for metric, value in zip(METRICS22, own, strict=True)
        }
    )

    found = rank_teams(table, rules_of(FLARE22)).standings

    # a: 1 + 1 + 2 + 1/2 + 2/2 = 5.5; b: 2 + 2 + 1 + 1/2 + 1/2 = 6; c: 3 * 4 = 12;
    # each over weights of 4 and 3 teams.
    assert [(s.team, s.rank, s.score) for s in found] == [
        ("a", 1, Fraction(11, 24)),
        ("b", 2, Fraction(12, 24)),
        ("c", 3, 1),
    ]


def test_a_stuck_container_counts_as_flare22_has_published():
    """DSC 0, NSD 0, 3600 s, areas of 29,491,200 and 360,000: tied with such a run."""
    stuck = dict(zip(METRICS22, (0, 0, 3600, 29_491_200, 360_000), strict=True))
    worse = dict(zip(METRICS22, (0, 0, 3601, 29_491_201, 360_001), strict=True))
    better = dict(zip(METRICS22, (0.1, 0.1, 9, 9, 9), strict=True))
    table = make_table(
        {
            ("absent" if own is None else name, "1", metric): own and own[metric]
            for name, own in (("a", better), ("b", stuck), ("absent", None))
            for metric in METRICS22
        }
    )
    ranks = rank_teams(table, rules_of(FLARE22)).case_ranks
    assert {ranks[team, "1", m] for team in ("b", "absent") for m in METRICS22} == {2}

    # A run that worked, however slowly, is never behind one that failed.
    for metric in METRICS22:
        values = values_of(table) | {("b", "1", metric): worse[metric]}
        changed = make_table(values | {("absent", "1", metric): None})
        ranks = rank_teams(
            changed, rules_of(FLARE22, RankingOptions(metrics=[metric]))
        ).case_ranks
        assert ranks["b", "1", metric] == ranks["absent", "1", metric] == 2


def test_flare22_takes_2048_mb_off_the_memory_before_the_area(tmp_path):
    """The area of efficiency.csv stays as it was measured; traces have the memory."""
    traces = {
        # 0 to 2048 to 4096 to 0 MB: above 2048 a triangle of 1 s by 2048 MB on each
        # side of the third sample, at 2 and 3 s; the last second falls to 0: 1 s.
        "a": [(0, 0), (1, 2048), (2, 4096), (3, 0)],
        "b": [(0, 2048), (3, 2048)],
        # Uneven steps: 10 s of 2148 MB.
        "c": [(0, 2148), (0.5, 2148), (10, 2148)],
    }
    for team, samples in traces.items():
        write_team(tmp_path / team, {"c1": 0.9}, [("c1", "ok", 5, 500)])
        (tmp_path / team / "efficiency.csv").write_text(
            "case,status,runtime_s,gpu_memory_area_mb_s,cpu_area_percent_s\n"
            f"c1,ok,{samples[-1][0]},99999,7\n"
        )
        (tmp_path / team / "traces").mkdir()
        lines = ["seconds,gpu_memory_mb", *(f"{s},{mb}" for s, mb in samples)]
        (tmp_path / team / "traces" / "c1.csv").write_text("\n".join(lines) + "\n")

    table = read_results(tmp_path, FLARE22.ranking)

    # a: (0 + 2048) / 2 + (2048 + 0) / 2 = 2048; c: 10 * 100.
    values = values_of(table)
    areas = {team: values[team, "c1", "gpu_memory_area_mb_s"] for team in "abc"}
    assert areas == {"a": 2048, "b": 0, "c": 1000}

    trace = tmp_path / "b" / "traces" / "c1.csv"
    for content, problem in (
        ("1,5\n0,5\n", "line 3: expected seconds, in order"),
        # A sampler that has died is no small area.
        ("", r"0 samples, up to 0.0 s of 3.0 s: measure the case again"),
        ("3,5\n", r"1 samples, up to 0.0 s of 3.0 s"),
        ("0,5\n1,5\n", r"2 samples, up to 1.0 s of 3.0 s"),
    ):
        trace.write_text(f"seconds,gpu_memory_mb\n{content}")
        with pytest.raises(RankingError, match=problem):
            read_results(tmp_path, FLARE22.ranking)
    trace.unlink()
    with pytest.raises(RankingError, match=r"b/traces/c1\.csv: it cannot be read"):
        read_results(tmp_path, FLARE22.ranking)


def test_a_challenge_without_values_of_failed_runs_has_no_rule_for_them():
    with pytest.raises(RankingError, match="no value of a failed run for dsc"):
        rules_of(FLARE21, RankingOptions(missing=MissingRule.VALUE))
    assert rules_of(FLARE21).missing is MissingRule.LAST
    assert rules_of(FLARE22).missing is MissingRule.VALUE


def test_an_exact_tie_is_a_tie(tmp_path):
    """Thirds of ranks add up to the same, in whatever order they are added."""
    values = {"a": (1, 2, 3), "b": (2, 3, 1), "c": (3, 1, 2)}
    rows = [
        (team, case, "runtime_s", value)
        for team, times in values.items()
        for case, value in enumerate(times)
    ]

    found = rank(tmp_path, rows, RankingRules(metrics=(TIME,)))

    # Each has the ranks 1, 2 and 3: 6 / 3 / 3.
    assert [item[:2] for item in found.values()] == [(1, Fraction(2, 3))] * 3


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        # Of four teams, c and d have no result: they are 4th; or 2 + 1.
        (MissingRule.LAST, {"a": 1, "b": 1, "c": 4, "d": 4}),
        (MissingRule.WORST_PLUS_ONE, {"a": 1, "b": 1, "c": 2, "d": 2}),
    ],
)
def test_missing_results(tmp_path, missing, expected):
    rows = [
        *(("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.9), ("c", "1", "dsc", "")),
        *((team, "2", "dsc", 0.5) for team in "abcd"),
    ]
    table = read_results(write_table(tmp_path / "results.csv", rows), ranked("dsc"))

    found = rank_teams(table, RankingRules(metrics=(DSC,), missing=missing))

    assert {t: found.case_ranks[t, "1", "dsc"] for t in "abcd"} == expected
    assert [(m.team, m.case, m.reason) for m in table.missing] == [
        ("c", "1", "the value is empty"),
        ("d", "1", "there is no row"),
    ]
    with pytest.raises(RankingError, match="2 are missing: c 1 dsc, d 1 dsc"):
        rank_teams(table, RankingRules(metrics=(DSC,), missing=MissingRule.REFUSE))


@pytest.mark.slow
def test_the_order_of_rows_and_the_names_of_teams_change_nothing(tmp_path):
    chance = random.Random(1)
    rows = [
        (f"team {t}", f"case {c}", metric, chance.choice((0.1, 0.2, 0.3, "")))
        for t, c in itertools.product(range(5), range(6))
        for metric in ("dsc", "runtime_s")
    ]
    command = ["rank", tmp_path / "results.csv", "--metrics", "dsc,runtime_s"]
    contents = []
    for run in range(3):
        chance.shuffle(rows)
        write_table(tmp_path / "results.csv", rows)
        assert run_flare(*command, "--output", tmp_path / str(run)).returncode == 0
        files = sorted(f for f in (tmp_path / str(run)).rglob("*") if f.is_file())
        contents.append([(file.name, file.read_bytes()) for file in files])

    assert contents[0] == contents[1] == contents[2]
    assert [name for name, _ in contents[0]] == [
        *("case_ranks.csv", "methods.txt", "ranking.csv", "ranking.json"),
        *("ranking.md", "ranking.tex", "report.txt"),
        *(f"team_{number}.md" for number in range(5)),
        "values.csv",
    ]


# --- challengeR -------------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.parametrize("metric", ["dsc", "runtime"])
@pytest.mark.parametrize("ties", [Ties.MIN, Ties.AVERAGE])
def test_rank_then_mean_equals_challenger(shared, tmp_path, metric, ties):
    """With its rule for missing results: one more than the highest rank in use."""
    folder = shared / "data" / "ranking"
    file = folder / f"challengeR-{metric}" / f"rank_then_mean_{ties.value}.csv"
    with (folder / f"{metric}.csv").open() as content:
        rows = [
            (row["alg_name"], row["case"], "m", row["value"].replace("NA", ""))
            for row in csv.DictReader(content)
        ]
    with file.open() as content:
        expected = {
            row["alg"]: (int(float(row["rank"])), float(row["rank_mean"]))
            for row in csv.DictReader(content)
        }
    better = Better.HIGHER if metric == "dsc" else Better.LOWER
    rules = RankingRules(
        metrics=(RankedMetric(metric="m", better=better),),
        ties=ties,
        missing=MissingRule.WORST_PLUS_ONE,
    )

    found = rank(tmp_path, rows, rules)

    assert {
        team: (place, pytest.approx(float(means["m"]), abs=1e-12))
        for team, (place, _, means) in found.items()
    } == expected


# --- Folders of teams -------------------------------------------------------------


def test_a_team_that_crashes_in_a_second_is_last(tmp_path):
    """Eleven teams; the crash would be the fastest, and use no memory."""
    cases = ["c1", "c2", "c3"]
    for number in range(10):
        write_team(
            tmp_path / f"team_{number:02}",
            dict.fromkeys(cases, 0.9 - number / 100),
            [(case, "ok", 10 + number, 1000 + number) for case in cases],
        )
    write_team(
        tmp_path / "crash",
        dict.fromkeys(cases, 0.0),
        [(case, "failed", 1, 0) for case in cases],
    )

    table = read_results(tmp_path, FLARE21.ranking)
    found = rank_teams(table, rules_of(FLARE21))

    last = found.standings[-1]
    # It is the worst of eleven on every case and metric: 11 / 11.
    assert (last.team, last.rank, last.score) == ("crash", 11, 1)
    assert {(m.team, m.case, m.reason) for m in table.missing} == {
        ("crash", case, "status failed") for case in cases
    }


def test_a_team_without_any_case_is_a_mistake(tmp_path):
    write_team(tmp_path / "a", {"c1": 0.9})
    write_team(tmp_path / "b", {})

    with pytest.raises(RankingError, match=r"b/metrics\.json: this team has no case"):
        read_results(tmp_path, ranked("dsc"))


def test_a_case_that_could_not_be_scored_has_no_running_time_either(tmp_path):
    write_team(tmp_path / "a", {"c1": 0.9}, [("c1", "ok", 50, 500)])
    write_team(tmp_path / "a2", {"c1": 0.8}, [("c1", "ok", 60, 600)])
    write_team(
        tmp_path / "b",
        {"c1": 0.0, "c2": 0.5},
        [("c1", "ok", 1, 0), ("c2", "ok", 9, 9)],
        failed={"c1": "no file was submitted"},
    )

    table = read_results(tmp_path, FLARE21.ranking)
    ranks = rank_teams(table, rules_of(FLARE21)).case_ranks

    assert {metric: ranks["b", "c1", metric] for metric in METRICS21} == dict.fromkeys(
        METRICS21, 3
    )


def test_a_team_without_a_gpu_is_tied_for_the_best_memory(tmp_path):
    """0 MB twice: both are first, the third team is third."""
    for team, memory in (("cpu", 0), ("cpu2", 0), ("gpu", 900)):
        write_team(tmp_path / team, {"c1": 0.9}, [("c1", "ok", 5, memory)])

    table = read_results(tmp_path, FLARE21.ranking)
    ranks = rank_teams(table, rules_of(FLARE21)).case_ranks

    assert {team: ranks[team, "c1", "max_gpu_memory_mb"] for team in table.teams} == {
        "cpu": 1,
        "cpu2": 1,
        "gpu": 3,
    }


@pytest.mark.parametrize(
    "key", ["challenge_sha256", "references_sha256", "version", "options"]
)
def test_results_of_different_origin_are_not_ranked_together(tmp_path, key):
    write_team(tmp_path / "a", {"c1": 0.9})
    write_team(tmp_path / "b", {"c1": 0.9}, **{key: "other"})

    with pytest.raises(RankingError, match=f"its {key} is other, that of others"):
        read_results(tmp_path, ranked("dsc"))


def test_results_that_were_scored_by_another_challenge(tmp_path):
    write_team(tmp_path / "a", {"c1": 0.9}, challenge="flare21")

    with pytest.raises(RankingError, match="it was scored by flare21, not by flare22"):
        read_results(tmp_path, ranked("dsc"), challenge="flare22")
    assert read_results(tmp_path, ranked("dsc"), challenge="flare21").teams == ("a",)


def test_cases_are_those_of_metrics_json_alone(tmp_path):
    """A file name for a case is that case; a case of its own is a mistake."""
    scores = {"c1": 0.0, "c2": 0.0}
    write_team(
        tmp_path / "crash",
        scores,
        [("c1.nii.gz", "ok", 1, 0), ("c2.nii.gz", "ok", 1, 0)],
        failed={"c1": "no file", "c2": "no file"},
    )

    write_team(
        tmp_path / "a",
        {"c1": 0.5, "c2": 0.5},
        [("c1", "ok", 9, 9), ("c2", "ok", 9, 9)],
    )

    table = read_results(tmp_path, ranked("dsc", "runtime_s"))
    assert table.cases == ("c1", "c2")
    assert {(m.team, m.reason) for m in table.missing} == {("crash", "no file")}
    assert len(table.missing) == 4

    lines = ["case,status,runtime_s", "c1,ok,5", "c2,ok,5", "warm_up,ok,1"]
    (tmp_path / "crash" / "efficiency.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(RankingError, match=r"warm_up: metrics\.json has no such case"):
        read_results(tmp_path, ranked("runtime_s"))


def test_what_is_odd_about_how_teams_were_measured_is_noted(tmp_path):
    """Other limits, an engine that failed, and rows that are not there yet."""
    for team, memory in (("a", "28g"), ("b", "2g")):
        write_team(
            tmp_path / team,
            {"c1": 0.9, "c2": 0.9},
            [("c1", "ok", 5, 9), *([("c2", "ok", 6, 9)] if team == "a" else [])],
        )
        record = {
            "settings": {"memory": memory, "timeout_s": 60},
            "sessions": [{"engine_cost_s": {"largest": 0.4, "smallest": 0.1}}],
        }
        (tmp_path / team / "measurement.json").write_text(json.dumps(record))
    file = tmp_path / "a" / "efficiency.csv"
    file.write_text(file.read_text().replace("c1,ok,5,9", "c1,engine error,,"))

    table = read_results(tmp_path, ranked("dsc", "runtime_s"))

    end = ", and ranks last there, without its fault: measure it again before you"
    assert table.notes == (
        f"a was not measured to the end (c1){end} publish",
        f"b was not measured to the end (c2){end} publish",
        "Teams were measured with different memory: a 28g, b 2g",
    )
    # A team that was killed before its first case.
    file.write_text(file.read_text().splitlines()[0] + "\n")
    assert (
        read_results(tmp_path, ranked("dsc"))
        .notes[0]
        .startswith("a was not measured to the end (c1, c2)")
    )
    # What empty containers differ by is how far equal teams may lie apart.
    spreads = values_of(table, "spread")
    assert spreads["a", "c2", "runtime_s"] == pytest.approx(0.3)
    assert ("a", "c2", "dsc") not in spreads


def test_efficiency_alone_can_be_ranked(tmp_path):
    write_team(tmp_path / "a", {"c1": 0.9}, [("c1", "ok", 5, 9)])

    table = read_results(tmp_path, ranked("runtime_s"))

    assert values_of(table) == {("a", "c1", "runtime_s"): 5}


def test_cases_that_would_be_formulas_are_the_same_in_both_files(tmp_path):
    """efficiency.csv marks them; a table that somebody else made does not."""
    write_team(tmp_path / "a", {"=c": 0.9}, [("'=c", "ok", 5, 9)])

    table = read_results(tmp_path, ranked("dsc", "runtime_s"))
    assert values_of(table) == {("a", "=c", "dsc"): 0.9, ("a", "=c", "runtime_s"): 5}

    rows = [("'=a", "1", "dsc", 1), ("=a", "1", "dsc", 1)]
    file = write_table(tmp_path / "results.csv", rows)
    assert read_results(file, ranked("dsc")).teams == ("'=a", "=a")


def test_a_status_counts_before_what_stands_beside_it(tmp_path):
    """Whatever placeholder a failed case has, and however the status is written."""
    write_team(
        tmp_path / "a",
        {"c1": 0.9, "c2": 0.9, "c3": 0.9},
        [("c1", "OK", 5, 9), ("c2", "failed", -1, "nan"), ("c3", "ok", 5, 9)],
    )

    table = read_results(tmp_path, ranked("dsc", "runtime_s"))

    assert {(m.case, m.metric, m.reason) for m in table.missing} == {
        (case, metric, f"status {status}")
        for case, status in (("c1", "OK"), ("c2", "failed"))
        for metric in ("dsc", "runtime_s")
    }


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("0.25", "Infinity", "c1: dsc is inf, which nothing that was measured is"),
        ("0.25", "NaN", "c1: dsc is nan"),
        ("0.25", "-1", "c1: dsc is -1, negative"),
        ("0.25", f"1{'0' * 400}", "it is no metrics.json"),
        ("0.25", "[" * 100_000, "it is no metrics.json"),
        ("0.25", "7", "c1: dsc is 7.0, above 1; is it percent? Divide it by 100"),
        ("0.25", "true", "c1: dsc is true, no number"),
        ("0.25", '"0.25"', 'c1: dsc is "0.25", no number'),
        ('"c2.nii.gz"', '"c1.nii.gz"', "c1: there twice"),
        ('"evaluation": {', '"evaluation": null, "x": {', "it is no metrics.json"),
    ],
    ids=[
        *("inf", "nan", "negative", "huge", "deep", "percent", "bool", "text"),
        *("twice", "null"),
    ],
)
def test_a_metrics_json_that_is_not_right(tmp_path, old, new, problem):
    write_team(tmp_path / "a", {"c1": 0.25, "c2": 0.5})
    file = tmp_path / "a" / "metrics.json"
    file.write_text(file.read_text().replace(old, new))

    with pytest.raises(RankingError) as caught:
        read_results(tmp_path, ranked("dsc"))

    assert caught.value.problem.startswith(problem)


def test_a_table_may_hold_metrics_that_are_not_ranked(tmp_path):
    rows = [("a", "1", "dsc", 1), ("a", "1", "nsd", 1)]
    file = write_table(tmp_path / "results.csv", rows)

    assert read_results(file, ranked("dsc"), FLARE21).metrics == ("dsc",)
    with pytest.raises(RankingError, match="unknown metric nsd, not dsc"):
        read_results(file, ranked("dsc"))


def test_a_percentage_that_was_measured_names_the_line(tmp_path):
    """A column of a score in efficiency.csv."""
    write_team(tmp_path / "a", {"c1": 0.9}, [])
    (tmp_path / "a" / "efficiency.csv").write_text("case,status,nsd_x\nc1,ok,80\n")

    with pytest.raises(RankingError) as caught:
        read_results(tmp_path, ranked("nsd_x"))

    assert caught.value.problem == (
        "line 2: nsd_x is 80.0, above 1; is it percent? Divide it by 100"
    )


def test_a_running_time_of_zero_is_a_mistake(tmp_path):
    """It would be the best; a memory of 0 is that of a team without a GPU."""
    write_team(tmp_path / "a", {"c1": 0.9}, [("c1", "ok", 0, 0)])

    assert values_of(read_results(tmp_path, ranked("max_gpu_memory_mb")))
    with pytest.raises(RankingError) as caught:
        read_results(tmp_path, ranked("runtime_s"))

    assert caught.value.problem == (
        "line 2: runtime_s is 0, which no run takes; leave a missing value empty"
    )


# --- Mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value", "problem"),
    [
        *(
            (m, v, f"{m} is {v}, above 1; is it percent? Divide it by 100")
            for m in ("dsc", "nsd", "dsc_liver", "nsd_x")
            for v in ("93.1", "1.0000001")
        ),
        *(
            (m, "0.0", f"{m} is 0, which no run takes; leave a missing value empty")
            for m in ("runtime_s", "runtime")
        ),
    ],
)
def test_a_value_that_cannot_be_names_the_line(tmp_path, metric, value, problem):
    rows = [("a", "1", metric, "1"), ("b", "1", metric, value)]
    file = write_table(tmp_path / "results.csv", rows)

    with pytest.raises(RankingError) as caught:
        read_results(file, ranked(metric))

    assert caught.value.problem == f"line 3: {problem}"


def test_ends_of_the_scale_can_be(tmp_path):
    """And only scores have the end 1."""
    rows = [
        *(("a", "1", "dsc", "1"), ("a", "2", "dsc", "0"), ("a", "1", "nsd_x", "0")),
        ("a", "1", "dscent", "93.1"),
    ]
    file = write_table(tmp_path / "results.csv", rows)

    found = values_of(read_results(file, ranked("dsc", "nsd_x", "dscent")))

    assert sorted(found.values()) == [0, 0, 1, 93.1]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [("a", "1", "dsc", 1), ("b", "1", "dsc", 1), ("a", "1", "dsc", 0)],
            "line 2 and line 4 are both a 1 dsc",
        ),
        ([("a", "1", "DSC", 1)], "line 2: unknown metric DSC, not dsc"),
        ([("a", "1", "dsc", "x")], "line 2: x is no number"),
        ([("a", "1", "dsc", "1_0")], "line 2: 1_0 is no number"),
        ([("a", "1", "dsc", "1e308")], "line 2: dsc is 1e+308, which nothing"),
        ([("", "1", "dsc", 1)], "line 2: the team or the case is empty"),
        ([("a", " ", "dsc", 1)], "line 2: the team or the case is empty"),
        ([("a", "1", "dsc", "nan")], "line 2: nan is not finite"),
        ([("a", "1", "dsc", "inf")], "line 2: inf is not finite"),
        (
            [("a", "1", "dsc", -1)],
            "line 2: dsc is -1, negative; leave a missing value empty",
        ),
        (
            [("Team", "1", "dsc", 1), ("team", "1", "dsc", 1)],
            "teams Team, team differ only in spelling",
        ),
        (
            [("a", "cafe\u0301", "dsc", 1), ("b", "caf\u00e9", "dsc", 1)],
            "cases cafe\u0301, caf\u00e9 differ only in spelling",
        ),
        ([("a", "1", "dsc", 1, 7)], "line 2 has another number of cells"),
        ([("a", "1", "dsc")], "line 2 has another number of cells"),
        ([], "there is no result in it"),
    ],
)
def test_a_mistake_names_the_rows(tmp_path, rows, problem):
    file = write_table(tmp_path / "results.csv", rows)

    with pytest.raises(RankingError) as caught:
        read_results(file, ranked("dsc"))

    assert problem in str(caught.value)
    assert str(caught.value).endswith("[G06]")


def test_a_metric_that_no_team_has(tmp_path):
    file = write_table(tmp_path / "results.csv", [("a", "1", "dsc", 1)])

    with pytest.raises(RankingError, match="no team has a value of nsd"):
        read_results(file, ranked("dsc", "nsd"))


@pytest.mark.parametrize("metrics", [["dsc", "speed"], ["dsc", "dsc"]])
def test_metrics_that_the_challenge_does_not_rank(metrics):
    with pytest.raises(
        RankingError, match="flare21: it ranks dsc, nsd, runtime_s, max"
    ):
        rules_of(FLARE21, RankingOptions(metrics=metrics))


def test_the_files_of_the_contract(tmp_path):
    """And a name that a spreadsheet would compute is made a text."""
    rows = [("=a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.8)]
    file = write_table(tmp_path / "results.csv", rows)
    run = run_flare("rank", file, "--metrics", "dsc", "--output", tmp_path / "out")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[:3] == [
        "rank  team  score   mean rank dsc",
        "1     =a    0.5000  1.00",
        "2     b     1.0000  2.00",
    ]
    assert (tmp_path / "out" / "ranking.csv").read_text() == (
        "team,rank,score,mean_rank_dsc\n'=a,1,0.5,1\nb,2,1,2\n"
    )
    assert (tmp_path / "out" / "case_ranks.csv").read_text() == (
        "team,case,metric,rank\n'=a,1,dsc,1\nb,1,dsc,2\n"
    )
    settings = json.loads((tmp_path / "out" / "ranking.json").read_text())["settings"]
    assert (settings["challenge"], settings["ties"]) == ("flare21", "min")


# --- Decisions --------------------------------------------------------------------


def decided(tmp_path, text, rows=ROWS):
    """Rank and score by team after decisions."""
    file = tmp_path / "decisions.toml"
    file.write_text(text)
    table = read_results(write_table(tmp_path / "results.csv", rows), ranked("dsc"))
    decisions = read_decisions(file)
    table = apply_decisions(table, decisions, "decisions.toml")
    standings = rank_teams(
        table, RankingRules(metrics=(DSC,)), decisions.guests
    ).standings
    return {s.team: (s.rank, s.score) for s in standings}


WHY = 'reason = "so"\ndate = "2026-01-01"\n'


def test_without_decisions(tmp_path):
    # a has the ranks 1 1 3, b 2 2 2, c 3 3 1: 5, 6 and 7, over 3 cases and 3 teams.
    assert decided(tmp_path, "") == {
        "a": (1, Fraction(5, 9)),
        "b": (2, Fraction(6, 9)),
        "c": (3, Fraction(7, 9)),
    }


def test_withdrawn_cases(tmp_path):
    """Of cases 1 and 3 a has the ranks 1 3, b 2 2, c 3 1: all tie at 4 / 2 / 3."""
    found = decided(tmp_path, f'[[withdrawn]]\ncase = "2"\n{WHY}')

    assert found == dict.fromkeys("abc", (1, Fraction(2, 3)))


def test_a_disqualified_team_is_not_counted(tmp_path):
    """Without c, a has 1 1 2 and b 2 2 1: 4 and 5, over 3 cases and 2 teams."""
    found = decided(tmp_path, f'[[disqualified]]\nteam = "c"\n{WHY}')

    assert found == {"a": (1, Fraction(4, 6)), "b": (2, Fraction(5, 6))}


def test_a_guest_is_shown_and_changes_nothing(tmp_path):
    """As without b, a and c: 1 1 2 and 2 2 1. Among both b has 2 2 2: 6 / 3 / 2."""
    found = decided(tmp_path, f'[[out_of_competition]]\nteam = "b"\n{WHY}')

    assert found == {
        "a": (1, Fraction(4, 6)),
        "c": (2, Fraction(5, 6)),
        "b": (None, Fraction(6, 6)),
    }


def test_a_reason_cannot_forge_a_line(tmp_path):
    file = tmp_path / "decisions.toml"
    file.write_text(
        '[[withdrawn]]\ncase = "1"\nreason = "so\\nrank 1"\ndate = "2026-01-01"\n'
    )

    assert read_decisions(file).lines == (
        "Withdrawn: case 1: so\\nrank 1 (2026-01-01)",
    )


def test_a_metric_of_which_nothing_is_left_after_decisions(tmp_path):
    rows = [*ROWS, ("c", "1", "runtime_s", 5)]
    file = tmp_path / "decisions.toml"
    file.write_text(f'[[disqualified]]\nteam = "c"\n{WHY}')
    table = read_results(
        write_table(tmp_path / "results.csv", rows), ranked("dsc", "runtime_s")
    )

    with pytest.raises(RankingError, match="no value of runtime_s is left"):
        apply_decisions(table, read_decisions(file))


def test_a_decision_with_a_date_of_toml(tmp_path):
    file = tmp_path / "decisions.toml"
    file.write_text('[[withdrawn]]\ncase = "1"\nreason = "so"\ndate = 2026-11-21\n')

    assert read_decisions(file).lines == ("Withdrawn: case 1: so (2026-11-21)",)


def test_a_decision_about_a_name_that_is_nearly_right(tmp_path):
    rows = [("team_a", f"thx_000{n}", "dsc", 0.5) for n in range(1, 6)]
    for kind, what, near in (
        ("withdrawn", 'case = "thx_004"', "thx_0004"),
        ("disqualified", 'team = "teama"', "team_a"),
    ):
        with pytest.raises(RankingError) as caught:
            decided(tmp_path, f"[[{kind}]]\n{what}\n{WHY}", rows)
        assert f"(did you mean {near}?). The documentation's page" in str(caught.value)


def test_a_challenge_without_ranking_is_sent_to_its_documentation():
    with pytest.raises(RankingError) as caught:
        rules_of(replace(FLARE21, ranking=()))

    assert str(caught.value) == (
        "flare21: it has no [[ranking]]: which metrics are ranked is not known."
        " The documentation's page Challenge files explains [[ranking]]. [G06]"
    )


@pytest.mark.slow
def test_decisions_are_printed_with_the_ranking(tmp_path):
    text = "".join(
        f"[[{kind}]]\n{what}\n{WHY}"
        for kind, what in (
            ("withdrawn", 'case = "2"'),
            ("disqualified", 'team = "c"'),
            ("out_of_competition", 'team = "b"'),
            ("names", 'team = "a"\nname = "Alpha"'),
        )
    )
    (tmp_path / "decisions.toml").write_text(text)
    file = write_table(tmp_path / "results.csv", ROWS)
    command = ["rank", file, "--metrics", "dsc", "--output", tmp_path / "out"]
    run = run_flare(*command, "--decisions", tmp_path / "decisions.toml")

    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert [line.split() for line in lines[1:5:2]] == [
        ["1", "Alpha", "1.0000", "1.00"],
        ["-", "b", "1.50"],
    ]
    assert set(lines[2]) == {"-"}
    assert lines[4] == (
        "Below the line: out of competition, without rank or score; ranked on each case"
        " as if it alone had joined the 1 team."
    )
    start = lines.index("Withdrawn: case 2: so (2026-01-01)")
    assert lines[start : start + 4] == [
        "Withdrawn: case 2: so (2026-01-01)",
        "Disqualified: c: so (2026-01-01)",
        "Out of competition: b: so (2026-01-01)",
        "Shown as Alpha: a: so (2026-01-01)",
    ]
    written = json.loads((tmp_path / "out" / "ranking.json").read_text())
    assert written["decisions"] == lines[start : start + 4]
    assert [found["team"] for found in written["ranking"]] == ["Alpha"]
    assert written["out_of_competition"] == [{"team": "b", "mean_ranks": {"dsc": 1.5}}]
    page = (tmp_path / "out" / "ranking.md").read_text()
    assert "| Alpha | 1.0000 | 1.00 |" in page
    assert "| team | mean rank: DSC |\n|---|---|\n| b | 1.50 |\n" in page
    latex = (tmp_path / "out" / "ranking.tex").read_text()
    assert "1 & Alpha & 1.0000 & 1.00 \\\\\n\\midrule\n- & b &  & 1.50 \\\\\n" in latex
    assert (tmp_path / "out" / "report.txt").read_text() == run.stdout
    # One team competes, on two cases: 1 / 1.
    assert (tmp_path / "out" / "ranking.csv").read_text() == (
        "team,rank,score,mean_rank_dsc\nAlpha,1,1,1\nb,,1.5,1.5\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'[[withdrawn]]\ncase = "9"\n{WHY}', "there is no case 9, but 1, 2, 3"),
        (
            f'[[withdrawn]]\ncase = "9"\n{WHY}',
            "The documentation's page The final ranking shows such a file.",
        ),
        (f'[[disqualified]]\nteam = "x"\n{WHY}', "there is no team x, but a, b, c"),
        (f'[[names]]\nteam = "x"\nname = "y"\n{WHY}', "there is no team x"),
        (
            f'[[names]]\nteam = "a"\nname = "b"\n{WHY}',
            "two teams are shown by one name",
        ),
        (
            f'[[names]]\nteam = "a"\nname = "B"\n{WHY}',
            "two teams are shown by one name",
        ),
        (
            f'[[names]]\nteam = "a"\nname = "\u0441"\n{WHY}',
            "teams \\u0441, c look alike: \\u0441 is U+0441",
        ),
        (
            f'[[names]]\nteam = "a"\nname = "x\\u00ad"\n{WHY}',
            "team x\\xad has U+00AD SOFT HYPHEN, which cannot be seen",
        ),
        (
            "".join(f'[[out_of_competition]]\nteam = "{t}"\n{WHY}' for t in "abc"),
            "no case, or no team, is left",
        ),
        (
            "".join(
                f'[[{kind}]]\nteam = "a"\n{WHY}'
                for kind in ("disqualified", "out_of_competition")
            ),
            "two decisions are about team a",
        ),
        (
            "".join(f'[[withdrawn]]\ncase = "{n}"\n{WHY}' for n in "123"),
            "no case, or no team, is left",
        ),
        ('[[withdrawn]]\ncase = "1"\nreason = "so"', "withdrawn[1].date is missing"),
        (
            '[[withdrawn]]\ncase = "1"\nreason = " "\ndate = "1"',
            "withdrawn[1].reason is ' ', expected a text",
        ),
        ("[[withdrawal]]", "withdrawal is an unknown key, expected withdrawn"),
        ("[", "Invalid"),
    ],
)
def test_a_decision_that_cannot_be_is_refused(tmp_path, text, problem):
    with pytest.raises(RankingError) as caught:
        decided(tmp_path, text)

    assert problem in str(caught.value)
