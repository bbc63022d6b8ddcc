"""What organisers are told to look at, and what they are not bothered with."""

from dataclasses import replace

from flare.challenge.metrics import Better
from flare.challenge.rules import RankedMetric
from flare.ranking.robustness.flags import find_flags
from flare.ranking.rules import RankingRules
from flare.ranking.standings import rank_teams
from tests.builders.results import DSC, TIME, make_table

RULES = RankingRules(metrics=(DSC, TIME))


def flags_of(values, rules=RULES, spreads=None):
    """Flags of a table of DSC and time by team, a pair for each case."""
    table = make_table(
        {
            (team, f"c{case}", metric): value
            for team, cases in values.items()
            for case, pair in enumerate(cases)
            for metric, value in zip(("dsc", "runtime_s"), pair, strict=True)
        },
        spreads,
    )
    return find_flags(rank_teams(table, rules).board, table)


def test_nothing_odd():
    values = {"a": [(0.9, 3), (0.8, 4)], "b": [(0.7, 5), (0.9, 6)]}

    assert flags_of(values) == ()


def test_empty_masks_that_rank_well():
    """Ranks: fast 3 1, a 1 2, b 2 3 on every case: 8, 6 and 10 of two cases."""
    values = {
        "a": [(0.9, 30), (0.9, 31)],
        "b": [(0.8, 40), (0.8, 41)],
        "fast": [(0.0, 1), (0.0, 1)],
    }

    assert flags_of(values) == (
        "fast has DSC 0, or none, on 2 of 2 cases, and yet is ahead of b, which has a"
        " higher DSC: consider a gate (--gate)",
    )
    assert flags_of(values, replace(RULES, gate_dsc=0.5)) == ()


def test_a_tie_is_not_ahead():
    """Fast has 2 1, a 1 2: they tie."""
    assert flags_of({"a": [(0.9, 30)], "fast": [(0.0, 1)]}) == ()


def test_a_zero_now_and_then_is_nothing_special():
    """One case of twenty; the team is ahead of b, which is better there."""
    values = {
        "a": [(0.0, 1)] + [(0.5, 1)] * 19,
        "b": [(0.6, 9 + n / 10) for n in range(20)],
    }

    assert flags_of(values) == ()


def test_a_team_without_any_result():
    values = {"a": [(0.9, 3)], "b": [(None, None)]}

    assert flags_of(values) == ("b has no result at all: was it run as it should be?",)


def test_cases_that_decide_nothing():
    values = {"a": [(0.5, 3), (0.0, 7)], "b": [(0.5, 4), (0.0, 8)]}

    assert flags_of(values) == (
        "All teams have the same dsc on 2 of 2 cases: c0, c1",
        "No team has a DSC above 0 on c1: are the reference and the image right?",
    )


def test_a_gate_that_leaves_no_efficiency_at_all():
    values = {"a": [(0.4, 3), (0.3, 4)], "b": [(0.2, 5), (0.1, 6)]}

    flags = flags_of(values, replace(RULES, gate_dsc=0.5))

    assert flags == ("The gate of 0.5 leaves no value of runtime_s at all",)
    assert flags_of(values, replace(RULES, gate_dsc=0.35)) == ()


def test_an_order_within_the_noise_of_repeats():
    """A is 0.1 s faster on both cases; its repeats lay 0.2 s apart on the first."""
    values = {"a": [(0.8, 3.0), (0.8, 3.0)], "b": [(0.9, 3.1), (0.7, 3.1)]}
    flag = (
        "The order of a and b is within the noise of the measurement: on 1 comparison"
        " that a wins, their values differ no more than those of one team do when it is"
        " measured again"
    )

    # Sums: a 2 1 + 1 1 = 5, b 1 2 + 2 2 = 7. Were the first time the other way round,
    # both had 6.
    assert flags_of(values, spreads={("a", "c0", "runtime_s"): 0.2}) == (flag,)
    assert flags_of(values, spreads={("b", "c0", "runtime_s"): 0.2}) == (flag,)
    assert flags_of(values, spreads={("a", "c0", "runtime_s"): 0.05}) == ()
    # With weight 1/4 for the time, the DSC decides: a 3, b 3, and the times 2/4, 4/4;
    # one comparison can change 2/4 of 2/4.
    light = RankedMetric(metric="runtime_s", better=Better.LOWER, weight=0.25)
    rules = RankingRules(metrics=(DSC, light))
    assert flags_of(values, rules, {("a", "c0", "runtime_s"): 0.2}) == (flag,)
    # a is better by its DSC, whatever the times.
    values = {"a": [(0.9, 3.0), (0.8, 3.0)], "b": [(0.8, 3.1), (0.7, 3.1)]}
    assert flags_of(values, spreads={("a", "c0", "runtime_s"): 0.2}) == ()
