"""Reads the memory and the state of one GPU; NVML appears here only.

What NVML calls used has changed its meaning between drivers: since 510 it includes what
the driver has reserved. So what processes have allocated is computed as total - free -
reserved, where the second version of the call tells what is reserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from flare.common.errors import HostError
from flare.common.text import safe
from flare.results.traces_csv import Sample

MB = 2**20
"""Bytes that the official scripts call a megabyte."""


class DeviceError(HostError):
    """The GPU cannot be used, or read.

    There is no driver, or no such GPU, or it is divided (MIG), or does not answer any
    more. `nvidia-smi` should show it; `--gpu none` measures without one.
    """

    code = "H08"
    remedy = "Try nvidia-smi; --gpu none measures without a GPU."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """What else a GPU tells; None where it does not."""

    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    is_throttled: bool | None = None
    """Whether heat or power slow it down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Which GPU it is."""

    uuid: str
    name: str
    driver: str
    version: str
    """"v2", or "v1" if the driver does not know the second version of the call."""


class NvmlSource:
    """A GPU, through NVML."""

    def __init__(self, pynvml: Any, handle: Any) -> None:
        self._nvml, self._handle = pynvml, handle
        self._version = 2
        try:
            self._read_v2()
        except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NotSupported):
            self._version = 1
        self.device = Device(
            uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
            name=_text(pynvml.nvmlDeviceGetName(handle)),
            driver=_text(pynvml.nvmlSystemGetDriverVersion()),
            version=f"v{self._version}",
        )

    def _read_v2(self) -> Any:
        nvml = self._nvml
        return nvml.nvmlDeviceGetMemoryInfo(self._handle, version=nvml.nvmlMemory_v2)

    def read(self, seconds: float = 0.0) -> Sample:
        """A sample of the memory now, at a time since the start.

        Raises
        ------
        DeviceError
            If the GPU does not answer any more.
        """
        try:
            if self._version == 2:
                info = self._read_v2()
            else:
                info = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
        except self._nvml.NVMLError as error:
            raise DeviceError(
                f"the GPU does not answer any more ({safe(str(error))})"
            ) from error
        reserved_mb = info.reserved / MB if self._version == 2 else None
        return Sample(
            seconds=seconds,
            gpu_memory_mb=(info.total - info.free) / MB - (reserved_mb or 0.0),
            gpu_total_mb=info.total / MB,
            gpu_free_mb=info.free / MB,
            gpu_used_mb=info.used / MB,
            gpu_reserved_mb=reserved_mb,
        )

    def processes(self) -> frozenset[int]:
        """Process IDs, as the host has them; none if the driver does not tell."""
        found: set[int] = set()
        for kind in ("Compute", "Graphics"):
            for version in ("v3", "v2"):  # what the driver knows depends on its age
                name = f"nvmlDeviceGet{kind}RunningProcesses_{version}"
                try:
                    processes = getattr(self._nvml, name)(self._handle)
                except self._nvml.NVMLError:
                    continue
                found |= {int(process.pid) for process in processes}
                break
        return frozenset(found)

    def state(self) -> DeviceState:
        """Clock, temperature and throttling now, as far as the driver tells."""
        nvml, ask = self._nvml, self._ask
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        slow = (
            nvml.nvmlClocksThrottleReasonSwPowerCap
            | nvml.nvmlClocksThrottleReasonHwSlowdown
            | nvml.nvmlClocksThrottleReasonSwThermalSlowdown
            | nvml.nvmlClocksThrottleReasonHwThermalSlowdown
            | nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
        )
        return DeviceState(
            sm_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            is_throttled=None if reasons is None else bool(reasons & slow),
        )

    def _ask(self, name: str, *arguments: Any) -> Any:
        """What a call returns; None if the driver does not tell."""
        try:
            return getattr(self._nvml, name)(self._handle, *arguments)
        except self._nvml.NVMLError:
            return None


@contextmanager
def open_gpu(which: str) -> Iterator[NvmlSource]:
    """A GPU by its index, as ``nvidia-smi`` counts, or by its UUID.

    Raises
    ------
    DeviceError
        If there is no driver, no such GPU, or it is divided into several (MIG).
    """
    import pynvml

    _check_whole(which, is_divided=which.startswith("MIG-"))
    if not re.fullmatch(r"\d{1,4}|GPU-[0-9A-Za-z-]{1,120}", which):
        raise DeviceError(f"{safe(which)} is no index or UUID of a GPU")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise DeviceError(f"no NVIDIA driver answers ({safe(str(error))})") from error
    try:
        yield NvmlSource(pynvml, _find(pynvml, which))
    except pynvml.NVMLError as error:
        raise DeviceError(f"GPU {safe(which)}: {safe(str(error))}") from error
    finally:
        pynvml.nvmlShutdown()


def _find(pynvml: Any, which: str) -> Any:
    """The handle of a GPU that is whole."""
    count = pynvml.nvmlDeviceGetCount()
    if which.isdecimal():
        if int(which) >= count:
            raise DeviceError(f"there is no GPU {which}, but {count}, counted from 0")
        handle = pynvml.nvmlDeviceGetHandleByIndex(int(which))
    else:
        handle = pynvml.nvmlDeviceGetHandleByUUID(which)
    # Some cannot be divided, and say so.
    with suppress(pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        current, _ = pynvml.nvmlDeviceGetMigMode(handle)
        _check_whole(which, is_divided=current == pynvml.NVML_DEVICE_MIG_ENABLE)
    return handle


def _check_whole(which: str, *, is_divided: bool) -> None:
    """Refuse a part of a GPU, or a GPU in parts."""
    if is_divided:
        problem = f"GPU {safe(which)} is divided into several (MIG)"
        remedy = "Its memory is not that of one team: switch MIG off, or take another."
        raise DeviceError(problem, remedy)


def _text(value: str | bytes) -> str:
    """What older versions return as bytes."""
    return value.decode() if isinstance(value, bytes) else value
