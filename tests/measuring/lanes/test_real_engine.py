"""Measuring side by side with a real engine: two lanes, and two Dask workers."""

import json
import os
import random
import re
import signal
import time

import pytest

from tests.builders import case_names, wait_until
from tests.builders.lanes import FLARE, lane_processes, measuring, rows_so_far
from tests.builders.many import dask_processes
from tests.builders.teams import (
    LIMITS,
    PREDICT,
    SCRIPTS,
    docker,
    key_starts,
    left_behind,
    rows_of,
    save_team,
)

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor"),
]

TEAMS = {
    "good": PREDICT,
    "crash": SCRIPTS["crash"],
    "silent": SCRIPTS["silent"],
    "slow": SCRIPTS["slow"],
    "slower": f"sleep 2\n{PREDICT}\ntrue",
}
STATUSES = {
    **dict.fromkeys(("good", "slow", "slower"), "ok"),
    "crash": "failed",
    "silent": "no output",
}
LANES = (*LIMITS, "--lanes", "2")


@pytest.fixture
def folder(team_base, tmp_path):
    """A folder with the archives of all teams."""
    (tmp_path / "archives").mkdir()
    for team, script in TEAMS.items():
        save_team(tmp_path, team, script)
        (tmp_path / f"{team}.tar.gz").rename(tmp_path / "archives" / f"{team}.tar.gz")
    return tmp_path


def pinned(results):
    """The processors of each container of a team that runs now, by its volume.

    Only those measured into our results: other tests have the same engine.
    """
    found, ours = {}, key_starts(results)
    running = docker("ps", "--quiet", "--no-trunc", "--filter", "label=flare.measure")
    for container in running.split():
        try:
            (seen,) = json.loads(docker("inspect", container))
        except Exception:  # noqa: BLE001  it has just ended
            continue
        key = seen["Config"]["Labels"]["flare.measure"]
        if "sh predict.sh" in seen["Config"]["Cmd"] and key.startswith(ours):
            found[key] = (
                seen["HostConfig"]["CpusetCpus"],
                seen["HostConfig"]["Memory"],
            )
    return found


def check_results(results):
    """See that each case has a row of the right status, and nothing is left."""
    expected = {(team, case) for team in TEAMS for case in case_names(3)}
    assert rows_so_far(results) == expected
    for team, status in STATUSES.items():
        rows = rows_of(results / team)
        assert {row["status"] for row in rows.values()} == {status}, team
        predictions = list((results / team / "predictions").glob("*"))
        assert len(predictions) == (3 if status == "ok" else 0)
    wait_until(lambda: left_behind(results) == [])
    assert list(results.rglob(".*")) == []


def told_once(stdout):
    """See that each case was told once, in their order."""
    told = re.findall(r"^\[(\d+)/15\] (\w+) (\w+): ", stdout, re.MULTILINE)
    assert [int(number) for number, *_ in told] == list(range(1, 16))
    assert len({(team, case) for _, team, case in told}) == 15


def test_two_lanes_of_one_computer(folder, case_data):
    """Containers that run at the same time are pinned to processors of their own.

    One lane's process is killed twice meanwhile: a third time might strike the same
    team, which would be given up.
    """
    moments, seen = random.Random(2024), []

    with measuring(folder, case_data / "images", *LANES, program=FLARE) as process:
        deadlines = [moments.uniform(3, 6) * number for number in (1, 2)]
        begun = time.monotonic()
        while process.poll() is None:
            seen.append(pinned(folder / "results"))
            if deadlines and time.monotonic() - begun > deadlines[0]:
                victims = lane_processes(process.pid)
                if victims:
                    os.kill(moments.choice(victims), signal.SIGKILL)
                    deadlines.pop(0)
            time.sleep(0.1)
        stdout, stderr = process.communicate()

    assert (process.returncode, stderr) == (0, ""), stdout
    assert deadlines == []
    check_results(folder / "results")
    told_once(stdout)
    both = [found for found in seen if len(found) == 2]
    assert both
    known = sorted(os.sched_getaffinity(0))
    for found in both:
        (one, memory), (two, _) = found.values()
        assert memory == 120 * 2**20
        assert not set(one.split(",")) & set(two.split(","))
        assert {*map(int, one.split(",")), *map(int, two.split(","))} <= {*known}


@pytest.mark.tools(package="distributed")
def test_two_workers_of_which_one_is_killed(folder, case_data, tmp_path):
    """As two computers: each measures for itself, and another one takes its place."""
    results = folder / "results"
    (tmp_path / "dask").mkdir()

    with (
        dask_processes(tmp_path / "dask", resources="GPU=1") as (
            address,
            workers,
            start,
            _,
        ),
        measuring(
            *(folder, case_data / "images", *LANES, "--cluster", address),
            program=FLARE,
        ) as process,
    ):
        for number in (2, 6):
            wait_until(lambda n=number: len(rows_so_far(results)) >= n, 300)
            done = {
                (team, case): (results / team / "logs" / f"{case}.log").stat().st_mtime
                for team, case in rows_so_far(results)
            }
            workers.pop(0).kill()
            workers.append(start())
        stdout, stderr = process.communicate(timeout=400)

    assert (process.returncode, stderr) == (0, ""), stdout
    check_results(results)
    told_once(stdout)
    for (team, case), written in done.items():
        log = results / team / "logs" / f"{case}.log"
        assert log.stat().st_mtime == written, "it was measured twice"
    lanes = {
        session["lane"]["cpus"]
        for team in TEAMS
        for session in json.loads((results / team / "measurement.json").read_text())[
            "sessions"
        ]
    }
    assert len(lanes) == 2
