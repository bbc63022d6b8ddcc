"""Names that teams can have, and the folders of a platform's users."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

from flare.common.errors import OutputError
from flare.common.text import safe
from flare.results import team_folder as lock
from flare.results.errors import MeasurementError, RankingError
from flare.results.team_folder import (
    LONGEST_BYTES,
    FolderLock,
    check_names,
    confusable,
    folder_of,
    name_problem,
)
from tests.builders import error_of

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
    assert name_problem(name) == ""
    check_names("results.csv", "team", [name])


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
    names = ["team", "te\uff41m", "TEAM", "other", "te\u0430m"]

    assert set(confusable(names)) == {"team", "te\uff41m", "TEAM"}
    assert confusable(names, settled=["team"]) == {"te\uff41m": "team", "TEAM": "team"}
    assert confusable(["alpha"], settled=["beta", "Beta"]) == {}


# --- Names in results -------------------------------------------------------------


@pytest.mark.parametrize(
    "char",
    [
        *("\u200b", "\u00ad", "\u0000", "\n", "\u001b", "\u202e", "\ufeff", "\u2028"),
        *("\udcff", "\U000e0041"),
        # Python would print these as they are.
        *("\u034f", "\ufe0f", "\u3164", "\u2800"),
    ],
)
def test_characters_that_cannot_be_seen(char: str) -> None:
    """By themselves, whatever the other names are."""
    error = error_of(RankingError, check_names, "results.csv", "team", [f"te{char}am"])
    assert error.problem.startswith(f"team {f'te{char}am'!a} has char")


@pytest.mark.parametrize(
    "names",
    [
        ("Team", "team"),
        ("\u0410\u0412", "\u0430\u0432"),
        ("a b", "a\u00a0b"),
        ("a", "\uff41"),
    ],
    ids=["capitals", "cyrillic capitals", "space", "full width"],
)
def test_names_that_differ_in_spelling(names: tuple[str, str]) -> None:
    with pytest.raises(RankingError, match="differ only in spelling"):
        check_names("results.csv", "case", names)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(lock, "WAIT_S", 0.3)


def test_a_folder_is_made_locked_and_left_empty(tmp_path):
    folder = tmp_path / "results" / "team"

    with FolderLock(folder):
        assert list(folder.iterdir()) == []
        error = error_of(MeasurementError, FolderLock, folder)
    assert str(error) == (
        f"{safe(folder)}: it is being measured by another process. Wait for it, or"
        " end it. [H07]"
    )

    FolderLock(folder).close()


def test_a_process_that_was_given_it_keeps_it(tmp_path):
    first = FolderLock(tmp_path)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, pass_fds=(first.fileno(),)
    )
    first.close()

    with pytest.raises(MeasurementError):
        FolderLock(tmp_path)

    process.communicate()
    FolderLock(tmp_path).close()


def test_a_folder_that_was_moved_is_another_one(tmp_path, monkeypatch):
    """Whoever has waited for it locks what has its name now."""
    folder = tmp_path / "team"
    real, calls = fcntl.flock, []

    def move_once(descriptor, operation):
        if not calls:
            folder.rename(tmp_path / "old")
        calls.append(descriptor)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", move_once)
    with FolderLock(folder) as found:
        assert os.path.samestat(os.fstat(found.fileno()), folder.stat())
    assert len(calls) == 2


def test_a_file_in_the_place_of_a_team_s_folder_is_refused(tmp_path):
    (tmp_path / "team").write_text("")

    error = error_of(OutputError, FolderLock, tmp_path / "team")
    assert "team: it cannot be written to (file exists)." in str(error)
