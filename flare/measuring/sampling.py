"""Reads the memory and the state of one GPU; NVML appears here only.

What NVML calls used has changed its meaning between drivers: since 510 it includes what
the driver has reserved. So what processes have allocated is computed as total - free -
reserved, where the second version of the call tells what is reserved.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from flare.common.environment import CGROUPS
from flare.common.errors import HostError
from flare.common.text import safe
from flare.results.measurement_json import Gpu
from flare.results.traces_csv import Sample, Trace

MB = 2**20
"""Bytes that the official scripts call a megabyte."""


class DeviceError(HostError):
    """The GPU cannot be used, or read.

    There is no driver, or no such GPU, or it is divided (MIG), or does not answer any
    more, or has no memory of its own, or its driver tells sizes of its memory that
    cannot be. `nvidia-smi` should show it; `--gpu none` measures without one.
    """

    code = "H08"
    remedy = "Try nvidia-smi; --gpu none measures without a GPU."


IDLE_S = 10.0
"""How long the power of an idle GPU is measured."""


def _rise(before: float | None, after: float | None) -> float | None:
    """How far a counter has risen; None if it was not read, or has not risen."""
    if before is None or after is None or after <= before:
        return None  # a driver that was loaded anew begins at 0
    return after - before


_SHARED = "the GPU has no memory of its own that NVML could tell of (Not Supported)"
_SHARED_REMEDY = (
    "It shares the computer's memory: measure on another one, or with --gpu none."
)


def _check_memory(total: int, free: int, used: int, reserved: int) -> None:
    """Refuse what a driver tells of the memory, in bytes, if that cannot be.

    That is so if there is no memory, or a part of it is below 0 or above all.
    """
    is_possible = total > 0 and 0 <= used <= total
    if not (is_possible and free >= 0 and 0 <= reserved <= total - free):
        sizes = {"total": total, "free": free, "used": used, "reserved": reserved}
        text = ", ".join(f"{name} {size / MB:.0f}" for name, size in sizes.items())
        raise DeviceError(f"its driver tells of a GPU memory that cannot be: {text} MB")


class NvmlSource:
    """A GPU, through NVML."""

    def __init__(self, pynvml: Any, handle: Any) -> None:
        self._nvml, self._handle = pynvml, handle
        self._version = 2
        try:
            self._query()
        except pynvml.NVMLError:
            # Drivers fail at it in many ways; below Windows, with an unknown error.
            self._version = 1
            try:
                self._query()
            except pynvml.NVMLError_NotSupported as error:
                raise DeviceError(_SHARED, _SHARED_REMEDY) from error
        self.read()
        self.device = Gpu(
            uuid=pynvml.nvmlDeviceGetUUID(handle),
            name=pynvml.nvmlDeviceGetName(handle),
            driver=pynvml.nvmlSystemGetDriverVersion(),
            version="v2" if self._version == 2 else "v1",
        )

    def _query(self) -> Any:
        """The memory as the driver tells it, by the version that it knows."""
        nvml = self._nvml
        if self._version == 1:
            return nvml.nvmlDeviceGetMemoryInfo(self._handle)
        return nvml.nvmlDeviceGetMemoryInfo(self._handle, version=nvml.nvmlMemory_v2)

    def read(self, seconds: float = 0.0) -> Sample:
        """A sample of the memory now, at a time since the start.

        A DeviceError is raised if the GPU does not answer any more, or tells of what
        cannot be.
        """
        try:
            info = self._query()
        except self._nvml.NVMLError as error:
            raise DeviceError(
                f"the GPU does not answer any more ({safe(str(error))})"
            ) from error
        reserved = info.reserved if self._version == 2 else 0
        _check_memory(info.total, info.free, info.used, reserved)
        return Sample(
            seconds=seconds,
            gpu_memory_mb=(info.total - info.free - reserved) / MB,
            gpu_total_mb=info.total / MB,
            gpu_free_mb=info.free / MB,
            gpu_used_mb=info.used / MB,
            gpu_reserved_mb=reserved / MB if self._version == 2 else None,
        )

    def processes(self) -> frozenset[int]:
        """Process IDs, as the host has them; none if the driver does not tell."""
        processes: list[Any] = []
        for kind in ("Compute", "Graphics"):
            call = f"nvmlDeviceGet{kind}RunningProcesses"
            # The calls that a driver knows depend on its age.
            processes += self._ask(f"{call}_v3") or self._ask(f"{call}_v2") or ()
        return frozenset(int(process.pid) for process in processes)

    def energy_j(self) -> float | None:
        """Energy in J that the GPU has taken since its driver was loaded.

        None where it does not count: cards before Volta, and some below hypervisors.
        """
        millijoules = self._ask("nvmlDeviceGetTotalEnergyConsumption")
        return millijoules / 1000 if millijoules else None

    def idle_power_w(self) -> float | None:
        """The power in W during `IDLE_S`, by the counter of energy, if there is one."""
        before, start = self.energy_j(), time.perf_counter()
        if before is None:
            return None
        time.sleep(IDLE_S)
        energy_j = _rise(before, self.energy_j())
        if energy_j is None:
            return None
        return energy_j / (time.perf_counter() - start)

    def state(self) -> tuple[float | None, float | None, bool]:
        """Clock in MHz, temperature in C, and whether heat or power slow it down.

        None, or not, where the driver does not tell.
        """
        nvml, ask = self._nvml, self._ask
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        names = "SwPowerCap HwSlowdown SwThermalSlowdown HwThermalSlowdown"
        names += " HwPowerBrakeSlowdown"
        prefix = "nvmlClocksThrottleReason"
        slow = sum(getattr(nvml, f"{prefix}{name}") for name in names.split())
        clock = ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)
        temperature = ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)
        return clock, temperature, bool((reasons or 0) & slow)

    def _ask(self, name: str, *arguments: Any) -> Any:
        """The answer of a call; None if the driver, or pynvml 11, does not know it."""
        # The package pynvml, up to 11.5, shadows the module of nvidia-ml-py.
        call = getattr(self._nvml, name, None)
        try:
            return call(self._handle, *arguments) if call else None
        except self._nvml.NVMLError:
            return None


@contextmanager
def open_gpu(name: str) -> Iterator[NvmlSource]:
    """A GPU by its index, as ``nvidia-smi`` counts, or by its UUID.

    A DeviceError is raised if there is no driver, no such GPU, or it is divided into
    several (MIG).
    """
    import pynvml

    _check_whole(name, is_divided=name.startswith("MIG-"))
    if not re.fullmatch(r"\d{1,4}|GPU-[0-9A-Za-z-]{1,120}", name):
        raise DeviceError(f"{safe(name)} is no index or UUID of a GPU")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise DeviceError(f"no NVIDIA driver answers ({safe(str(error))})") from error
    try:
        yield NvmlSource(pynvml, _find(pynvml, name))
    except pynvml.NVMLError as error:
        raise DeviceError(f"GPU {safe(name)}: {safe(str(error))}") from error
    finally:
        pynvml.nvmlShutdown()


def _find(pynvml: Any, name: str) -> Any:
    count = pynvml.nvmlDeviceGetCount()
    if name.isdecimal():
        if int(name) >= count:
            raise DeviceError(f"there is no GPU {name}, but {count}, counted from 0")
        handle = pynvml.nvmlDeviceGetHandleByIndex(int(name))
    else:
        handle = pynvml.nvmlDeviceGetHandleByUUID(name)
    # Some cannot be divided, and say so.
    with suppress(pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        current, _ = pynvml.nvmlDeviceGetMigMode(handle)
        _check_whole(name, is_divided=current == pynvml.NVML_DEVICE_MIG_ENABLE)
    return handle


def _check_whole(name: str, *, is_divided: bool) -> None:
    if is_divided:
        problem = f"GPU {safe(name)} is divided into several (MIG)"
        remedy = "Its memory is not that of one team: switch MIG off, or take another."
        raise DeviceError(problem, remedy)


# --- Sampling -----------------------------------------------------------------------


JOIN_S = 10.0
"""How long the last sample is waited for."""


class ControlGroup:
    """Memory and processor time of a container, from its control group.

    The container is named by its full ID; `root` is where control groups are mounted.
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
        """A file of the container: engines and systemd put them in several places."""
        identity = self._container
        patterns = (
            f"docker/{identity}",
            f"system.slice/*-{identity}.scope",
            f"*/*/*{identity}*",
            f"*/*/*/*/*{identity}*",
        )
        if controller not in self._folders:
            folders = chain.from_iterable(map((self._root / controller).glob, patterns))
            folder = next(folders, None)
            if not folder:
                return self._root / "nowhere" / name
            self._folders[controller] = folder
        return self._folders[controller] / name


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
    fields = {}
    for line in _text(file).splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            fields[words[0]] = int(words[1])
    return fields


class Sampler:
    """A thread that samples a GPU and a container, while the container runs.

    `clock` tells seconds that only go forward.
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
        self._clock_mhz: float | None = None
        self._temperature_c: float | None = None
        self._strangers: set[int] = set()
        self._is_throttled = self._has_seen_container = self._has_used_gpu = False
        self._problem = ""
        self._energy_j: float | None = None
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def look_before(self) -> None:
        """Measure what is allocated while nothing runs, and who is there."""
        if self._gpu:
            samples = [self._gpu.read().gpu_memory_mb for _ in range(5)]
            self._idle_mb = median(mb for mb in samples if mb is not None)
            self._strangers |= self._gpu.processes()

    def start(self) -> float:
        """Begin; returns the time of the start."""
        self._start = self._clock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self._start

    def _run(self) -> None:
        before = self._gpu.energy_j() if self._gpu else None
        try:
            self.collect(self._end.wait)
            after = self._gpu.energy_j() if self._gpu else None
            self._energy_j = _rise(before, after)
        except DeviceError as error:
            self._problem = error.finding
        except Exception as error:  # noqa: BLE001  whatever it is, it is not unnoticed
            self._problem = f"the sampler has failed ({type(error).__name__}: {error})"

    def collect(self, pause: Callable[[float], bool]) -> None:
        """Sample at multiples of the interval since the start, until told to stop.

        A sample that comes too late does not shift those behind it: its time is the
        true one, and the multiples that it has missed are left out. `pause` waits for a
        number of seconds; it is true if it was told to stop. A DeviceError is raised if
        the GPU does not answer any more.
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
            if len(self._samples) % 10 == 0:
                self._look_around(self._gpu)
        memory, cpu_s = self._group.read() if self._group else (None, None)
        return replace(
            sample,
            host_memory_mb=memory,
            cpu_s=cpu_s,
            sm_clock_mhz=self._clock_mhz,
            temperature_c=self._temperature_c,
        )

    def _look_around(self, gpu: NvmlSource) -> None:
        """Ask for what changes slowly, with every tenth sample."""
        self._clock_mhz, self._temperature_c, is_slow = gpu.state()
        self._is_throttled |= is_slow
        # Before and after: a process may end, or begin, in between.
        before = self._processes_of_container()
        on_gpu = gpu.processes()
        of_container = before | self._processes_of_container()
        if of_container:
            self._has_seen_container = True
            self._has_used_gpu |= bool(on_gpu & of_container)
            self._strangers |= on_gpu - of_container

    def _processes_of_container(self) -> frozenset[int]:
        return self._group.processes() if self._group else frozenset()

    def stop(self, runtime_s: float) -> Trace:
        """End, and return what was sampled up to the end of the container."""
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
            energy_j=self._energy_j,
            strangers=frozenset(self._strangers),
            is_throttled=self._is_throttled,
            is_blind=self._gpu is not None and not self._has_seen_container,
            has_used_gpu=self._has_used_gpu,
            problem=self._problem,
        )
