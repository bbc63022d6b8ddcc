"""Other ways to rank: by hand, and by challengeR."""

import csv
import itertools
import math
from dataclasses import replace

import pytest

from flare.ranking import ranks
from flare.ranking.options import MissingRule
from flare.ranking.robustness.schemes import (
    aggregate_ranks,
    other_schemes,
    ranks_by_tests,
)
from flare.ranking.robustness.sensitivity import (
    alternatives,
    ranks_by_choice,
    sensitivity_of,
)
from flare.ranking.robustness.significance import compare_pairs
from flare.ranking.rules import Average, RankingRules
from tests.builders.results import (
    DSC,
    FLARE22,
    TIME,
    challenger_board,
    make_table,
    one_metric,
)


def schemes_of(board):
    found = other_schemes(board, compare_pairs(board))
    return {scheme.name: scheme for scheme in found}


def read_ranks(shared, metric, scheme):
    """Ranks by team, as challengeR has them."""
    file = shared / "data" / "ranking" / f"challengeR-{metric}" / f"{scheme}.csv"
    with file.open() as content:
        return [int(float(row["rank"])) for row in csv.DictReader(content)]


@pytest.mark.shared
@pytest.mark.parametrize("metric", ["dsc", "runtime"])
@pytest.mark.parametrize("average", Average)
def test_schemes_of_values_equal_challenger(shared, metric, average):
    """Missing results were entered as 0: for a running time that is the best."""
    board = challenger_board(shared / "data" / "ranking", metric, missing=0.0)
    expected = read_ranks(shared, metric, f"{average.value}_then_rank_min")

    assert list(aggregate_ranks(board, average)) == expected


@pytest.mark.shared
@pytest.mark.parametrize("metric", ["dsc", "runtime"])
def test_rank_then_median_equals_challenger(shared, metric):
    board = challenger_board(shared / "data" / "ranking", metric)
    rules = replace(
        board.rules, average=Average.MEDIAN, missing=MissingRule.WORST_PLUS_ONE
    )

    assert list(board.by(rules).final_ranks) == read_ranks(
        shared, metric, "rank_then_median_min"
    )


@pytest.mark.shared
@pytest.mark.parametrize("metric", ["dsc", "runtime"])
@pytest.mark.parametrize("adjusted", ["none", "holm"])
def test_test_based_ranks_equal_challenger(shared, metric, adjusted):
    board = challenger_board(shared / "data" / "ranking", metric, missing=0.0)
    tests = compare_pairs(board)

    found = ranks_by_tests(board, tests, is_adjusted=adjusted == "holm")

    assert list(found) == read_ranks(shared, metric, f"test_then_rank_{adjusted}")


def test_mean_and_median_of_values_by_hand():
    """A is slow once: its median is the best, its mean is not."""
    schemes = schemes_of(one_metric({"a": (1, 1, 20), "b": (2, 2, 2), "c": (3, 3, 3)}))

    # Ranks: a 1 1 3, b 2 2 1, c 3 3 2. Means 22/3, 2, 3; medians 1, 2, 3.
    assert schemes["mean of values, then rank"].ranks == {"b": 1, "c": 2, "a": 3}
    assert schemes["median of values, then rank"].ranks == {"a": 1, "b": 2, "c": 3}


def test_means_that_are_equal_but_for_the_order_of_the_sum():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in their last bit."""
    values = {"a": (0.1, 0.2, 0.3), "b": (0.3, 0.2, 0.1)}

    assert aggregate_ranks(one_metric(values), Average.MEAN) == (1, 1)


def test_a_missing_result_counts_as_the_worst_in_means():
    """B has no third value: 9 stands for it. (1+1+9)/3 is more than 3, of a."""
    board = one_metric({"a": (3, 3, 3), "b": (1, 1, float("nan")), "c": (9, 9, 9)})

    assert aggregate_ranks(board, Average.MEAN) == (1, 2, 3)


def test_who_moves_and_tau_by_hand():
    """By NSD alone b is before a: one of three pairs is the other way round."""
    values = {"a": (0.9, 0.7, 0.8), "b": (0.8, 0.8, 0.1), "c": (0.1, 0.1, 0.0)}
    nsd = replace(DSC, metric="nsd")
    rules = RankingRules(metrics=(DSC, nsd, TIME))
    table = make_table(
        {
            (team, "1", metric): value
            for team, own in values.items()
            for metric, value in zip(("dsc", "nsd"), own[:2], strict=True)
        }
        | {("a", "1", "runtime_s"): 1, ("b", "1", "runtime_s"): 2,
           ("c", "1", "runtime_s"): 3}
    )  # fmt: skip
    board = table.board(rules, "abc")

    schemes = schemes_of(board)

    # With all three: a 1 2 1, b 2 1 2, c 3 3 3. Without the DSC, a and b tie at 3.
    assert schemes["without dsc"].ranks == {"a": 1, "b": 1, "c": 3}
    assert schemes["without dsc"].moved == ("b",)
    # Of the pairs ab, ac, bc the scheme ties ab: 2 / sqrt(3 * 2).
    assert schemes["without dsc"].tau == pytest.approx(2 / 6**0.5)
    assert schemes["without nsd"].moved == ()
    assert schemes["without nsd"].tau == 1


def test_leaving_out_a_team_can_turn_others_round():
    """A and b: who is ahead depends on c, which only b has behind it often."""
    board = one_metric(
        # Ranks: a 1 1 1 3, b 2 2 2 1, c 3 3 3 2 with c; a 1 1 1 2, b 2 2 2 1 without.
        {"a": (1, 1, 1, 9), "b": (2, 2, 2, 1), "c": (3, 3, 3, 5)}
    )
    moved = schemes_of(board)
    assert moved["without team c"].ranks == {"a": 1, "b": 2}

    board = one_metric(
        # a 1 1 4, b 2 2 1 and so 6 and 5; without c and d: a 1 1 2, b 2 2 1: 4 and 5.
        # Without c alone: a 1 1 3, b 2 2 1: a tie.
        {"b": (2, 2, 1), "a": (1, 1, 9), "c": (5, 6, 3), "d": (6, 5, 4)}
    )
    scheme = schemes_of(board)["without team c"]
    assert scheme.before == {"b": 1, "a": 2, "d": 3}
    assert scheme.ranks == {"b": 1, "a": 1, "d": 3}
    assert scheme.moved == ("a",)


def test_the_schemes_that_there_are():
    table = make_table(
        {(team, "1", r.metric): 0.5 for team in "abc" for r in FLARE22.ranking}
    )
    rules = RankingRules(metrics=FLARE22.ranking, missing=MissingRule.VALUE)

    names = list(schemes_of(table.board(rules, "abc")))

    assert names == [
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
    rounded = replace(DSC, decimals=1)
    board = one_metric({"a": (0.91,), "b": (0.94,), "c": (0.2,)}, rounded)
    board = replace(board, values=board.values.repeat(2, axis=2))
    rules = RankingRules(metrics=(rounded, TIME), gate_dsc=0.5)

    schemes = schemes_of(board.by(rules))

    assert "without rounding" in schemes
    assert "without the gate" in schemes
    assert "without dsc" not in schemes


@pytest.mark.parametrize(
    ("rules", "count"),
    [
        # Ties 3, missing 2, average 2, rounding 2, gate 2.
        (RankingRules(metrics=(DSC, TIME)), 48),
        # No DSC, no gate; and another rule for missing results.
        (RankingRules(metrics=(replace(TIME, failed=9.0),)), 36),
        # With and without the challenge's rounding, and with three digits.
        (RankingRules(metrics=(replace(DSC, decimals=1), TIME)), 72),
    ],
)
def test_choices_of_rules_are_all_different(rules, count):
    ways = alternatives(rules)

    for found in ways.values():
        assert all(a != b for a, b in itertools.combinations(found, 2))
    assert math.prod(map(len, ways.values())) == count
    table = make_table({("a", "1", "dsc"): 0.9, ("a", "1", "runtime_s"): 9.0})
    board = table.board(rules, "a")
    assert ranks_by_choice(board) == [(1,)] * count


def test_values_are_rounded_once_for_all_choices_that_round_alike(monkeypatch):
    """Rounding takes longest: a text is made of each value."""
    counted = []
    rounded = ranks.rounded
    monkeypatch.setattr(
        ranks,
        "rounded",
        lambda values, form: counted.append(values.size) or rounded(values, form),
    )
    board = one_metric({"a": (0.91, 0.8), "b": (0.7, 0.92)}, DSC)

    sensitivity_of(board, other_schemes(board, compare_pairs(board)))

    # The scheme of three digits, and the choices of three digits with either gate.
    assert sum(counted) == 3 * board.values.size
