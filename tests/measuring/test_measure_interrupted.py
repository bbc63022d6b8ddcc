"""Measurements that are interrupted, or killed, with a real engine: they go on."""

import json
import random
import signal
import subprocess
import time

import pytest

from tests.builders import ROOT, case_names, wait_until
from tests.builders.teams import (
    BRISK,
    LIMITS,
    brisk_command,
    left_behind,
    rows_of,
    wait_for_container,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]


def start(archive, cases, results, *more, **streams):
    """Begin to measure an archive, or a folder of some, as a process of its own."""
    command = [*BRISK, "measure", archive, "--images", cases / "images"]
    command += ["--output", results, *LIMITS, "--no-warm-up", *more]
    return subprocess.Popen([str(word) for word in command], cwd=ROOT, **streams)


def two_teams(archives, folder, *teams):
    """A folder with the archives of some teams."""
    (folder / "archives").mkdir()
    for team in teams:
        (folder / "archives" / f"{team}.tar.gz").symlink_to(archives[team])
    return folder / "archives"


def test_after_sigkill_at_random_moments_it_goes_on_to_the_end(
    archives, two_cases, tmp_path
):
    """Eight times: nothing is lost or left behind, and no case is run twice."""
    sent = two_teams(archives, tmp_path, "good", "slow")
    results, chance = tmp_path / "results", random.Random(9)
    more = ("--ground-truth", two_cases / "labels")
    for _ in range(8):
        process = start(sent, two_cases, results, *more, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(chance.uniform(0.5, 4))
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = {}
    for team in ("good", "slow"):
        if (results / team / "efficiency.csv").exists():
            before[team] = rows_of(results / team)

    process = start(sent, two_cases, results, *more, stdout=subprocess.DEVNULL)
    assert process.wait() == 0

    for team in ("good", "slow"):
        folder = results / team
        rows = rows_of(folder)
        assert {row["status"] for row in rows.values()} == {"ok"}
        assert list(rows) == case_names(2)
        for case, row in before.get(team, {}).items():
            assert rows[case] == row
        metrics = json.loads((folder / "metrics.json").read_text())
        assert metrics["aggregates"]["dsc_mean"] == 1
    # A guard of a run that was killed may be at work.
    wait_until(lambda: left_behind(tmp_path) == [])
    assert list(results.rglob(".*")) == []


def start_hanging(archives, one_case, tmp_path):
    """Begin to measure a team whose container hangs, for an hour if nobody ends it."""
    hour = ("--timeout", "3600")
    results = tmp_path / "results"
    return start(archives["hang"], one_case, results, *hour, stdout=subprocess.DEVNULL,
                 stderr=subprocess.PIPE)  # fmt: skip


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_ctrl_c_ends_it_with_one_line(archives, one_case, tmp_path, number, status):
    process = start_hanging(archives, one_case, tmp_path)
    wait_for_container(tmp_path, process)
    process.send_signal(number)

    _, stderr = process.communicate(timeout=60)

    assert process.returncode == status, stderr
    assert stderr.decode().count("\n") == 1
    assert left_behind(tmp_path) == []


def test_a_rerun_that_is_killed_leaves_what_there_was(archives, two_cases, tmp_path):
    """Neither its old values beside a new prediction, nor the other way round."""
    case, team = "validation_002", archives["slow"]
    start(team, two_cases, tmp_path, stdout=subprocess.DEVNULL).wait()
    before = rows_of(tmp_path / "slow")
    again = ("--rerun", case, "--reason", "a fan")
    process = start(team, two_cases, tmp_path, *again, stdout=subprocess.DEVNULL)
    wait_for_container(tmp_path, process)  # it will sleep for two seconds
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert rows_of(tmp_path / "slow") == before
    stdout, _ = brisk_command(
        *("measure", team, "--images", two_cases / "images", "--output", tmp_path),
        *(*LIMITS, "--no-warm-up"),
    )
    assert "slow: 2 ok" in stdout
