"""Teams ranked by values of answers, which are those of all cases together."""

import csv
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from flare.ranking.rank import rank_results
from flare.ranking.rules import RankingOptions
from flare.ranking.written import read_written
from flare.reports.model import Table
from flare.reports.paper.files import write_analysis
from flare.reports.ranking_pages import ranking_pages
from flare.results.errors import RankingError
from tests.answers.oracles import brute_force_c_index
from tests.builders import error_of, write_file
from tests.builders.answer_teams import (
    DIAGNOSIS,
    LIVER,
    SURVIVAL,
    answer_challenge,
    paired,
    write_answer_team,
)

AUROC = answer_challenge(DIAGNOSIS, ranking={"auroc_diagnosis": "higher"})
BOTH = answer_challenge(
    DIAGNOSIS,
    SURVIVAL,
    ranking={"auroc_diagnosis": "higher", "c_index_survival": "higher"},
)
WITH_MAPS = answer_challenge(
    DIAGNOSIS,
    ranking={"dsc": "higher", "auroc_diagnosis": "higher"},
    organs=[LIVER],
)

CLASSES = (1, 1, 1, 0, 0, 0, 0)
SCORES = {
    "a": (0.9, 0.8, 0.3, 0.2, 0.1, 0.4, 0.15),
    "b": (0.9, 0.2, 0.3, 0.25, 0.1, 0.4, 0.15),
    "c": (0.1, 0.2, 0.3, 0.25, 0.6, 0.4, 0.35),
}
"""AUROC by pairs: a 11 of 12 are in order, b 4 + 2 + 3 = 9, c 0 + 0 + 1 = 1 (0.3 is
above 0.25 alone)."""

TIMES = (5.0, 1.0, 3.0, 2.0, 4.0)
PREDICTED = {
    "a": (4.0, 1.0, 3.0, 5.0, 2.0),
    "b": (5.0, 1.0, 3.0, 2.0, 4.0),
    "c": (1.0, 2.0, 2.0, 3.0, 4.0),
}


def write_teams(folder, challenge, dsc=None):
    for team, scores in SCORES.items():
        answers = {
            "diagnosis": paired(CLASSES, scores),
            "survival": paired(TIMES, PREDICTED[team], "q"),
        }
        maps = dsc and paired_dsc(dsc[team])
        write_answer_team(folder / team, challenge, answers, maps)
    return folder


def paired_dsc(values):
    return {f"c{number}": value for number, value in enumerate(values, start=1)}


def problem_of(folder, challenge):
    with pytest.raises(RankingError) as caught:
        rank_results(folder, challenge, RankingOptions(bootstrap=0))
    file = caught.value.file.removeprefix(str(folder))
    return f"{file}: {caught.value.problem}"


# --- Ranks ------------------------------------------------------------------------


def test_teams_are_ranked_by_the_value_of_all_cases(tmp_path):
    analysis = rank_results(write_teams(tmp_path, AUROC), AUROC)

    values = analysis.table.cube("value", ["a", "b", "c"], ["auroc_diagnosis"])
    assert np.allclose(values[:, :, 0].T, [11 / 12, 9 / 12, 1 / 12], rtol=0, atol=1e-15)
    assert [(s.team, s.rank) for s in analysis.standings.standings] == [
        ("a", 1), ("b", 2), ("c", 3),
    ]  # fmt: skip


def test_a_metric_of_answers_has_the_weight_of_one_metric(tmp_path):
    """DSC is ranked case by case, as ever: c first on 4 of 7 cases, a on 3.

    By DSC c has the mean rank (4 * 1 + 3 * 2) / 7 = 10 / 7, a (3 * 1 + 4 * 3) / 7 =
    15 / 7, b (4 * 2 + 3 * 3) / 7 = 17 / 7. By AUROC a, b, c have 1, 2, 3.
    """
    dsc = {
        "a": (0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1),
        "b": (0.7, 0.7, 0.7, 0.2, 0.2, 0.2, 0.2),
        "c": (0.8, 0.8, 0.8, 0.3, 0.3, 0.3, 0.3),
    }

    analysis = rank_results(write_teams(tmp_path, WITH_MAPS, dsc), WITH_MAPS)

    # The mean of both mean ranks, divided by three teams.
    scores = {s.team: float(s.score) for s in analysis.standings.standings}
    assert scores == pytest.approx(
        {
            "a": (15 / 7 + 1) / 2 / 3,
            "b": (17 / 7 + 2) / 2 / 3,
            "c": (10 / 7 + 3) / 2 / 3,
        }
    )


def test_efficiency_is_ranked_by_case_beside_answers_alone(tmp_path):
    keys = {"auroc_diagnosis": "higher", "runtime_s": "lower"}
    challenge = answer_challenge(DIAGNOSIS, ranking=keys)
    write_teams(tmp_path, challenge)
    for team, seconds in (("a", 30), ("b", 20), ("c", 10)):
        lines = [f"c{number},ok,{seconds}" for number in range(1, 8)]
        text = "\n".join(["case,status,runtime_s", *lines])
        (tmp_path / team / "efficiency.csv").write_text(f"{text}\n")
    (tmp_path / "c" / "efficiency.csv").write_text(
        (tmp_path / "c" / "efficiency.csv")
        .read_text()
        .replace("c7,ok,10", "c7,failed,")
    )

    analysis = rank_results(tmp_path, challenge)

    ranks = {s.team: s.mean_ranks for s in analysis.standings.standings}
    assert {team: ranks[team]["auroc_diagnosis"] for team in ranks} == {
        "a": 1, "b": 2, "c": 3,
    }  # fmt: skip
    assert float(ranks["c"]["runtime_s"]) == pytest.approx((6 * 1 + 3) / 7)
    # The run that failed has no time; its answer counts in the value of all.
    missing = [(m.team, m.case, m.metric) for m in analysis.table.missing]
    assert missing == [("c", "c7", "runtime_s")]


def test_equal_values_are_no_copies(tmp_path):
    """One value stands in all cases: that is no evidence of equal submissions."""
    for team in "ab":
        answers = {"diagnosis": paired(CLASSES, SCORES["b"])}
        write_answer_team(tmp_path / team, AUROC, answers)

    analysis = rank_results(tmp_path, AUROC)

    assert analysis.table.roll.equal_results == ()
    assert [s.rank for s in analysis.standings.standings] == [1, 1]


def test_equal_values_of_other_sums_share_a_rank(tmp_path):
    """In binary fractions, 0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1."""
    age = {"name": "age", "kind": "number", "file": "a.csv", "worst": 9}
    age |= {"metrics": ["mean_absolute_error"]}
    challenge = answer_challenge(age, ranking={"mean_absolute_error_age": "lower"})
    for team, errors in (("a", (0.1, 0.2, 0.3)), ("b", (0.3, 0.2, 0.1))):
        answers = {"age": paired((0, 0, 0), errors)}
        write_answer_team(tmp_path / team, challenge, answers)

    analysis = rank_results(tmp_path, challenge)

    assert analysis.table.values[0, 0, 0] != analysis.table.values[1, 0, 0]
    assert [s.rank for s in analysis.standings.standings] == [1, 1]


# --- Refusals ---------------------------------------------------------------------


def test_a_rounded_metrics_json_agrees_with_answers_csv(tmp_path):
    write_teams(tmp_path, AUROC)
    for team in "abc":
        file = tmp_path / team / "metrics.json"
        content = json.loads(file.read_text())
        content["evaluation"]["options"] = {"decimals": "2"}
        values = content["aggregates"]
        content["aggregates"] = {key: round(values[key], 2) for key in values}
        file.write_text(json.dumps(content))

    analysis = rank_results(tmp_path, AUROC)

    assert analysis.table.values[0, 0, 0] == pytest.approx(11 / 12, abs=1e-15)


NOT_THOSE = "its references of diagnosis are not those of a"


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"),
    [
        ("answers.csv", "c2,1,", "c2,0,", NOT_THOSE),
        ("answers.csv", "c2,1,", "c8,1,", NOT_THOSE),
        ("answers.csv", "0.2,", "much,", "an answer to diagnosis is not a number"),
        ("answers.csv", "c2,1,", "c1,1,", "it has two answers to diagnosis for c1"),
        ("answers.csv", "diagnosis,", "guess,", "it has no answer to diagnosis"),
        # c2 is now above 0.25, 0.1 and 0.15, no more than before: it was above 0.1 and
        # 0.15, so that 10 of 12 pairs are in order.
        (
            *("answers.csv", "c2,1,0.2,", "c2,1,0.35,"),
            "it gives auroc_diagnosis 0.8333333333, metrics.json has 0.75",
        ),
        (
            *("metrics.json", "auroc_diagnosis", "auprc_diagnosis"),
            "it has no auroc_diagnosis, which is",
        ),
    ],
    ids=["reference", "case", "value", "twice", "none", "another value", "no value"],
)
def test_answers_of_another_evaluation_are_refused(
    tmp_path, name, before, after, problem
):
    write_teams(tmp_path, AUROC)
    file = tmp_path / "b" / name
    file.write_text(file.read_text().replace(before, after))

    assert problem_of(tmp_path, AUROC).startswith(f"/b/{name}: {problem}")


def test_a_team_without_answers_is_refused(tmp_path):
    write_teams(tmp_path, AUROC)
    (tmp_path / "c" / "answers.csv").unlink()

    problem = problem_of(tmp_path, AUROC)

    assert problem.startswith("/c/answers.csv: it is not there, and values of answers")


def test_a_table_has_no_values_of_all_cases(tmp_path):
    table = tmp_path / "values.csv"
    table.write_text("team,case,metric,value\na,c1,auroc_diagnosis,0.5\n")

    assert problem_of(table, AUROC) == (
        ": auroc_diagnosis is of all cases together, which no table has"
    )


# --- Draws ------------------------------------------------------------------------


def slow_auroc(classes, scores):
    """The share of pairs in order, ties half."""
    pairs = [
        (scores[i] > scores[j]) + (scores[i] == scores[j]) / 2
        for i, j in itertools.product(range(len(classes)), repeat=2)
        if classes[i] == 1 and classes[j] == 0
    ]
    return sum(pairs) / len(pairs)


def slow_aurocs(cases):
    """The AUROC of each team on some cases; nothing with one class."""
    classes = [CLASSES[case] for case in cases]
    if len({*classes}) < 2:
        return {}
    return {
        team: slow_auroc(classes, [scores[case] for case in cases])
        for team, scores in SCORES.items()
    }


def slow_c_indices(questions):
    """The C-index of each team on some questions."""
    times = [TIMES[question] for question in questions]
    return {
        team: brute_force_c_index(times, [answers[question] for question in questions])
        for team, answers in PREDICTED.items()
    }


def slow_draws(samples, seed):
    """Both values of all teams in each draw, as the documentation has it.

    The cases of the ranking are the 7 images and 5 questions, drawn first; then 7
    images and then 5 questions, by themselves.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    generator.integers(0, 12, size=(samples, 12))
    images = generator.integers(0, 7, size=(samples, 7))
    questions = generator.integers(0, 5, size=(samples, 5))
    for cases, asked in zip(images.tolist(), questions.tolist(), strict=True):
        yield slow_aurocs(cases), slow_c_indices(asked)


def slow_ranks(values):
    """Ranks of teams, ties sharing the best; higher is better."""
    return {
        team: 1 + sum(round(other, 12) > round(value, 12) for other in values.values())
        for team, value in values.items()
    }


def test_draws_make_values_anew(tmp_path):
    """1,000 draws of images and of questions, each value from its definition."""
    frequencies = {team: [0, 0, 0] for team in "abc"}
    draws = [values for values in slow_draws(1000, 2021) if values[0]]
    for aurocs, c_indices in draws:
        first, second = slow_ranks(aurocs), slow_ranks(c_indices)
        sums = {team: -(first[team] + second[team]) for team in "abc"}
        for team, rank in slow_ranks(sums).items():
            frequencies[team][rank - 1] += 1

    bootstrap = rank_results(write_teams(tmp_path, BOTH), BOTH).bootstrap

    # 1 of 57 draws has one class alone: (3 / 7)^7 + (4 / 7)^7 = 0.0226.
    assert bootstrap.left_out == 1000 - len(draws)
    assert 10 < bootstrap.left_out < 40
    for team in bootstrap.teams:
        numbers = frequencies[team.team]
        assert team.frequencies == tuple(number / len(draws) for number in numbers)


def test_p_is_the_share_of_draws_in_which_a_team_is_not_better(tmp_path):
    draws = list(slow_draws(1000, 2021))
    defined = [aurocs for aurocs, _ in draws if aurocs]
    better = sum(values["a"] > values["b"] for values in defined)
    worse = sum(values["a"] < values["b"] for values in defined)
    c_index_better = sum(values["b"] > values["a"] for _, values in draws)

    tests = rank_results(write_teams(tmp_path, BOTH), BOTH).tests

    by_pair = {(t.metric, t.team, t.other): t for t in tests}
    test = by_pair["auroc_diagnosis", "a", "b"]
    assert test.p == pytest.approx(1 - better / len(defined), abs=1e-15)
    assert test.effect == pytest.approx((better - worse) / len(defined), abs=1e-15)
    assert (test.cases, test.zeros) == (better + worse, len(defined) - better - worse)
    # No value of C-index is undefined, so that all draws count.
    test = by_pair["c_index_survival", "b", "a"]
    assert test.p == pytest.approx(1 - c_index_better / 1000, abs=1e-15)
    assert test.cases + test.zeros == 1000


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_answers_to_the_cases_of_the_ranking_are_drawn_with_them(tmp_path, weight):
    """DSC and AUROC of a draw are of the same patients, and weights count."""
    rule, auroc = WITH_MAPS.ranking
    challenge = replace(WITH_MAPS, ranking=(replace(rule, weight=weight), auroc))
    dsc = {
        "a": (0.9, 0.2, 0.9, 0.2, 0.9, 0.2, 0.9),
        "b": (0.8, 0.3, 0.8, 0.3, 0.8, 0.3, 0.8),
        "c": (0.7, 0.4, 0.7, 0.4, 0.7, 0.4, 0.7),
    }
    generator = np.random.Generator(np.random.PCG64(5))
    firsts = dict.fromkeys("abc", 0)
    count = 0
    for cases in generator.integers(0, 7, size=(200, 7)).tolist():
        aurocs = slow_aurocs(cases)
        if not aurocs:
            continue
        count += 1
        sums = dict.fromkeys("abc", 0)
        for case in cases:
            ranks = slow_ranks({team: dsc[team][case] for team in "abc"})
            for team in "abc":
                sums[team] -= weight * ranks[team] + slow_ranks(aurocs)[team]
        for team, rank in slow_ranks(sums).items():
            firsts[team] += rank == 1

    write_teams(tmp_path, challenge, dsc)
    options = RankingOptions(bootstrap=200, seed=5)
    bootstrap = rank_results(tmp_path, challenge, options).bootstrap

    found = {team.team: team.frequencies[0] for team in bootstrap.teams}
    assert found == {team: firsts[team] / count for team in "abc"}
    assert bootstrap.left_out == 200 - count


def test_draws_without_any_value_are_refused(tmp_path):
    """Of two cases, one draw in two is of one class; this seed's first one is."""
    for team in "ab":
        answers = {"diagnosis": paired((1, 0), (0.9, 0.1))}
        write_answer_team(tmp_path / team, AUROC, answers)
    seeds = range(20)
    same = [
        len(set(np.random.Generator(np.random.PCG64(seed)).integers(0, 2, 2))) == 1
        for seed in seeds
    ]
    options = RankingOptions(bootstrap=1, seed=same.index(True))

    assert str(error_of(RankingError, rank_results, tmp_path, AUROC, options)) == (
        "The bootstrap: no draw leaves auroc_diagnosis defined. Rank with --bootstrap"
        " 0. [G06]"
    )


# --- Decisions --------------------------------------------------------------------


def decide(folder, *tables):
    file = folder / "decisions.toml"
    reason = 'reason = "wrong reference"\ndate = "2026-01-01"\n'
    file.write_text("".join(f"{table}\n{reason}" for table in tables))
    return file


def test_a_withdrawn_case_makes_values_anew(tmp_path):
    """Without c3, the positives of b are 0.9 (4 of 4) and 0.2 (2 of 4): 6 of 8."""
    write_teams(tmp_path / "results", AUROC)
    file = decide(
        tmp_path,
        '[[withdrawn]]\ncase = "c3"',
        '[[names]]\nteam = "a"\nname = "Zebra"',
        '[[disqualified]]\nteam = "c"',
    )

    options = RankingOptions(decisions=file)
    analysis = rank_results(tmp_path / "results", AUROC, options)

    assert analysis.table.teams == ("Zebra", "b")
    assert analysis.table.values[:, :, 0].tolist() == [[1] * 6, [6 / 8] * 6]
    assert [s.team for s in analysis.standings.standings] == ["Zebra", "b"]


def test_a_question_can_be_withdrawn_beside_label_maps(tmp_path):
    keys = {"dsc": "higher", "c_index_survival": "higher"}
    challenge = answer_challenge(DIAGNOSIS, SURVIVAL, ranking=keys, organs=[LIVER])
    write_teams(tmp_path / "results", challenge, dict.fromkeys("abc", (0.5, 0.6)))
    file = decide(tmp_path, '[[withdrawn]]\ncase = "q4"')

    options = RankingOptions(decisions=file)
    analysis = rank_results(tmp_path / "results", challenge, options)

    # Without q4, times 5 1 3 4 and a's 4 1 3 2: (5, 4) is 4 > 2, (3, 4) is wrong.
    values = analysis.table.cube("value", ["a"], ["c_index_survival"])
    assert values.ravel().tolist() == [5 / 6, 5 / 6]
    assert analysis.table.cases == ("c1", "c2")


def test_cases_without_which_no_value_is_left_are_refused(tmp_path):
    write_teams(tmp_path / "results", AUROC)
    tables = [f'[[withdrawn]]\ncase = "c{number}"' for number in (1, 2, 3)]
    options = RankingOptions(decisions=decide(tmp_path, *tables))

    with pytest.raises(RankingError, match="no value of auroc_diagnosis is left"):
        rank_results(tmp_path / "results", AUROC, options)


# --- What is said -----------------------------------------------------------------


def test_schemes_over_cases_are_left_out_where_all_metrics_are_of_answers(tmp_path):
    dsc = dict.fromkeys("abc", (0.5,) * 7)
    write_teams(tmp_path / "alone", AUROC)
    write_teams(tmp_path / "maps", WITH_MAPS, dsc)
    over_cases = {
        "rank, then median",
        "mean of values, then rank",
        "median of values, then rank",
    }

    alone = rank_results(tmp_path / "alone", AUROC)
    maps = rank_results(tmp_path / "maps", WITH_MAPS)

    assert not over_cases & {scheme.name for scheme in alone.schemes}
    assert over_cases <= {scheme.name for scheme in maps.schemes}
    assert alone.sensitivity[0].withdrawals == ()
    assert alone.sensitivity[0].alternatives["mean or median of ranks"] == 1


def test_a_ranking_that_was_written_is_read_without_answers(tmp_path):
    """Its folder tells nothing of a single answer, and has all of the draws."""
    write_teams(tmp_path / "results", BOTH)
    analysis = rank_results(tmp_path / "results", BOTH)
    folder = tmp_path / "ranking"
    write_analysis(analysis, folder)

    written = read_written(folder)

    assert written.bootstrap == analysis.bootstrap
    assert written.tests == analysis.tests
    assert written.schemes == analysis.schemes
    content = json.loads((folder / "ranking.json").read_text())
    assert content["settings"]["of_all_cases"] == [rule.metric for rule in BOTH.ranking]
    with (folder / "values.csv").open() as file:
        values = {(row["team"], row["value"]) for row in csv.DictReader(file)}
    assert len(values) == 6  # one value a team and metric, and none of a case


def test_files_say_what_was_done_with_answers(tmp_path):
    write_teams(tmp_path / "results", AUROC)
    analysis = rank_results(tmp_path / "results", AUROC)
    write_analysis(analysis, tmp_path)

    report = (tmp_path / "report.txt").read_text()
    methods = (tmp_path / "methods.txt").read_text()
    left_out = analysis.bootstrap.left_out
    assert "AUROC of diagnosis: one value of all cases together" in report
    assert f"{left_out} of the draws are left out" in report
    assert "each case changes AUROC of diagnosis" in report
    assert "p is the share of draws in which it is not better" in report
    assert f"leave a value undefined: {left_out}." in methods
    assert "p is the share of the bootstrap samples in which" in methods
    assert "AUROC of diagnosis is the area under the ROC curve" in methods
    assert "Wilcoxon" not in report + methods
    assert "Dice" not in methods
    with (tmp_path / "means.csv").open() as file:
        rows = {row["team"]: row for row in csv.DictReader(file)}
    assert (rows["b"]["n"], rows["b"]["mean"], rows["b"]["sd"]) == ("1", "0.75", "")
    sheet = (tmp_path / "sheets" / "b.md").read_text()
    assert "AUROC of diagnosis of all cases together: 0.750, rank 2." in sheet
    assert "c1" not in sheet


def test_no_share_of_draws_is_told_to_be_nothing(tmp_path):
    """B is better in all draws: p is below one in a thousand, and not 0."""
    challenge = answer_challenge(SURVIVAL, ranking={"c_index_survival": "higher"})
    times = [float(number) for number in range(30)]
    for team, sign in (("a", -1), ("b", 1)):
        answers = {"survival": paired(times, [sign * time for time in times])}
        write_answer_team(tmp_path / "results" / team, challenge, answers)

    write_analysis(rank_results(tmp_path / "results", challenge), tmp_path)

    assert "b > a  +1.00 p<0.001*" in (tmp_path / "report.txt").read_text()


@pytest.mark.parametrize("is_organiser", [True, False])
def test_pages_have_one_value_of_all_cases(tmp_path, is_organiser):
    dsc = dict.fromkeys("abc", (0.9, 0.8))
    write_teams(tmp_path / "results", WITH_MAPS, dsc)
    groups = write_file(tmp_path / "groups.csv", "case,centre\nc1,x\nc2,y\n")
    write_analysis(rank_results(tmp_path / "results", WITH_MAPS), tmp_path / "ranking")

    pages = dict(
        ranking_pages(
            tmp_path / "ranking",
            RankingOptions(),
            is_written=True,
            is_organiser=is_organiser,
            has_teams=True,
            groups=groups,
        )
    )

    tables = []
    for page in pages.values():
        for section in page.shown:
            tables += [part for part in section.parts if isinstance(part, Table)]
    of_cases = [table for table in tables if table.heads[0] == "case"]
    assert len(of_cases) == 3
    assert not any("AUROC" in head for table in of_cases for head in table.heads)
    groups = [s for s in pages["index.html"].shown if s.id == "groups"]
    assert groups[0].parts[1].text == (
        "Not told. AUROC of diagnosis: one value of all cases together, and one rank"
        " by it."
    )
    values = [table for table in tables if table.caption.startswith("Values of all")]
    assert len(values) == is_organiser
