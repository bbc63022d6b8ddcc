"""Measuring on two pretended GPUs: a library that stands in for NVML, in all processes.

The engine plays by a script, and takes any GPU.
"""

import os
import subprocess

import pytest

from tests.builders import ROOT
from tests.builders.lanes import measuring
from tests.builders.teams import PREDICT
from tests.conftest import need_tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor"),
]

UUIDS = ("GPU-11111111-2222", "GPU-33333333-4444")
LIMITS = ("--memory", "120m", "--output-size", "8m")


@pytest.fixture(scope="module")
def library(request, tmp_path_factory):
    """The folder of the stand-in."""
    compiler = need_tool(request, "cc")
    folder = tmp_path_factory.mktemp("nvml")
    source = ROOT / "tests" / "fakes" / "nvml.c"
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, source], check=True)
    (folder / "script").write_text("10000 300 2000 0 0 0")
    return folder


@pytest.fixture
def measure(bench, library):
    """Measure the archives of the bench on GPUs; status, stdout and stderr."""
    (bench.engine.state / "gpus").touch()

    def run(*more):
        env = os.environ | {
            "LD_LIBRARY_PATH": str(library),
            "FAKE_NVML": str(library / "script"),
            "FAKE_NVML_SECOND": "Made-up 1",
        }
        options = (*LIMITS, *more)
        with measuring(bench.folder, bench.images, *options, env=env) as process:
            stdout, stderr = process.communicate(timeout=240)
        return process.returncode, stdout, stderr

    return run


def test_teams_are_spread_over_two_gpus(bench, measure):
    """Each container gets the GPU, and the processors, of one lane."""
    for team in "abc":
        bench.archive(team, f"sleep 0.3\n{PREDICT}\n# {team}")

    status, stdout, stderr = measure("--gpu", "0,1")

    assert (status, stderr) == (0, ""), stdout
    lanes = set()
    for team in "abc":
        record = bench.record(team)
        (session,) = record["sessions"]
        lane = session["lane"]
        lanes.add((lane["gpu"], lane["cpus"]))
        assert session["gpu"]["uuid"] == lane["gpu"]
        assert record["settings"]["gpu"] == "Made-up 1"
        assert f"device={lane['gpu']}" in session["command"]
        for row in bench.rows(team).values():
            assert row["status"] == "ok"
            assert float(row["max_gpu_memory_mb"]) == 2000
    assert {gpu for gpu, _ in lanes} == set(UUIDS)
    assert len(lanes) == len({cpus for _, cpus in lanes}) == 2


def test_a_team_goes_on_on_another_gpu_of_the_kind(bench, measure):
    """Begun on the first one, which is named last now; on one lane it is refused."""
    bench.archive("a", PREDICT)
    assert measure("--gpu", "0,1")[0] == 0
    (bench.results / "a" / "efficiency.csv").unlink()

    assert measure("--gpu", f"{UUIDS[1]},0")[0] == 0

    record = bench.record("a")
    assert [each["lane"]["gpu"] for each in record["sessions"]] == list(UUIDS)
    status, _, stderr = measure("--gpu", "0")
    assert status == 1
    assert "the team was measured with gpu Made-up 1, now it is GPU-1111" in stderr
