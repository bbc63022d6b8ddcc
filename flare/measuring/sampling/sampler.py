"""Samples GPU memory, and a container's memory and processor time, while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from flare.measuring.errors import DeviceError
from flare.measuring.sampling.control_group import ProcessGroup
from flare.measuring.sampling.nvml import DeviceState, MemorySource
from flare.results.traces_csv import Sample, Trace

STATE_EVERY = 10
"""Clock, temperature and processes are asked for with every tenth sample."""

IDLE_SAMPLES = 5
"""Samples, before a container is started, whose median is the idle memory."""

JOIN_S = 10.0
"""How long the last sample is waited for."""

Clock = Callable[[], float]
Pause = Callable[[float], bool]
"""Waits for a number of seconds; true if it was told to stop."""


@dataclass(slots=True)
class Probe:
    """What a sample is made of."""

    gpu: MemorySource | None = None
    group: ProcessGroup | None = None
    strangers: set[int] = field(default_factory=set)
    is_throttled: bool = False
    has_seen_own: bool = False
    """Whether any process of the container was seen."""
    _state: DeviceState = field(default_factory=DeviceState)
    _count: int = 0

    def sample(self, seconds: float) -> Sample:
        """One sample.

        Raises
        ------
        DeviceError
            If the GPU does not answer any more.
        """
        sample = Sample(seconds=seconds)
        if self.group:
            memory, cpu_s = self.group.read()
            sample = replace(sample, host_memory_mb=memory, cpu_s=cpu_s)
        if self.gpu:
            reading = self.gpu.read()
            if self._count % STATE_EVERY == 0:
                self._look_around(self.gpu)
            sample = replace(
                sample,
                gpu_memory_mb=reading.allocated_mb,
                gpu_total_mb=reading.total_mb,
                gpu_free_mb=reading.free_mb,
                gpu_used_mb=reading.used_mb,
                gpu_reserved_mb=reading.reserved_mb,
                sm_clock_mhz=self._state.sm_clock_mhz,
                temperature_c=self._state.temperature_c,
            )
        self._count += 1
        return sample

    def _look_around(self, gpu: MemorySource) -> None:
        """Ask for what changes slowly."""
        self._state = gpu.state()
        self.is_throttled |= bool(self._state.is_throttled)
        # Before and after: a process may end, or begin, in between.
        before = self._own()
        found = gpu.processes()
        own = before | self._own()
        if own:
            self.has_seen_own = True
            self.strangers |= found - own

    def _own(self) -> frozenset[int]:
        """Processes of the container."""
        return self.group.processes() if self.group else frozenset()


def collect(
    probe: Probe, start: float, interval_s: float, clock: Clock, pause: Pause
) -> Iterable[Sample]:
    """Samples at multiples of the interval since the start, until told to stop.

    A sample that comes too late does not shift those behind it: its time is the true
    one, and the multiples that it has missed are left out.
    """
    while True:
        now = clock() - start
        yield probe.sample(now)
        behind = clock() - start
        # A sample that is a rounding error too early is not due at once again.
        due = (int(behind / interval_s + 1e-6) + 1) * interval_s
        if pause(due - behind):
            return


class Sampler:
    """A thread that samples between the start and the end of a container.

    Parameters
    ----------
    probe : Probe
        What is sampled.
    interval_s : float
        Time between two samples.
    clock : callable
        Seconds that only go forward.
    """

    def __init__(
        self, probe: Probe, interval_s: float, clock: Clock = time.perf_counter
    ) -> None:
        self._probe, self._interval_s, self._clock = probe, interval_s, clock
        self._samples: list[Sample] = []
        self._idle_mb: float | None = None
        self._problem = ""
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._start = 0.0

    def look_before(self) -> None:
        """Measure what is allocated while nothing runs, and who is there."""
        gpu = self._probe.gpu
        if gpu:
            readings = [gpu.read().allocated_mb for _ in range(IDLE_SAMPLES)]
            self._idle_mb = sorted(readings)[IDLE_SAMPLES // 2]
            self._probe.strangers |= gpu.processes()

    def start(self) -> float:
        """Begin; returns the time of the start."""
        self._start = self._clock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self._start

    def _run(self) -> None:
        samples = collect(
            self._probe, self._start, self._interval_s, self._clock, self._end.wait
        )
        try:
            for sample in samples:
                self._samples.append(sample)
        except DeviceError as error:
            self._problem = error.finding
        except Exception as error:  # noqa: BLE001  whatever it is, it is not unnoticed
            self._problem = f"the sampler has failed ({type(error).__name__}: {error})"

    def stop(self, runtime_s: float) -> Trace:
        """End; what was sampled up to the end of the container."""
        self._end.set()
        if self._thread:
            self._thread.join(timeout=JOIN_S)
            if self._thread.is_alive():
                self._problem = "the GPU has not answered for some time"
        return Trace(
            samples=tuple(s for s in list(self._samples) if s.seconds <= runtime_s),
            interval_s=self._interval_s,
            runtime_s=runtime_s,
            idle_mb=self._idle_mb,
            strangers=frozenset(self._probe.strangers),
            is_throttled=self._probe.is_throttled,
            is_blind=self._probe.gpu is not None and not self._probe.has_seen_own,
            problem=self._problem,
        )
