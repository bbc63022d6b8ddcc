"""The page of a measurement that goes on, which never stands in its way."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from flare.cli.commands.measure import Announcer
from flare.common.errors import EngineError
from flare.results.efficiency_csv import write_records
from tests.builders.running import record


@pytest.fixture
def job(tmp_path):
    """A team of which one of two cases was run."""
    results = tmp_path / "results"
    write_records([record("case_1", 5.0)], results / "a" / "efficiency.csv")
    archive = SimpleNamespace(team="a", doubts=("odd",))
    cases = [SimpleNamespace(case=f"case_{n}") for n in (1, 2)]
    return SimpleNamespace(
        options=SimpleNamespace(page=tmp_path / "new" / "live.html"),
        results=results,
        runnable=(archive,),
        archives=(archive,),
        cases=cases,
    )


def test_a_page_is_there_from_the_start_to_the_end(job, caplog):
    caplog.set_level("INFO", logger="flare")
    file = job.options.page

    with Announcer(job) as told:
        first = file.read_text()
        told.on_failure("a", EngineError("it is gone"))
        assert "it is gone" in file.read_text()
    last = file.read_text()

    assert "1 of 2 cases are measured" in first
    assert 'http-equiv="refresh"' in first
    assert 'http-equiv="refresh"' not in last
    assert [*file.parent.iterdir()] == [file]
    (line,) = caplog.messages
    assert line.endswith("live.html shows how it goes on: open it in a browser")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyboardInterrupt(), "somebody has stopped it."),
        (SystemExit(143), "somebody has stopped it."),
        (EngineError("gone", "Start it."), "gone. Start it. [H05]"),
        (KeyError("x"), "an internal error (KeyError); the log has it."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_ends_a_measurement_ends_its_page(job, error, words):
    """And goes on to whoever waits for it."""
    with pytest.raises(type(error)), Announcer(job):
        raise error

    html = job.options.page.read_text()
    assert f"{words} 1 of 2 cases are measured and kept." in html
    assert 'http-equiv="refresh"' not in html


@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_page_that_cannot_be_drawn_or_written_is_one_warning(job, caplog, is_drawn):
    """And raises nothing; only of what is odd, the log has the traceback."""
    problem = "MeasurementError"
    if is_drawn:
        job.options.page = Path("/proc/live.html")
        problem = "/proc/live.html: it cannot be written (no such file or directory)."
    else:
        (job.results / "a" / "efficiency.csv").write_text("no table")

    with Announcer(job):
        pass

    (found,) = caplog.records
    message = found.getMessage()
    assert message.startswith(f"The page is not up to date: {problem}")
    assert message.endswith("; measuring goes on")
    assert bool(found.exc_info) != is_drawn
