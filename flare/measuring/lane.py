"""Divides a computer into lanes: what one container at a time has for itself."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from os import sched_getaffinity
from pathlib import Path

from flare.common.environment import available_bytes
from flare.common.errors import InputError
from flare.common.text import listing, safe
from flare.measuring.engines.interface import Engine
from flare.measuring.host import describe_host
from flare.measuring.sampling import DeviceError, open_gpu
from flare.results.errors import MeasurementError
from flare.results.limits import MEMORY, Limits, size_bytes
from flare.results.measurement_json import EngineRecord, Gpu, LaneRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneKind:
    """Settings that lanes of a kind share: a team may go on on another of its kind."""

    gpu: str
    """Name of the GPU; empty without one."""
    processor: str
    """Name of the processor."""
    cpus: str
    """How many processors each has, such as `4 processors`."""
    memory: str
    """Memory of its containers, as Docker writes it."""
    lanes: int
    """Lanes of the computer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A part of a computer that one container at a time has for itself."""

    limits: Limits
    """Limits of its containers, with these processors and this GPU."""
    gpu: Gpu | None
    host: str = ""
    """Name of its computer."""
    number: int = 0
    """Its number among the lanes of its computer, from 0."""
    of: int = 0
    """Lanes of its computer: what runs side by side is slower. 0 for a computer that is
    not divided, and whose further fields are empty."""
    processor: str = ""
    """Name of the processor."""
    cpus: tuple[int, ...] = ()
    """Numbers of its processors."""
    spare: tuple[int, ...] = ()
    """Processors that no lane has: for the engine and the samplers."""

    @property
    def name(self) -> str:
        """Its name, for messages."""
        return f"{safe(self.host)}, lane {self.number}"

    @property
    def description(self) -> str:
        """All that it has, for messages."""
        gpu = f"GPU {self.gpu.name} ({self.gpu.uuid})" if self.gpu else "no GPU"
        return f"{gpu}, processors {self.limits.cpus}, memory {self.limits.memory}"

    @property
    def kind(self) -> LaneKind:
        """Its kind, if its computer is divided."""
        count = len(self.cpus)
        return LaneKind(
            gpu=self.gpu.name if self.gpu else "",
            processor=self.processor,
            cpus=f"{count} processor{'s' if count > 1 else ''}",
            memory=self.limits.memory,
            lanes=self.of,
        )

    def record(self) -> LaneRecord:
        """The lane as measurement.json records it."""
        return {
            "host": self.host,
            "number": self.number,
            "lanes": self.of,
            "gpu": self.gpu.uuid if self.gpu else "",
            "cpus": self.limits.cpus or "",
            "memory": self.limits.memory,
        }


def check_alike(lanes: Sequence[Lane]) -> None:
    """See that times of all lanes can be compared; a MeasurementError if not."""
    first, *later_lanes = lanes
    for lane in later_lanes:
        for field in fields(LaneKind):
            value = getattr(lane.kind, field.name)
            first_value = getattr(first.kind, field.name)
            if value != first_value:
                difference = f"{field.name} {value or 'none'}"
                difference += f", not {first_value or 'none'}"
                raise MeasurementError(
                    lane.name,
                    f"it has {safe(difference)} as {first.name}",
                    "Times of unlike lanes cannot be compared: leave one out.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Computer:
    """A computer, as far as its lanes depend on it."""

    host: str
    identity: str
    """Equal for all programs on the same computer alone."""
    processor: str
    cores: tuple[tuple[int, ...], ...]
    """Numbers of the processors that a program may use, those of a core together."""
    memory_bytes: int
    gpus: tuple[Gpu, ...]
    """GPUs that were asked for."""
    engine: EngineRecord

    @property
    def processors(self) -> list[int]:
        """Numbers of all processors that a program may use."""
        return sorted(chain.from_iterable(self.cores))


def look_at_computer(gpus: Sequence[str], engine: Engine) -> Computer:
    """Look at the computer that this is run on, and at GPUs by indexes or UUIDs.

    A DeviceError is raised if one of the GPUs is not there, or was named twice. An
    EngineError is raised if no engine answers.
    """
    devices: list[Gpu] = []
    for name in gpus:
        with open_gpu(name) as gpu:
            if gpu.device.uuid in [device.uuid for device in devices]:
                raise DeviceError(f"GPU {name} was named twice", "Name each GPU once.")
            devices.append(gpu.device)
    try:  # another one for each computer, and each time that it is started
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = platform.node()
    return Computer(
        host=platform.node(),
        identity=boot.strip(),
        processor=str(describe_host()["processor"]),
        cores=_cores(sorted(sched_getaffinity(0))),
        memory_bytes=available_bytes(),
        gpus=tuple(devices),
        engine=engine.describe(),
    )


def _cores(
    cpus: Sequence[int], topology: Path = Path("/sys/devices/system/cpu")
) -> tuple[tuple[int, ...], ...]:
    """Numbers of processors, those of a core together, where that is known."""
    cores: dict[str, list[int]] = {}
    for number in cpus:
        file = topology / f"cpu{number}" / "topology" / "thread_siblings_list"
        try:
            key = file.read_text(encoding="ascii").strip()
        except OSError:
            key = str(number)
        cores.setdefault(key, []).append(number)
    return tuple(map(tuple, cores.values()))


def divide(computer: Computer, limits: Limits, count: int) -> tuple[Lane, ...]:
    """The lanes of a computer; no two share a processor.

    Each of its GPUs has a lane. What the limits do not say is divided into equal parts.
    An InputError is raised if the computer has not enough processors, or memory.
    """
    parts = _processors(computer, limits.cpus, count)
    used = set(chain.from_iterable(parts))
    spare = tuple(number for number in computer.processors if number not in used)
    memory = _memory(computer, limits.memory, count)
    devices = computer.gpus or (None,) * count
    lanes = []
    for number, (cpus, gpu) in enumerate(zip(parts, devices, strict=True)):
        lane_limits = replace(
            limits,
            cpus=",".join(map(str, cpus)),
            memory=memory,
            gpu=gpu.uuid if gpu else "",
        )
        lane = Lane(
            host=computer.host,
            number=number,
            of=count,
            processor=computer.processor,
            cpus=cpus,
            spare=spare,
            gpu=gpu,
            limits=lane_limits,
        )
        lanes.append(lane)
    return tuple(lanes)


def _processors(
    computer: Computer, cpus: str | None, count: int
) -> tuple[tuple[int, ...], ...]:
    """Divide processors among lanes, as many for each; no two lanes share a core."""
    numbers = _usable_processors(computer, cpus, count)
    if len(numbers) < count:
        raise InputError(
            f"{safe(computer.host)}: {count} lanes need as many processors, and"
            f" there are {len(numbers)}",
            "Use fewer lanes.",
        )
    cores = [[n for n in core if n in numbers] for core in computer.cores]
    threads = max(map(len, cores))
    size = len(numbers) // count
    if size >= threads:
        size -= size % threads  # so that no two lanes share a core
    # Cores that lack a processor come last, and so are not cut either.
    whole_first = sorted(cores, key=len, reverse=True)
    ordered = list(chain.from_iterable(whole_first))
    starts = range(0, size * count, size)
    return tuple(tuple(sorted(ordered[start : start + size])) for start in starts)


def _usable_processors(computer: Computer, cpus: str | None, count: int) -> list[int]:
    """The processors that lanes may have: those asked for, or all but perhaps one."""
    processors = computer.processors
    if cpus:
        numbers = _numbers(cpus)
        missing = sorted({*numbers} - {*processors})
        if missing:
            raise InputError(
                f"--cpus: {safe(computer.host)} has no processor"
                f" {listing(map(str, missing))}",
                "Name those that the program may use.",
            )
        return numbers
    if cpus is None and len(processors) > max(2, count):
        return processors[1:]  # the first is left to the engine and the samplers
    return processors


def _numbers(cpus: str) -> list[int]:
    numbers: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return sorted(numbers)


def _memory(computer: Computer, memory: str, count: int) -> str:
    part = computer.memory_bytes // count
    if not memory:
        if size_bytes(MEMORY) <= part or count == 1:
            return MEMORY
        # In steps of 256 MiB: two equal computers may differ by less.
        return _written(max(part >> 28, 1) << 28)
    if count > 1 and size_bytes(memory) > part:
        raise InputError(
            f"--memory {memory}: {count} lanes of {safe(computer.host)} would have more"
            f" than its {computer.memory_bytes / 2**30:.1f} GiB",
            f"Give at most {_written(part)}.",
        )
    return memory


def _written(size: int) -> str:
    return f"{size >> 30}g" if size % 2**30 == 0 else f"{size >> 20}m"
