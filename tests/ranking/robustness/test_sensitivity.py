"""What the first place depends on: by hand, and by trying everything."""

import itertools
import random
import statistics
from fractions import Fraction

import pytest

from flare.challenge.metrics import Better
from flare.challenge.rules import RankedMetric
from flare.ranking.options import MissingRule, Ties
from flare.ranking.robustness.schemes import other_schemes
from flare.ranking.robustness.sensitivity import fewest_withdrawals, sensitivity_of
from flare.ranking.robustness.significance import compare_pairs
from flare.ranking.rules import RankingRules
from flare.reports.ranking.terminal import recount_text
from tests.builders.results import DSC, make_table, one_metric
from tests.oracles import naive_ranks

HALF = RankedMetric(metric="runtime_s", better=Better.LOWER, weight=0.5)


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
    rules = RankingRules(metrics=(DSC, HALF), ties=ties, missing=missing)
    table = make_table(values)
    board = table.board(rules, teams)
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

    found = found_of(board)

    best = min(sum(sums[t, case] for case in cases) for t in teams)
    winners = [t for t in teams if sum(sums[t, c] for c in cases) == best]
    assert [item.team for item in found] == winners
    for item in found:
        assert {rival: len(cases) for rival, cases in item.withdrawals} == {
            rival: number for (first, rival), number in fewest.items()
            if first == item.team
        }  # fmt: skip
        assert {rival: len(cases) for rival, cases in item.shares} == {
            rival: number for (first, rival), number in shared.items()
            if first == item.team and number
        }  # fmt: skip
        for rival, withdrawn in item.withdrawals:
            left = [case for case in cases if case not in withdrawn]
            assert sum(sums[rival, c] for c in left) < sum(
                sums[item.team, c] for c in left
            )
        lost, joined = [], []
        for team in teams:
            others = [t for t in teams if t != team]
            again = naive_sums(values, others, cases, ties, missing)
            totals = {t: sum(again[t, case] for case in cases) for t in others}
            if team != item.team and min(totals.values()) < totals[item.team]:
                lost.append(team)
            elif team != item.team:
                first = [t for t in others if totals[t] == min(totals.values())]
                new = tuple(t for t in first if t not in winners)
                joined += [(team, new)] if new else []
        assert list(item.disqualifications) == lost
        assert list(item.ties) == joined


def test_a_lead_that_no_withdrawal_can_end():
    """B is never better: whatever is left, it stays behind."""
    board = one_metric({"a": (1, 1, 1), "b": (2, 2, 1)})

    (found,) = found_of(board)

    assert found.withdrawals == ()
    # Ties 3, missing 2, average 2, rounding 2; without a DSC there is no gate.
    assert recount_text([found]) == (
        "a keeps first place whatever cases are withdrawn; b could share it without 2:"
        " c00, c01; no other team's disqualification changes that; with all metrics"
        " and teams kept, it is first under 24 of 24 choices of rules (ties 3 x missing"
        " results 2 x mean or median of ranks 2 x rounding 2; different rankings among"
        " them: 1)."
    )


def test_in_plain_words():
    """A has the ranks 1 1 1 3, b 2 2 2 1, c 3 3 3 2: 6, 7 and 11."""
    board = one_metric({"a": (1, 1, 1, 9), "b": (2, 2, 2, 1), "c": (3, 3, 3, 5)})

    (found,) = found_of(board)

    # Leads over b: 1 1 1 -2. Without one of the first three: 2 - 2, a tie; without
    # two: 1 - 2 is negative.
    assert found.withdrawals[0] == ("b", ("c00", "c01"))
    assert recount_text([found]).startswith(
        "a keeps first place unless 2 of 4 cases are withdrawn (then b could be ahead,"
        " as without c00, c01); b could share it without 1: c00; no other team's"
        " disqualification changes that; with all metrics and teams kept, it is first"
        " under "
    )


def test_a_disqualification_that_costs_the_first_place():
    """B wins over a because of c and d, of which one is not enough."""
    board = one_metric({"b": (2, 2, 1), "a": (1, 1, 9), "c": (5, 6, 3)})
    # b 2 2 1, a 1 1 3, c 3 3 2: 5, 5, 8: a tie. Without c: b 2 2 1, a 1 1 2: a wins.
    found = {item.team: item for item in found_of(board)}

    assert found["b"].disqualifications == ("c",)
    assert found["a"].disqualifications == ()
    assert "it loses it if c is disqualified" in recount_text([found["b"]])


def test_a_disqualification_that_makes_it_share_the_first_place():
    """C is between a and b on the only case that b wins."""
    board = one_metric({"a": (1, 3), "b": (2, 1), "c": (9, 2)})
    # a 1 3, b 2 1, c 3 2: 4, 3 and 5: b wins. Without c: a 1 2, b 2 1: a tie.
    # Without a: b 1 1, c 2 2.
    (found,) = found_of(board)

    assert (found.team, found.disqualifications) == ("b", ())
    assert found.ties == (("c", ("a",)),)
    assert found.ties == (("c", ("a",)),)
    assert (
        "; if c is disqualified, it would then share first place with a; with all"
    ) in recount_text([found])


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

    rules = RankingRules(metrics=(DSC, HALF))
    for item in found_of(table.board(rules, teams)):
        assert (item.first, item.choices) == (wins[item.team], 48)
        assert item.rankings == len(rankings)
        assert recount_text([item]).endswith(
            f"it is first under {wins[item.team]} of 48 choices of rules (ties 3 x"
            " missing results 2 x mean or median of ranks 2 x rounding 2 x gate 2;"
            f" different rankings among them: {len(rankings)})."
        )


def test_equal_leads_take_the_first_cases():
    assert fewest_withdrawals([1, 3, 3, -4]) == (1, 2)
