"""The order of a board, worked out by hand."""

from dataclasses import replace

import pytest

from flare.platforms.board import Order
from flare.platforms.codabench.competition import Column, Leaderboard, SubmissionRule
from flare.platforms.codabench.leaderboard import OF_OTHERS, order_results
from flare.platforms.leaderboard import Result, leaderboard_table

ALL, LAST, BEST = (
    SubmissionRule.FORCE_LATEST_MULTIPLE,
    SubmissionRule.FORCE_LAST,
    SubmissionRule.FORCE_BEST,
)

BOARD = Leaderboard(
    primary_index=1,
    submission_rule=ALL,
    columns=(
        Column(title="Secret", key="secret", index=3, hidden=True),
        Column(title="HD95", key="hd95", index=2, sorting=Order.ASCENDING),
        Column(title="DSC", key="dsc", index=1, precision=4),
        Column(title="NSD", key="nsd", index=0),
    ),
)


def result(name, dsc, nsd=0.5, hd95=3, secret=0):
    values = {"dsc": dsc, "nsd": nsd, "hd95": hd95, "secret": secret}
    return Result(name=name, metrics={k: v for k, v in values.items() if v is not None})


@pytest.mark.parametrize(
    ("results", "rule", "expected"),
    [
        # The primary column, then NSD, then HD95, of which small ones come first.
        ([result("a", 0.5), result("b", 0.75)], ALL, "b a"),
        ([result("a", 0.5), result("b", 0.5, 0.75)], ALL, "b a"),
        ([result("a", 0.5, 0.5, 3), result("b", 0.5, 0.5, 2)], ALL, "b a"),
        # What is hidden orders nothing: the older one comes first.
        ([result("a", 0.5), result("b", 0.5, secret=1)], ALL, "a b"),
        # The site keeps ten decimals; its database has no score above all.
        ([result("a", 0.5), result("b", 0.5 + 1e-11)], ALL, "a b"),
        ([result("a", 0.5), result("b", 0.5 + 1e-9)], ALL, "b a"),
        ([result("a", 0.5), result("b", None)], ALL, "b a"),
        ([result("a", 0.5, hd95=None), result("b", 0.5)], ALL, "b a"),
        ([result("u", 0.5), result("v", 0.75), result("u", 0.25)], ALL, "v u u"),
        ([result("u", 0.9), result("v", 0.75), result("u", 0.25)], LAST, "v u"),
        ([result("u", 0.9), result("v", 0.75), result("u", 0.25)], BEST, "u v"),
        # The best of u is the later one, by what is hidden: it comes behind v.
        ([result("u", 0.5), result("v", 0.5), result("u", 0.5, secret=1)], BEST, "v u"),
    ],
)
def test_a_board_has_the_order_of_the_site(results, rule, expected):
    rows, left_out = order_results(results, replace(BOARD, submission_rule=rule))

    assert " ".join(row.name for _, _, row in rows) == expected
    assert len(rows) + len(left_out) == len(results)


def test_cells_are_those_of_the_site():
    """As many decimals as there are; n/a where there is no score, but not alone."""
    metrics = {"aggregates": {"dsc": 0.92406, "hd95": 3, "secret": 1}}
    other = Result(name="b", metrics={"aggregates": {"auroc_task": 0.5}})
    rows, left_out = order_results([other, Result(name="a", metrics=metrics)], BOARD)

    assert leaderboard_table(rows, BOARD).splitlines()[1:] == [
        "rank  name  rank score  NSD  DSC     HD95",
        "1     a     1           n/a  0.9241  3.0",
    ]
    assert left_out == [("b", OF_OTHERS)]
