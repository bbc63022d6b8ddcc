"""Measuring on Dask workers, with an engine that plays by a script."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.builders import ROOT, wait_until
from tests.builders.many import dask_processes
from tests.builders.teams import PREDICT, SCRIPTS

pytestmark = [pytest.mark.slow, pytest.mark.tools(package="distributed")]

LIMITS = (
    *("--gpu", "none", "--interval", "0.05", "--no-warm-up", "--memory", "120m"),
    *("--output-size", "8m", "--timeout", "60", "--lanes", "2"),
)


@pytest.fixture
def begin(bench):
    """Begin to measure all archives of the bench on a scheduler."""

    def start(address, *more):
        words = (
            *("measure", bench.folder / "archives", "--images", bench.images),
            *("--output", bench.results, *LIMITS, "--cluster", address, *more),
        )
        return subprocess.Popen(
            [sys.executable, "-m", "flare", *map(str, words)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def lanes_of(folder):
    """The number of the lane of each session."""
    content = json.loads((folder / "measurement.json").read_text())
    return [session["lane"]["number"] for session in content["sessions"]]


def test_two_workers_measure_as_two_lanes(bench, begin, tmp_path):
    for team in ("good", "crash", "silent", "text"):
        bench.archive(team, SCRIPTS[team])

    with dask_processes(tmp_path, resources="GPU=1") as (address, _, _, _):
        stdout, stderr = begin(address).communicate(timeout=120)

    assert stderr == ""
    told = re.findall(r"^\[(\d+)/12\] (\w+) (\w+): ([a-z ]+);", stdout, re.MULTILINE)
    assert [int(number) for number, *_ in told] == list(range(1, 13))
    statuses = {(team, status) for _, team, _, status in told}
    assert statuses == {
        ("good", "ok"),
        ("crash", "failed"),
        ("silent", "no output"),
        ("text", "wrong output"),
    }
    lanes = {team: lanes_of(bench.results / team) for team, _ in statuses}
    assert sorted({number for each in lanes.values() for number in each}) == [0, 1]
    assert all(len(each) == 1 for each in lanes.values())
    assert bench.engine.left() == []
    assert bench.hidden() == []
