"""Which team is better: by hand, by SciPy one pair at a time, by challengeR."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from flare.challenge.metrics import Better
from flare.challenge.rules import RankedMetric
from flare.ranking.ranks import Board
from flare.ranking.rules import RankingRules
from flare.ranking.uncertainty import compare_pairs
from tests.builders.results import DSC, TIME, make_table, one_metric
from tests.oracles import exact_signed_ranks


def by_pair(board):
    return {(t.team, t.other): t for t in compare_pairs(board)}


def test_effect_zeros_and_p_by_hand():
    """Four cases: b is 1, 2 and 3 s slower, then equal: that case is left out."""
    tests = by_pair(one_metric({"a": (1, 1, 1, 1), "b": (2, 3, 4, 1)}))

    found = tests["a", "b"]
    # Ranks 1 2 3, all for a: W+ = 6 of 6. Mean 3, variance 3 * 4 * 7 / 24 = 3.5:
    # z = (6 - 3 - 0.5) / sqrt(3.5) = 1.3363, of which 0.0907 lie above.
    assert (found.cases, found.zeros, found.effect) == (3, 1, 1)
    assert found.p == pytest.approx(0.09072, abs=1e-5)
    assert tests["b", "a"].effect == -1
    # Holm over two tests: twice the smaller p.
    assert found.p_holm == pytest.approx(2 * found.p)


@pytest.mark.newest
@pytest.mark.parametrize(
    ("decimals", "rule", "largest"),
    [(2, DSC, 1), (4, DSC, 1), (3, TIME, 3600), (1, TIME, 29_491_200)],
)
def test_ties_are_those_of_exact_fractions(decimals, rule, largest):
    """All 4,032 pairs of 64 teams: equal steps are equal, whatever binary noise says.

    The largest value is that of a failed run, as of a running time or an area.
    """
    generator, scale = np.random.default_rng(decimals), 10**decimals
    numbers = generator.integers(scale // 2, scale + 1, size=(64, 20))
    numbers[::9, 3] = largest * scale
    exact = numbers.tolist()  # whole numbers, of which values are fractions
    values = {f"{n:02}": [own / scale for own in row] for n, row in enumerate(exact)}

    tests = by_pair(one_metric(values, rule))

    sign = -1 if rule is TIME else 1
    alone = {
        (f"{a:02}", f"{b:02}"): exact_signed_ranks(
            [
                sign * (own - other)
                for own, other in zip(exact[a], exact[b], strict=True)
            ]
        )
        for a, b in itertools.permutations(range(64), 2)
    }
    assert len(tests) == len(alone) == 4032
    smallest = 0.0
    for place, pair in enumerate(sorted(alone, key=lambda pair: alone[pair][1])):
        effect, p = alone[pair]
        smallest = max(smallest, min(1, (4032 - place) * p))
        assert tests[pair].effect == pytest.approx(float(effect), abs=1e-14), pair
        assert tests[pair].p == pytest.approx(p, rel=1e-11)
        assert tests[pair].p_holm == pytest.approx(smallest, rel=1e-11)
        assert (tests[pair].p_holm <= 0.05) == (smallest <= 0.05)


@pytest.mark.parametrize(
    ("values", "rule", "expected"),
    [
        ({"a": (1, 9), "b": (np.nan, 2)}, TIME, [[1, 9], [9, 2]]),
        (
            {"a": (1, 9), "b": (np.nan, 2)},
            replace(TIME, failed=3600),
            [[1, 9], [3600, 2]],
        ),
        ({"a": (1, 9), "b": (np.nan, 2)}, replace(TIME, failed=5), [[1, 9], [9, 2]]),
        ({"a": (1, 0.9), "b": (np.nan, 0.2)}, DSC, [[-1, -0.9], [0, -0.2]]),
    ],
)
def test_a_missing_result_is_no_advantage(values, rule, expected):
    """A DSC counts as 0, a time as the worst of any team, or a failed run if worse."""
    assert one_metric(values, rule).filled[:, :, 0].tolist() == expected


def test_a_board_tells_what_a_missing_result_counts_as():
    """A failed run goes first, then the worst value, or of distances the diagonal."""
    far = RankedMetric(metric="hd95", better=Better.LOWER)
    memory = replace(TIME, metric="max_gpu_memory_mb", failed=9)
    board = Board(
        teams=("a",),
        cases=("1", "2"),
        values=np.ones((1, 2, 4)),
        rules=RankingRules(metrics=(DSC, far, TIME, memory)),
        worst={"hd95": np.array([44.7, np.nan])},
        is_left_out=np.zeros((1, 2, 4), dtype=bool),
    )

    expected = [[0, 44.7, np.nan, 9], [0, np.nan, np.nan, 9]]
    assert np.array_equal(board.counted, expected, equal_nan=True)


def test_a_gate_or_a_tolerance_leaves_the_value_of_a_failed_run():
    stuck = replace(TIME, failed=3600.0, tolerance=10.0)
    rules = RankingRules(metrics=(replace(DSC, failed=0.0), stuck), gate_dsc=0.5)
    values = {("a", "1", "dsc"): 0.9, ("a", "1", "runtime_s"): 20.0}
    missing = {("b", "1", "dsc"): None, ("b", "1", "runtime_s"): None}
    board = make_table(values | missing).board(rules, "ab")

    assert board.filled.tolist() == [[[-0.9, 10]], [[0, 3600]]]
