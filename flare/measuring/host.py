"""Looks at the computer: room on disk, caches, load, and walls of its engine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from flare.common.environment import available_bytes, available_cpus
from flare.common.errors import InputError
from flare.common.text import safe, why
from flare.measuring.engines.interface import Engine
from flare.measuring.options import Caches
from flare.results.errors import MeasurementError
from flare.results.measurement_json import Host

SPARE_BYTES = 2**30
"""Room on a disk that is left free."""

SPARE_FILES = 20_000
"""Number of files for which room is left."""

MOST_FILES = 2_000_000
"""A container that makes more files than this is ended."""

MANY = 2**63
"""Files that there is room for where they are not counted."""

CACHES = Path("/proc/sys/vm/drop_caches")


class Room(NamedTuple):
    """The room that is left on a file system."""

    free_bytes: int
    free_files: int
    """The same huge number where files are not counted."""


SPARE = Room(SPARE_BYTES, SPARE_FILES)


def room(folder: Path) -> Room:
    """The bytes and files that are free on the disk of a folder."""
    disk = os.statvfs(folder)
    free_files = disk.f_favail if disk.f_files > 0 else MANY
    return Room(disk.f_bavail * disk.f_frsize, free_files)


def check_room(folder: Path, needed: int, file: str, what: str) -> None:
    """See that there is room for what a file holds; a MeasurementError if not."""
    free = room(folder).free_bytes
    if free < needed:
        raise MeasurementError(
            file,
            f"{free / 2**30:.1f} GiB are free in {safe(str(folder))}, and the {what}"
            f" needs {needed / 2**30:.1f}",
            "Make room there.",
        )


class DiskWatch:
    """Watches from now on that no more of a disk is taken than a limit.

    The folder is where it is mounted, or below; None for a disk that cannot be seen
    from here, and never alarms.
    """

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        self._folder, self._most = folder, Room(limit_bytes, MOST_FILES)
        self._start = self._room()
        self._alarm: tuple[Room, list[bool]] | None = None
        """The room at the alarm, and whether bytes, and files, were too few."""

    def _room(self) -> Room:
        return room(self._folder) if self._folder else Room(MANY, MANY)

    @property
    def is_full(self) -> bool:
        """Whether there was too little room already when this began."""
        rooms = zip(self._start, SPARE, strict=True)
        return any(free < spare for free, spare in rooms)

    def is_alarming(self) -> bool:
        """Whether too much was taken, or too little is left."""
        room_now = self._room()
        rooms = zip(self._start, room_now, SPARE, self._most, strict=True)
        short = [
            free < spare or start - free > most for start, free, spare, most in rooms
        ]
        if any(short):
            self._alarm = (room_now, short)
        return self._alarm is not None

    def is_given_back(self) -> bool:
        """Whether most of what was taken at the alarm is free again.

        It is asked when the suspect has been removed: if so, it was guilty.
        """
        if not self._alarm:
            return False
        room_at_alarm, short = self._alarm
        rooms = zip(short, self._start, room_at_alarm, self._room(), strict=True)
        for is_short, start, at_alarm, free in rooms:
            loss, gain = start - at_alarm, free - at_alarm
            if is_short and loss > 0 and gain * 2 >= loss:
                return True
        return False


def choose_caches(caches: Caches | None, *, is_engine_here: bool) -> Caches:
    """Choose cold caches where they are possible, unless others are asked for.

    They are possible where containers run on this computer, whose caches can be
    emptied. An InputError is raised if cold caches are asked for in vain.
    """
    if caches is Caches.COLD and not is_engine_here:
        raise InputError(
            "--caches cold: the engine is on another computer, or hides its files",
            "Run it there, or with --caches warm.",
        )
    if caches:
        return caches
    is_possible = is_engine_here and os.access(CACHES, os.W_OK)
    return Caches.COLD if is_possible else Caches.WARM


def empty_caches() -> None:
    """Throw all files out of the memory that can be read from the disk again.

    What a run has read could tell the next one something: which pages of a file are
    there can be seen, and chosen, from within a container. An InputError is raised if
    this user may not do that.
    """
    os.sync()  # what is not written yet cannot be thrown out
    try:
        CACHES.write_text("3", encoding="ascii")
    except OSError as error:
        raise InputError(
            f"--caches cold: {CACHES} cannot be written ({why(error)})",
            "Run it as root, or with --caches warm.",
        ) from error


def default_cpus() -> str:
    """Numbers of all processors of this computer but the first; empty for all.

    That one is left to the engine and the sampler, unless there are only two.
    """
    cpus = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, cpus[1:])) if len(cpus) > 2 else ""


def busy_s(stat: Path = Path("/proc/stat"), cpus: Sequence[int] = ()) -> float | None:
    """Seconds that processors, or all of the computer, have worked or were taken away.

    None where that is not known. All of the computer counts if no processor is named.
    """
    names = {f"cpu{number}" for number in cpus} or {"cpu"}
    lines = ticks = 0
    try:
        for line in stat.read_text(encoding="ascii").splitlines():
            words = line.split()
            if words and words[0] in names:
                # Without the 4th and the 5th number, doing nothing and waiting for a
                # disk, and those behind the 8th, of guests, whose time is counted in
                # others already.
                ticks += sum(map(int, words[1:4] + words[6:9]))
                lines += 1
    except (OSError, ValueError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK") if lines == len(names) else None


def is_busy(other_cpu_s: float | None, runtime_s: float, cpus: int) -> bool:
    """Whether other programs did enough to make a running time doubtful.

    `other_cpu_s` is the processor time of all but the container; None if unknown.

    Examples
    --------
    >>> is_busy(0.4, 1.0, 8), is_busy(5.0, 10.0, 2)
    (False, True)
    """
    if other_cpu_s is None:
        return False
    # The engine itself may take half a second, and a tenth of all while it runs.
    return other_cpu_s > 0.5 + 0.1 * runtime_s * cpus


IDLE_WAIT_S = 300.0
"""An idle engine is waited for no longer."""

IDLE_LOOK_S, IDLE_SHARE = 2.0, 0.2
"""It is idle if, for this time, it uses less than this share of one processor."""


def wait_until_idle(engine: Engine) -> None:
    """Wait until an engine has little to do, but not for ever.

    It may go on for minutes with what nobody waits for any more, and the next running
    time should not be taken beside that. If it does not become idle, what is measured
    next has the doubt that the computer was busy.
    """
    deadline = time.monotonic() + IDLE_WAIT_S
    while time.monotonic() < deadline:
        start_s = engine.busy_s()
        time.sleep(IDLE_LOOK_S)
        end_s = engine.busy_s()
        if start_s is None or end_s is None:
            return
        if end_s - start_s < IDLE_SHARE * IDLE_LOOK_S:
            return


def missing_walls(engine: Mapping[str, Any]) -> Iterator[str]:
    """Walls that an engine lacks, for organisers who run images of others."""
    options = [str(option) for option in engine.get("security") or ()]
    if not any("name=seccomp" in o and "unconfined" not in o for o in options):
        yield "the engine filters no system calls (seccomp is off): turn it on"
    if not {"name=rootless", "name=userns"} & {*options}:
        yield (
            "root in a container is root of this computer: a rootless engine, or one"
            " with userns-remap, is safer"
        )
    if engine.get("limits"):
        missing = ", ".join(engine["limits"])
        yield f"the engine cannot limit {missing}: use another one, or control groups 2"


def describe_host() -> Host:
    """The computer that a measurement is made on, for when that is questioned."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "cpus_available": available_cpus(),
        "memory_mb": available_bytes() >> 20,
        "python": platform.python_version(),
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
