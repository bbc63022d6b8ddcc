"""What stands in the way of a measurement with a real engine, and what comes of it."""

import json
import os
import subprocess

import pytest

from tests.builders import ROOT
from tests.builders.teams import (
    BRISK,
    LIMITS,
    PREDICT,
    brisk_command,
    docker,
    left_behind,
    rows_of,
    write_team,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]

NAMED = f"named{os.getpid()}"
"""A team that nobody else has on this engine."""


def measure_good(archives, cases, output, *options, team="good", status=0):
    return brisk_command(
        *("measure", archives[team], "--images", cases / "images"),
        *("--output", output, *LIMITS, "--no-warm-up", *options),
        status=status,
    )


@pytest.fixture
def known(team_base, tmp_path):
    """The archive of a team whose name, and tag, is that of this run of the tests."""
    return {NAMED: write_team(tmp_path / "sent", NAMED, PREDICT)}


def test_an_image_that_was_there_before_stays(known, one_case, tmp_path):
    docker("load", "--input", known[NAMED])
    try:
        measure_good(known, one_case, tmp_path, team=NAMED)
        assert docker("image", "inspect", f"{NAMED}:latest")
    finally:
        docker("image", "rm", f"{NAMED}:latest")


def test_two_measurements_of_a_team_wait_for_each_other(archives, one_case, tmp_path):
    """The second one finds everything done."""
    command = [*BRISK, "measure", archives["good"], *LIMITS]
    command += ["--images", one_case / "images", "--output", tmp_path, "--no-warm-up"]
    processes = [
        subprocess.Popen([str(word) for word in command], cwd=ROOT,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    errors = [process.communicate(timeout=120)[1] for process in processes]

    assert [process.returncode for process in processes] == [0, 0], errors
    assert {row["status"] for row in rows_of(tmp_path / "good").values()} == {"ok"}
    record = json.loads((tmp_path / "good" / "measurement.json").read_text())
    assert len(record["sessions"]) == 1
    assert left_behind(tmp_path) == []
