"""The limits of a container: options of measuring, and settings of measurement.json."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field
from typing import Annotated, Any

from flare.common.options import option, seconds
from flare.common.schema import OMIT, Count, Is, Length, Positive, Text


def size(text: str) -> str:
    """A size as Docker takes it."""
    if not re.fullmatch(r"[1-9]\d{0,9}[bkmg]?", text):
        raise ValueError(f"{text!r} is not a size such as 28g or 512m")
    return text


def size_bytes(text: str) -> int:
    """A size as Docker takes it, in bytes.

    Examples
    --------
    >>> size_bytes("512"), size_bytes("2k"), size_bytes("28g") >> 30
    (512, 2048, 28)
    """
    unit = "bkmg".find(size(text)[-1])
    return int(text.rstrip("bkmg")) << 10 * max(unit, 0)


def processors(text: str) -> str:
    """Numbers of processors as Docker takes them; empty for all."""
    if text == "all":
        return ""
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        raise ValueError(f"{text!r} are no numbers of processors such as 1-7 or 0,2")
    return text


@dataclass(frozen=True, slots=True)
class Setting:
    """The rules of a setting, besides its type."""

    is_of_host: bool = False
    """Whether another computer, or another GPU, may change it."""
    absent: str = ""
    """Its value where the file does not have it."""
    is_compared: bool = True
    """Whether it should be equal for all teams."""


def setting(
    *,
    default: Any = MISSING,
    is_of_host: bool = False,
    absent: str = "",
    is_compared: bool = True,
) -> Any:
    """A field with a `Setting`; it is not written where it has its default."""
    about = Setting(is_of_host=is_of_host, absent=absent, is_compared=is_compared)
    if default is MISSING:
        return field(metadata={"setting": about})
    return field(default=default, metadata={"setting": about, **OMIT})


def limit(help: str, *, default: Any, is_of_host: bool = False, **words: Any) -> Any:
    """An option that is a limit of a container, and a setting of its measurement."""
    declared = option(help, default=default, title="Limits of a container", **words)
    about = Setting(is_of_host=is_of_host)
    return field(default=default, metadata={**declared.metadata, "setting": about})


NO_GPU = "none"
"""Stands for no GPU; an empty text is a GPU that nobody has named."""

MEMORY = "28g"
"""FLARE23's limit of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a container may use: as it is asked for, or as it is on one computer.

    Below each is what measurement.json means by it, in which they are settings.
    """

    gpu: str = limit(
        "Give it this GPU, as nvidia-smi counts (default: none).",
        default=NO_GPU,
        is_of_host=True,
        metavar="INDEX|UUID|none",
    )
    """UUID of the GPU; empty without one. With several lanes, its name: a team may go
    on on another one of that kind."""
    timeout_s: Length = limit(  # FLARE22 counts a container as stuck after an hour
        "End it after S seconds on a case (default: 3600).",
        default=3600.0,
        parse=seconds,
        metavar="S",
    )
    """Time limit of a case, in s."""
    memory: Text = limit(  # swap is not added
        "Give it so much memory of the host, such as 28g (default: 28g).",
        default="",
        parse=size,
        metavar="SIZE",
    )
    """Memory that a container may use, as Docker writes it; swap is not added."""
    shm_size: Text = limit(  # FLARE23's
        "Give it so much memory of /dev/shm, such as 28g (default: 28g).",
        default="28g",
        parse=size,
        metavar="SIZE",
    )
    """Size of /dev/shm, as Docker writes it."""
    output_size: Text = limit(
        "Give it so much of /workspace/outputs, which is in memory (default: 4g).",
        default="4g",
        parse=size,
        metavar="SIZE",
    )
    """Size of /workspace/outputs, or /output, which is in memory, as Docker writes
    it."""
    disk_bytes: Count = limit(
        "Let it write so much anywhere else (default: 64g).",
        default=64 * 2**30,
        parse=size_bytes,
        metavar="SIZE",
    )
    """What a container may write to the disk, in bytes."""
    processes: Positive = 4096
    """Processes that a container may have."""
    cpus: Annotated[str | None, Is(type="string")] = limit(
        "Give it the processors of these numbers, such as 1-7 (default: all; all but"
        " the first one where there are more than two).",
        default=None,
        is_of_host=True,
        parse=processors,
        metavar="LIST|all",
    )
    """Numbers of the processors that it may use, such as 1-7; empty for all. With
    several lanes, how many each has, such as `4 processors`."""
    runtime: str = limit(
        "Run it by this runtime of the engine, such as runsc (default: the engine's).",
        default="",
        metavar="NAME",
    )
    """Runtime of the engine, such as runsc; empty for its default."""
