"""What the organisers decide: what it changes, and what is refused."""

from fractions import Fraction

import pytest

from flare.ranking.decisions import apply_decisions, read_decisions
from flare.ranking.rank import rank_teams
from flare.ranking.rules import RankingRules
from flare.ranking.table import read_results
from flare.results.errors import RankingError
from tests.builders import error_of
from tests.builders.results import DSC, FLARE21, ROWS, ranked, write_table

WHY = 'reason = "so"\ndate = "2026-01-01"\n'


def decision(kind, **fields):
    lines = "".join(f'{key} = "{value}"\n' for key, value in fields.items())
    return f"[[{kind}]]\n{lines}{WHY}"


def lines_of(folder, text):
    (folder / "decisions.toml").write_text(text)
    return read_decisions(folder / "decisions.toml").lines


def decided(folder, text, rows=ROWS, metrics=("dsc",)):
    (folder / "decisions.toml").write_text(text)
    table = read_results(
        write_table(folder / "results.csv", rows), ranked(*metrics), FLARE21
    )
    decisions = read_decisions(folder / "decisions.toml")
    table = apply_decisions(table, decisions, "decisions.toml")
    found = rank_teams(table, RankingRules(metrics=(DSC,)), decisions.guests)
    return {s.team: (s.rank, s.score) for s in found.standings}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a has the ranks 1 1 3, b 2 2 2, c 3 3 1: 5, 6 and 7, over 3 cases and 3 teams.
        ("", {"a": (1, Fraction(5, 9)), "b": (2, Fraction(6, 9)),
              "c": (3, Fraction(7, 9))}),
        # Of cases 1 and 3 a has the ranks 1 3, b 2 2, c 3 1: all tie at 4 / 2 / 3.
        (decision("withdrawn", case="2"), dict.fromkeys("abc", (1, Fraction(2, 3)))),
        # Without c, a has 1 1 2 and b 2 2 1: 4 and 5, over 3 cases and 2 teams.
        (decision("disqualified", team="c"),
         {"a": (1, Fraction(4, 6)), "b": (2, Fraction(5, 6))}),
        # As without b, a and c: 1 1 2 and 2 2 1. Among both b has 2 2 2: 6 / 3 / 2.
        (decision("out_of_competition", team="b"),
         {"a": (1, Fraction(4, 6)), "c": (2, Fraction(5, 6)),
          "b": (None, Fraction(6, 6))}),
    ],
    ids=["none", "withdrawn", "disqualified", "guest"],
)  # fmt: skip
def test_decisions_change_the_ranks(tmp_path, text, expected):
    assert decided(tmp_path, text) == expected


def test_decisions_are_lines_that_no_reason_can_forge(tmp_path):
    """A date may be one of TOML."""
    text = '[[withdrawn]]\ncase = "1"\nreason = "so\\nrank 1"\ndate = 2026-11-21\n'
    text += decision("disqualified", team="c")
    text += decision("out_of_competition", team="b")

    assert lines_of(tmp_path, text + decision("names", team="a", name="Alpha")) == (
        "Withdrawn: case 1: so\\nrank 1 (2026-11-21)",
        "Disqualified: c: so (2026-01-01)",
        "Out of competition: b: so (2026-01-01)",
        "Shown as Alpha: a: so (2026-01-01)",
    )


def test_a_decision_about_a_name_that_is_nearly_right(tmp_path):
    rows = [("team_a", f"thx_000{n}", "dsc", 0.5) for n in range(1, 6)]
    for text, near in (
        (decision("withdrawn", case="thx_004"), "thx_0004"),
        (decision("disqualified", team="teama"), "team_a"),
    ):
        with pytest.raises(RankingError, match=rf"\(did you mean {near}\?\)"):
            decided(tmp_path, text, rows)


def test_a_metric_of_which_nothing_is_left_after_decisions(tmp_path):
    rows = [*ROWS, ("c", "1", "runtime_s", 5)]

    with pytest.raises(RankingError, match="no value of runtime_s is left"):
        decided(
            tmp_path, decision("disqualified", team="c"), rows, ("dsc", "runtime_s")
        )


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    """First what the file itself has wrong, then what is not among the results."""
    text = "[[withdrawal]]\n" + '[[names]]\nteam = "a"\nreason = " "\ndate = "1"\n'
    text += '[[withdrawn]]\ncase = 1\nreason = "so"\n'
    names = decision("withdrawn", case="9") + decision("disqualified", team="x")
    texts = []
    for each in (text, names + decision("names", team="y", name="z")):
        error = error_of(RankingError, decided, tmp_path, each)
        texts.append(set(error.problem.split("; ")))

    assert texts == [
        {
            "withdrawal is an unknown key (did you mean withdrawn?)",
            "withdrawn[1].date is missing",
            "withdrawn[1].case is 1, expected a text in quotes",
            "names[1].name is missing",
        },
        {
            "there is no case 9, expected 1, 2, 3",
            "there is no team x, expected a, b, c",
            "there is no team y, expected a, b, c",
        },
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (decision("names", team="a", name="b"), "two teams are shown by one name"),
        (decision("names", team="a", name="B"), "two teams are shown by one name"),
        (decision("names", team="a", name="\uff43"), "two teams are shown by one name"),
        (
            decision("names", team="a", name="x\\u00ad"),
            "team 'x\\xad' has characters that cannot be seen",
        ),
        (
            "".join(decision("out_of_competition", team=team) for team in "abc"),
            "no case, or no team, is left",
        ),
        (
            decision("disqualified", team="a")
            + decision("out_of_competition", team="a"),
            "2 decisions are about team a",
        ),
        (
            "".join(decision("withdrawn", case=case) for case in "123"),
            "no case, or no team, is left",
        ),
        (
            '[[withdrawn]]\ncase = "1"\nreason = " "\ndate = "1"',
            "withdrawn[1].reason is ' ', expected a text",
        ),
        ("[", "Invalid"),
    ],
)
def test_a_decision_that_cannot_be_is_refused(tmp_path, text, problem):
    assert problem in str(error_of(RankingError, decided, tmp_path, text))
