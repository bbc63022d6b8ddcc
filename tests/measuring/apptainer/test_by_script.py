"""Whole measurements with an Apptainer that plays by a script.

What the real one does with the same images is in `test_real_apptainer.py`.
"""

import json
import re
import signal
import subprocess
import sys

import pytest

from flare.common.errors import EngineError
from flare.measuring.apptainer import run as run_module
from flare.measuring.container_command import Limits
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock
from tests.builders import ROOT, wait_until, wait_until_equal
from tests.builders.teams import PREDICT, SCRIPTS

pytestmark = pytest.mark.slow

LIMITS = Limits(timeout_s=0.6, memory="120m", shm_size="16m", output_size="8m")

STATUSES = {
    "good": (PREDICT, "ok", r""),
    "crash": (SCRIPTS["crash"], "failed", r"the container ended with exit code 3 a.*"),
    "hang": (SCRIPTS["hang"], "timed out", r"the container was ended after 0\.\d s"),
    "killed": ("kill -9 $$", "failed", r"the container ended with exit code 137 .*"),
    "silent": (SCRIPTS["silent"], "no output", r"it has written nothing to /workspa.*"),
    "misnamed": (SCRIPTS["misnamed"], "wrong output", r".*\[F03\]"),
    "text": (SCRIPTS["text"], "wrong output", r".*\[F06\]"),
    "link": (SCRIPTS["link"], "wrong output", r".*it is a link.*\[F06\]"),
}
"""Each team's script, and what comes of it."""


@pytest.mark.parametrize("team", STATUSES)
def test_the_status_of_a_team(apptainer_bench, team):
    """As with Docker: only the good one has values, and nothing is left behind."""
    bench = apptainer_bench
    script, status, message = STATUSES[team]

    assert bench.measure(bench.archive(team, script), cases=1) == {}

    row = bench.rows(team)["validation_001"]
    assert row["status"] == status
    see = "" if status == "ok" else r"; see logs/validation_001\.log"
    assert re.fullmatch(message + see, row["message"])
    assert bool(row["runtime_s"]) == (status == "ok")
    assert row["engine_runtime_s"] == ""
    predictions = [p.name for p in (bench.results / team / "predictions").glob("*")]
    assert predictions == (["validation_001.nii.gz"] if status == "ok" else [])
    assert bench.engine.left() == []
    assert bench.hidden() == []
    assert bench.told == [(team, "validation_001", status, 1, 1), team]


def test_a_container_that_takes_too_much_memory_is_ended(apptainer_bench):
    """300 MB for sure: half of what its two processes say they have."""
    bench = apptainer_bench
    bench.engine.run(7, anonymous_kb=300 * 1024)
    bench.engine.run(8, anonymous_kb=300 * 1024)
    limits = Limits(timeout_s=20, memory="290m", output_size="8m")

    bench.measure(bench.archive("hungry", "sleep 60"), cases=1, limits=limits)

    row = bench.rows("hungry")["validation_001"]
    assert row["status"] == "out of memory"
    assert "exit code 137 " in row["message"]
    assert bench.engine.left() == []


def test_memory_that_is_shared_ends_nobody(apptainer_bench):
    bench = apptainer_bench
    bench.engine.run(7, anonymous_kb=300 * 1024)
    limits = Limits(timeout_s=20, memory="160m", output_size="8m")
    script = f"sleep 0.5\n{PREDICT}"

    bench.measure(bench.archive("good", script), cases=1, limits=limits)

    row = bench.rows("good")["validation_001"]
    assert (row["status"], row["max_host_memory_mb"]) == ("ok", "300.0")
    assert float(row["cpu_s"]) == 2.0  # 100 + 50 + 30 + 20 ticks of 10 ms


def test_an_image_that_apptainer_cannot_run_is_no_team_s_fault(apptainer_bench):
    bench = apptainer_bench
    bench.engine.say("fatal", "container creation failed: no room")

    failed = bench.measure(bench.archive("good", PREDICT), cases=1)

    assert isinstance(failed["good"], EngineError)
    assert str(failed["good"]).startswith(
        "An empty container cannot be run (container creation failed: no room)"
    )
    assert not (bench.results / "good" / "efficiency.csv").exists()
    assert bench.hidden() == []


def test_a_container_that_fills_the_disk(apptainer_bench, monkeypatch):
    """It is to blame if the room is there again when it has been removed."""
    bench = apptainer_bench

    class FullDisk:
        is_full = False

        def __init__(self, *_):
            pass

        def is_alarming(self):
            return True

        def is_given_back(self):
            return True

    file = bench.archive("greedy", "sleep 60")
    bench.measure(bench.archive("good", PREDICT), cases=1)
    monkeypatch.setattr(run_module, "DiskWatch", FullDisk)
    monkeypatch.setattr("flare.measuring.apptainer.image.DiskWatch", FullDisk)
    monkeypatch.setattr("flare.measuring.apptainer.image.wait_loaded", wait)

    bench.measure(file, cases=1, limits=Limits(timeout_s=20))

    row = bench.rows("greedy")["validation_001"]
    assert row["status"] == "failed"
    assert "it took too much of the disk (--disk)" in row["message"]


def wait(process, *_):
    """Wait for a process, whatever it takes of the disk."""
    process.wait()
    return ""


@pytest.mark.usefixtures("calibrating")
def test_the_record_says_what_has_run_it(apptainer_bench):
    bench = apptainer_bench
    bench.measure(bench.archive("good", PREDICT), cases=1)

    record = json.loads((bench.results / "good" / "measurement.json").read_text())
    assert record["settings"]["container_engine"] == "apptainer"
    (session,) = record["sessions"]
    assert session["engine"]["version"] == "Apptainer 1.4.5"
    assert session["weaknesses"] == session["engine"]["gaps"]
    assert [gap[:24] for gap in session["weaknesses"]] == [
        *("Apptainer limits no memo", "Apptainer keeps no progr"),
        "Apptainer filters no sys",
    ]
    assert session["calibration"]["before"]["problem"] == ""
    assert session["command"].startswith(
        "prlimit --nproc=4096:4096 --core=0:0 apptainer --silent exec --containall"
    )
    assert session["command"].endswith("IMAGE /bin/bash -c 'sh predict.sh'")


def test_an_entrypoint_is_run_before_the_command(apptainer_bench):
    bench = apptainer_bench
    file = bench.archive("good", PREDICT, Entrypoint=["/bin/tini", "--"])

    bench.measure(file, cases=1)

    ends = [line.partition("/image ")[2] for line in bench.engine.lines("calls")]
    assert "/bin/tini -- /bin/bash -c sh predict.sh" in ends


@pytest.mark.usefixtures("calibrating")
def test_a_container_gets_the_image_s_variables_and_none_of_ours(
    apptainer_bench, monkeypatch
):
    bench = apptainer_bench
    monkeypatch.setenv("FLARE_TOKEN", "secret")
    monkeypatch.setenv("APPTAINER_BIND", "/home")
    env = ["PATH=/bin", "TEXT=$(id) `id` \"a\" 'b', c=d", "LD_LIBRARY_PATH=/a::/b"]

    bench.measure(bench.archive("good", PREDICT, Env=env), cases=1)

    bench.measure(bench.archive("crash", "exit 3", Env=env), cases=1)
    found = dict(line.split("=", 1) for line in bench.engine.lines("variables"))
    assert "FLARE_TOKEN" not in found
    assert "APPTAINER_BIND" not in found
    own = {n: v for n, v in found.items() if n.startswith("APPTAINERENV_")}
    assert own == {"APPTAINERENV_CUDA_VISIBLE_DEVICES": ""}  # of the calibration


def test_what_was_measured_with_docker_does_not_go_on(apptainer_bench):
    bench = apptainer_bench
    file = bench.archive("good", PREDICT)
    bench.measure(file, cases=1)
    measured = bench.results / "good" / "measurement.json"
    record = json.loads(measured.read_text())
    del record["settings"]["container_engine"]
    measured.write_text(json.dumps(record))

    failed = bench.measure(file, cases=1)

    assert isinstance(failed["good"], MeasurementError)
    text = "the team was measured with container_engine docker, now it is apptainer"
    assert text in str(failed["good"])


# --- When it is ended -------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from flare.cli.main import main
from flare.measuring.apptainer.box import Box
from tests.fakes.quick import lighten
os.geteuid = lambda: 1000
Box.root = Path(sys.argv.pop(1))
lighten()
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_measurement_that_is_ended(apptainer_bench, number):
    """Its container ends with it, and its folder is removed."""
    bench = apptainer_bench
    file = bench.archive("hang", "sleep 600")
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", KILLED, bench.engine.root, "measure", file),
            *("--images", bench.images, "--output", bench.results),
            *("--engine", "apptainer", "--gpu", "none", "--no-warm-up"),
        ],
        cwd=ROOT,
    )
    entered = bench.engine.state / "entered"
    wait_until(
        lambda: entered.exists() and "sh predict.sh" in entered.read_text(), seconds=20
    )

    process.send_signal(number)
    process.communicate()

    with FolderLock(bench.results / "hang"):  # the guard has it as long as it works
        assert list((bench.results / "hang").glob(".work*")) == []
    wait_until_equal(bench.engine.left, [])
