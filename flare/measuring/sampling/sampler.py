"""Samples GPU memory, and a container's memory and processor time, while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from flare.common.environment import CGROUPS
from flare.measuring.sampling.nvml import MB, DeviceError, DeviceState, NvmlSource
from flare.results.traces_csv import Sample, Trace

STATE_EVERY = 10
"""Clock, temperature and processes are asked for with every tenth sample."""

IDLE_SAMPLES = 5
"""Samples, before a container is started, whose median is the idle memory."""

JOIN_S = 10.0
"""How long the last sample is waited for."""


class ControlGroup:
    """Memory and processor time of a container, from its control group.

    Parameters
    ----------
    container : str
        Its full ID.
    root : Path
        Where control groups are mounted.
    """

    def __init__(self, container: str, root: Path = CGROUPS) -> None:
        self._container, self._root = container, root
        self._is_v2 = (root / "cgroup.controllers").exists()
        self._folders: dict[str, Path] = {}

    def read(self) -> tuple[float | None, float | None]:
        """Memory in MB, without files that are only cached, and seconds of CPU.

        None where it cannot be read, as when the container has ended.
        """
        if self._is_v2:
            memory = self._memory("", "memory.current", "inactive_file")
            usage = _fields(self._file("", "cpu.stat")).get("usage_usec")
            return memory, None if usage is None else usage / 1e6
        memory = self._memory("memory", "memory.usage_in_bytes", "total_inactive_file")
        nanoseconds = _number(self._file("cpuacct", "cpuacct.usage"))
        return memory, None if nanoseconds is None else nanoseconds / 1e9

    def processes(self) -> frozenset[int]:
        """IDs, as the host has them, of all processes of the container."""
        file = self._file("" if self._is_v2 else "memory", "cgroup.procs")
        return frozenset(int(word) for word in _text(file).split() if word.isdigit())

    def _memory(self, controller: str, total: str, cached: str) -> float | None:
        usage = _number(self._file(controller, total))
        if usage is None:
            return None
        cache = _fields(self._file(controller, "memory.stat")).get(cached, 0)
        return max(0, usage - cache) / MB

    def _file(self, controller: str, name: str) -> Path:
        folder = self._folders.get(controller)
        if folder is None:
            folder = self._find(self._root / controller)
            if folder is None:
                return self._root / "nowhere"
            self._folders[controller] = folder
        return folder / name

    def _find(self, controller: Path) -> Path | None:
        """The folder of the container: engines and systemd put it in several places."""
        identity = self._container
        for pattern in (
            f"docker/{identity}",
            f"system.slice/*-{identity}.scope",
            f"*/*/*{identity}*",
            f"*/*/*/*/*{identity}*",
        ):
            for found in controller.glob(pattern):
                return found
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _fields(file: Path) -> dict[str, int]:
    """Names and numbers of a file with a pair in each line."""
    pairs = (line.split() for line in _text(file).splitlines())
    return {p[0]: int(p[1]) for p in pairs if len(p) == 2 and p[1].isdigit()}


class Sampler:
    """A thread that samples between the start and the end of a container.

    Parameters
    ----------
    interval_s : float
        Time between two samples.
    gpu : NvmlSource, optional
        What is sampled of it,
    group : ControlGroup, optional
        and of the container.
    clock : callable
        Seconds that only go forward.
    """

    def __init__(
        self,
        interval_s: float,
        *,
        gpu: NvmlSource | None = None,
        group: ControlGroup | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._interval_s, self._gpu, self._group = interval_s, gpu, group
        self._clock, self._start = clock, 0.0
        self._samples: list[Sample] = []
        self._idle_mb: float | None = None
        self._state = DeviceState()
        self._strangers: set[int] = set()
        self._is_throttled = self._has_seen_own = False
        self._problem = ""
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def look_before(self) -> None:
        """Measure what is allocated while nothing runs, and who is there."""
        if self._gpu:
            samples = [self._gpu.read().gpu_memory_mb for _ in range(IDLE_SAMPLES)]
            self._idle_mb = median(mb for mb in samples if mb is not None)
            self._strangers |= self._gpu.processes()

    def start(self) -> float:
        """Begin; returns the time of the start."""
        self._start = self._clock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self._start

    def _run(self) -> None:
        try:
            self.collect(self._end.wait)
        except DeviceError as error:
            self._problem = error.finding
        except Exception as error:  # noqa: BLE001  whatever it is, it is not unnoticed
            self._problem = f"the sampler has failed ({type(error).__name__}: {error})"

    def collect(self, pause: Callable[[float], bool]) -> None:
        """Sample at multiples of the interval since the start, until told to stop.

        A sample that comes too late does not shift those behind it: its time is the
        true one, and the multiples that it has missed are left out.

        Parameters
        ----------
        pause : callable
            Waits for a number of seconds; true if it was told to stop.

        Raises
        ------
        DeviceError
            If the GPU does not answer any more.
        """
        while True:
            self._samples.append(self._sample(self._clock() - self._start))
            behind = self._clock() - self._start
            # A sample that is a rounding error too early is not due at once again.
            due = (int(behind / self._interval_s + 1e-6) + 1) * self._interval_s
            if pause(due - behind):
                return

    def _sample(self, seconds: float) -> Sample:
        sample = Sample(seconds=seconds)
        if self._gpu:
            sample = self._gpu.read(seconds)
            if len(self._samples) % STATE_EVERY == 0:
                self._look_around(self._gpu)
        memory, cpu_s = self._group.read() if self._group else (None, None)
        return replace(
            sample,
            host_memory_mb=memory,
            cpu_s=cpu_s,
            sm_clock_mhz=self._state.sm_clock_mhz,
            temperature_c=self._state.temperature_c,
        )

    def _look_around(self, gpu: NvmlSource) -> None:
        """Ask for what changes slowly."""
        self._state = gpu.state()
        self._is_throttled |= bool(self._state.is_throttled)
        # Before and after: a process may end, or begin, in between.
        before = self._own()
        found = gpu.processes()
        own = before | self._own()
        if own:
            self._has_seen_own = True
            self._strangers |= found - own

    def _own(self) -> frozenset[int]:
        return self._group.processes() if self._group else frozenset()

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
            strangers=frozenset(self._strangers),
            is_throttled=self._is_throttled,
            is_blind=self._gpu is not None and not self._has_seen_own,
            problem=self._problem,
        )
