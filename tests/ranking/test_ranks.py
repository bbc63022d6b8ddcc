"""FLARE's ranking: by hand, by properties, by a slow twin, and by challengeR."""

import csv
import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flare
from flare.challenge.metrics import METRICS, Better
from flare.challenge.rules import RankedMetric
from flare.ranking.rank import rank_teams
from flare.ranking.rules import (
    MissingRule,
    RankingOptions,
    RankingRules,
    Ties,
    rules_of,
)
from flare.results.errors import RankingError
from tests.builders import run_flare
from tests.builders.results import (
    DSC,
    FLARE21,
    FLARE22,
    METRICS22,
    TIME,
    by_key,
    challenger_board,
    make_table,
    values_of,
    write_table,
)
from tests.oracles import naive_ranks

BY_TWIN = (MissingRule.LAST, MissingRule.WORST_PLUS_ONE)


def rank(values, *metrics, guests=frozenset(), **rules):
    """Rank, score and mean ranks by team, in the order of the ranking."""
    found = rank_teams(
        make_table(values), RankingRules(metrics=metrics, **rules), guests
    )
    return {s.team: (s.rank, s.score, dict(s.mean_ranks)) for s in found.standings}


def of_teams(metric, **values):
    """Values of teams by one metric, on one case or several."""
    return {
        (team, str(n), metric): value
        for team, own in values.items()
        for n, value in enumerate(own if isinstance(own, tuple) else (own,))
    }


# --- By hand ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        # Values 1 2 2 2 5: the three take places 2, 3 and 4.
        (Ties.MIN, [1, 2, 2, 2, 5]),
        (Ties.AVERAGE, [1, 3, 3, 3, 5]),
        (Ties.MAX, [1, 4, 4, 4, 5]),
    ],
)
def test_tied_values_share_a_rank_by_the_rule(ties, expected):
    table = make_table(of_teams("runtime_s", a=1.0, b=2.0, c=2.0, d=2.0, e=5.0))

    ranks = rank_teams(table, RankingRules(metrics=(TIME,), ties=ties)).case_ranks

    assert ranks.to_list() == expected


@pytest.mark.parametrize(
    ("rule", "values", "places"),
    [
        # Up to the tolerance, all are equal.
        (replace(TIME, tolerance=2048.0), (0, 2048, 2049, 5000), [1, 1, 3, 4]),
        # To two decimals, 0.904 and 0.896 are both 0.9; 0.894 is not.
        (replace(DSC, decimals=2), (0.904, 0.896, 0.894, 0.1), [1, 1, 3, 4]),
    ],
    ids=["tolerance", "rounding"],
)
def test_values_that_a_rule_makes_equal(rule, values, places):
    found = rank(of_teams(rule.metric, **dict(zip("abcd", values, strict=True))), rule)

    assert [place for place, _, _ in found.values()] == places


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [("nsd", 0.2, 0.3), ("dsc_liver", 0.2, 0.3), ("hd95", 30, 20), ("assd", 30, 20)],
)
def test_a_gate_leaves_the_scores(name, a, b):
    """And distances: below the gate, b is still the better one."""
    score = RankedMetric(metric=name, better=METRICS[name.split("_")[0]].better)
    values = of_teams("dsc", a=0.9, b=0.1) | of_teams(name, a=a, b=b)

    found = rank(values, DSC, score, gate_dsc=0.5)

    assert (found["a"][2][name], found["b"][2][name]) == (2, 1)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16])
def test_the_best_team_is_first_by_any_number_of_metrics(count):
    """NumPy 2.1.3 to 2.4.6 negate eight columns in place wrongly."""
    names = [f"dsc_{number}" for number in range(count)]
    metrics = [RankedMetric(metric=name, better=Better.HIGHER) for name in names]
    values = {}
    for name in names:
        values |= of_teams(name, a=(0.9, 0.9), b=(1.0, 1.0), c=(0.8, 0.8))
    ranks = {
        team: set(means.values())
        for team, (*_, means) in rank(values, *metrics).items()
    }
    assert ranks == {"a": {2}, "b": {1}, "c": {3}}


def test_an_exact_tie_is_a_tie():
    """Thirds of ranks add up to the same, in whatever order they are added."""
    found = rank(of_teams("runtime_s", a=(1, 2, 3), b=(2, 3, 1), c=(3, 1, 2)), TIME)

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
def test_a_missing_result_is_ranked_by_the_rule_or_refused(missing, expected):
    table = make_table(of_teams("dsc", a=0.9, b=0.9, c=None, d=None))
    rules = RankingRules(metrics=(DSC,), missing=missing)

    ranks = rank_teams(table, rules).case_ranks

    assert {team: ranks[team, "0", "dsc"] for team in "abcd"} == expected
    with pytest.raises(RankingError, match="2 are missing: c 0 dsc, d 0 dsc"):
        rank_teams(table, replace(rules, missing=MissingRule.REFUSE))


# --- Properties -------------------------------------------------------------------


def tables(metrics=("dsc", "runtime_s")):
    """Values of up to six teams on up to five cases, with ties and missing results."""

    def values(shape):
        teams, cases = shape
        keys = list(itertools.product("abcdef"[:teams], "12345"[:cases], metrics))
        cell = st.sampled_from((0.25, 0.5, 0.75, None))
        return st.lists(cell, min_size=len(keys), max_size=len(keys)).map(
            lambda cells: dict(zip(keys, cells, strict=True))
        )

    return st.tuples(st.integers(1, 6), st.integers(1, 5)).flatmap(values)


any_rules = st.fixed_dictionaries(
    {"ties": st.sampled_from(Ties), "missing": st.sampled_from(BY_TWIN)}
)


@settings(max_examples=60)
@given(values=tables(), rules=any_rules, weight=st.sampled_from((1.0, 0.5, 3.0)))
def test_ranks_and_scores_equal_those_of_a_slow_twin(values, rules, weight):
    table = make_table(values)
    metrics = (DSC, replace(TIME, weight=weight))

    found = rank_teams(table, RankingRules(metrics=metrics, **rules))

    totals = dict.fromkeys(table.teams, Fraction(0))
    for case, rule in itertools.product(table.cases, metrics):
        own = [values[team, case, rule.metric] for team in table.teams]
        if rule.better is Better.HIGHER:
            own = [None if value is None else -value for value in own]
        places = naive_ranks(own, rules["ties"].value, rules["missing"].value)
        for team, place in zip(table.teams, places, strict=True):
            assert found.case_ranks[team, case, rule.metric] == place
            totals[team] += Fraction(rule.weight) * place
    parts = len(table.cases) * Fraction(1 + weight) * len(table.teams)
    assert {s.team: s.score for s in found.standings} == {
        team: total / parts for team, total in totals.items()
    }
    assert {s.team: s.rank for s in found.standings} == {
        team: 1 + sum(other < total for other in totals.values())
        for team, total in totals.items()
    }


@settings(max_examples=40)
@given(values=tables(), rules=any_rules, data=st.data())
def test_the_order_and_the_names_of_teams_change_nothing(values, rules, data):
    found = rank(values, DSC, TIME, **rules)

    shuffled = dict(data.draw(st.permutations(list(values.items()))))
    assert rank(shuffled, DSC, TIME, **rules) == found
    names = dict(zip("abcdef", data.draw(st.permutations("uvwxyz")), strict=True))
    renamed = {(names[team], *key): value for (team, *key), value in values.items()}
    assert rank(renamed, DSC, TIME, **rules) == {
        names[team]: standing for team, standing in found.items()
    }


@settings(max_examples=40)
@given(values=tables(), rules=any_rules)
def test_a_guest_ranks_as_if_it_alone_had_joined(values, rules):
    if not any(team == "b" for team, _, _ in values):
        return
    found = rank(values, DSC, TIME, guests=frozenset("a"), **rules)

    others = {key: value for key, value in values.items() if key[0] != "a"}
    assert list(found)[-1] == "a"
    joined, alone = rank(values, DSC, TIME, **rules), rank(others, DSC, TIME, **rules)
    assert found.pop("a")[::2] == (None, joined["a"][2])
    assert found == alone


# --- FLARE22 ----------------------------------------------------------------------


def test_flare22_weights_its_ranks():
    """Weights 1, 1, 1, 1/2 and 1/2; team c was stuck on the only case."""
    values = {
        "a": [(0.9, 0.9, 20.0, 3000.0, 500.0)],
        "b": [(0.8, 0.8, 10.0, 3000.0, 400.0)],
        "c": [(None,) * 5],
    }
    table = make_table(by_key(values, METRICS22))

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
        rules = rules_of(FLARE22, RankingOptions(metrics=(metric,)))
        ranks = rank_teams(changed, rules).case_ranks
        assert ranks["b", "1", metric] == ranks["absent", "1", metric] == 2


# --- Rules ------------------------------------------------------------------------


def test_the_rule_for_missing_results_is_that_of_a_failed_run_where_there_is_one():
    assert rules_of(FLARE21).missing is MissingRule.LAST
    assert rules_of(FLARE22).missing is MissingRule.VALUE


@pytest.mark.parametrize(
    ("challenge", "options", "problem"),
    [
        (FLARE21, {"missing": MissingRule.VALUE}, "no value of a failed run for dsc"),
        (FLARE21, {"metrics": ("nsd", "runtime_s"), "gate": 0.5}, "depends on the DSC"),
        (
            *(FLARE21, {"metrics": ("dsc", "speed")}),
            "flare21: it does not rank speed, which --metrics has. Choose from dsc,"
            " nsd, runtime_s, max_gpu_memory_mb, each at most once",
        ),
        (FLARE21, {"metrics": ("dsc", "dsc")}, "flare21: --metrics has dsc 2 times"),
        (replace(FLARE21, ranking=()), {}, r"page Challenge files explains \[\[rank"),
    ],
)
def test_options_that_contradict_the_challenge_are_refused(challenge, options, problem):
    with pytest.raises(RankingError, match=problem):
        rules_of(challenge, RankingOptions(**options))


# --- Files ------------------------------------------------------------------------


def test_the_files_of_the_contract(tmp_path):
    """And a name that a spreadsheet would compute is made a text; c is a baseline."""
    rows = [("=a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.8), ("c", "1", "dsc", 0.7)]
    file, decisions = write_table(tmp_path / "results.csv", rows), tmp_path / "d.toml"
    decisions.write_text(
        '[[out_of_competition]]\nteam = "c"\nreason = "so"\ndate = "2026-01-01"\n'
    )
    command = ["rank", file, "--metrics", "dsc", "--decisions", decisions]
    run = run_flare(*command, "--output", tmp_path / "out")

    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[5].startswith("Below the line: out of competition, without rank")
    assert lines[:3] == [
        "rank  team  score   mean rank dsc",
        "1     =a    0.5000  1.00",
        "2     b     1.0000  2.00",
    ]
    assert (tmp_path / "out" / "ranking.csv").read_text() == (
        "team,rank,score,mean_rank_dsc\n'=a,1,0.5,1\nb,2,1,2\nc,,1.5,3\n"
    )
    assert (tmp_path / "out" / "case_ranks.csv").read_text() == (
        "team,case,metric,rank\n'=a,1,dsc,1\nb,1,dsc,2\nc,1,dsc,3\n"
    )
    settings = json.loads((tmp_path / "out" / "ranking.json").read_text())["settings"]
    assert (settings["challenge"], settings["ties"]) == ("flare21", "min")
    words = re.split(r"[\s,]+", run_flare("rank", "--help").stdout)
    files = {path.name for path in (tmp_path / "out").iterdir()} - {"sheets"}
    assert files <= {*words}


def test_rows_are_sorted_and_names_quoted(tmp_path):
    """By team, case and metric, whatever the order of the metrics of the ranking."""
    rows = [("\u961f, b", "2", "dsc", 0.9), ('\u0641 "a"', "2", "dsc", 0.8)]
    rows += [("\u961f, b", "2", "nsd", 1.0), ('\u0641 "a"', "2", "nsd", 1.0)]
    table = write_table(tmp_path / "results.csv", rows)

    flare.rank(
        table, challenge="flare22", metrics=["nsd", "dsc"], ties="average", bootstrap=0
    ).write(tmp_path / "out")

    assert (tmp_path / "out" / "values.csv").read_text() == (
        'team,case,metric,value\n"\u0641 ""a""",2,dsc,0.8\n"\u0641 ""a""",2,nsd,1.0\n'
        '"\u961f, b",2,dsc,0.9\n"\u961f, b",2,nsd,1.0\n'
    )
    assert (tmp_path / "out" / "case_ranks.csv").read_text() == (
        'team,case,metric,rank\n"\u0641 ""a""",2,dsc,2\n"\u0641 ""a""",2,nsd,1.5\n'
        '"\u961f, b",2,dsc,1\n"\u961f, b",2,nsd,1.5\n'
    )
    text = (tmp_path / "out" / "ranking.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


# --- challengeR -------------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.parametrize("metric", ["dsc", "runtime"])
@pytest.mark.parametrize("ties", [Ties.MIN, Ties.AVERAGE])
def test_rank_then_mean_equals_challenger(shared, metric, ties):
    """With its rule for missing results: one more than the highest rank in use."""
    folder = shared / "data" / "ranking"
    file = folder / f"challengeR-{metric}" / f"rank_then_mean_{ties.value}.csv"
    with file.open() as content:
        expected = {
            row["alg"]: (int(float(row["rank"])), float(row["rank_mean"]))
            for row in csv.DictReader(content)
        }
    board = challenger_board(folder, metric)
    rules = replace(board.rules, ties=ties, missing=MissingRule.WORST_PLUS_ONE)
    board = replace(board, rules=rules)

    means = (board.doubled_ranks.mean(axis=(1, 2)) / 2).tolist()

    assert {
        team: (place, pytest.approx(mean, abs=1e-12))
        for team, place, mean in zip(board.teams, board.final_ranks, means, strict=True)
    } == expected
