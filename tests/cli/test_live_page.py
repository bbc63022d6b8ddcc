"""A page of what goes on, which never stands in its way."""

import pytest

from flare.cli.live_page import LivePage
from flare.common.errors import EngineError
from flare.reports.pages.running import State
from tests.builders.running import eventful


class Told:
    """Stands in for what is known of a measurement."""

    def __init__(self):
        self.state, self.problem = State.RUNNING, ""
        self.fails = None

    def seen(self):
        """All that is known."""
        if self.fails:
            raise self.fails
        return eventful(state=self.state, problem=self.problem)

    def end(self, state, problem):
        """Note that it has ended."""
        self.state, self.problem = state, problem

    def on_begin(self, team, case):
        """Hear of a case."""


@pytest.fixture
def told():
    return Told()


def test_a_page_is_there_from_the_start_to_the_end(told, tmp_path, caplog):
    caplog.set_level("INFO", logger="flare")
    file = tmp_path / "new" / "live.html"

    with LivePage(file, told) as page:
        first = file.read_bytes()
        file.unlink()
        page.on_begin("team_a", "case_001")
        assert file.read_bytes() == first
    last = file.read_bytes()

    assert b'http-equiv="refresh"' in first
    assert b'http-equiv="refresh"' not in last
    assert [*file.parent.iterdir()] == [file]
    (line,) = caplog.messages
    assert line.endswith("live.html shows how it goes on: open it in a browser")


@pytest.mark.parametrize(
    ("error", "state", "problem"),
    [
        (KeyboardInterrupt(), State.STOPPED, ""),
        (SystemExit(143), State.STOPPED, ""),
        (EngineError("gone", "Start it."), State.BROKEN, "gone. Start it. [H05]"),
        (
            KeyError("x"),
            State.BROKEN,
            "An internal error (KeyError); the log has it.",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_ends_a_measurement_ends_its_page(told, tmp_path, error, state, problem):
    """And goes on to whoever waits for it."""
    file = tmp_path / "live.html"

    with pytest.raises(type(error)), LivePage(file, told):
        raise error

    assert (told.state, told.problem) == (state, problem)
    assert b'http-equiv="refresh"' not in file.read_bytes()


def test_a_page_that_cannot_be_written_is_one_warning(told, tmp_path, caplog):
    """And it is written again as soon as that can be."""
    folder = tmp_path / "taken"
    folder.write_text("no folder")
    file = folder / "live.html"

    with LivePage(file, told) as page:
        page.on_begin("team_a", "case_001")
        folder.unlink()
        page.on_begin("team_a", "case_002")
        assert file.exists()

    (line,) = caplog.messages
    assert line.startswith("The page is not up to date: ")
    assert "live.html: it cannot be written (" in line
    assert line.endswith("[H02]; measuring goes on")


def test_a_page_that_cannot_be_drawn_is_one_warning(told, tmp_path, caplog):
    told.fails = ZeroDivisionError("no")

    with LivePage(tmp_path / "live.html", told) as page:
        page.on_begin("team_a", "case_001")

    (line,) = caplog.messages
    assert line == "The page is not up to date (ZeroDivisionError); measuring goes on"
    assert caplog.records[0].exc_info
