"""The page of a measurement that goes on, which never stands in its way."""

from types import SimpleNamespace

import pytest

from flare.cli.commands.measure import LivePage
from flare.common.errors import EngineError
from flare.results.efficiency_csv import write_records
from tests.builders.running import record


@pytest.fixture
def job(tmp_path):
    """A team of which one of two cases was run."""
    results = tmp_path / "results"
    write_records([record("case_1", 5.0)], results / "a" / "efficiency.csv")
    archive = SimpleNamespace(team="a", doubts=("odd",))
    cases = [SimpleNamespace(name=f"case_{n}") for n in (1, 2)]
    return SimpleNamespace(
        results=results, runnable=(archive,), archives=(archive,), cases=cases
    )


def test_a_page_is_there_from_the_start_to_the_end(job, tmp_path, caplog):
    caplog.set_level("INFO", logger="flare")
    file = tmp_path / "new" / "live.html"

    with LivePage(file, job) as page:
        first = file.read_text()
        page.problems["a"] = "it is gone"
        page.write()
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
def test_what_ends_a_measurement_ends_its_page(job, tmp_path, error, words):
    """And goes on to whoever waits for it."""
    file = tmp_path / "live.html"

    with pytest.raises(type(error)), LivePage(file, job):
        raise error

    html = file.read_text()
    assert f"{words} 1 of 2 cases are measured and kept." in html
    assert 'http-equiv="refresh"' not in html


def test_a_page_that_cannot_be_written_is_one_warning(job, tmp_path, caplog):
    """And it is written again as soon as that can be."""
    folder = tmp_path / "taken"
    folder.write_text("no folder")
    file = folder / "live.html"

    with LivePage(file, job) as page:
        page.write()
        folder.unlink()
        page.write()
        assert file.exists()

    (line,) = caplog.messages
    assert line.startswith("The page is not up to date: ")
    assert "live.html: it cannot be written (" in line
    assert line.endswith("[H02]; measuring goes on")


def test_a_page_that_cannot_be_drawn_is_one_warning(job, tmp_path, caplog):
    (job.results / "a" / "efficiency.csv").write_text("no table")

    with LivePage(tmp_path / "live.html", job) as page:
        page.write()

    (found,) = caplog.records
    end = "MeasurementError; measuring goes on"
    assert found.getMessage() == f"The page is not up to date: {end}"
    assert found.exc_info
