"""The log of a service as JSON lines."""

import json
import logging
from datetime import datetime

import pytest

from flare.cli.commands.serve import json_lines
from flare.common.errors import InputError, OutputError
from tests.builders.schemas import problems


@pytest.fixture
def log():
    found = logging.getLogger("flare.test")
    found.setLevel(logging.INFO)
    return found


def lines_of(file):
    """What is in a file, without the times, which have to be times."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [found for line in lines for found in problems(line, "serve-log-line")] == []
    assert all(datetime.fromisoformat(line["time"]).tzinfo for line in lines)
    return [{k: v for k, v in line.items() if k != "time"} for line in lines]


def test_each_record_is_a_line(tmp_path, log):
    """Names that would break a line, or a terminal, do not; what is shown is known."""
    file, notes = tmp_path / "logs" / "serve.jsonl", logging.getLogger("flare.facts")
    with json_lines(file):
        step = {"submission": "a1", "team": "x", "step": "claimed"}
        log.info("%s: %s", "x", "claimed", extra={"facts": step})
        log.warning("slow")
        case = {"team": "x", "case": "c1", "status": "ok", "done": 1, "of": 2}
        notes.info("x\n\x1b[31m\u2028é: c1: ok", extra={"facts": case})
        logging.getLogger("flare.progress").info("[1/2] x c1: ok")
    log.warning("not any more")
    notes.info("nor this")

    assert lines_of(file) == [
        {
            "level": "info",
            "message": "x: claimed",
            "submission": "a1",
            "team": "x",
            "step": "claimed",
        },
        {"level": "warning", "message": "slow"},
        {
            "level": "info",
            "message": "x\n\x1b[31m\u2028é: c1: ok",
            "team": "x",
            "case": "c1",
            "status": "ok",
            "done": 1,
            "of": 2,
        },
    ]
    assert file.read_bytes().isascii()
    assert file.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("x: it is gone", "Look."), "x: it is gone. Look."),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_what_ends_it_is_the_last_line(tmp_path, error, message):
    """A later start adds to the file."""
    file = tmp_path / "serve.jsonl"
    file.write_text(
        '{"time": "2026-01-01T00:00:00Z", "level": "info", "message": ""}\n'
    )

    with pytest.raises(type(error)), json_lines(file):
        raise error

    _, last = lines_of(file)
    assert last["level"] == "error"
    assert last["message"].startswith(message)


def test_a_log_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(OutputError) as caught,
        json_lines(tmp_path / "file" / "x.jsonl"),
    ):
        pass

    # A long path is cut in its middle.
    assert "/x.jsonl: the log cannot be written (file exists)" in str(caught.value)
