"""Divides a computer into lanes: what one container at a time has for itself."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import sched_getaffinity
from pathlib import Path
from typing import Any

from flare.common.environment import available_bytes
from flare.common.errors import InputError
from flare.common.text import listing, safe
from flare.measuring.engines.interface import Engine
from flare.measuring.host import describe_host
from flare.measuring.sampling import Device, DeviceError, open_gpu
from flare.results.errors import MeasurementError
from flare.results.limits import MEMORY, Limits, size_bytes
from flare.results.measurement_json import EngineRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one container at a time has for itself."""

    limits: Limits
    """Of its containers, with these processors and this GPU."""
    gpu: Device | None
    host: str = ""
    """Name of its computer."""
    number: int = 0
    """Among the lanes of its computer, from 0."""
    of: int = 0
    """Lanes of its computer: what runs side by side is slower. 0 for a computer that is
    not divided, of which nothing else is told."""
    processor: str = ""
    """Name of the processor."""
    cpus: tuple[int, ...] = ()
    """Numbers of its processors."""
    spare: tuple[int, ...] = ()
    """Processors that no lane has: for the engine and the samplers."""

    @property
    def name(self) -> str:
        """It, for messages."""
        return f"{safe(self.host)}, lane {self.number}"

    def settings(self) -> dict[str, Any]:
        """What must not change while a team is measured: of which kind its lane is.

        A team may go on on another lane of the same kind.
        """
        if not self.of:
            return {}
        count = len(self.cpus)
        return {
            "gpu": self.gpu.name if self.gpu else "",
            "processor": self.processor,
            "cpus": f"{count} processor{'s' if count > 1 else ''}",
            "memory": self.limits.memory,
            "lanes": self.of,
        }

    def record(self) -> dict[str, Any]:
        """Which lane it is, for the record."""
        return {
            "host": self.host,
            "number": self.number,
            "lanes": self.of,
            "gpu": self.gpu.uuid if self.gpu else "",
            "cpus": self.limits.cpus,
            "memory": self.limits.memory,
        }


def check_alike(lanes: Sequence[Lane]) -> None:
    """See that times of all lanes can be compared.

    Raises
    ------
    MeasurementError
        If two are of other kinds.
    """
    first, *others = lanes
    for lane in others:
        known = first.settings()
        for name, value in lane.settings().items():
            if value != known[name]:
                other = f"{name} {value or 'none'}, not {known[name] or 'none'}"
                raise MeasurementError(
                    lane.name,
                    f"it has {safe(other)} as {first.name}",
                    "Times of unlike lanes cannot be compared: leave one out.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A computer, as far as its lanes depend on it."""

    host: str
    identity: str
    """Equal for all programs on the same computer alone."""
    processor: str
    cores: tuple[tuple[int, ...], ...]
    """Numbers of the processors that a program may use, those of a core together."""
    memory_bytes: int
    gpus: tuple[Device, ...]
    """Those that were asked for."""
    engine: EngineRecord


def look_at_place(gpus: Sequence[str], engine: Engine) -> Place:
    """Look at the computer that this is run on.

    Parameters
    ----------
    gpus : sequence of str
        Indexes or UUIDs of the GPUs that are to be used.
    engine : Engine
        What containers run in.

    Raises
    ------
    DeviceError
        If one of the GPUs is not there, or was named twice.
    EngineError
        If no engine answers.
    """
    devices: list[Device] = []
    for which in gpus:
        with open_gpu(which) as gpu:
            if gpu.device.uuid in [device.uuid for device in devices]:
                raise DeviceError(f"GPU {which} was named twice", "Name each GPU once.")
            devices.append(gpu.device)
    try:  # another one for each computer, and each time that it is started
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = platform.node()
    return Place(
        host=platform.node(),
        identity=boot.strip(),
        processor=str(describe_host()["processor"]),
        cores=_cores(sorted(sched_getaffinity(0))),
        memory_bytes=available_bytes(),
        gpus=tuple(devices),
        engine=engine.describe(),
    )


def _cores(
    known: Sequence[int], topology: Path = Path("/sys/devices/system/cpu")
) -> tuple[tuple[int, ...], ...]:
    """Numbers of processors, those of a core together, where that is known."""
    cores: dict[str, list[int]] = {}
    for number in known:
        file = topology / f"cpu{number}" / "topology" / "thread_siblings_list"
        try:
            key = file.read_text(encoding="ascii").strip()
        except OSError:
            key = str(number)
        cores.setdefault(key, []).append(number)
    return tuple(map(tuple, cores.values()))


def divide(place: Place, limits: Limits, count: int) -> tuple[Lane, ...]:
    """The lanes of a computer, no two of which share a processor.

    Parameters
    ----------
    place : Place
        The computer; each of its GPUs has a lane.
    limits : Limits
        As asked for; what they do not say is divided into equal parts.
    count : int
        How many lanes.

    Raises
    ------
    InputError
        If it has not enough processors, or memory.
    """
    parts, spare = _processors(place, limits.cpus, count)
    memory = _memory(place, limits.memory, count)
    devices = place.gpus or (None,) * count
    return tuple(
        Lane(
            host=place.host,
            number=number,
            of=count,
            processor=place.processor,
            cpus=cpus,
            spare=spare,
            gpu=gpu,
            limits=replace(
                limits,
                cpus=",".join(map(str, cpus)),
                memory=memory,
                gpu=gpu.uuid if gpu else "",
            ),
        )
        for number, (cpus, gpu) in enumerate(zip(parts, devices, strict=True))
    )


def _processors(
    place: Place, cpus: str | None, count: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The processors of each lane, as many for each, and those that are left."""
    known = sorted(number for core in place.cores for number in core)
    given = list(known)
    if cpus:
        given = _numbers(cpus)
        missing = sorted(set(given) - set(known))
        if missing:
            raise InputError(
                f"--cpus: {safe(place.host)} has no processor"
                f" {listing(map(str, missing))}",
                "Name those that the program may use.",
            )
    elif cpus is None and len(known) > max(2, count):
        given = known[1:]
    if len(given) < count:
        raise InputError(
            f"{safe(place.host)}: {count} lanes need as many processors, and"
            f" there are {len(given)}",
            "Use fewer lanes.",
        )
    cores = [tuple(n for n in core if n in given) for core in place.cores]
    threads = max(map(len, cores))
    each = len(given) // count
    if each >= threads:
        each -= each % threads  # so that no two lanes share a core
    # Cores of which one processor is left out come last, and so are not cut either.
    ordered = [n for core in sorted(cores, key=len, reverse=True) for n in core]
    parts = tuple(
        tuple(sorted(ordered[each * lane : each * (lane + 1)])) for lane in range(count)
    )
    return parts, tuple(n for n in known if not any(n in part for part in parts))


def _numbers(cpus: str) -> list[int]:
    found: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return sorted(found)


def _memory(place: Place, memory: str, count: int) -> str:
    """What a container may use of the computer's memory, as Docker writes it."""
    part = place.memory_bytes // count
    if not memory:
        if size_bytes(MEMORY) <= part or count == 1:
            return MEMORY
        # In steps of 256 MiB: two equal computers may differ by less.
        return _written(max(part >> 28, 1) << 28)
    if count > 1 and size_bytes(memory) > part:
        raise InputError(
            f"--memory {memory}: {count} lanes of {safe(place.host)} would have more"
            f" than its {place.memory_bytes / 2**30:.1f} GiB",
            f"Give at most {_written(part)}.",
        )
    return memory


def _written(size: int) -> str:
    return f"{size >> 30}g" if size % 2**30 == 0 else f"{size >> 20}m"
