"""Values that others have computed, ranked beside ours: RESULTS/TEAM/NAME.csv."""

import csv

import pytest

from flare.challenge.metrics import Better
from flare.challenge.rules import OtherValues
from flare.ranking.rank import rank_results
from flare.ranking.rules import RankingOptions
from flare.reports.paper.files import write_analysis
from flare.results.errors import RankingError
from tests.builders import error_of
from tests.builders.answer_teams import (
    DIAGNOSIS,
    LIVER,
    answer_challenge,
    paired,
    write_answer_team,
)

GREEN = [{"name": "green", "better": "higher"}]
MAPS = answer_challenge(
    ranking={"dsc": "higher", "green": "higher"}, organs=[LIVER], values=GREEN
)
ALONE = answer_challenge(
    DIAGNOSIS,
    ranking={"accuracy_diagnosis": "higher", "green": "higher"},
    values=GREEN,
)
CASES = ("c1", "c2", "c3")


def write_values(folder, *rows):
    lines = ["case,value", *(f"{case},{value}" for case, value in rows)]
    (folder / "green.csv").write_text("\n".join(lines) + "\n")


def write_maps(folder):
    for team, green in (("a", (0.5, 0.25, 0.75)), ("b", (0.25, 0.5, 1.0))):
        write_answer_team(folder / team, MAPS, {}, dict.fromkeys(CASES, 0.9))
        write_values(folder / team, *zip(CASES, green, strict=True))
    return folder


def ranks_of(folder, challenge, metric):
    options = RankingOptions(bootstrap=0)
    standings = rank_results(folder, challenge, options).standings.standings
    return {s.team: float(s.mean_ranks[metric]) for s in standings}


def test_values_of_others_are_ranked_case_by_case(tmp_path):
    """Each team is ahead on some cases: a on c1, b on c2 and c3."""
    ranks = ranks_of(write_maps(tmp_path), MAPS, "green")

    assert ranks == pytest.approx({"a": (1 + 2 + 2) / 3, "b": (2 + 1 + 1) / 3})


def test_a_case_without_a_row_is_a_missing_result(tmp_path):
    write_maps(tmp_path)
    write_values(tmp_path / "b", ("c1", 0.25), ("c3", 1.0))

    analysis = rank_results(tmp_path, MAPS)

    missing = [(m.team, m.case, m.metric, m.reason) for m in analysis.table.missing]
    assert missing == [("b", "c2", "green", "there is no row")]
    assert ranks_of(tmp_path, MAPS, "green")["b"] == pytest.approx((2 + 2 + 1) / 3)


def test_values_that_are_not_ranked_are_shown(tmp_path):
    challenge = answer_challenge(
        ranking={"dsc": "higher"}, organs=[LIVER], values=GREEN
    )
    write_maps(tmp_path / "results")
    (tmp_path / "results" / "b" / "green.csv").unlink()

    write_analysis(rank_results(tmp_path / "results", challenge), tmp_path / "ranking")

    with (tmp_path / "ranking" / "means.csv").open() as file:
        rows = {(r["metric"], r["team"]): r for r in csv.DictReader(file)}
    assert rows["green", "a"]["mean"] == "0.5"
    assert rows["green", "b"]["n"] == "0"
    methods = (tmp_path / "ranking" / "methods.txt").read_text()
    assert "computed by others" not in methods


def test_methods_say_that_others_have_computed_them(tmp_path):
    write_analysis(rank_results(write_maps(tmp_path / "r"), MAPS), tmp_path / "ranking")

    methods = (tmp_path / "ranking" / "methods.txt").read_text()
    assert "Values of green were computed by others." in methods
    assert "memory were measured" not in methods


def test_reports_beside_answers_alone_are_the_cases_of_the_ranking(tmp_path):
    """No answers.csv has them, but both teams; answers still rank by all of theirs."""
    for team, scores in (("a", (0.9, 0.1)), ("b", (0.1, 0.1))):
        answers = {"diagnosis": paired((1, 0), scores)}
        write_answer_team(tmp_path / team, ALONE, answers)
    write_values(tmp_path / "a", ("r1", 0.5), ("r2", 0.5))
    write_values(tmp_path / "b", ("r1", 0.75), ("r2", 0.25))

    analysis = rank_results(tmp_path, ALONE, RankingOptions(bootstrap=0))

    assert analysis.table.cases == ("r1", "r2")
    assert ranks_of(tmp_path, ALONE, "green") == {"a": 1.5, "b": 1.5}
    assert ranks_of(tmp_path, ALONE, "accuracy_diagnosis") == {"a": 1, "b": 2}
    write_values(tmp_path / "b", ("r1", 0.75), ("r3", 0.25))
    with pytest.raises(RankingError, match="r2: nobody else knows such a case"):
        rank_results(tmp_path, ALONE)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (None, "it is not there, and green is ranked"),
        ([("c4", 1)], "c4: nobody else knows such a case"),
        ([("c1", 1), ("c1", 0)], "line 3: c1 is there twice"),
        ([("c1", "nan")], "line 2: the value is empty; leave the row out"),
        ([("c1", "-1")], "line 2: green is -1, negative"),
        ([("c1", "good")], "line 2: good: not a number"),
        ([("c1", "")], "line 2: the value is empty; leave the row out"),
        ([("", "1")], "line 2: the case is empty"),
    ],
    ids=["absent", "stranger", "twice", "nan", "negative", "word", "empty", "no case"],
)
def test_tables_of_others_are_refused(tmp_path, rows, problem):
    write_maps(tmp_path)
    if rows is None:
        (tmp_path / "b" / "green.csv").unlink()
    else:
        write_values(tmp_path / "b", *rows)

    error = error_of(RankingError, rank_results, tmp_path, MAPS)

    assert error.file == str(tmp_path / "b" / "green.csv")
    assert error.problem.startswith(problem)


@pytest.mark.parametrize("name", ["efficiency", "dsc_liver", "auroc_green", "Green"])
def test_columns_of_others_have_names_of_their_own(name):
    with pytest.raises(ValueError, match="name is"):
        OtherValues(name=name, better=Better.HIGHER)


def test_columns_of_others_are_ranked_by_their_good_end():
    with pytest.raises(ValueError, match="the good end of green"):
        answer_challenge(ranking={"green": "lower"}, organs=[LIVER], values=GREEN)
