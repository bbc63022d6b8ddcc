"""Whole measurements on lanes and on Dask workers, with an engine by script."""

import json
import os
import random
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builders import case_names, wait_until, wait_until_equal
from tests.builders.lanes import (
    NOTED,
    Kills,
    lane_processes,
    measuring,
    rows_so_far,
    runs_noted,
)
from tests.builders.many import dask_processes
from tests.builders.teams import SCRIPTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor"),
]

LIMITS = ("--gpu", "none", "--memory", "120m", "--output-size", "8m", "--lanes", "2")
TEAMS = ("good", "crash", "silent", "text")


def where(bench):
    return bench.folder, bench.images, *LIMITS


def session_of(folder):
    content = json.loads((folder / "measurement.json").read_text())
    (session,) = content["sessions"]
    return session, content["settings"]


def test_teams_are_spread_over_two_lanes(bench):
    """And scored when all of them are measured."""
    for team in TEAMS:
        bench.archive(team, SCRIPTS[team])

    more = ("--ground-truth", bench.labels)
    with measuring(*where(bench), *more) as process:
        stdout, stderr = process.communicate(timeout=120)

    assert (process.returncode, stderr) == (0, "")
    statuses = ("ok", "failed", "no output", "wrong output")
    for team, status in zip(TEAMS, statuses, strict=True):
        assert {row["status"] for row in bench.rows(team).values()} == {status}
    told = re.findall(r"^\[(\d+)/12.*?\] (\w+) (\w+)", stdout, re.MULTILINE)
    assert [int(number) for number, _, _ in told] == list(range(1, 13))
    assert len({(team, case) for _, team, case in told}) == 12
    lanes = {}
    for team in TEAMS:
        session, settings = session_of(bench.results / team)
        lanes[team] = session["lane"]
        assert (settings["lanes"], settings["gpu"]) == (2, "")
        assert f"--cpuset-cpus {lanes[team]['cpus']} " in session["command"]
    assert {lane["number"] for lane in lanes.values()} == {0, 1}
    assert len({lane["cpus"] for lane in lanes.values()}) == 2
    assert set(case_names(3)) == set(bench.rows("good"))
    assert bench.engine.left() == []
    assert bench.hidden() == []
    assert stdout.index("[12/12]") < stdout.index("good: 3 ok")


def test_a_lane_that_is_killed_loses_no_case_and_measures_none_twice(bench):
    """Twice, at any moment: of what has a row then, nothing is run again.

    A third time might strike the same team, which would be given up.
    """
    for team in ("a", "b", "c"):
        bench.archive(team, NOTED.replace("TEAM", team))
    moments, kills = random.Random(2022), Kills(bench)

    with measuring(*where(bench)) as process:
        for _ in range(2):
            time.sleep(moments.uniform(0.3, 1.8))
            victims = lane_processes(process.pid)
            if victims:
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(moments.choice(victims), signal.SIGKILL)
                kills.note()
        stdout, stderr = process.communicate(timeout=240)

    assert (process.returncode, stderr) == (0, "")
    kills.check(stdout)
    wait_until_equal(bench.engine.left, [])
    assert bench.hidden() == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_the_program_ends_its_lanes(bench, how):
    """Nothing is left behind, and the same command goes on."""
    for team in ("a", "b"):
        bench.archive(team, NOTED.replace("TEAM", team))

    with measuring(*where(bench)) as process:
        wait_until(lambda: {team for team, _ in rows_so_far(bench.results)} == {*"ab"})
        lanes = lane_processes(process.pid)
        process.send_signal(how)
        _, stderr = process.communicate(timeout=60)

    assert lanes
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in lanes))
    wait_until_equal(bench.engine.left, [])
    done = rows_so_far(bench.results)
    if how != signal.SIGKILL:
        assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[how]
        assert f"{len(done)} of 6 cases are measured and kept" in stderr
    noted = {team: runs_noted(bench.engine.state, team) for team in "ab"}
    with measuring(*where(bench)) as process:
        stdout, _ = process.communicate(timeout=120)
    assert f"{len(done)} of 6 cases are done, going on" in stdout
    assert len(rows_so_far(bench.results)) == 6
    for team, case in done:
        assert runs_noted(bench.engine.state, team)[case] == noted[team][case]
    assert bench.hidden() == []


needs_dask = pytest.mark.tools(package="distributed")


@needs_dask
def test_a_worker_that_is_killed_loses_no_case_and_measures_none_twice(bench, tmp_path):
    """Twice, each replaced by another one: what has a row is not run again.

    A third time might strike the same team, which would be given up.
    """
    for team in ("a", "b", "c"):
        bench.archive(team, NOTED.replace("TEAM", team))
    moments, kills = random.Random(2023), Kills(bench)

    with (
        dask_processes(tmp_path, resources="GPU=1") as (address, workers, start, _),
        measuring(*where(bench), "--cluster", address) as process,
    ):
        wait_until(lambda: rows_so_far(bench.results))
        for _ in range(2):
            time.sleep(moments.uniform(0, 1))
            lanes = lane_processes(workers[0].pid)
            workers.pop(0).kill()
            wait_until(lambda lanes=lanes: not {*lanes} & {*lane_processes(1)})
            kills.note()
            workers.append(start())
        stdout, stderr = process.communicate(timeout=240)

    assert (process.returncode, stderr) == (0, ""), stdout
    kills.check(stdout)


@needs_dask
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_whoever_ends_the_program_ends_what_workers_do(bench, tmp_path, how):
    for team in ("a", "b"):
        bench.archive(team, NOTED.replace("TEAM", team).replace("0.3", "5"))

    with dask_processes(tmp_path, resources="GPU=1") as (address, workers, _, _):
        with measuring(*where(bench), "--cluster", address) as process:
            wait_until(lambda: all(lane_processes(w.pid) for w in workers))
            wait_until(lambda: len(bench.engine.calls("start --attach")) >= 8)
            process.send_signal(how)
            stdout, stderr = process.communicate(timeout=60)
            assert process.returncode == (130 if how == signal.SIGINT else -9), stdout
        wait_until(lambda: not any(lane_processes(w.pid) for w in workers))
        # An engine by script may still note the end of what it has removed.
        wait_until(lambda: bench.engine.calls("image rm"))

    if how == signal.SIGINT:
        assert "of 6 cases are measured and kept" in stderr
