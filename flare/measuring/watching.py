"""Starts a container, and samples it until it has ended, or is ended."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from flare.common.engine import ANSWER_S
from flare.common.errors import EngineError
from flare.measuring.conditions import Conditions
from flare.measuring.host_load import busy_s
from flare.measuring.sampling.control_group import ProcessGroup
from flare.measuring.sampling.sampler import Clock, Probe, Sampler
from flare.results.traces_csv import Trace

LOOK_S = 0.2
"""So often the disk is looked at."""


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
