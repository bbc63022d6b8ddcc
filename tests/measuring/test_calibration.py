"""How fast this computer is: the program on it, and containers by script."""

import json
import platform
import subprocess
import time
from dataclasses import replace

import pytest

from flare.common.engine import Engine
from flare.measuring import calibration as calibration_module
from flare.measuring import team_image as team_image_module
from flare.measuring.calibration import calibrate
from flare.measuring.calibration_program import (
    ROUNDS,
    calibration_program,
    read_times,
)
from flare.measuring.conditions import Conditions
from flare.measuring.container_command import Limits
from flare.measuring.empty_image import make_empty_image
from flare.measuring.team_image import LoadedImage
from flare.results.calibration import Calibration, GpuSpeed, Times
from tests.builders.schemas import file_problems
from tests.builders.teams import PREDICT

LIMITS = Limits(memory="120m", shm_size="16m", output_size="8m", cpus="1")


# --- The program ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="the program is for Linux on x86-64",
)
def test_the_program_on_this_computer(tmp_path):
    """Processor time, of one thread: no more than has gone by."""
    program = tmp_path / "calibrate"
    program.write_bytes(calibration_program())
    program.chmod(0o755)

    start = time.perf_counter()
    run = subprocess.run([program], capture_output=True, check=True, timeout=60)
    took_s = time.perf_counter() - start

    integers, memory = read_times(run.stdout)
    assert len(integers) == len(memory) == ROUNDS
    assert min(integers + memory) > 0
    assert 0.01 * took_s < sum(integers) + sum(memory) < took_s


def test_numbers_are_read_as_they_are_written():
    """0x1234 = 4660 and 0xF0 = 240 nanoseconds."""
    round_ = b"AAAAAAAAAAAABCDE\nAAAAAAAAAAAAAAPA\n"

    integers, memory = read_times(round_ * 20)

    assert integers == pytest.approx([4.66e-6] * 20)
    assert memory == pytest.approx([2.4e-7] * 20)


@pytest.mark.parametrize(
    "written",
    [b"", b"AAAAAAAAAAAABCDE\n" * 39, b"ABC\n" * 40, b"AAAAAAAAAAAAAAAQ\n" * 40],
    ids=["nothing", "a line too few", "short lines", "a letter beyond P"],
)
def test_anything_else_is_refused(written):
    with pytest.raises(ValueError, match=r"lines|letter"):
        read_times(written)


# --- By script --------------------------------------------------------------------


@pytest.fixture
def image(tmp_path, scripted_engine):
    """An image of ours, in the scripted engine."""
    scripted_engine.calibrate(integers_ns=20_000_000, memory_ns=25_000_000)
    return loaded(scripted_engine.engine, tmp_path, Conditions(limits=LIMITS))


def loaded(engine, folder, conditions, tag="ours:latest"):
    """Our own image, which stands for a team's as well."""
    empty = make_empty_image(engine, tag)
    (folder / "work").mkdir()
    return LoadedImage(
        engine=engine,
        conditions=conditions,
        image=empty,
        overrides=(),
        empty=empty,
        key="calibration-test",
        work=folder / "work",
    )


def test_times_of_a_container(image):
    found = calibrate(image)

    assert found == Calibration(
        integers=Times(median=0.02, smallest=0.02, largest=0.02),
        memory=Times(median=0.025, smallest=0.025, largest=0.025),
    )


def test_the_container_has_the_limits_of_a_team(image, scripted_engine):
    calibrate(image)

    (line,) = [c for c in scripted_engine.calls("create") if c.endswith("/calibrate")]
    assert "--cpuset-cpus 1 " in line
    assert "--memory 120m --memory-swap 120m " in line
    assert "--network none " in line
    kinds = {left.partition("/")[0] for left in scripted_engine.left()}
    assert kinds == {"images", "tags"}


class FakeGpu:
    """A GPU whose speed is known."""

    def speed(self):
        return GpuSpeed(name="G", power_limit_w=300.0)


def test_an_engine_that_fails_ends_nothing(image, scripted_engine):
    scripted_engine.fail("create", "no space left on device")

    found = calibrate(image)

    assert (found.integers, found.memory) == (None, None)
    assert "no space left on device" in found.problem


def test_another_architecture_is_said(image, scripted_engine, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")

    assert calibrate(image) == Calibration(problem="there is no program for aarch64")
    assert scripted_engine.calls("create") == []


def test_a_gpu_is_asked_all_the_same(image, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    conditions = replace(image.conditions, gpu=FakeGpu())

    found = calibrate(replace(image, conditions=conditions))

    assert found.gpu == GpuSpeed(name="G", power_limit_w=300.0)


def test_what_cannot_be_read_is_said(image, scripted_engine):
    (scripted_engine.state / "calibration").write_text("hello\n")

    assert calibrate(image).problem == (
        "what it wrote cannot be read (1 lines instead of 40, or other ones)"
    )


def test_it_is_ended_by_a_limit_of_its_own(image, monkeypatch):
    asked = []

    def run_container(*_, conditions, **__):
        asked.append(conditions.limits.timeout_s)
        raise calibration_module.EngineError("stop here")  # noqa: EM101

    monkeypatch.setattr(team_image_module, "run_container", run_container)
    limits = replace(LIMITS, timeout_s=0.6)

    calibrate(replace(image, conditions=Conditions(limits=limits)))

    assert asked == [60.0]


# --- In the record ----------------------------------------------------------------


def calibrations(bench, team):
    """What each session of a team has of its calibration."""
    file = bench.results / team / "measurement.json"
    assert file_problems(file, "measurement") == []
    return [s["calibration"] for s in json.loads(file.read_text())["sessions"]]


@pytest.mark.slow
@pytest.mark.usefixtures("calibrating")
def test_before_and_after_stand_in_the_record(bench):
    bench.measure(bench.archive("good", PREDICT), cases=1)

    (found,) = calibrations(bench, "good")
    seconds = {"median": 0.02, "smallest": 0.02, "largest": 0.02}
    assert found["before"]["integers_s"] == found["after"]["integers_s"] == seconds
    assert found["before"]["problem"] == ""


@pytest.mark.slow
@pytest.mark.usefixtures("calibrating")
def test_nobody_waits_for_it_after_an_interruption(bench, monkeypatch):
    """The first case of two is interrupted, as Ctrl-C does."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("flare.measuring.team.keep_runs", interrupt)

    with pytest.raises(KeyboardInterrupt):
        bench.measure(bench.archive("good", PREDICT), cases=2)

    (found,) = calibrations(bench, "good")
    assert found["before"]["integers_s"]
    assert found["after"] is None


# --- With a real engine -----------------------------------------------------------


class Watched(Engine):
    """Docker, which notes how containers were made before it removes them."""

    def __init__(self, program):
        super().__init__(program)
        self.made = []

    def remove_container(self, container):
        told = json.loads(self.call("inspect", container))[0]
        self.made.append((told["Path"], told["HostConfig"]))
        super().remove_container(container)


@pytest.mark.docker
@pytest.mark.slow
def test_a_real_container_is_pinned_limited_and_removed(docker, tmp_path):
    engine, tag = Watched(docker), f"flare-calibration-test-{time.time_ns()}:latest"
    image = loaded(engine, tmp_path, Conditions(limits=LIMITS), tag)
    try:
        found = calibrate(image)
    finally:
        engine.remove_tags(tag)

    assert found.problem == ""
    assert found.integers.smallest > 0
    assert found.memory.smallest > 0
    (host,) = [host for path, host in engine.made if path == "/calibrate"]
    assert (host["CpusetCpus"], host["Memory"]) == ("1", 120 * 2**20)
    assert engine.image_id(tag) == ""
    label = "label=flare.measure=calibration-test"
    assert engine.call("ps", "--all", "--quiet", "--filter", label) == ""
    assert engine.call("volume", "ls", "--quiet", "--filter", label) == ""
