"""Runs a team's image on one case, with limits, and always removes the container.

The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_command`, each with its reason.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from flare.common.errors import EngineError
from flare.measuring.disk import DiskWatch
from flare.measuring.engine import ANSWER_S, LABEL, Engine
from flare.measuring.host_load import busy_s, empty_caches
from flare.measuring.sampling.gpu import MemorySource
from flare.measuring.sampling.sampler import Clock, ControlGroup, Probe, Sampler
from flare.results.traces_csv import Trace

COMMAND = ("/bin/bash", "-c", "sh predict.sh")

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""What root in a container may do beyond other users: use all files of its image, and
be another user. The rest of Docker's fourteen, such as making devices and raw packets,
is not needed to predict."""

LOG_BYTES = 2**20
"""The end of a longer log is kept."""

LOOK_S = 0.2
"""So often the disk is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a container may use."""

    timeout_s: float = 3600.0
    """FLARE22 counts a container as stuck after this time."""
    memory: str = "28g"
    """FLARE23's limit; swap is not added."""
    shm_size: str = "28g"
    """FLARE23's size of /dev/shm."""
    output_size: str = "4g"
    """Of /workspace/outputs, which is in memory and counts as such."""
    output_files: int = 10_000
    """Files and folders there."""
    disk_bytes: int = 64 * 2**30
    """All that a container writes elsewhere."""
    processes: int = 4096
    cpus: str = ""
    """Numbers of the processors, such as 1-7; empty for all."""
    gpu: str = ""
    """UUID of the GPU; empty for none."""
    runtime: str = ""
    """Of the engine, such as runsc; empty for its default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRun:
    """What came of running a container."""

    runtime_s: float
    """From the request to start it until the engine said that it has ended."""
    engine_runtime_s: float | None
    """The same by the engine's own clock, which may be set while it runs."""
    exit_code: int
    is_late: bool
    """Whether the time limit ended it."""
    is_out_of_memory: bool
    has_filled_disk: bool
    """Whether it was ended because it took too much of the disk."""
    has_lost_disk: bool
    """Whether it was ended because something else did."""
    engine_problem: str
    """Why the engine could not run it; empty if it could."""
    trace: Trace
    log: bytes
    other_cpu_s: float | None = None
    """Processor time that everything else on the computer took meanwhile."""


def create_command(
    program: str,
    image: str,
    inputs: str,
    outputs: str,
    limits: Limits,
    key: str,
    environment: Sequence[str] = (),
) -> tuple[str, ...]:
    """The command that makes a container, without what it runs.

    Parameters
    ----------
    program : str
        The engine's.
    image : str
        Its ID.
    inputs : str
        An absolute folder, which cannot be written to.
    outputs : str
        Name of a volume.
    limits : Limits
        What it may use.
    key : str
        Says which measurement it belongs to.
    environment : sequence of str
        Variables that replace those of the image.
    """
    # Without a GPU, whatever the image and the engine have as their defaults.
    gpu = ("--env", "NVIDIA_VISIBLE_DEVICES=void")
    if limits.gpu:
        gpu = ("--gpus", f'"device={limits.gpu}"')
    return (
        # Made first and started later, so that making it is not timed.
        *(program, "create"),
        # So that it is found and removed, even by a later run.
        *("--label", f"{LABEL}={key}"),
        *(("--runtime", limits.runtime) if limits.runtime else ()),
        *gpu,
        *(word for line in environment for word in ("--env", line)),
        # Nothing is fetched while time runs, and no image leaves the computer.
        *("--network", "none"),
        # FLARE23's memory; without --memory-swap as much swap would be added.
        *("--memory", limits.memory, "--memory-swap", limits.memory),
        *("--shm-size", limits.shm_size),
        # One processor is left to the engine and the sampler, where there are enough.
        *(("--cpuset-cpus", limits.cpus) if limits.cpus else ()),
        # One team's runaway processes must not end the others' measurement.
        *("--pids-limit", str(limits.processes)),
        # What predicting does not need, an attack could use.
        *("--cap-drop", "ALL"),
        *(word for name in CAPABILITIES for word in ("--cap-add", name)),
        *("--security-opt", "no-new-privileges"),
        *("--ulimit", "core=0:0"),
        # The image's own would run beside the prediction, and be timed.
        "--no-healthcheck",
        # A log without end must not fill the disk.
        *("--log-driver", "json-file", "--log-opt", "max-size=10m"),
        # Read-only: nobody changes the images of others.
        *("--volume", f"{inputs}:/workspace/inputs/:ro"),
        # No folder of the computer: see `flare.measuring.engine.Engine.volume`.
        *("--volume", f"{outputs}:/workspace/outputs/"),
        image,
    )


def run_container(
    engine: Engine,
    image: str,
    inputs: Path,
    outputs: str,
    *,
    limits: Limits,
    key: str,
    interval_s: float,
    gpu: MemorySource | None = None,
    command: Sequence[str] = COMMAND,
    environment: Sequence[str] = (),
    is_cold: bool = False,
    clock: Clock = time.perf_counter,
) -> ContainerRun:
    """Run an image on what is in a folder, and measure it.

    Parameters
    ----------
    engine : Engine
        What it runs in.
    image : str
        Its ID.
    inputs : Path
        An absolute folder.
    outputs : str
        Name of a volume.
    limits : Limits
        What it may use.
    key : str
        Says which measurement it belongs to.
    interval_s : float
        Between two samples.
    gpu : MemorySource, optional
        What is sampled of the GPU.
    command : sequence of str
        What is run.
    environment : sequence of str
        Variables that replace those of the image.
    is_cold : bool
        Whether the computer's caches are emptied before it is started.
    clock : callable
        Seconds that only go forward.

    Raises
    ------
    EngineError
        If the container cannot even be made, or not be removed.
    """
    watch = DiskWatch(engine.folder(), limits.disk_bytes)
    if watch.is_full:
        problem = f"There is too little room left in {engine.folder()}"
        raise EngineError(problem, "Make room there, and go on.")
    make = create_command(
        engine.program, image, str(inputs), outputs, limits, key, environment
    )
    try:
        identity = engine.call(*make[1:], *command)
    except EngineError:
        engine.remove_created(key)  # the engine may still be at it
        raise
    try:
        if is_cold:
            empty_caches()  # making it may have read the image
        run = _run(engine, identity, watch, limits, interval_s, gpu, clock)
    finally:
        engine.remove_container(identity)
    if run.has_filled_disk and not watch.is_given_back():
        return replace(run, has_filled_disk=False, has_lost_disk=True)
    return run


def _run(
    engine: Engine,
    identity: str,
    watch: DiskWatch,
    limits: Limits,
    interval_s: float,
    gpu: MemorySource | None,
    clock: Clock,
) -> ContainerRun:
    """Start a container, sample until it has ended, and ask what came of it."""
    probe = Probe(gpu=gpu, group=ControlGroup(identity))
    sampler = Sampler(probe, interval_s, clock)
    try:
        sampler.look_before()
        busy_before = busy_s()
        start = sampler.start()
        process = subprocess.Popen(
            [engine.program, "start", "--attach", identity],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = _wait(process, limits.timeout_s, watch)
        runtime_s = clock() - start
        busy_after = busy_s()
        if end is not _End.ENDED:
            engine.call("kill", identity, check=False)
        try:
            process.wait(ANSWER_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            problem = "a container cannot be ended"
            raise EngineError(problem, "Restart Docker, and go on.") from error
        trace = sampler.stop(runtime_s)
    finally:
        sampler.stop(0.0)
    state = json.loads(engine.call("inspect", "--format", "{{json .State}}", identity))
    problem = ""
    if state.get("Error") or state.get("Status") in ("created", "running"):
        problem = str(state.get("Error") or "it did not start")
    return ContainerRun(
        runtime_s=runtime_s,
        engine_runtime_s=_engine_runtime_s(state),
        exit_code=int(state.get("ExitCode", -1)),
        is_late=end is _End.LATE,
        has_filled_disk=end is _End.DISK_FULL,
        has_lost_disk=False,
        is_out_of_memory=bool(state.get("OOMKilled")),
        engine_problem=problem,
        trace=trace,
        log=_log(engine, identity, problem),
        other_cpu_s=_other_cpu_s(busy_before, busy_after, trace),
    )


def _log(engine: Engine, identity: str, problem: str) -> bytes:
    """The end of what a container has written."""
    try:
        run = subprocess.run(
            [engine.program, "logs", "--tail", "20000", identity],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=ANSWER_S,
        )
    except subprocess.TimeoutExpired:
        return b"its log cannot be read\n"
    note = f"{problem}\n".encode() if problem else b""
    return run.stdout[-LOG_BYTES:] + note


def _other_cpu_s(
    before: float | None, after: float | None, trace: Trace
) -> float | None:
    """Processor time of all but the container; None where that is not known."""
    own = [sample.cpu_s for sample in trace.samples if sample.cpu_s is not None]
    if before is None or after is None or not own:
        return None
    return max(0.0, after - before - max(own))


class _End(Enum):
    """Why a container is no longer waited for."""

    ENDED = "ended"
    LATE = "late"
    DISK_FULL = "disk full"


def _wait(process: subprocess.Popen[bytes], timeout_s: float, watch: DiskWatch) -> _End:
    """Wait until a process has ended, is late, or takes too much of the disk.

    `subprocess.Popen.wait` with a timeout looks only every 50 ms, which would be timed.
    """
    deadline = time.monotonic() + timeout_s
    descriptor = os.pidfd_open(process.pid)
    try:
        while True:
            left = deadline - time.monotonic()
            ended, _, _ = select.select([descriptor], [], [], max(0, min(LOOK_S, left)))
            if ended:
                return _End.ENDED
            if left <= LOOK_S:
                return _End.LATE
            if watch.is_alarming():
                return _End.DISK_FULL
    finally:
        os.close(descriptor)


def _engine_runtime_s(state: dict[str, Any]) -> float | None:
    """From the engine's stamps, such as 2026-11-20T15:00:00.123456789Z."""
    try:
        start, end = (
            datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", str(state[key])))
            for key in ("StartedAt", "FinishedAt")
        )
    except (KeyError, ValueError):
        return None
    return max(0.0, (end - start).total_seconds())
