"""Names that look alike, or that nobody can see the whole of, are refused."""

import csv
import unicodedata

import pytest

from flare.ranking.table import read_results
from flare.results.errors import RankingError
from flare.results.team_folder import _LIKE_LATIN, check_names
from tests.builders.results import ranked


def problem_of(*names, kind="team"):
    """Why the names are refused."""
    with pytest.raises(RankingError) as caught:
        check_names("results.csv", kind, names)
    return caught.value.problem


@pytest.mark.parametrize(
    ("char", "called"),
    [
        ("\u200b", "U+200B ZERO WIDTH SPACE"),
        ("\u00ad", "U+00AD SOFT HYPHEN"),
        ("\u0000", "U+0000"),
        ("\n", "U+000A"),
        ("\u001b", "U+001B"),
        ("\u202e", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\ufeff", "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
        ("\u2028", "U+2028 LINE SEPARATOR"),
        ("\udcff", "U+DCFF"),
        ("\U000e0041", "U+E0041 TAG LATIN CAPITAL LETTER A"),
    ],
)
def test_characters_that_cannot_be_seen(char, called):
    """By themselves, whatever the other names are."""
    escaped = char.encode("unicode_escape").decode()

    assert problem_of(f"te{char}am") == (
        f"team te{escaped}am has {called}, which cannot be seen"
    )


@pytest.mark.parametrize(
    ("char", "called"),
    [
        ("\u034f", "U+034F COMBINING GRAPHEME JOINER"),
        ("\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("\u3164", "U+3164 HANGUL FILLER"),
        ("\u2800", "U+2800 BRAILLE PATTERN BLANK"),
    ],
)
def test_letters_and_marks_that_show_nothing(char, called):
    """Python would print these as they are."""
    assert problem_of(f"te{char}am", kind="case") == (
        f"case te{char}am has {called}, which cannot be seen"
    )


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            ("team_a", "team_\u0430"),
            "teams team_a, team_\\u0430 look alike: \\u0430 is U+0430 CYRILLIC SMALL"
            " LETTER A",
        ),
        (
            ("TEAM", "te\u0430m"),
            "teams TEAM, te\\u0430m look alike: \\u0430 is U+0430 CYRILLIC SMALL"
            " LETTER A",
        ),
        (
            ("\u039f\u03a1", "op"),
            "teams \\u039f\\u03a1, op look alike: \\u039f is U+039F GREEK CAPITAL"
            " LETTER OMICRON, \\u03a1 is U+03A1 GREEK CAPITAL LETTER RHO",
        ),
        (
            ("No\u00ebl", "No\u0451l"),
            "teams No\u00ebl, No\\u0451l look alike: \\u0451 is U+0451 CYRILLIC SMALL"
            " LETTER IO",
        ),
    ],
    ids=["cyrillic", "in capitals", "greek", "with a mark"],
)
def test_names_that_look_alike_across_scripts(names, problem):
    assert problem_of(*names) == problem


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("Team", "team"), "teams Team, team differ only in spelling"),
        (
            ("\u0410\u0412", "\u0430\u0432"),
            "teams \u0410\u0412, \u0430\u0432 differ only in spelling",
        ),
        (("a b", "a\u00a0b"), "teams a b, a\\xa0b differ only in spelling"),
        (("a", "\uff41"), "teams a, \uff41 differ only in spelling"),
    ],
    ids=["capitals", "cyrillic capitals", "space", "full width"],
)
def test_names_that_differ_in_spelling(names, problem):
    assert problem_of(*names) == problem


def test_names_of_any_script_are_names():
    """\u0434 and \u03bb look like no Latin letter."""
    names = [
        "team_a",
        "\u0434\u0430",
        "\u03bb\u03b1",
        "\u5317\u4eac",
        "No\u00ebl",
        "team 1",
        "l",
    ]

    check_names("results.csv", "team", names)


def test_the_table_has_letters_of_two_scripts():
    """Each once, and a capital for a capital."""
    letters = "".join(_LIKE_LATIN.values())

    assert len(set(letters)) == len(letters)
    for latin, alike in _LIKE_LATIN.items():
        for letter in alike:
            assert unicodedata.name(letter).split()[0] in ("GREEK", "CYRILLIC")
            assert letter.isalpha(), letter
            if latin not in "bi":  # a soft sign is like b, and a palochka like i
                assert letter.islower() == latin.islower(), letter


@pytest.mark.parametrize("column", [0, 1])
def test_teams_and_cases_of_results_are_checked(tmp_path, column):
    file = tmp_path / "results.csv"
    rows = [["x", "x"], ["x", "x"]]
    rows[0][column], rows[1][column] = "team_a", "team_\u0430"
    with file.open("w", encoding="utf-8", newline="") as content:
        table = csv.writer(content)
        table.writerow(["team", "case", "metric", "value"])
        table.writerows([*row, "dsc", 0.5] for row in rows)

    with pytest.raises(RankingError, match=r"s team_a, team_\\u0430 look alike"):
        read_results(file, ranked("dsc"))
