"""Ranking from Python: tables in, tables out, and the files of the command."""

import pandas as pd
import pytest

import flare
from flare.ranking.uncertainty import bootstrap, draw_cases
from flare.reports.ranking.words import draws_text
from flare.results.errors import RankingError
from tests.builders import error_of
from tests.builders.results import ROWS, write_team

COLUMNS = ["team", "case", "metric", "value"]


def frame_of(rows):
    return pd.DataFrame(rows, columns=COLUMNS)


def rank(rows, **options):
    return flare.rank(frame_of(rows), metrics=["dsc"], bootstrap=0, **options)


def test_a_table_in_memory_is_ranked():
    """Ranks of a are 1 1 3, of b 2 2 2, of c 3 3 1: scores of 5/9, 6/9 and 7/9."""
    found = rank([(team, int(case), *row) for team, case, *row in ROWS])

    assert found.standings.index.tolist() == ["a", "b", "c"]
    assert found.standings["rank"].tolist() == [1, 2, 3]
    assert found.standings["score"].tolist() == [5 / 9, 6 / 9, 7 / 9]
    assert found.standings["mean_rank_dsc"].tolist() == [5 / 3, 2.0, 7 / 3]
    assert found.case_ranks.loc["a", "dsc"].to_dict() == {"1": 1, "2": 1, "3": 3}
    assert found.results.loc[("c", "3", "dsc"), "value"] == 0.3
    assert repr(found) == "<Ranking: flare21, 3 teams, 3 cases>"


@pytest.mark.parametrize("empty", [None, float("nan"), pd.NA])
def test_an_empty_value_is_a_missing_result(empty):
    found = rank([("a", "1", "dsc", 0.5), ("b", "1", "dsc", empty)])

    assert found.results["reason"].to_dict()["b", "1", "dsc"] == "the value is empty"
    assert found.standings["rank"].to_dict() == {"a": 1, "b": 2}


def test_shares_of_first_places_that_overlap_are_explained():
    """Of a and b each is first in all draws, as they tie; of a and c only a is."""
    tied, apart = (
        rank([(t, n, "dsc", v) for t, v in values for n in range(6)]).analysis
        for values in ((("a", 0.5), ("b", 0.5)), (("a", 0.5), ("c", 0.4)))
    )

    for analysis, is_shared in ((tied, True), (apart, False)):
        draws = draw_cases(analysis.board, samples=9)
        told = draws_text(bootstrap(analysis.board, draws))
        assert ("share first place in some draws" in told) is is_shared


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("a", "1", "dsc", 0.5)] * 2, "row 0 and row 1 are both a 1 dsc"),
        ([("a", "1", "dsc", 80)], "row 0: dsc is 80.0, above 1; is it percent?"),
        ([("a", "1", "dsc", "0.5")], "row 0: 0.5 is no number"),
        ([("a", "1", "dsc", True)], "row 0: True is no number"),
        ([("a", None, "dsc", 0.5)], "row 0: None is no name"),
        ([("a", 1.5, "dsc", 0.5)], "row 0: 1.5 is no name"),
        ([("a", " ", "dsc", 0.5)], "row 0: the team or the case is empty"),
        ([("a", "1", "mood", 0.5)], "row 0: unknown metric mood, not dsc"),
        ([("a", "1", "dsc", float("inf"))], "row 0: inf: not finite"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_a_table_in_memory_names_the_row(rows, problem):
    error = error_of(RankingError, rank, rows)

    assert error.file == "the DataFrame"
    assert error.problem.startswith(problem)


def test_a_table_in_memory_may_be_wide():
    """As pivot makes it; a column of another kind is no matter."""
    frame = pd.DataFrame({"Team": ["a", "b"], "Case": [1, 1], "DSC": [0.5, None]})

    found = flare.rank(frame.assign(date=pd.NaT), metrics=["dsc"], bootstrap=0)

    assert found.standings["rank"].to_dict() == {"a": 1, "b": 2}


def test_a_table_in_memory_without_a_column():
    with pytest.raises(RankingError, match="has no column case; its"):
        flare.rank(pd.DataFrame({"team": ["a"], "dsc": [1.0]}))


def test_folders_of_teams_are_ranked(tmp_path):
    write_team(tmp_path / "a", {"c1": 0.9}, [("c1", "ok", 5, 9)])
    write_team(tmp_path / "b", {"c1": 0.8}, [("c1", "failed", "", "")])

    found = flare.rank(str(tmp_path), ties="average", bootstrap=0)

    assert found.standings["rank"].to_dict() == {"a": 1, "b": 2}
    assert found.results["reason"].to_dict()["b", "c1", "dsc"] == "status failed"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ties": "best"}, "ties must be 'min' or 'average' or 'max': 'best'"),
        (
            {"missing": "first"},
            "missing must be 'last' or 'worst-plus-one' or 'value' or 'refuse':"
            " 'first'",
        ),
        ({"bootstrap": -1}, "bootstrap must be a whole number (int) from 0 on: -1"),
        ({"seed": 1.5}, "seed must be a whole number (int) from 0 on: 1.5"),
        ({"gate": 2}, "gate must be None or a number from 0 to 1: 2"),
        ({"metrics": "dsc"}, "metrics must be None or a list of names: 'dsc'"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_an_argument_that_is_not_allowed_says_what_is(options, text):
    with pytest.raises(ValueError, match="must be") as caught:
        flare.rank(frame_of(ROWS), **options)

    assert str(caught.value) == text
