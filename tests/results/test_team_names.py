"""Names that teams can have, and the folders of a platform's users."""

from __future__ import annotations

import pytest

from flare.results.team_folder import LONGEST_BYTES, confusable, folder_of, name_problem

USABLE = ["team_a", "Team_A", "Jane.Doe", "医学影像", "équipe 1", "x" * LONGEST_BYTES]

UNUSABLE = [
    *("", ".", "..", ".unpacked", " a", "a ", "a.", "a/b", "a\\b", "a\nb", "a\0b"),
    *("a\u200bb", "\u202ea", "\udcff", "x" * (LONGEST_BYTES + 1), "医" * 67),
    *("refused.csv", "ledger.csv", "a.CSV", "index.html", "a.tar.gz", "a.zip"),
    *("scores.sqlite", "Scores.sqlite-journal", "scores.sqlite-wal", "a.sqlite-shm"),
    *("=1", "-alpha", "@a", "+a", "\uff1da", "'a"),
    *("scores\uff0esqlite", "a\uff0fb", "con", "NUL.x", "lpt1"),
]


@pytest.mark.parametrize("name", USABLE)
def test_names_of_any_script_are_allowed(name: str) -> None:
    """Letters of any script, capitals, and spaces within."""
    assert name_problem(name) == ""


@pytest.mark.parametrize("name", UNUSABLE)
def test_names_that_no_team_can_have(name: str) -> None:
    """Files of the results, SQLite's beside them, and what no folder can be called."""
    assert name_problem(name)
    assert name_problem(folder_of(name)) == ""


def test_nobody_can_take_the_folder_of_another_user() -> None:
    """A name that looks as if it was made gets a made one, too."""
    made = folder_of("Jane.Doe", is_image=True)

    assert made == "jane-doe-4e148699"  # sha256sum of the name
    assert folder_of(made, is_image=True) != made
    assert folder_of(made) != made
    assert folder_of(made.upper()) not in (made, made.upper())


def test_of_new_names_that_look_alike_none_stands() -> None:
    """Nobody can tell who means to be taken for whom; what is settled stays."""
    names = ["team", "te\u0430m", "TEAM", "other"]

    assert set(confusable(names)) == {"team", "te\u0430m", "TEAM"}
    assert confusable(names, settled=["team"]) == {"te\u0430m": "team", "TEAM": "team"}
    assert confusable(["alpha"], settled=["beta", "Beta"]) == {}


def test_every_pair_that_a_ranking_would_refuse_is_confusable() -> None:
    """The mathematical Alpha is the Greek one, but looks like no Latin letter."""
    names = ["\U0001d6a8lpha", "\u0391lpha"]

    assert set(confusable(names)) == set(names)
