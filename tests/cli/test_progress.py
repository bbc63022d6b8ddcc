"""Progress: lines, and a bar that fits the terminal."""

import logging
import sys
from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare.cli import console
from flare.cli.console import BAR_WIDTH, Progress
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


def test_a_step_is_a_line_with_the_time_that_is_left(caplog):
    """Four of twelve runs took two minutes: the other eight may take four."""
    caplog.set_level("INFO", logger="flare")
    progress = Progress(clock=clock_of(100.0, 220.0, 460.0))

    progress(4, 12, "case_1: ok")
    progress(12, 12, "case_9: failed")

    assert caplog.messages == [
        "[04/12] case_1: ok; about 4 min left",
        "[12/12] case_9: failed; done",
    ]


def test_a_line_may_leave_the_time_out(caplog):
    caplog.set_level("INFO", logger="flare")
    Progress(logs_time=False)(7, 50, "case_7 drawn")
    assert caplog.messages == ["[07/50] case_7 drawn"]


def test_lines_come_only_so_often(caplog):
    caplog.set_level("INFO", logger="flare")
    clock = clock_of(0.0, 30.0, 60.0, 90.0, 120.0)
    progress = Progress(every_s=60.0, clock=clock)

    for number in (1, 2, 3, 4):
        progress(number, 4, "x")

    assert caplog.messages == ["[2/4] x; about 1 min left", "[4/4] x; done"]


def test_what_was_known_at_the_start_took_no_time(caplog):
    """Of 20 cases, 10 were known; 5 took a minute, as will the other 5."""
    caplog.set_level("INFO", logger="flare")
    progress = Progress(clock=clock_of(0.0, 0.0, 60.0))

    progress(10, 20, "x", known=10)
    progress(15, 20, "x", known=10)

    assert caplog.messages == ["[10/20] x", "[15/20] x; about 1 min left"]


def test_on_a_terminal_a_bar_is_drawn(make_terminal, caplog):
    terminal = make_terminal(80)
    caplog.set_level("INFO", logger="flare")
    progress = Progress(clock=lambda: 0.0)

    progress(1, 2, "a")
    progress(2, 2, "b")

    half = "#" * (BAR_WIDTH // 2) + "." * (BAR_WIDTH // 2)
    full = "#" * BAR_WIDTH
    assert terminal.getvalue() == (
        f"\r\x1b[K[{half}] [1/2] a; about 0 min left\r\x1b[K[{full}] [2/2] b; done"
    )
    assert caplog.messages == []


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
        (12, "[25/50] ..."),
        (27, "[25/50] case_0000_0025: ok"),
        (39, "[25/50] case_...: ok; about 0 min left"),
        (45, "[25/50] case_0000_0025: ok; about 0 min left"),
        (56, "[####....] [25/50] case_0000_0025: ok; about 0 min left"),
    ],
)
def test_what_is_least_needed_goes_first(make_terminal, columns, line):
    """The bar, the middle of the text, the time left; the last column stays free."""
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
        assert columns < 30 or "wrong" in step or "..." in step
