"""Progress: lines, and a bar that fits the terminal."""

import logging
import sys
from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare.cli import console
from flare.cli.console import Progress
from tests.builders.terminal import Terminal


@pytest.fixture
def make_terminal(monkeypatch):
    """A terminal of so many columns, which stands in for stdout."""

    def make(columns):
        monkeypatch.setattr("sys.stdout", Terminal())
        monkeypatch.setenv("COLUMNS", str(columns))
        return sys.stdout

    yield make
    console.erase()


def clock_of(*times):
    return iter(times).__next__


@pytest.mark.parametrize(
    ("times", "options", "steps", "of", "known", "lines"),
    [
        # Four of twelve runs took two minutes: the other eight may take four.
        ((100.0, 220.0, 460.0), {}, (4, 12), 12, 0,
         ["[04/12] x; about 4 min left", "[12/12] x; done"]),
        ((0.0, 60.0), {"logs_time": False}, (7,), 50, 0, ["[07/50] x"]),
        ((0.0, 30.0, 60.0, 90.0, 120.0), {"every_s": 60.0}, (1, 2, 3, 4), 4, 0,
         ["[2/4] x; about 1 min left", "[4/4] x; done"]),
        # Of 20 cases, 10 were known; 5 took a minute, as will the other 5.
        ((0.0, 0.0, 60.0), {}, (10, 15), 20, 10,
         ["[10/20] x", "[15/20] x; about 1 min left"]),
    ],
    ids=["the time left", "without it", "only so often", "known at the start"],
)  # fmt: skip
def test_a_step_is_a_line(caplog, times, options, steps, of, known, lines):
    caplog.set_level("INFO", logger="flare")
    progress = Progress(clock=clock_of(*times), **options)

    for number in steps:
        progress(number, of, "x", known=known)

    assert caplog.messages == lines


def test_a_bar_gives_way_to_what_is_logged_and_to_the_end(make_terminal):
    terminal = make_terminal(80)

    def command():
        progress = Progress(clock=lambda: 0.0)
        progress(1, 2, "a")
        logging.getLogger("flare").info("a line")
        progress(2, 2, "b")

    assert console.run_command(command) == 0

    assert "\r\x1b[Ka line\n\r\x1b[K[###" in terminal.getvalue()
    assert terminal.getvalue().endswith("done\r\x1b[K")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (12, "[25/50] ; a"),
        (31, "[25/50] case; about 0 min left"),
        (45, "[25/50] case_0000_0025: ok; about 0 min left"),
        (56, "[####....] [25/50] case_0000_0025: ok; about 0 min left"),
    ],
)
def test_what_is_least_needed_goes_first(make_terminal, columns, line):
    """The bar, and then the text; the last column stays free."""
    terminal = make_terminal(columns)
    Progress(clock=lambda: 0.0)(25, 50, "case_0000_0025: ok")
    assert terminal.getvalue().removeprefix("\r\x1b[K") == line


@given(
    columns=st.integers(12, 200),
    team=st.sampled_from(["a", "a_team_with_quite_a_long_name", "\u7532\u4e59" * 20])
    | st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=60),
)
def test_no_progress_is_wider_than_the_terminal(columns, team):
    """Each step is drawn over the one before; some letters take two columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", Terminal())
        patch.setenv("COLUMNS", str(columns))
        progress = Progress(clock=lambda: 0.0)
        for number in (1, 2, 3):
            progress(number, 3, f"{team} thx_0001: wrong output")
        drawn = sys.stdout.getvalue()
        console.erase()

    steps = drawn.replace("\x1b[K", "").split("\r")[1:]
    assert len(steps) == 3
    assert "\n" not in drawn
    for step in steps:
        assert sum(1 + (east_asian_width(char) in "WF") for char in step) < columns
        assert "/3]" in step
