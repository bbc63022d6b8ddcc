"""How sure a ranking is: draws of the cases, ranked again."""

import random

import numpy as np
import pytest

from flare.challenge.scheme import Ties
from flare.ranking.rank import rank_teams
from flare.ranking.ranks import kendall_tau
from flare.ranking.rules import RankingRules
from flare.ranking.uncertainty import _rank_interval, bootstrap, draw_cases
from flare.reports.ranking.words import draws_text
from tests.builders.fewer import few_fast
from tests.builders.results import DSC, HALF_TIME, make_table, one_metric


def test_a_team_that_always_wins_is_always_first():
    board = one_metric({"a": (1,) * 5, "b": (2,) * 5, "c": (2,) * 5})

    found = bootstrap(board, draw_cases(board))

    # b and c tie in every draw, and share the second rank.
    assert [(s.team, *s.interval, s.frequencies) for s in found.teams] == [
        ("a", 1, 1, (1, 0, 0)),
        ("b", 2, 2, (0, 1, 0)),
        ("c", 2, 2, (0, 1, 0)),
    ]
    assert found.kendall_tau == (1, 1, 1)
    all_tie = one_metric(dict.fromkeys("abc", (1,)))
    assert bootstrap(all_tie, draw_cases(all_tie)).kendall_tau is None


def test_draws_in_which_all_tie_have_no_tau_and_are_told():
    """A team is better on the first of three cases, and equal on the others."""
    board = one_metric({"a": (1, 1, 1), "b": (2, 1, 1)})
    draws = draw_cases(board)

    found = bootstrap(board, draws)

    tied = int((draws.counts[:, 0] == 0).sum())
    assert (found.kendall_tau, found.tied) == ((1, 1, 1), tied)
    assert draws_text(found).endswith(f" {tied} draws had none, as all teams tied.")
    assert 200 < tied < 400  # (2 / 3) ** 3 of 1,000


def test_draws_are_ranked_as_if_they_were_the_cases():
    """Each draw is ranked again from its values, missing ones and weights included."""
    chance = random.Random(5)
    rules = RankingRules(metrics=(DSC, HALF_TIME), ties=Ties.AVERAGE)
    values = {
        (team, str(case), metric): chance.choice((0.1, 0.2, 0.3, None))
        for team in "abcd"
        for case in range(6)
        for metric in rules.names
    }
    drawn = np.random.Generator(np.random.PCG64(7)).integers(0, 6, size=(40, 6))
    expected = {team: [0] * 4 for team in "abcd"}
    for draw in drawn:
        table = make_table(
            {
                (team, f"{place}", metric): values[team, str(case), metric]
                for place, case in enumerate(draw)
                for team in "abcd"
                for metric in rules.names
            }
        )
        for standing in rank_teams(table, rules).standings:
            expected[standing.team][standing.rank - 1] += 1

    board = make_table(values).board(rules, "abcd")

    found = bootstrap(board, draw_cases(board, samples=40, seed=7))

    assert {s.team: s.frequencies for s in found.teams} == {
        team: tuple(count / 40 for count in counts) for team, counts in expected.items()
    }


def test_the_interval_leaves_out_a_fortieth_at_either_end():
    """Of 80 draws, two at each end: ranks 1 1 1 2 ... 2 3 3 have 1 to 2."""
    interval = _rank_interval("a", np.array([1] * 3 + [2] * 75 + [3] * 2), 3)

    assert interval.interval == (1, 2)


@pytest.mark.parametrize("seed", few_fast(range(20), fast=range(5)))
def test_tau_is_that_of_scipy(seed):
    """The taus of a bootstrap, and None where SciPy has NaN."""
    # Not at the top, where every process of the tests would load it.
    from scipy.stats import kendalltau

    chance = np.random.default_rng(seed)
    first, second = chance.integers(1, 4, size=(2, 6)).tolist()

    expected = kendalltau(first, second).statistic
    assert kendall_tau(first, second) == pytest.approx(expected)
    assert kendall_tau([1, 1, 1], [1, 2, 3]) is None
