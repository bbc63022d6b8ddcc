"""Measuring side by side with a real engine: two lanes, and two Dask workers."""

import json
import os
import time
from contextlib import suppress

import pytest

from tests.builders import case_names
from tests.builders.lanes import FLARE, measuring, rows_so_far
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


def test_two_lanes_of_one_computer(folder, two_cases):
    """Containers that run at the same time are pinned to processors of their own.

    Two teams go on only when both have been seen.
    """
    results, both = folder / "results", []
    for team in ("slow", "slower"):
        write_team(folder / "archives", team, f"{HELD}\n# {team}")
    more = (*LIMITS, "--lanes", "2", "--timeout", "300")

    with measuring(folder, two_cases / "images", *more, program=FLARE) as process:
        while process.poll() is None:
            found = pinned(results)
            both += [found] if len(found) == 2 else []
            for inputs in results.glob("slow*/.work-*/inputs") if both else ():
                with suppress(OSError):  # it has just been removed
                    (inputs / "go").touch()
            time.sleep(0.3)
        stdout, stderr = process.communicate()

    assert (process.returncode, stderr) == (0, ""), stdout
    assert rows_so_far(results) == {(t, c) for t in TEAMS for c in case_names(2)}
    for team, status in STATUSES.items():
        assert {row["status"] for row in rows_of(results / team).values()} == {status}
    assert left_behind(results) == []
    assert list(results.rglob(".*")) == []
    assert both
    known = sorted(os.sched_getaffinity(0))
    for found in both:
        (one, memory), (two, _) = found.values()
        assert memory == 120 * 2**20
        assert not set(one.split(",")) & set(two.split(","))
        assert {*map(int, one.split(",")), *map(int, two.split(","))} <= {*known}
