"""Runs a container once: limited, sampled, always removed."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum

from flare.common.engine import (
    ANSWER_S,
    MEMORY,
    NO_GPU,
    Container,
    Ended,
    Engine,
    Limits,
)
from flare.common.errors import EngineError
from flare.measuring.host import DiskWatch, busy_s, default_cpus, empty_caches
from flare.measuring.options import FLARE, Caches, Contract
from flare.measuring.sampling import ControlGroup, NvmlSource, Sampler, open_gpu
from flare.results.traces_csv import Trace

LOOK_S = 0.2
"""Time between two looks at the disk."""

LOG_BYTES = 2**20
"""The end of a longer log is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which all containers of a measurement are run."""

    limits: Limits = field(default_factory=Limits)
    """What a container may use, with the UUID of its GPU."""
    contract: Contract = FLARE
    """Where they read and write, and how they are started."""
    interval_s: float = 0.1
    """Between two samples."""
    caches: Caches = Caches.WARM
    """What a run finds in the memory of the computer."""
    gpu: NvmlSource | None = None
    """What is sampled of the GPU of the limits."""
    own_cpus: tuple[int, ...] = ()
    """Where other containers run beside these, processors that those have not."""


@contextmanager
def opened_limits(limits: Limits) -> Iterator[tuple[Limits, NvmlSource | None]]:
    """Limits of one container at a time on this computer, and its GPU, if it has one.

    Raises
    ------
    DeviceError
        If there is no such GPU.
    """
    cpus = default_cpus() if limits.cpus is None else limits.cpus
    memory = limits.memory or MEMORY
    if limits.gpu == NO_GPU:
        yield replace(limits, gpu="", memory=memory, cpus=cpus), None
        return
    with open_gpu(limits.gpu) as gpu:
        yield replace(limits, gpu=gpu.device.uuid, memory=memory, cpus=cpus), gpu


class End(Enum):
    """Why a container was no longer waited for."""

    ENDED = "it has ended"
    LATE = "the time limit ended it"
    FILLED_DISK = "it was ended because it took too much of the disk"
    LOST_DISK = "it was ended because something else did"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRun:
    """The outcome of running a container."""

    runtime_s: float
    """From the request to start it until the engine said that it has ended."""
    end: End = End.ENDED
    ended: Ended
    """What the engine says of it."""
    trace: Trace
    log: bytes
    other_cpu_s: float | None = None
    """Processor time that everything else took meanwhile: on the computer, or on the
    processors of its own."""


def run_container(
    engine: Engine, container: Container, conditions: Conditions
) -> ContainerRun:
    """Run a container, and measure it.

    Raises
    ------
    EngineError
        If the container cannot even be made, or not be removed.
    """
    most_bytes = container.limits.disk_bytes
    watch = DiskWatch(engine.folder(), most_bytes)
    if watch.is_full:
        raise EngineError(
            f"There is too little room left in {engine.folder()}",
            "Make room there, and go on.",
        )
    identity = engine.create(container)
    try:
        if conditions.caches is Caches.COLD:
            empty_caches()  # making it may have read the image
        run = _run(engine, identity, watch, conditions)
        is_guilty = run.end is not End.FILLED_DISK or not conditions.own_cpus
        # It may have been the one beside it: only what it has for sure written counts.
        is_guilty = is_guilty or engine.written_bytes(identity) > most_bytes
    finally:
        engine.remove_container(identity)
    if run.end is End.FILLED_DISK and not (is_guilty and watch.is_given_back()):
        return replace(run, end=End.LOST_DISK)
    return run


def _run(
    engine: Engine, container: str, watch: DiskWatch, conditions: Conditions
) -> ContainerRun:
    """Start a container, and sample until it has ended, or is ended."""
    group = ControlGroup(container)
    sampler = Sampler(conditions.interval_s, gpu=conditions.gpu, group=group)
    try:
        sampler.look_before()
        busy_before = busy_s(cpus=conditions.own_cpus)
        start = sampler.start()
        process = engine.start(container)
        try:
            end = _wait(process, conditions.limits.timeout_s, watch)
        except BaseException:
            # The caller may go on with something else: nothing stays behind.
            process.kill()
            process.wait()
            raise
        runtime_s = time.perf_counter() - start
        busy_after = busy_s(cpus=conditions.own_cpus)
        if end is not End.ENDED:
            engine.kill(container)
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
    ended = engine.ended(container)
    return ContainerRun(
        runtime_s=runtime_s,
        end=end,
        ended=ended,
        trace=trace,
        log=_log(engine, container, ended.problem),
        other_cpu_s=_other_cpu_s(busy_before, busy_after, trace),
    )


def _wait(process: subprocess.Popen[bytes], timeout_s: float, watch: DiskWatch) -> End:
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
                return End.FILLED_DISK
    finally:
        os.close(descriptor)


def _other_cpu_s(
    before: float | None, after: float | None, trace: Trace
) -> float | None:
    """Processor time of all but the container; None where that is not known."""
    own = [sample.cpu_s for sample in trace.samples if sample.cpu_s is not None]
    if before is None or after is None or not own:
        return None
    return max(0.0, after - before - max(own))


def _log(engine: Engine, container: str, problem: str) -> bytes:
    """The end of what a container has written, and why it could not be run."""
    try:
        log = engine.log(container)
    except EngineError:
        return b"its log cannot be read\n"
    note = f"{problem}\n".encode() if problem else b""
    return log[-LOG_BYTES:] + note
