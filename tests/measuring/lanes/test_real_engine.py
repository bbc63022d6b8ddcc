"""Measuring side by side with a real engine: two lanes, and two Dask workers."""

import json
import os
import random
import re
import signal
import time
from contextlib import suppress

import pytest

from tests.builders import case_names, wait_until
from tests.builders.lanes import FLARE, lane_processes, measuring, rows_so_far
from tests.builders.teams import (
    LIMITS,
    PREDICT,
    SCRIPTS,
    docker,
    key_starts,
    left_behind,
    rows_of,
    write_team,
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

HELD = f"""
n=0
while [ ! -e /workspace/inputs/go ] && [ $n -lt 600 ]; do
    n=$((n + 1))
    sleep 0.1
done
{PREDICT}"""
"""Waits for a file: so two containers are there at the same time, however busy this
computer is."""


@pytest.fixture
def folder(team_base, tmp_path):
    """A folder with the archives of all teams."""
    for team, script in TEAMS.items():
        write_team(tmp_path / "archives", team, script)
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


def check_results(results, teams):
    """See that each case has a row of the right status, and nothing is left."""
    expected = {(team, case) for team in teams for case in case_names(2)}
    assert rows_so_far(results) == expected
    for team in teams:
        status, rows = STATUSES[team], rows_of(results / team)
        assert {row["status"] for row in rows.values()} == {status}, team
        predictions = list((results / team / "predictions").glob("*"))
        assert len(predictions) == (2 if status == "ok" else 0)
    wait_until(lambda: left_behind(results) == [])
    assert list(results.rglob(".*")) == []


def told_once(stdout, teams):
    """See that each case was told once, in their order."""
    count = 2 * len(teams)
    told = re.findall(rf"^\[(\d+)/{count}\] (\w+) (\w+): ", stdout, re.MULTILINE)
    assert [int(number) for number, *_ in told] == list(range(1, count + 1))
    assert len({(team, case) for _, team, case in told}) == count


def test_two_lanes_of_one_computer(folder, two_cases):
    """Containers that run at the same time are pinned to processors of their own.

    One lane's process is killed twice meanwhile: a third time might strike the same
    team, which would be given up. Two teams go on only when both have been seen, and
    the lanes were killed.
    """
    moments, both = random.Random(2024), []
    for team in ("slow", "slower"):
        write_team(folder / "archives", team, f"{HELD}\n# {team}")
    more = (*LANES, "--timeout", "300")

    with measuring(folder, two_cases / "images", *more, program=FLARE) as process:
        deadlines = [moments.uniform(2, 5) * number for number in (1, 2)]
        begun = time.monotonic()
        while process.poll() is None:
            found = pinned(folder / "results")
            both += [found] if len(found) == 2 else []
            if both and not deadlines:
                for inputs in (folder / "results").glob("slow*/.work-*/inputs"):
                    with suppress(OSError):  # it has just been removed
                        (inputs / "go").touch()
            if deadlines and time.monotonic() - begun > deadlines[0]:
                victims = lane_processes(process.pid)
                if victims:
                    with suppress(ProcessLookupError):  # it has just ended
                        os.kill(moments.choice(victims), signal.SIGKILL)
                    deadlines.pop(0)
            time.sleep(0.3)
        stdout, stderr = process.communicate()

    assert (process.returncode, stderr) == (0, ""), stdout
    assert deadlines == []
    check_results(folder / "results", TEAMS)
    told_once(stdout, TEAMS)
    assert both
    known = sorted(os.sched_getaffinity(0))
    for found in both:
        (one, memory), (two, _) = found.values()
        assert memory == 120 * 2**20
        assert not set(one.split(",")) & set(two.split(","))
        assert {*map(int, one.split(",")), *map(int, two.split(","))} <= {*known}
