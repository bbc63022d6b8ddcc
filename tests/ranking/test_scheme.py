"""Rankings that are not FLARE's, by a slow twin and their pages."""

import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

import flare
from flare.challenge.metrics import LEFT_OUT
from flare.challenge.scheme import Ties
from flare.cli.main import main
from flare.ranking.rank import rank_results, rank_teams
from flare.ranking.rules import RankingOptions, rules_of
from flare.ranking.uncertainty import bootstrap, draw_cases
from flare.ranking.written import read_written
from flare.reports.paper.files import analysis_text, write_analysis
from flare.reports.paper.methods import methods_text
from flare.reports.report import Report
from flare.results.errors import GroupsFileError, RankingError
from tests.builders.errors import told
from tests.builders.results import make_table

RANKINGS = Path(__file__).parents[2] / "examples" / "rankings"

MINE = 'extends = "kits23"\nname = "Mine"\n[scheme]\n{}\n'
RANK = '[[ranking]]\nmetric = "{}"\nbetter = "{}"\n'

AUTOPET3 = """
name = "autoPET III"
scheme = {kind = "means", group = "subset", ties_by = ["dsc"]}
organs = [{label = 1, name = "lesion", tolerance_mm = 1}]
values = [{name = "fpv", better = "lower"}, {name = "fnv", better = "lower"}]
ranking = [
  {metric = "dsc", better = "higher", weight = 2},
  {metric = "fpv", better = "lower"}, {metric = "fnv", better = "lower"},
]
"""


def read_text(folder, text):
    """The challenge of a file with this text."""
    file = folder / "mine.toml"
    file.write_text(text)
    return flare.read_challenge(file)


# --- A slow twin ----------------------------------------------------------------------

SCHEMES = {
    "kits23": ("kits23", "A", [("dsc", 1, 1), ("nsd", 1, 1)], ("dsc_tumor", 1)),
    "segrap25": (
        *(RANKINGS / "segrap25.toml", "AB"),
        [(f"{m}_{c}", 1, 1) for m in ("dsc", "nsd") for c in ("gtvp", "gtvnd")], (),
    ),
    "toothfairy3": (
        *(RANKINGS / "toothfairy3.toml", "A"),
        [("dsc_lower_jawbone", 1, 1), ("dsc_upper_jawbone", 1, 1),
         ("hd95_lower_jawbone", -1, 1), ("hd95_upper_jawbone", -1, 1),
         ("runtime_s", -1, 2)],
        ("max_gpu_memory_mb", -1),
    ),
    "autopet3": (
        AUTOPET3, "ABCD", [("dsc", 1, 2), ("fpv", -1, 1), ("fnv", -1, 1)], ("dsc", 1)
    ),
}  # fmt: skip
"""The file; and by the challenge's page: the groups, each ranked column with its good
end and its weight, and what orders teams that are equal."""


def places(scores):
    """The rank of each team by scores, smaller ones better; the last without any."""
    ranks = {t: 1 + sum(s < own for s in scores.values()) for t, own in scores.items()}
    return {t: len(ranks) if scores[t] == math.inf else ranks[t] for t in ranks}


def slow_ranks(name, values, members):
    """Ranks of means in each group, and their sum; `members` are the cases by group."""
    _, _, columns, tie = SCHEMES[name]
    sums, ties = Counter(), Counter()

    def means(cases, column, sign):
        # Rounded, as sums in another order differ in their last bits.
        scores = {}
        for team in {team for team, _, _ in values}:
            own = [values[team, case, column] for case in cases]
            present = [value for value in own if value is not None]
            scores[team] = round(-sign * fmean(present), 11) if present else math.inf
        return scores

    for cases in members.values():
        for column, sign, weight in columns:
            for team, rank in places(means(cases, column, sign)).items():
                sums[team] += weight * rank
        if tie:
            ties.update(means(cases, *tie))
    return places({team: (sums[team], round(ties[team], 10)) for team in sums})


def draw_board(name, folder, seed, cases=9, teams=5):
    """A challenge, its table of coarse values, in which teams often tie, and groups."""
    source, letters, columns, tie = SCHEMES[name]
    read = partial(read_text, folder) if source is AUTOPET3 else flare.read_challenge
    challenge, chance = read(source), random.Random(seed)
    rules = rules_of(challenge)
    groups = {f"c{case}": letters[case % len(letters)] for case in range(cases)}
    names = dict.fromkeys([*(column for column, _, _ in columns), *tie[:1]])
    values = {
        (team, case, column): chance.choice((0.25, 0.5, 0.75, 1.0))
        for column in names
        for team in "abcdefg"[:teams]
        for case in groups
    }
    if source is AUTOPET3:  # a case without lesions has no Dice
        for team, case, column in values:
            is_free = column == "dsc" and int(case[1:]) * (seed + 7) % 4 == 1
            if is_free or (column == "fnv" and chance.random() < 0.2):
                values[team, case, column] = None
    table = make_table(values, reason=LEFT_OUT)
    ranked = tuple(c for c in table.metrics if c in rules.names)
    table = replace(table, metrics=ranked, others=table.metrics[len(ranked) :])
    if challenge.scheme.group:
        table = replace(table, groups=tuple(groups[case] for case in table.cases))
    members = {letter: [c for c in groups if groups[c] == letter] for letter in letters}
    return rules, table, values, members


@pytest.mark.newest
@pytest.mark.parametrize("name", SCHEMES)
def test_200_boards_rank_as_the_rules_say(name, tmp_path):
    has_ties = 0
    for seed in range(200):
        rules, table, values, members = draw_board(name, tmp_path, seed)

        standings = rank_teams(table, rules).standings

        expected = slow_ranks(name, values, members)
        assert {place.team: place.rank for place in standings} == expected, seed
        has_ties += len({place.score for place in standings}) < len(standings)
    assert has_ties > 10


@pytest.mark.newest
@pytest.mark.parametrize("name", SCHEMES)
def test_frequencies_are_those_of_an_independent_simulation(name, tmp_path):
    """Cases are drawn in each group; 0.07 are three standard errors of both shares."""
    rules, table, values, members = draw_board(name, tmp_path, 3, cases=12, teams=3)
    chance, firsts, draws = random.Random(1), Counter(), 1000
    for _ in range(draws):
        drawn = {g: chance.choices(own, k=len(own)) for g, own in members.items()}
        ranks = slow_ranks(name, values, drawn)
        firsts.update(team for team, rank in ranks.items() if rank == 1)
    board = table.board(rules, table.teams)

    result = bootstrap(board, draw_cases(board, samples=draws))

    shares = {team.team: team.frequencies[0] for team in result.teams}
    expected = {team: firsts[team] / draws for team in shares}
    assert shares == pytest.approx(expected, abs=0.07)
    assert max(shares.values()) < 1


# --- What readers are told ---------------------------------------------------------


def rank_example(name, **options):
    """The ranking of an example, as the first lines of its file say."""
    challenge = flare.read_challenge(RANKINGS / f"{name}.toml")
    groups = RANKINGS / f"{name}-cohorts.csv" if challenge.scheme.group else None
    rules = RankingOptions(bootstrap=50, **options)
    return rank_results(RANKINGS / f"{name}.csv", challenge, rules, groups)


def test_teams_that_are_equal_are_ordered_and_prizes_follow():
    """In the example, A and B have the score 0.5; B needs less memory."""
    analysis = rank_example("toothfairy3")

    places = analysis.standings.standings
    assert [(place.team, place.rank, float(place.score)) for place in places] == [
        *(("b", 1, 0.5), ("a", 2, 0.5), ("c", 3, 1.0)),
    ]
    assert "Teams that are equal by all of this share a rank" in analysis_text(analysis)


@pytest.mark.parametrize(
    ("name", "has_mean_ranks"), [("segrap25", True), ("toothfairy3", False)]
)
def test_all_files_tell_the_scheme_and_no_rank_of_a_case(
    name, has_mean_ranks, tmp_path
):
    """A ranking that was written is told again as it was."""
    analysis = rank_example(name)
    (tmp_path / "case_ranks.csv").write_text("of an earlier ranking")

    write_analysis(analysis, tmp_path)

    assert not (tmp_path / "case_ranks.csv").exists()
    text = analysis.rules.scheme_text
    assert text.startswith("Teams are ranked by the means of")
    files = "methods.txt", "report.txt", "ranking.md", "ranking.tex", "sheets/a.md"
    for file in files:
        content = (tmp_path / file).read_text().replace("\\_", "_")
        assert text in content, file
        is_table = file != "methods.txt"
        assert ("mean rank" in content.lower()) == (has_mean_ranks and is_table), file
    assert "| rank |" not in content
    written = read_written(tmp_path)
    assert analysis_text(written) == analysis_text(analysis)
    assert written.rules == analysis.rules
    for audience in ("organiser", "participant"):
        page = tmp_path / f"{audience}.html"
        Report(sources=(tmp_path,), output=page, audience=audience).write()
        assert text in page.read_text()
        assert ("mean rank" in page.read_text()) == has_mean_ranks


def test_one_rank_is_no_mean():
    text = methods_text(rank_example("toothfairy3", metrics=("runtime_s",)))

    assert "Teams are ranked by the means of all cases; teams that are equal" in text
    assert "A team's score is its rank, divided by the number of teams. " in text


def test_a_missing_result_of_unknown_value_leaves_no_mean(tmp_path):
    """A missing DSC is 0; of a time nobody knows: A is last by it, in each draw."""
    keys = [(team, f"{n}") for team in "abc" for n in range(8)]
    values = {(*key, "dsc"): 0.5 for key in keys}
    values |= {(*key, "runtime_s"): 9.0 for key in keys}
    values["a", "0", "dsc"] = values["a", "0", "runtime_s"] = None
    text = MINE.format("ties_by = []") + RANK.format("dsc", "higher")
    rules = rules_of(read_text(tmp_path, text + RANK.format("runtime_s", "lower")))
    board = make_table(values).board(rules, "abc")

    assert board.ranked[:, 0].tolist()[0][0] == -0.4375  # 7 x 0.5 / 8
    assert board.doubled_ranks[:, 0, 1].tolist() == [6, 2, 2]
    draws = draw_cases(board, samples=50)
    assert np.isnan(draws.values[0, :, 0, 1]).all()
    assert bootstrap(board, draws).teams[0].frequencies == (0, 0, 1)


@pytest.mark.parametrize(
    ("groups", "place", "word"),
    [
        (None, ("G06", "segrap25"), "--groups groups.csv"),
        ("case,centre\ncase_01,A\n", ("G07", "g.csv"), "no column cohort"),
        ("case,cohort\ncase_01,A\n", ("G07", "g.csv"), "no cohort of case case_02"),
    ],
)
def test_groups_that_do_not_tell_each_group_are_refused(tmp_path, groups, place, word):
    file = None
    if groups:
        file = tmp_path / "g.csv"
        file.write_text(groups)
    challenge = flare.read_challenge(RANKINGS / "segrap25.toml")

    with pytest.raises((RankingError, GroupsFileError), match=word) as error:
        rank_results(RANKINGS / "segrap25.csv", challenge, None, file)

    code, name = told(error.value)
    assert (code, Path(name).name) == place


def test_what_a_scheme_cannot_do_is_refused(tmp_path, capfd):
    """Ties by what no team has, a gate for means, and groups that nothing needs."""
    challenge = flare.read_challenge(RANKINGS / "toothfairy3.toml")
    table = tmp_path / "v.csv"
    lines = (RANKINGS / "toothfairy3.csv").read_text().splitlines()
    table.write_text("\n".join(line.rpartition(",")[0] for line in lines))

    with pytest.raises(RankingError, match="no team has a value of max_gpu_memory_mb"):
        rank_results(table, challenge)
    rules = rules_of(challenge, left_out=("runtime_s", "max_gpu_memory_mb"))
    assert rules.scheme_text.endswith(
        "mean of these ranks. No case has ranks of its own."
    )
    with pytest.raises(RankingError, match="--gate"):
        rules_of(challenge, RankingOptions(gate=0.5))
    command = ["rank", str(table), "--output", str(tmp_path), "--groups", str(table)]
    assert main(command) == 1
    assert told(capfd.readouterr().err) == ("G06", "flare21")


def test_the_commands_ties_win(tmp_path):
    """[scheme] says average; --ties is for a look at another rule."""
    challenge = read_text(tmp_path, MINE.format('ties = "average"'))

    assert rules_of(challenge).ties is Ties.AVERAGE
    assert rules_of(challenge, RankingOptions(ties=Ties.MIN)).ties is Ties.MIN


def test_each_organ_has_a_rank_on_each_case(tmp_path):
    """As BraTS has it: A is better by one organ on two cases, B by another on one."""
    text = MINE.format('kind = "cases"\neach_organ = true\nties_by = []')
    rules = rules_of(read_text(tmp_path, text))
    organs = ("kidney_and_mass", "mass", "tumor")
    names = [f"{metric}_{organ}" for metric in ("dsc", "nsd") for organ in organs]
    assert list(rules.names) == names
    values = {(team, case, name): 0 for team in "ab" for case in "12" for name in names}
    values |= dict.fromkeys([("a", "1", "dsc_mass"), ("a", "2", "dsc_mass")], 1)
    values["b", "1", "nsd_tumor"] = 1

    standings = rank_teams(make_table(values), rules).standings

    # Of 12 ranks, A has one second place, and B has two.
    assert {p.team: p.score for p in standings} == {
        "a": Fraction(13, 24),
        "b": Fraction(14, 24),
    }
