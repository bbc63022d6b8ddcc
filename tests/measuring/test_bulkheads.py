"""What is wrong with one team of a command keeps no other from being measured."""

import csv
import os

import pytest

from flare.measuring import team, trial
from tests.builders.archives import make_socket
from tests.builders.teams import PREDICT


@pytest.fixture
def measure_all(bench, measure):
    """Measure all archives of the bench; status, last line, and rows of refused.csv."""

    def run():
        status, stdout, stderr = measure()
        with (bench.results / "refused.csv").open(newline="") as file:
            return status, stdout, stderr, list(csv.DictReader(file))

    return run


def test_a_fault_of_the_program_refuses_one_team_and_keeps_its_traceback(
    bench, measure_all, monkeypatch
):
    """As of C1, where an OverflowError came from a library."""
    bench.archive("a", PREDICT)
    bench.archive("b", PREDICT)

    def fail(image, *arguments):
        if image.work.parent.name == "a":
            raise OverflowError
        return trial.run_case(image, *arguments)

    monkeypatch.setattr(team, "run_case", fail)

    status, _, stderr, refused = measure_all()

    assert status == 1
    assert stderr.count("\n") == 1
    assert "[X01]" in stderr
    (row,) = refused
    assert (row["team"], row["archive_sha256"]) == ("a", "")
    assert row["problem"].endswith("[X01]")
    trace = (bench.results / ".faults" / "a.txt").read_text()
    assert trace.rstrip().endswith("OverflowError")
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}
    assert bench.engine.left() == []


def make_link_to_a_pipe(path):
    os.mkfifo(path.parent / "pipe")
    path.symlink_to(path.parent / "pipe")


def make_link_to_a_device(path):
    path.symlink_to("/dev/zero")


KINDS = (os.mkfifo, os.mkdir, make_socket, make_link_to_a_pipe, make_link_to_a_device)


@pytest.mark.parametrize("make", KINDS)
def test_an_archive_that_is_not_a_file_is_refused_at_once(bench, measure_all, make):
    bench.archive("b", PREDICT)
    make(bench.sent / "a.tar.gz")

    status, _, stderr, refused = measure_all()

    assert (status, stderr.count("\n")) == (1, 1)
    assert stderr.startswith("a.tar.gz: it is not a file. ")
    assert [(row["team"], row["problem"][-5:]) for row in refused] == [("a", "[F15]")]
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}


def test_what_takes_long_is_said_before_it_begins(bench, measure):
    bench.archive("b", PREDICT)

    _, stdout, _ = measure()

    lines = stdout.splitlines()
    assert lines[0].startswith("reading b.tar.gz (")
    assert lines[0].endswith(" MB)")
    assert "loading the image of b" in lines
