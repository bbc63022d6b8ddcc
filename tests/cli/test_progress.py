"""Progress: lines, and bars that fit the terminal."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from unicodedata import east_asian_width

import pytest

from flare.cli import progress
from flare.common.errors import InputError
from flare.evaluation.many.teams import Progress
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore
from tests.builders import ROOT
from tests.builders.terminal import Terminal


def attempt(number, *, problem=None):
    """What came of a case."""
    score = CaseScore(
        case=f"case_{number}",
        reference_file="x",
        prediction_file="x",
        organs=(),
        by_metric={"dsc": 0.5, "nsd": 0.25},
    )
    return Attempt(
        pair=CasePair(case=f"case_{number}", reference=None, prediction=None),
        score=None if problem else score,
        problem=problem,
        seconds=1.234,
    )


def test_progress_is_a_line_per_case(monkeypatch, caplog):
    caplog.set_level("INFO", logger="flare")

    progress.show_progress(7, 50, attempt(7))
    progress.show_progress(8, 50, attempt(8, problem=InputError("x: it is bad")))

    assert caplog.messages[0] == "[07/50] case_7 DSC 0.500 NSD 0.250 1.23 s"
    assert caplog.messages[1].startswith("[08/50] case_8 x: it is bad.")


def test_progress_on_a_terminal_is_a_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")

    progress.show_progress(1, 2, attempt(1))
    progress.show_progress(2, 2, attempt(2))

    half, full = progress.BAR_WIDTH // 2, progress.BAR_WIDTH
    assert terminal.getvalue() == (
        f"\r[{'#' * half}{'.' * half}] 1/2 cases\r[{'#' * full}] 2/2 cases\n"
    )


def test_drawing_cases_is_a_line_per_case_or_the_same_bar(monkeypatch, caplog):
    caplog.set_level("INFO", logger="flare")
    progress.show_drawn(7, 50, "case\n7")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")

    progress.show_drawn(2, 2, "case_2")

    assert caplog.messages == ["[07/50] case\\n7 drawn"]
    assert terminal.getvalue() == f"\r[{'#' * progress.BAR_WIDTH}] 2/2 cases\n"


@pytest.mark.parametrize("columns", [10, 12, 20, 30, 46])
def test_progress_fits_a_narrow_terminal(monkeypatch, columns):
    """The last column stays free, where it can."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))

    for number in range(1, 51):
        progress.show_progress(number, 50, attempt(number))

    lines = terminal.getvalue().rstrip("\n").split("\r")[1:]
    assert len(lines) == 50
    assert max(map(len, lines)) < columns
    if columns > len("25/50 cases"):
        assert lines[24].endswith("25/50 cases")
    else:
        assert lines[24] == "25/...ses"
    if columns == 30:  # 15 characters of the bar fit, half of which are seven
        assert lines[24] == "[#######........] 25/50 cases"


DRAW = """
import sys
from flare.cli.progress import MeasuringProgress, show_progress
progress = MeasuringProgress(clock=lambda: 0.0)
for number in (1, 2, 3):
    progress(sys.argv[1], "thx_0001", "wrong output", number, 3)
progress(sys.argv[1], "thx_0001", "ok", 1, 3)
progress.clear()
for number in (1, 2):
    show_progress(number, 2, None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [12, 30, 46, 60, 80, 200])
@pytest.mark.parametrize(
    "team", ["a", "a_team_with_quite_a_long_name", "\u7532\u4e59" * 20]
)
def test_no_progress_is_wider_than_the_terminal(columns, team):
    """On a pseudo terminal of this width; each step is drawn over the one before."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", DRAW, team],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "COLUMNS"},
        stdout=slave,
        stderr=slave,
    )
    assert process.wait(60) == 0
    os.close(slave)
    drawn = os.read(master, 65536).decode()
    os.close(master)

    assert "Traceback" not in drawn
    lines = drawn.replace("\x1b[K", "").replace("\n", "\r").split("\r")
    for line in lines:
        width = sum(1 + (east_asian_width(char) in "WF") for char in line)
        assert width < columns, line
    steps = [line for line in lines if "/3]" in line]
    assert len(steps) == 4
    assert drawn.count("\n") == 2  # at the end of either
    if columns >= 30:
        assert all("wrong" in step or "ok" in step or "..." in step for step in steps)
    if columns >= 80 and team == "a":
        assert steps[0].startswith("[")
        assert steps[0].endswith("[1/3] a thx_0001: wrong output; about 0 min left")


def test_measuring_tells_how_long_it_may_take(caplog):
    """Four of twelve runs took two minutes: the other eight may take four."""
    caplog.set_level("INFO")
    times = iter((100.0, 220.0, 460.0))
    measuring = progress.MeasuringProgress(clock=lambda: next(times))

    measuring("team_a", "case_1", "ok", 4, 12)
    measuring("team_a", "case_9", "failed", 12, 12)

    assert caplog.messages == [
        "[04/12] team_a case_1: ok; about 4 min left",
        "[12/12] team_a case_9: failed; done",
    ]


def test_measuring_on_a_terminal_draws_a_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(progress.sys, "stdout", terminal)
    measuring = progress.MeasuringProgress(clock=lambda: 0.0)

    measuring("a", "c1", "ok", 1, 2)
    measuring("a", "c2", "ok", 2, 2)

    first, last = terminal.getvalue().split("\r")[1:]
    assert "[###############...............] [1/2] a c1: ok; about 0 min left" in first
    assert last.endswith("a c2: ok; done\n")


def test_scoring_tells_how_fast_it_is_and_how_long_it_may_take(monkeypatch):
    """120 cases took a minute, so that the other 360 may take three."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    times = iter((100.0, 160.0))
    scoring = progress.ScoringProgress(clock=lambda: next(times))

    scoring(Progress(teams=3, all_teams=12, scored=120, kept=0, left=360))
    scoring.clear()

    bar = "[#######.......................]"  # a quarter of 30
    line = f"{bar} 120/480 cases, 3/12 teams, about 3 min left"
    assert terminal.getvalue() == f"\r\x1b[K{line}\r\x1b[K"


def test_where_nothing_can_be_drawn_scoring_is_told_once_a_minute(monkeypatch, caplog):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    times = iter((0.0, 30.0, 60.0, 90.0, 120.0))
    scoring = progress.ScoringProgress(clock=lambda: next(times))

    with caplog.at_level("INFO"):
        for scored in (10, 20, 30, 40):
            scoring(Progress(teams=0, all_teams=2, scored=scored, kept=5, left=0))

    assert caplog.messages == ["25/25 cases, 0/2 teams", "45/45 cases, 0/2 teams"]


def test_scoring_draws_nothing_where_no_terminal_is(monkeypatch):
    stdout = io.StringIO()
    monkeypatch.setattr("sys.stdout", stdout)
    scoring = progress.ScoringProgress(clock=lambda: 0.0)

    scoring(Progress(teams=3, all_teams=12, scored=120, kept=0, left=360))
    scoring.clear()

    assert stdout.getvalue() == ""
