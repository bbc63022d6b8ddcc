"""Knows which versions of what runs containers can be broken out of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Something that a container could use against its computer."""

    part: str
    """As in what `flare.common.engine.Engine.describe` returns."""
    name: str
    numbers: str
    """CVE numbers."""
    repaired: tuple[tuple[int, ...], ...]
    """First versions without it, one for each series that got one, oldest first."""


WEAKNESSES = (
    Weakness(
        part="runc",
        name="runc",
        numbers="CVE-2024-21626",
        repaired=((1, 1, 12),),
    ),
    Weakness(
        part="runc",
        name="runc",
        numbers="CVE-2025-31133, CVE-2025-52565, CVE-2025-52881",
        repaired=((1, 2, 8), (1, 3, 3)),
    ),
    Weakness(
        part="containerd",
        name="containerd",
        numbers="CVE-2024-25621, CVE-2025-64329",
        repaired=((1, 7, 29), (2, 0, 7), (2, 1, 5)),
    ),
    Weakness(
        part="nvidia_toolkit",
        name="NVIDIA container toolkit",
        numbers="CVE-2024-0132, CVE-2024-0133",
        repaired=((1, 16, 2),),
    ),
    Weakness(
        part="nvidia_toolkit",
        name="NVIDIA container toolkit",
        numbers="CVE-2025-23359",
        repaired=((1, 17, 4),),
    ),
    Weakness(
        part="nvidia_toolkit",
        name="NVIDIA container toolkit",
        numbers="CVE-2025-23266, CVE-2025-23267",
        repaired=((1, 17, 8),),
    ),
)
"""As the projects' own advisories and release notes had them in November 2026."""


def find_weaknesses(engine: Mapping[str, Any]) -> tuple[str, ...]:
    """What organisers should know before they run other people's images.

    Parameters
    ----------
    engine : mapping
        What `flare.common.engine.Engine.describe` has returned.
    """
    return (*_old_versions(engine), *_missing_walls(engine))


def _old_versions(engine: Mapping[str, Any]) -> Iterator[str]:
    """Parts that are older than the repair of a known weakness."""
    for weakness in WEAKNESSES:
        text = str(engine.get(weakness.part, ""))
        version = _version(text)
        if version and not _is_repaired(version, weakness.repaired):
            first = " or ".join(".".join(map(str, v)) for v in weakness.repaired)
            yield (
                f"{weakness.name} {text} is older than {first}: {weakness.numbers};"
                " update it, unless your distribution has repaired that version"
            )


def _is_repaired(
    version: tuple[int, ...], repaired: tuple[tuple[int, ...], ...]
) -> bool:
    """Whether a version is at or behind the repair of its own series.

    Examples
    --------
    >>> _is_repaired((1, 2, 9), ((1, 2, 8), (1, 3, 3)))
    True
    >>> _is_repaired((1, 3, 0), ((1, 2, 8), (1, 3, 3)))
    False
    """
    series = [first for first in repaired if first[:2] == version[:2]]
    return version >= (series[0] if series else repaired[-1])


def _version(text: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version; none if there are none."""
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def _missing_walls(engine: Mapping[str, Any]) -> Iterator[str]:
    """Security options that every engine can have, and this one has not."""
    options = [str(option) for option in engine.get("security") or ()]
    if not any("name=seccomp" in o and "unconfined" not in o for o in options):
        yield "the engine filters no system calls (seccomp is off): turn it on"
    if not any(o in ("name=rootless", "name=userns") for o in options):
        yield (
            "root in a container is root of this computer: a rootless engine, or one"
            " with userns-remap, is safer"
        )
    if engine.get("limits"):
        missing = ", ".join(engine["limits"])
        yield f"the engine cannot limit {missing}: use another one, or control groups 2"
