"""Divides a computer between lanes: processors, memory and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flare.common.errors import InputError
from flare.common.machine import size_bytes
from flare.common.text import listing, safe
from flare.measuring.container_command import Limits
from flare.measuring.lanes.lane import Lane
from flare.measuring.lanes.place import Place

STEP_BYTES = 2**28
"""Memory is divided in such steps: two equal computers may differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How each computer is to be divided."""

    gpus: tuple[str, ...] = ()
    """Indexes or UUIDs, a lane for each; none to measure without."""
    lanes: int = 1
    """How many, where there is no GPU."""
    cpus: str | None = None
    """Numbers of processors to be divided, such as 1-7; empty for all, None for all
    but one, where there are enough."""
    memory: str | None = None
    """Of a container; None for an equal part, and no more than `Limits` has."""
    limits: Limits
    """What is equal on all lanes."""

    @property
    def count(self) -> int:
        """Lanes of a computer."""
        return len(self.gpus) or self.lanes


def divide(place: Place, wanted: Wanted) -> tuple[Lane, ...]:
    """The lanes of a computer, no two of which share a processor.

    Parameters
    ----------
    place : Place
        The computer.
    wanted : Wanted
        How it is to be divided.

    Raises
    ------
    InputError
        If it has not enough processors, or memory.
    """
    parts, spare = _processors(place, wanted)
    memory = _memory(place, wanted)
    lanes = []
    for number, cpus in enumerate(parts):
        gpu = place.gpus[number] if place.gpus else None
        limits = replace(
            wanted.limits,
            cpus=",".join(map(str, cpus)),
            memory=memory,
            gpu=gpu.uuid if gpu else "",
        )
        lanes.append(
            Lane(
                host=place.host,
                number=number,
                of=wanted.count,
                processor=place.processor,
                cpus=cpus,
                spare=spare,
                gpu=gpu,
                limits=limits,
            )
        )
    return tuple(lanes)


def _processors(
    place: Place, wanted: Wanted
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The processors of each lane, as many for each, and those that are left."""
    known = sorted(number for core in place.cores for number in core)
    given = list(known)
    if wanted.cpus:
        given = _numbers(wanted.cpus)
        missing = sorted(set(given) - set(known))
        if missing:
            names = listing([str(number) for number in missing])
            raise InputError(
                f"--cpus: {safe(place.host)} has no processor {names}",
                "Name those that the program may use.",
            )
    elif wanted.cpus is None and len(known) > max(2, wanted.count):
        given = known[1:]
    if len(given) < wanted.count:
        raise InputError(
            f"{safe(place.host)}: {wanted.count} lanes need as many processors, and"
            f" there are {len(given)}",
            "Use fewer lanes.",
        )
    cores = [tuple(n for n in core if n in given) for core in place.cores]
    threads = max(map(len, cores))
    each = len(given) // wanted.count
    if each >= threads:
        each -= each % threads  # so that no two lanes share a core
    # Cores of which one processor is left out come last, and so are not cut either.
    ordered = [n for core in sorted(cores, key=len, reverse=True) for n in core]
    parts = tuple(
        tuple(sorted(ordered[each * lane : each * (lane + 1)]))
        for lane in range(wanted.count)
    )
    taken = {number for part in parts for number in part}
    return parts, tuple(number for number in known if number not in taken)


def _numbers(cpus: str) -> list[int]:
    """Numbers such as 1-3,5."""
    found: set[int] = set()
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return sorted(found)


def _memory(place: Place, wanted: Wanted) -> str:
    """What a container may use of the computer's memory, as Docker writes it."""
    lanes, there = wanted.count, place.memory_bytes
    if wanted.memory is None:
        part = there // lanes // STEP_BYTES * STEP_BYTES
        if size_bytes(wanted.limits.memory) <= part or lanes == 1:
            return wanted.limits.memory
        return _written(max(part, STEP_BYTES))
    if lanes > 1 and lanes * size_bytes(wanted.memory) > there:
        raise InputError(
            f"--memory {wanted.memory}: {lanes} lanes of {safe(place.host)} would have"
            f" more than its {there / 2**30:.1f} GiB",
            f"Give at most {_written(there // lanes)}.",
        )
    return wanted.memory


def _written(size: int) -> str:
    """A size as Docker takes it, in whole units."""
    return f"{size >> 30}g" if size % 2**30 == 0 else f"{size >> 20}m"
