"""Runs a container once, limited, sampled and removed, and makes a row of its runs."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from flare.challenge.formats import SUFFIXES, suffix_of
from flare.challenge.rules import MaxMemory
from flare.common.errors import EngineError
from flare.common.files import write_whole
from flare.common.text import printable
from flare.measuring.engines.interface import ANSWER_S, Container, Engine, Exit
from flare.measuring.host import DiskWatch, busy_s, default_cpus, empty_caches, is_busy
from flare.measuring.options import FLARE, Caches, Contract, RunOptions
from flare.measuring.sampling import ControlGroup, NvmlSource, Sampler, open_gpu
from flare.results.efficiency_csv import CaseRecord, RunStatus
from flare.results.limits import MEMORY, NO_GPU, Limits
from flare.results.scores import present
from flare.results.team_folder import PREDICTIONS
from flare.results.traces_csv import TRACES, Trace, area, max_memory_mb, write_trace

LOOK_S = 0.2
"""Time between two looks at the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions under which all containers of a measurement are run."""

    limits: Limits = field(default_factory=Limits)
    """Limits of a container, with the UUID of its GPU."""
    contract: Contract = FLARE
    """The folders that they read and write, and their command."""
    runs: RunOptions = field(default_factory=RunOptions)
    """What is sampled, and whether a run finds files in the memory of the computer."""
    gpu: NvmlSource | None = None
    """The GPU of the limits, which is sampled."""
    idle_power_w: float | None = None
    """Power of the GPU before the first container; None where it is not counted."""
    exclusive_cpus: tuple[int, ...] = ()
    """Processors that no other container has, if others run beside these."""


@contextmanager
def opened_limits(limits: Limits) -> Iterator[tuple[Limits, NvmlSource | None]]:
    """Limits of one container at a time on this computer, and its GPU, if it has one.

    A DeviceError is raised if there is no such GPU.
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
    """Seconds from the request to start it until the engine said that it has ended."""
    end: End = End.ENDED
    exit: Exit
    """Its exit, as the engine tells it."""
    trace: Trace
    log: bytes
    other_cpu_s: float | None = None
    """Processor time that everything else took meanwhile: on the computer, or on the
    processors of its own."""


def run_container(
    engine: Engine, container: Container, conditions: Conditions
) -> ContainerRun:
    """Run a container, and measure it.

    An EngineError is raised if the container cannot even be made, or not be removed.
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
        if conditions.runs.caches is Caches.COLD:
            empty_caches()  # making it may have read the image
        run = _run(engine, identity, watch, conditions)
        # The container beside it may have filled the disk: then it is guilty only of
        # what it has surely written.
        has_filled = run.end is End.FILLED_DISK
        is_guilty = has_filled and (
            not conditions.exclusive_cpus or engine.written_bytes(identity) > most_bytes
        )
    finally:
        engine.remove_container(identity)
    if has_filled and not (is_guilty and watch.is_given_back()):
        return replace(run, end=End.LOST_DISK)
    return run


def _run(
    engine: Engine, container: str, watch: DiskWatch, conditions: Conditions
) -> ContainerRun:
    """Start a container, and sample until it has ended, or is ended."""
    group = ControlGroup(container)
    sampler = Sampler(conditions.runs.interval_s, gpu=conditions.gpu, group=group)
    try:
        sampler.look_before()
        busy_before = busy_s(cpus=conditions.exclusive_cpus)
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
        busy_after = busy_s(cpus=conditions.exclusive_cpus)
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
    container_exit = engine.exit_of(container)
    cpu_s, other_cpu_s = _cpu_s(trace), None
    if cpu_s is not None and busy_before is not None and busy_after is not None:
        other_cpu_s = max(0.0, busy_after - busy_before - cpu_s)
    return ContainerRun(
        runtime_s=runtime_s,
        end=end,
        exit=container_exit,
        trace=trace,
        log=_log(engine, container, container_exit.problem),
        other_cpu_s=other_cpu_s,
    )


def _wait(process: subprocess.Popen[bytes], timeout_s: float, watch: DiskWatch) -> End:
    """Wait until a process has ended, is late, or takes too much.

    `subprocess.Popen.wait` with a timeout looks only every 50 ms, which would be timed.
    """
    deadline = time.monotonic() + timeout_s
    descriptor = os.pidfd_open(process.pid)
    try:
        while True:
            left_s = deadline - time.monotonic()
            pause_s = max(0, min(LOOK_S, left_s))
            ready, _, _ = select.select([descriptor], [], [], pause_s)
            if ready:
                return End.ENDED
            if left_s <= LOOK_S:
                return End.LATE
            if watch.is_alarming():
                return End.FILLED_DISK
    finally:
        os.close(descriptor)


def _log(engine: Engine, container: str, problem: str) -> bytes:
    """The end of a container's log, and why it could not be run."""
    try:
        log = engine.log(container)
    except EngineError:
        return b"its log cannot be read\n"
    note = f"{problem}\n".encode() if problem else b""
    return log[-(2**20) :] + note


# --- The row of a case ------------------------------------------------------------


LOGS = "logs"


def counted_run(runs: Sequence[ContainerRun]) -> ContainerRun:
    """The repeat whose values count.

    It has the median running time; of two in the middle, the slower counts. But the
    first counts if later ones were much faster: something may have been kept for them.
    """
    if is_helped(runs):
        return runs[0]
    ordered = sorted(runs, key=lambda run: run.runtime_s)
    return ordered[len(ordered) // 2]


def is_helped(runs: Sequence[ContainerRun]) -> bool:
    """Whether a repeat was much faster: something that the first has left helped it."""
    first_s = runs[0].runtime_s
    gain_s = first_s - min(run.runtime_s for run in runs)
    return gain_s > max(0.5, 0.2 * first_s)


def case_record(
    case: str,
    runs: Sequence[ContainerRun],
    *,
    rule: MaxMemory,
    cpus: int,
    exclusive_cpus: int = 0,
    idle_power_w: float | None = None,
    rerun: str = "",
    doubts: Sequence[str] = (),
) -> CaseRecord:
    """The row of a case whose repeats, at least one, have all worked.

    All values are those of one repeat, see `counted_run`. `exclusive_cpus` are
    processors that no other container had, 0 if there was no other; `rerun` is why it
    was run again, and `doubts` are reasons to doubt it, besides those that its runs
    tell.
    """
    run = counted_run(runs)
    trace = run.trace
    memory = trace.gpu_memory_mb
    maxima = [_max_memory(repeat.trace, rule)[0] for repeat in runs]
    cpu_s = _cpu_s(trace)
    host = [s.host_memory_mb for s in trace.samples if s.host_memory_mb is not None]
    value_doubts = _value_doubts(runs, rule, exclusive_cpus or cpus)
    return CaseRecord(
        case=case,
        status=RunStatus.OK,
        runtime_s=run.runtime_s,
        max_gpu_memory_mb=_max_memory(trace, rule)[0],
        peak_gpu_memory_mb=_peak_mb(trace),
        idle_gpu_memory_mb=trace.idle_mb,
        energy_j=trace.energy_j,
        idle_power_w=idle_power_w,
        gpu_memory_area_mb_s=area(memory) if memory else None,
        cpu_area_percent_s=None if cpu_s is None else 100 * cpu_s / cpus,
        cpu_s=cpu_s,
        max_host_memory_mb=max(host, default=None),
        engine_runtime_s=run.exit.runtime_s,
        runtime_s_spread=_spread([repeat.runtime_s for repeat in runs]),
        max_gpu_memory_mb_spread=_spread(maxima),
        repeats=len(runs),
        samples=len(trace.samples),
        mean_interval_s=trace.mean_interval_s,
        longest_gap_s=trace.longest_gap_s,
        doubts="; ".join([*trace.doubts, *doubts, *value_doubts]),
        rerun=rerun,
    )


def _value_doubts(
    runs: Sequence[ContainerRun], rule: MaxMemory, cpus: int
) -> Iterator[str]:
    """Doubts about the values of the repeat that counts, beside those of its trace."""
    run = counted_run(runs)
    maximum, is_defined = _max_memory(run.trace, rule)
    peak = _peak_mb(run.trace)
    if not is_defined:
        yield "no value of the memory is stable: the plain maximum is taken"
    if peak and maximum is not None and maximum < 0.9 * peak:
        yield f"the stable memory is far below its peak of {peak:.0f} MB"
    if is_helped(runs):
        fastest_s = min(repeat.runtime_s for repeat in runs)
        yield (
            f"a repeat took {fastest_s:.2f} s, and the first run {run.runtime_s:.2f} s,"
            " which counts: was something kept in between?"
        )
    if is_busy(run.other_cpu_s, run.runtime_s, cpus):
        text = f"other programs took {run.other_cpu_s:.1f} s of the processors"
        yield f"{text} meanwhile"


def _cpu_s(trace: Trace) -> float | None:
    """Processor time of a container; None where it could not be read."""
    times = [sample.cpu_s for sample in trace.samples if sample.cpu_s is not None]
    return max(times, default=None)


def _peak_mb(trace: Trace) -> float | None:
    return max((mb for _, mb in trace.gpu_memory_mb), default=None)


def _max_memory(trace: Trace, rule: MaxMemory) -> tuple[float | None, bool]:
    """The maximum by a rule; None where no GPU was sampled."""
    values = [mb for _, mb in trace.gpu_memory_mb]
    return max_memory_mb(values, rule) if values else (None, True)


def _spread(values: Sequence[float | None]) -> float | None:
    numbers = present(values)
    return max(numbers) - min(numbers) if len(numbers) > 1 else None


def keep_runs(folder: Path, case: str, runs: Sequence[ContainerRun]) -> None:
    """Write the log of the last run of a case, and the trace of the one that counts."""
    if runs:
        write_whole(folder / LOGS / f"{case}.log", log_text(runs[-1].log))
        write_trace(counted_run(runs).trace, folder / TRACES / f"{case}.csv")


def keep_prediction(folder: Path, case: str, files: Sequence[Path]) -> None:
    """Move the prediction of a case to its place, where nothing older stays.

    The folder is the team's. `files` has the label map, on the same file system, or
    nothing if the run has failed.
    """
    predictions = folder / PREDICTIONS
    for suffix in SUFFIXES:
        (predictions / f"{case}{suffix}").unlink(missing_ok=True)
    for file in files:
        predictions.mkdir(exist_ok=True)
        file.replace(predictions / f"{case}{suffix_of(file.name)}")


def log_text(log: bytes) -> str:
    """The log of a container, without anything that a terminal would obey."""
    text = log.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.removesuffix("\n").split("\n") if text else []
    return "".join(f"{printable(line.expandtabs())}\n" for line in lines)
