"""Looks at a computer on which teams are to be measured."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import sched_getaffinity
from pathlib import Path
from typing import Any

from flare.common.engine import Engine
from flare.common.host import describe_host
from flare.common.machine import available_bytes
from flare.measuring.errors import DeviceError
from flare.measuring.sampling.nvml import Device, open_gpu

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Another one for each computer, and each time that it is started."""

TOPOLOGY = Path("/sys/devices/system/cpu")


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
    engine: Mapping[str, Any]
    """What `flare.common.engine.Engine.describe` has returned."""


def look_at_place(gpus: Sequence[str], program: str) -> Place:
    """Look at the computer that this is run on.

    Parameters
    ----------
    gpus : sequence of str
        Indexes or UUIDs of the GPUs that are to be used.
    program : str
        Of the engine.

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
    try:
        identity = BOOT.read_text(encoding="ascii").strip()
    except OSError:
        identity = platform.node()
    return Place(
        host=platform.node(),
        identity=identity,
        processor=str(describe_host()["processor"]),
        cores=_cores(sorted(sched_getaffinity(0))),
        memory_bytes=available_bytes(),
        gpus=tuple(devices),
        engine=Engine(program).describe(),
    )


def _cores(
    known: Sequence[int], topology: Path = TOPOLOGY
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
