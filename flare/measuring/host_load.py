"""Lets runs begin alike on this computer, and tells how busy it was meanwhile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from flare.common.errors import InputError
from flare.common.text import why

CACHES = Path("/proc/sys/vm/drop_caches")
STAT = Path("/proc/stat")

IDLE_FIELDS = (3, 4)
"""Of the first line of /proc/stat: doing nothing, and waiting for a disk."""

FIELDS = 8
"""Those behind are of guests, whose time is counted in others already."""

QUIET_S = 0.5
"""Processor time that the engine itself may take beside a container,"""

QUIET_SHARE = 0.1
"""and this part of all processors while it runs."""


class Caches(Enum):
    """What a run finds in the memory of the computer."""

    COLD = "cold"
    """Nothing: files are read from the disk, for every run alike."""
    WARM = "warm"
    """What earlier runs have left: an earlier run can help a later one."""


def choose_caches(wanted: str | None, *, is_engine_here: bool) -> Caches:
    """What is asked for; else cold where that is possible.

    Parameters
    ----------
    wanted : str or None
        Cold or warm; None for whatever is possible.
    is_engine_here : bool
        Whether containers run on this computer, whose caches can be emptied.

    Raises
    ------
    InputError
        If cold caches are asked for in vain.
    """
    if wanted == Caches.COLD.value and not is_engine_here:
        raise InputError(
            "--caches cold: the engine is on another computer, or hides its files",
            "Run it there, or with --caches warm.",
        )
    if wanted:
        return Caches(wanted)
    is_possible = is_engine_here and os.access(CACHES, os.W_OK)
    return Caches.COLD if is_possible else Caches.WARM


def empty_caches() -> None:
    """Throw all files out of the memory that can be read from the disk again.

    What a run has read could tell the next one something: which pages of a file are
    there can be seen, and chosen, from within a container.

    Raises
    ------
    InputError
        If this user may not do that.
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
    known = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, known[1:])) if len(known) > 2 else ""


def busy_s(stat: Path = STAT, cpus: Sequence[int] = ()) -> float | None:
    """Seconds that processors together have worked, or were taken away.

    None where that is not known.

    Parameters
    ----------
    stat : Path
        Where the kernel tells.
    cpus : sequence of int
        Numbers of the processors; all of the computer if none is given.
    """
    names = {f"cpu{number}" for number in cpus} or {"cpu"}
    try:
        lines = [line.split() for line in stat.read_text(encoding="ascii").splitlines()]
        own = [words[1 : FIELDS + 1] for words in lines if words and words[0] in names]
        ticks = [[int(word) for word in words] for words in own]
    except (OSError, ValueError):
        return None
    if len(ticks) < len(names):
        return None
    busy = sum(
        n
        for words in ticks
        for field, n in enumerate(words)
        if field not in IDLE_FIELDS
    )
    return busy / os.sysconf("SC_CLK_TCK")


def is_busy(other_cpu_s: float | None, runtime_s: float, cpus: int) -> bool:
    """Whether so much else was done that a running time is doubtful.

    Parameters
    ----------
    other_cpu_s : float or None
        Processor time of all but the container; None if unknown.
    runtime_s : float
        How long the container ran.
    cpus : int
        Of the computer.

    Examples
    --------
    >>> is_busy(0.4, 1.0, 8), is_busy(5.0, 10.0, 2)
    (False, True)
    """
    if other_cpu_s is None:
        return False
    return other_cpu_s > QUIET_S + QUIET_SHARE * runtime_s * cpus
