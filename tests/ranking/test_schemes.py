"""Other ways to rank: by hand, and by challengeR."""

import csv
from dataclasses import replace

import pytest

from flare.challenge.metrics import Better
from flare.challenge.rules import RankedMetric
from flare.ranking.means import ranking_means
from flare.ranking.rank import analyse
from flare.ranking.rules import Average, MissingRule, RankingRules, rules_of
from flare.ranking.sensitivity import aggregate_ranks, other_schemes, ranks_by_tests
from flare.ranking.uncertainty import compare_pairs
from flare.statistics import paired
from tests.builders.results import (
    DSC,
    FLARE21,
    FLARE22,
    METRICS22,
    TIME,
    by_key,
    challenger_board,
    make_table,
    one_metric,
)


def schemes_of(board):
    return {
        scheme.name: scheme for scheme in other_schemes(board, compare_pairs(board))
    }


@pytest.mark.shared
@pytest.mark.parametrize("metric", ["dsc", "runtime"])
@pytest.mark.parametrize(
    "scheme",
    [
        *("mean_then_rank_min", "median_then_rank_min", "rank_then_median_min"),
        *("test_then_rank_none", "test_then_rank_holm"),
    ],
)
def test_ranks_equal_those_of_challenger(shared, monkeypatch, metric, scheme):
    """Where values count, missing results were entered as 0, the best of all times.

    R ranks differences with their binary noise (its digits.rank is Inf), so equal ones
    are not ties; one rank of these is another one without it.
    """
    monkeypatch.setattr(paired, "steps", lambda before, after: after - before)
    folder = shared / "data" / "ranking"
    with (folder / f"challengeR-{metric}" / f"{scheme}.csv").open() as content:
        expected = [int(float(row["rank"])) for row in csv.DictReader(content)]
    if scheme.startswith("rank"):
        board = challenger_board(folder, metric)
        rules = replace(board.rules, missing=MissingRule.WORST_PLUS_ONE)
        found = replace(board, rules=replace(rules, average=Average.MEDIAN)).final_ranks
    else:
        board = challenger_board(folder, metric, missing=0.0)
        kind = scheme.partition("_")[0]
        found = (
            ranks_by_tests(board, compare_pairs(board), is_adjusted="holm" in scheme)
            if kind == "test"
            else aggregate_ranks(board, Average(kind))
        )

    assert list(found) == expected


def test_a_missing_score_counts_as_0_in_means_schemes_and_tests():
    """The means are 0.45 and 0.5; with the worst of any team, 0.5, A had 0.7."""
    values = {("a", "c0", "dsc"): 0.9, ("a", "c1", "dsc"): None}
    values |= {("b", "c0", "dsc"): 0.5, ("b", "c1", "dsc"): 0.5}
    table = make_table(values)

    analysis = analyse(table, FLARE21, RankingRules(metrics=(DSC,)))

    means = {m.team: m.mean for m in ranking_means(analysis).rows if not m.organ}
    assert means == {"a": 0.45, "b": 0.5}
    schemes = {scheme.name: scheme.ranks for scheme in analysis.schemes}
    assert schemes["mean of values, then rank"] == {"b": 1, "a": 2}
    # Steps of 0.4 and 0.5, the larger one for B: (2 - 1) / 3. Without: one, for A.
    effects = {test.team: test.effect for test in analysis.tests}
    assert effects == pytest.approx({"b": 1 / 3, "a": -1 / 3})


@pytest.mark.parametrize(
    ("metric", "worst_mm", "expected"),
    [
        ("hd95", None, [44.0, 2.0]),
        ("hd95", 60.0, [60.0, 2.0]),
        # What is no distance has nothing of another metric, nor of a rule in mm.
        ("lesion_count_difference", 60.0, [44.0, 2.0]),
        ("false_volume", 60.0, [44.0, 2.0]),
    ],
)
def test_a_missing_distance_counts_as_metrics_json_or_the_challenge_has_it(
    metric, worst_mm, expected
):
    """44 mm is the diagonal of its grid; 50 mm is measured on a larger one."""
    rule = RankedMetric(metric=metric, better=Better.LOWER)
    values = {("a", "c0", metric): None, ("a", "c1", metric): 2.0}
    values |= {("b", "c0", metric): 3.0, ("b", "c1", metric): 50.0}
    worst_values = {"hd95": {"c0": 9.0}, metric: {"c0": 44.0}}
    table = replace(make_table(values), worst_values=worst_values)
    challenge = replace(FLARE21, worst_distance_mm=worst_mm, ranking=(rule,))

    analysis = analyse(table, challenge, rules_of(challenge))

    own = analysis.board.teams.index("a")
    assert analysis.board.filled[own, :, 0].tolist() == expected
    means = {m.team: m.mean for m in ranking_means(analysis).rows if not m.organ}
    assert means["a"] == sum(expected) / 2
    assert analysis.board.on([1]).filled[own, :, 0].tolist() == [2.0]


def test_a_failed_run_counts_as_one_whatever_rank_it_gets():
    """Not left out of the means, though its rank is that of the number of teams."""
    stuck = replace(TIME, failed=3600.0)
    table = make_table({("a", "c0", "runtime_s"): None, ("b", "c0", "runtime_s"): 9.0})

    rules = RankingRules(metrics=(stuck,), missing=MissingRule.LAST)
    analysis = analyse(table, FLARE22, rules)

    assert {m.team: m.mean for m in ranking_means(analysis).rows} == {"a": 3600, "b": 9}


def test_mean_and_median_of_values_by_hand():
    """A is slow once: its median is the best, its mean is not."""
    schemes = schemes_of(one_metric({"a": (1, 1, 20), "b": (2, 2, 2), "c": (3, 3, 3)}))

    # Ranks: a 1 1 3, b 2 2 1, c 3 3 2. Means 22/3, 2, 3; medians 1, 2, 3.
    assert schemes["mean of values, then rank"].ranks == {"b": 1, "c": 2, "a": 3}
    assert schemes["median of values, then rank"].ranks == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in their last bit.
        ({"a": (0.1, 0.2, 0.3), "b": (0.3, 0.2, 0.1)}, (1, 1)),
        # B has no third value: 9 stands for it. (1+1+9)/3 is more than 3, of a.
        ({"a": (3, 3, 3), "b": (1, 1, float("nan")), "c": (9, 9, 9)}, (1, 2, 3)),
    ],
    ids=["order of the sum", "missing"],
)
def test_means_of_values_are_ranked(values, ranks):
    assert aggregate_ranks(one_metric(values), Average.MEAN) == ranks


def test_who_moves_and_tau_by_hand():
    """By NSD alone b is before a: one of three pairs is the other way round."""
    values = {"a": [(0.9, 0.7, 1)], "b": [(0.8, 0.8, 2)], "c": [(0.1, 0.1, 3)]}
    rules = RankingRules(metrics=(DSC, replace(DSC, metric="nsd"), TIME))
    table = make_table(by_key(values, rules.names))

    schemes = schemes_of(table.board(rules, "abc"))

    # With all three: a 1 2 1, b 2 1 2, c 3 3 3. Without the DSC, a and b tie at 3.
    assert schemes["without dsc"].ranks == {"a": 1, "b": 1, "c": 3}
    assert schemes["without dsc"].moved == ("b",)
    # Of the pairs ab, ac, bc the scheme ties ab: 2 / sqrt(3 * 2).
    assert schemes["without dsc"].tau == pytest.approx(2 / 6**0.5)
    assert (schemes["without nsd"].moved, schemes["without nsd"].tau) == ((), 1)


def test_leaving_out_a_team_can_turn_others_round():
    """A and b: who is ahead depends on c, which only b has behind it often."""
    # Ranks: a 1 1 1 3, b 2 2 2 1, c 3 3 3 2 with c; a 1 1 1 2, b 2 2 2 1 without.
    board = one_metric({"a": (1, 1, 1, 9), "b": (2, 2, 2, 1), "c": (3, 3, 3, 5)})
    assert schemes_of(board)["without team c"].ranks == {"a": 1, "b": 2}

    # a 1 1 4, b 2 2 1 and so 6 and 5; without c and d: a 1 1 2, b 2 2 1: 4 and 5.
    # Without c alone: a 1 1 3, b 2 2 1: a tie.
    board = one_metric({"b": (2, 2, 1), "a": (1, 1, 9), "c": (5, 6, 3), "d": (6, 5, 4)})
    scheme = schemes_of(board)["without team c"]
    assert scheme.before == {"b": 1, "a": 2, "d": 3}
    assert scheme.ranks == {"b": 1, "a": 1, "d": 3}
    assert scheme.moved == ("a",)


def test_the_schemes_that_there_are():
    table = make_table(by_key({team: [[0.5] * 5] for team in "abc"}, METRICS22))
    rules = RankingRules(metrics=FLARE22.ranking, missing=MissingRule.VALUE)

    assert list(schemes_of(table.board(rules, "abc"))) == [
        *("ties: average", "ties: max", "missing: last", "missing: worst-plus-one"),
        *("3 significant digits", "efficiency only where DSC is at least 0.5"),
        *("rank, then median", "mean of values, then rank"),
        *("median of values, then rank", "tests (unadjusted), then rank"),
        *("tests (Holm), then rank", "without dsc", "without nsd"),
        *("without runtime_s", "without gpu_memory_area_mb_s"),
        *("without cpu_area_percent_s", "without team a", "without team b"),
        "without team c",
    ]


def test_rounding_and_gate_that_the_challenge_has_are_taken_off():
    rules = RankingRules(metrics=(replace(DSC, decimals=1), TIME), gate_dsc=0.5)
    board = one_metric({"a": (0.91,), "b": (0.94,), "c": (0.2,)})
    values, flags = (a.repeat(2, axis=2) for a in (board.values, board.is_left_out))
    board = replace(board, values=values, is_left_out=flags, rules=rules)

    schemes = schemes_of(board)

    assert "without rounding" in schemes
    assert "without the gate" in schemes
    assert "without dsc" not in schemes
