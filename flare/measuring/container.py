"""Runs a container once: limited, sampled, always removed."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from flare.common.engine import ANSWER_S, Engine
from flare.common.errors import EngineError
from flare.measuring.cleanup import label_of
from flare.measuring.conditions import Conditions
from flare.measuring.container_command import COMMAND, create_command
from flare.measuring.host import Caches, DiskWatch, busy_s, empty_caches
from flare.measuring.sampling.control_group import ControlGroup, ProcessGroup
from flare.measuring.sampling.sampler import Clock, Probe, Sampler
from flare.results.traces_csv import Trace

LOOK_S = 0.2
"""So often the disk is looked at."""

LOG_BYTES = 2**20
"""The end of a longer log is kept."""


class End(Enum):
    """Why a container is no longer waited for."""

    ENDED = "ended"
    LATE = "late"
    ALARM = "alarm"


class Watch(Protocol):
    """Something that a container may take too much of, such as the disk."""

    def is_alarming(self) -> bool:
        """Whether it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was seen of a container between its start and its end."""

    end: End
    exit_code: int
    """Of the process that has run it; negative for a signal."""
    runtime_s: float
    trace: Trace
    other_cpu_s: float | None


def watch_container(
    begin: Callable[[], subprocess.Popen[bytes]],
    kill: Callable[[], object],
    group: ProcessGroup,
    watch: Watch,
    conditions: Conditions,
    clock: Clock,
) -> Watched:
    """Start a container, and sample until it has ended, or is ended.

    Parameters
    ----------
    begin : callable
        Starts it: a process that ends when it does.
    kill : callable
        Ends it.
    group : ProcessGroup
        All of its processes.
    watch : Watch
        Says whether it has to be ended.
    conditions : Conditions
        How long it may run, and what is sampled.
    clock : callable
        Seconds that only go forward.

    Raises
    ------
    EngineError
        If it cannot be ended.
    """
    probe = Probe(gpu=conditions.gpu, group=group)
    sampler = Sampler(probe, conditions.interval_s, clock)
    try:
        sampler.look_before()
        busy_before = busy_s(cpus=conditions.own_cpus)
        start = sampler.start()
        process = begin()
        try:
            end = _wait(process, conditions.limits.timeout_s, watch)
        except BaseException:
            # Whoever has ended us may go on with something else: nothing stays behind.
            process.kill()
            process.wait()
            raise
        runtime_s = clock() - start
        busy_after = busy_s(cpus=conditions.own_cpus)
        if end is not End.ENDED:
            kill()
        try:
            process.wait(ANSWER_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise EngineError(
                "a container cannot be ended",
                "Restart the engine or the computer, and go on.",
            ) from error
        trace = sampler.stop(runtime_s)
    finally:
        sampler.stop(0.0)
    return Watched(
        end=end,
        exit_code=process.returncode,
        runtime_s=runtime_s,
        trace=trace,
        other_cpu_s=_other_cpu_s(busy_before, busy_after, trace),
    )


def _other_cpu_s(
    before: float | None, after: float | None, trace: Trace
) -> float | None:
    """Processor time of all but the container; None where that is not known."""
    own = [sample.cpu_s for sample in trace.samples if sample.cpu_s is not None]
    if before is None or after is None or not own:
        return None
    return max(0.0, after - before - max(own))


def _wait(process: subprocess.Popen[bytes], timeout_s: float, watch: Watch) -> End:
    """Wait until a process has ended, is late, or takes too much.

    `subprocess.Popen.wait` with a timeout looks only every 50 ms, which would be timed.
    """
    deadline = time.monotonic() + timeout_s
    descriptor = os.pidfd_open(process.pid)
    try:
        while True:
            left = deadline - time.monotonic()
            ended, _, _ = select.select([descriptor], [], [], max(0, min(LOOK_S, left)))
            if ended:
                return End.ENDED
            if left <= LOOK_S:
                return End.LATE
            if watch.is_alarming():
                return End.ALARM
    finally:
        os.close(descriptor)


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
    """Processor time that everything else took meanwhile: on the computer, or on the
    processors of its own."""


def run_container(
    engine: Engine,
    image: str,
    inputs: Path,
    outputs: str,
    *,
    conditions: Conditions,
    key: str,
    command: Sequence[str] = COMMAND,
    environment: Sequence[str] = (),
    model: Path | None = None,
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
    conditions : Conditions
        What it may use, and what is sampled.
    key : str
        Says which measurement it belongs to.
    command : sequence of str
        What is run; nothing for what the image itself starts.
    environment : sequence of str
        Variables that replace those of the image.
    model : Path, optional
        An absolute folder with the model that was sent beside it.
    clock : callable
        Seconds that only go forward.

    Raises
    ------
    EngineError
        If the container cannot even be made, or not be removed.
    """
    limits = conditions.limits
    watch = DiskWatch(engine.folder(), limits.disk_bytes)
    if watch.is_full:
        raise EngineError(
            f"There is too little room left in {engine.folder()}",
            "Make room there, and go on.",
        )
    make = create_command(
        *(image, str(inputs), outputs, limits, key, environment, conditions.contract),
        model=str(model or ""),
    )
    try:
        container = engine.call(*make, *command)
    except EngineError:
        engine.remove_created(label_of(key))  # the engine may still be at it
        raise
    try:
        if conditions.caches is Caches.COLD:
            empty_caches()  # making it may have read the image
        run = _run(engine, container, watch, conditions, clock)
        is_guilty = not run.has_filled_disk or not conditions.own_cpus
        # It may have been the one beside it: only what it has for sure written counts.
        is_guilty = is_guilty or engine.written_bytes(container) > limits.disk_bytes
    finally:
        engine.remove_container(container)
    if run.has_filled_disk and not (is_guilty and watch.is_given_back()):
        return replace(run, has_filled_disk=False, has_lost_disk=True)
    return run


def _run(
    engine: Engine,
    container: str,
    watch: DiskWatch,
    conditions: Conditions,
    clock: Clock,
) -> ContainerRun:
    """Start a container, wait for its end, and ask what came of it."""
    seen = watch_container(
        lambda: engine.begin("start", "--attach", container),
        lambda: engine.call("kill", container, check=False),
        ControlGroup(container),
        watch,
        conditions,
        clock,
    )
    state = engine.state(container)
    problem = ""
    if state.get("Error") or state.get("Status") in ("created", "running"):
        problem = str(state.get("Error") or "it did not start")
    return ContainerRun(
        runtime_s=seen.runtime_s,
        engine_runtime_s=_engine_runtime_s(state),
        exit_code=int(state.get("ExitCode", -1)),
        is_late=seen.end is End.LATE,
        has_filled_disk=seen.end is End.ALARM,
        has_lost_disk=False,
        is_out_of_memory=bool(state.get("OOMKilled")),
        engine_problem=problem,
        trace=seen.trace,
        log=_log(engine, container, problem),
        other_cpu_s=seen.other_cpu_s,
    )


def _log(engine: Engine, container: str, problem: str) -> bytes:
    """The end of what a container has written, and why it could not be run."""
    try:
        log = engine.log(container)
    except EngineError:
        return b"its log cannot be read\n"
    note = f"{problem}\n".encode() if problem else b""
    return log[-LOG_BYTES:] + note


def _engine_runtime_s(state: Mapping[str, Any]) -> float | None:
    """From the engine's stamps, such as 2026-11-20T15:00:00.123456789Z.

    Too short where the computer is busy: Docker 20 stamps a start only after it.
    """
    try:
        start, end = (
            datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", str(state[key])))
            for key in ("StartedAt", "FinishedAt")
        )
    except (KeyError, ValueError):
        return None
    return max(0.0, (end - start).total_seconds())
