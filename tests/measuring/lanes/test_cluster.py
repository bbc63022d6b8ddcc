"""Measuring on Dask workers, with an engine that plays by a script."""

import random
import signal
import time
from contextlib import contextmanager

import pytest

from tests.builders import wait_until
from tests.builders.errors import told
from tests.builders.lanes import (
    NOTED,
    Kills,
    lane_processes,
    measuring,
    rows_so_far,
)
from tests.builders.many import dask_processes

pytestmark = [pytest.mark.slow, pytest.mark.tools(package="distributed")]

LIMITS = ("--gpu", "none", "--memory", "120m", "--output-size", "8m", "--lanes", "2")
TEAMS = ("good", "crash", "silent", "text")


@contextmanager
def measuring_on(bench, address, *more):
    """Measure all archives of the bench on a scheduler."""
    options = (*LIMITS, "--cluster", address, *more)
    with measuring(bench.folder, bench.images, *options) as process:
        yield process


def test_a_worker_that_is_killed_loses_no_case_and_measures_none_twice(bench, tmp_path):
    """Twice, each replaced by another one: what has a row is not run again.

    A third time might strike the same team, which would be given up.
    """
    for team in ("a", "b", "c"):
        bench.archive(team, NOTED.replace("TEAM", team))
    moments, kills = random.Random(2023), Kills(bench)

    with (
        dask_processes(tmp_path, resources="GPU=1") as (address, workers, start, _),
        measuring_on(bench, address) as process,
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


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_whoever_ends_the_program_ends_what_workers_do(bench, tmp_path, how):
    for team in ("a", "b"):
        bench.archive(team, NOTED.replace("TEAM", team).replace("0.3", "5"))

    with dask_processes(tmp_path, resources="GPU=1") as (address, workers, _, _):
        with measuring_on(bench, address) as process:
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


def test_a_scheduler_that_ends_is_named(bench, tmp_path):
    bench.archive("a", NOTED.replace("TEAM", "a"))

    with (
        dask_processes(tmp_path, resources="GPU=1") as (address, _, _, scheduler),
        measuring_on(bench, address) as process,
    ):
        wait_until(lambda: rows_so_far(bench.results))
        scheduler.kill()
        _, stderr = process.communicate(timeout=120)

    assert (process.returncode, told(stderr)) == (1, ("H10", address))
