"""What the first place depends on: by hand, and by trying everything."""

import itertools
import math
import random
import statistics
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter

import numpy as np
import pytest

from flare.challenge.scheme import Ties
from flare.ranking.ranks import Board
from flare.ranking.rules import Average, MissingRule, RankingRules
from flare.ranking.sensitivity import (
    Rival,
    alternatives,
    fewest_withdrawals,
    other_schemes,
    ranks_by_choice,
    ranks_without_team,
    sensitivity_of,
)
from flare.ranking.uncertainty import compare_pairs
from flare.reports.ranking.words import recount_text
from tests.builders.results import DSC, HALF_TIME, TIME, make_table, one_metric
from tests.oracles import naive_ranks


def found_of(board):
    return sensitivity_of(board, other_schemes(board, compare_pairs(board)))


def naive_sums(values, teams, cases, ties, missing):
    """Weighted rank sums of each team on each case, by slow means."""
    sums = {}
    for case in cases:
        for metric, sign, weight in (("dsc", -1, 1), ("runtime_s", 1, Fraction(1, 2))):
            found = [values[team, case, metric] for team in teams]
            found = [None if value is None else sign * value for value in found]
            ranks = naive_ranks(found, ties.value, missing.value)
            for team, rank in zip(teams, ranks, strict=True):
                sums[team, case] = sums.get((team, case), 0) + weight * rank
    return sums


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", Ties)
def test_withdrawals_equal_brute_force(seed, ties):
    """All subsets of 12 cases, of 4 teams, with ties and missing results."""
    chance = random.Random(seed)
    teams, cases = "abcd", [f"{n:02}" for n in range(12)]
    missing = chance.choice((MissingRule.LAST, MissingRule.WORST_PLUS_ONE))
    # One team is often better, so that the margin is more than a case or two.
    values = {
        (team, case, metric): chance.choice((bonus, bonus + 1, bonus + 2, None))
        for team, bonus in zip(teams, (2, 1, 0, 0), strict=True)
        for case in cases
        for metric in ("dsc", "runtime_s")
    }
    rules = RankingRules(metrics=(DSC, HALF_TIME), ties=ties, missing=missing)
    sums = naive_sums(values, teams, cases, ties, missing)

    fewest, shared = {}, {}
    for number in range(12):
        for withdrawn in itertools.combinations(cases, number):
            left = [case for case in cases if case not in withdrawn]
            totals = {t: sum(sums[t, case] for case in left) for t in teams}
            for first, rival in itertools.permutations(teams, 2):
                if totals[rival] < totals[first]:
                    fewest.setdefault((first, rival), number)
                if totals[rival] <= totals[first]:
                    shared.setdefault((first, rival), number)

    found = found_of(make_table(values).board(rules, teams))

    totals = {t: sum(sums[t, case] for case in cases) for t in teams}
    winners = [t for t in teams if totals[t] == min(totals.values())]
    assert [item.team for item in found] == winners
    for item in found:
        assert {own.rival: own.number for own in item.withdrawals} == {
            rival: number for (first, rival), number in fewest.items()
            if first == item.team
        }  # fmt: skip
        assert {own.rival: own.number for own in item.shares} == {
            rival: number for (first, rival), number in shared.items()
            if first == item.team and number
        }  # fmt: skip
        for own in item.withdrawals:
            assert len(own.cases) == own.number
            left = [case for case in cases if case not in own.cases]
            assert sum(sums[own.rival, c] for c in left) < sum(
                sums[item.team, c] for c in left
            )
        lost, joined = [], []
        for team in set(teams) - {item.team}:
            others = [t for t in teams if t != team]
            again = naive_sums(values, others, cases, ties, missing)
            totals = {t: sum(again[t, case] for case in cases) for t in others}
            first = [t for t in others if totals[t] == min(totals.values())]
            new = tuple(t for t in first if t not in winners)
            if item.team not in first:
                lost.append(team)
            elif new:
                joined.append({"team": team, "with": new})
        assert list(item.lost_without_team) == sorted(lost)
        assert list(item.shared_without_team) == sorted(joined, key=itemgetter("team"))


@pytest.mark.parametrize(
    ("values", "expected", "words"),
    [
        # B is never better: whatever is left, it stays behind.
        # Ties 3, missing 2, average 2, rounding 2; without a DSC there is no gate.
        (
            {"a": (1, 1, 1), "b": (2, 2, 1)},
            {"team": "a", "withdrawals": (),
             "shares": (Rival(rival="b", number=2, cases=("c00", "c01")),),
             "first_under": 24, "choices_of_rules": 24, "different_rankings": 1},
            ["keeps first place whatever cases are withdrawn; b could share it",
             "is first under 24 of 24 choices of rules (ties 3 x missing results 2"],
        ),
        # a 1 1 1 3, b 2 2 2 1, c 3 3 3 2: 6, 7 and 11. Leads over b: 1 1 1 -2.
        # Without one of the first three: 2 - 2, a tie; without two: 1 - 2 is negative.
        (
            {"a": (1, 1, 1, 9), "b": (2, 2, 2, 1), "c": (3, 3, 3, 5)},
            {"team": "a", "lost_without_team": (), "shared_without_team": ()},
            ["a keeps first place unless 2 of 4 cases are withdrawn (then b could",
             "as without c00, c01); b could share it without 1: c00; no other team"],
        ),
        # a 1 3, b 2 1, c 3 2: 4, 3 and 5: b wins. C is between a and b on the only case
        # that b wins. Without c: a 1 2, b 2 1: a tie. Without a: b 1 1, c 2 2.
        (
            {"a": (1, 3), "b": (2, 1), "c": (9, 2)},
            {"team": "b", "lost_without_team": (),
             "shared_without_team": ({"team": "c", "with": ("a",)},)},
            ["; if c is disqualified, it would then share first place with a; with"],
        ),
    ],
    ids=["nothing ends it", "in plain words", "a disqualification makes it share"],
)  # fmt: skip
def test_first_place_falls_with_the_fewest_withdrawals(values, expected, words):
    (found,) = found_of(one_metric(values))

    assert {key: getattr(found, key) for key in expected} == expected
    for part in words:
        assert part in recount_text(found, len(values["a"]))


def test_a_disqualification_that_costs_the_first_place():
    """B wins over a because of c and d, of which one is not enough."""
    # b 2 2 1, a 1 1 3, c 3 3 2: 5, 5, 8: a tie. Without c: b 2 2 1, a 1 1 2: a wins.
    board = one_metric({"b": (2, 2, 1), "a": (1, 1, 9), "c": (5, 6, 3)})

    found = {item.team: item for item in found_of(board)}

    assert found["b"].lost_without_team == ("c",)
    assert found["a"].lost_without_team == ()
    assert "it loses it if c is disqualified" in recount_text(found["b"], 3)


@pytest.mark.parametrize("missing", MissingRule)
@pytest.mark.parametrize("ties", Ties)
def test_ranks_without_team_a_team_are_those_of_the_board_without_it(ties, missing):
    """Random boards with ties, without, with one, or with several missing results."""
    generator = np.random.default_rng(5)
    for average, missing_results in itertools.product(Average, (0, 1, 1, 1, 1, 4)):
        values = generator.integers(1, 4, (4, 2, 2)).astype(float)
        places = generator.choice(values.size, missing_results, replace=False)
        values.flat[places] = math.nan
        rules = RankingRules(
            metrics=(DSC, HALF_TIME), ties=ties, missing=missing, average=average
        )
        board = Board(
            teams=tuple("abcd"),
            cases=tuple("12"),
            values=values,
            rules=rules,
            is_left_out=values == math.inf,
        )
        for number in range(4):
            fewer = np.delete(values, number, axis=0)
            teams = board.teams[:number] + board.teams[number + 1 :]
            none = fewer == math.inf
            board_without = replace(board, teams=teams, values=fewer, is_left_out=none)

            assert ranks_without_team(board, number) == board_without.final_ranks


def test_equal_leads_take_the_first_cases():
    assert fewest_withdrawals([1, 3, 3, -4]) == (1, 2)


# --- Choices of rules -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_choices_of_rules_are_counted_as_they_come_out(seed):
    """All 48 are ranked again by slow means."""
    teams, metrics = "abc", ("dsc", "runtime_s")
    chance = random.Random(seed)
    values = {
        (team, f"{case}", metric): chance.choice((0.5011, 0.5012, 0.4, None))
        for team in teams
        for case in range(5)
        for metric in metrics
    }
    table = make_table(values)
    wins, rankings = dict.fromkeys(teams, 0), set()
    for ties, missing, digits, gate, average in itertools.product(
        Ties,
        (MissingRule.LAST, MissingRule.WORST_PLUS_ONE),
        (None, 3),
        (0, 0.5),
        (statistics.mean, statistics.median),
    ):
        totals = dict.fromkeys(teams, 0)
        for metric, sign, weight in zip(metrics, (-1, 1), (1, 0.5), strict=True):
            ranks = {team: [] for team in teams}
            for case in table.cases:
                found = []
                for team in teams:
                    value, dsc = (values[team, case, m] for m in (metric, "dsc"))
                    if metric != "dsc" and gate and (dsc is None or dsc < gate):
                        value = None
                    if value is not None and digits:
                        value = round(value, digits)  # all are between 0.1 and 1
                    found.append(None if value is None else sign * value)
                places = naive_ranks(found, ties.value, missing.value)
                for team, place in zip(teams, places, strict=True):
                    ranks[team].append(place)
            for team in teams:
                totals[team] += Fraction(weight) * average(ranks[team])
        for team in teams:
            wins[team] += totals[team] == min(totals.values())
        ordered = sorted(totals.values())
        rankings.add(tuple(ordered.index(totals[team]) for team in teams))

    rules = RankingRules(metrics=(DSC, HALF_TIME))
    for item in found_of(table.board(rules, teams)):
        assert (item.first_under, item.choices_of_rules) == (wins[item.team], 48)
        assert item.different_rankings == len(rankings)
        assert (
            f"it is first under {wins[item.team]} of 48 choices of rules (ties 3 x"
            " missing results 2 x mean or median of ranks 2 x rounding 2 x gate 2;"
            f" different rankings among them: {len(rankings)})."
        ) in recount_text(item, 5)


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

    for choices in ways:
        assert all(a != b for a, b in itertools.combinations(choices, 2))
    assert math.prod(map(len, ways)) == count
    table = make_table({("a", "1", "dsc"): 0.9, ("a", "1", "runtime_s"): 9.0})
    assert ranks_by_choice(table.board(rules, "a")) == [(1,)] * count
