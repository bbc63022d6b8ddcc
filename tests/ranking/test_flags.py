"""What organisers are told to look at, and what they are not bothered with."""

from dataclasses import replace

import pytest

from flare.ranking.decisions import find_flags, organ_flags
from flare.ranking.rank import rank_teams
from flare.ranking.rules import RankingRules
from tests.builders.results import DSC, TIME, by_key, make_table

RULES = RankingRules(metrics=(DSC, TIME))
GATED = replace(RULES, gate_dsc=0.5)

EMPTY_MASKS = {
    "a": [(0.9, 30), (0.9, 31)],
    "b": [(0.8, 40), (0.8, 41)],
    "fast": [(0.0, 1), (0.0, 1)],
}
"""Ranks: fast 3 1, a 1 2, b 2 3 on every case: 8, 6 and 10 of two cases."""


def flags_of(values, rules=RULES, spreads=None):
    """Flags of a table of DSC and time by team, a pair for each case."""
    table = make_table(by_key(values), spreads)
    return find_flags(table, rank_teams(table, rules).board)


@pytest.mark.parametrize(
    ("values", "rules", "starts"),
    [
        ({"a": [(0.9, 3), (0.8, 4)], "b": [(0.7, 5), (0.9, 6)]}, RULES, []),
        (
            EMPTY_MASKS,
            RULES,
            ["fast has DSC 0, or none, on 2 of 2 cases, and yet is ahead of b, which"],
        ),
        (EMPTY_MASKS, GATED, []),
        # Fast has 2 1, a 1 2: they tie, and none is ahead.
        ({"a": [(0.9, 30)], "fast": [(0.0, 1)]}, RULES, []),
        # One case of twenty; the team is ahead of b, which is better there.
        (
            {
                "a": [(0.0, 1)] + [(0.5, 1)] * 19,
                "b": [(0.6, 9 + n / 10) for n in range(20)],
            },
            RULES,
            [],
        ),
        ({"a": [(0.9, 3)], "b": [(None, None)]}, RULES, ["b has no result at all"]),
        (
            {"a": [(0.9, 3)], "b": [(0.8, None)]},
            RULES,
            ["b has no result of runtime_s at all"],
        ),
        # Nobody has one: that is no team's fault.
        ({"a": [(0.9, None)], "b": [(0.8, None)]}, RULES, []),
        (
            {"a": [(0.5, 3), (0.0, 7)], "b": [(0.5, 4), (0.0, 8)]},
            RULES,
            [
                "All teams have the same dsc on 2 of 2 cases: c0, c1",
                "No team has a DSC above 0 on c1: ",
            ],
        ),
    ],
    ids=[
        *("nothing odd", "empty masks rank well", "a gate takes them", "a tie"),
        *("a zero now and then", "no result", "none of a metric", "nobody has one"),
        "cases decide nothing",
    ],
)
def test_a_doubtful_team_has_a_flag(values, rules, starts):
    found = flags_of(values, rules)

    assert len(found) == len(starts)
    for flag, start in zip(found, starts, strict=True):
        assert flag.startswith(start)


@pytest.mark.parametrize(
    ("spreads", "rules", "dsc_of_b", "is_within"),
    [
        # Sums: a 2 1 + 1 1 = 5, b 1 2 + 2 2 = 7. Were the first time the other way
        # round, both had 6.
        ({("a", "c0", "runtime_s"): 0.2}, RULES, 0.9, True),
        ({("b", "c0", "runtime_s"): 0.2}, RULES, 0.9, True),
        ({("a", "c0", "runtime_s"): 0.05}, RULES, 0.9, False),
        # With weight 1/4 for the time, the DSC decides: a 3, b 3, and the times 2/4,
        # 4/4; one comparison can change 2/4 of 2/4.
        (
            {("a", "c0", "runtime_s"): 0.2},
            RankingRules(metrics=(DSC, replace(TIME, weight=0.25))),
            0.9,
            True,
        ),
        # a is better by its DSC, whatever the times.
        ({("a", "c0", "runtime_s"): 0.2}, RULES, 0.75, False),
    ],
)
def test_an_order_within_the_noise_of_repeats(spreads, rules, dsc_of_b, is_within):
    """A is 0.1 s faster on both cases; its repeats lay 0.2 s apart on the first."""
    values = {"a": [(0.8, 3.0), (0.8, 3.0)], "b": [(dsc_of_b, 3.1), (0.7, 3.1)]}

    found = flags_of(values, rules, spreads)

    start = "The order of a and b is within the noise of the measurement: on 1 compar"
    assert [flag[: len(start)] for flag in found] == [start] * is_within


def organ_flag(**spleens):
    """The flags of teams with these DSC of the spleen, and one for all of the case."""
    values = {}
    for team, spleen in spleens.items():
        values[team] = [(0.9 - case / 100, dsc) for case, dsc in enumerate(spleen)]
    table = make_table(by_key(values, ("dsc", "dsc_spleen")))
    table = replace(table, metrics=("dsc",), others=("dsc_spleen",))
    return find_flags(table, rank_teams(table, RankingRules(metrics=(DSC,))).board)[:-1]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ([0.0] * 10, "10 of 10"),
        ([0.0] * 9 + [0.8], "9 of 10"),
        ([0.0] * 8 + [0.8] * 2, ""),
        ([None] * 6 + [0.0] * 4, "4 of 4"),  # why there is no result is told elsewhere
        ([None] * 8 + [0.0] * 2, ""),  # of two cases, it may be chance
    ],
)
def test_an_organ_that_a_team_never_finds(own, words):
    found = organ_flag(a=[0.93] * 10, b=[0.91] * 9 + [0.0], c=own, d=[0.95] * 10)

    told = "c has DSC 0 where others have found the organ: spleen ({} cases,"
    assert [f.startswith(told.format(words)) for f in found] == [True] * bool(words)
    assert all(flag.endswith(", others 0.93 at the median)") for flag in found)


def test_scores_that_are_explained_are_not_told_again_by_organ():
    values = {"a": [(0.9, 0.9)] * 3, "b": [(0.8, 0.8)] * 3, "c": [(0.0, 0.0)] * 3}
    line = "3 of 3 cases: mirrored left to right (c1); their DSC is 0, and without that"
    table = make_table(by_key(values, ("dsc", "dsc_spleen")))
    table = replace(table, metrics=("dsc",), others=("dsc_spleen",))

    assert len(list(organ_flags(table))) == 1
    assert not list(organ_flags(replace(table, warned=(("c", line),))))


@pytest.mark.parametrize(("organs", "end"), [(4, "1 more organ"), (5, "2 more organs")])
def test_of_many_organs_that_a_team_never_finds_three_are_named(organs, end):
    columns = tuple(f"dsc_organ_{n}" for n in range(organs))
    lost, found = [(0.5, *[0.0] * organs)] * 3, [(0.5, *[0.9] * organs)] * 3
    values = {"a": lost, "b": found, "c": found}
    table = make_table(by_key(values, ("dsc", *columns)))
    table = replace(table, metrics=("dsc",), others=columns)
    board = rank_teams(table, RankingRules(metrics=(DSC,))).board

    (flag,) = [flag for flag in find_flags(table, board) if "organ 0" in flag]

    assert flag.count("others 0.90 at the median") == 3
    assert flag.endswith(f" and {end}")


def test_an_organ_that_others_do_not_find_either():
    assert organ_flag(a=[0.9] * 4, b=[0.0] * 4, c=[0.0] * 4) == ()
    assert organ_flag(a=[0.0] * 4) == ()
