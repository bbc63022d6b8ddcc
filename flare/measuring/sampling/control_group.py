"""Reads memory and processor time of a container from its Linux control group."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from flare.common.machine import CGROUPS
from flare.measuring.sampling.nvml import MB


class ProcessGroup(Protocol):
    """All processes of a container."""

    def read(self) -> tuple[float | None, float | None]:
        """Memory in MB, and seconds of CPU; None where they cannot be read."""

    def processes(self) -> frozenset[int]:
        """Their IDs on the host."""


class ControlGroup:
    """Memory and processor time of a container, from its control group.

    Parameters
    ----------
    container : str
        Its full ID.
    root : Path
        Where control groups are mounted.
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
        """IDs, on the host, of all processes of the container."""
        file = self._file("" if self._is_v2 else "memory", "cgroup.procs")
        return frozenset(int(word) for word in _text(file).split() if word.isdigit())

    def _memory(self, controller: str, total: str, cached: str) -> float | None:
        usage = _number(self._file(controller, total))
        if usage is None:
            return None
        cache = _fields(self._file(controller, "memory.stat")).get(cached, 0)
        return max(0, usage - cache) / MB

    def _file(self, controller: str, name: str) -> Path:
        folder = self._folders.get(controller)
        if folder is None:
            folder = self._find(self._root / controller)
            if folder is None:
                return self._root / "nowhere"
            self._folders[controller] = folder
        return folder / name

    def _find(self, controller: Path) -> Path | None:
        """The folder of the container: engines and systemd put it in several places."""
        identity = self._container
        for pattern in (
            f"docker/{identity}",
            f"system.slice/docker-{identity}.scope",
            f"*/*/*{identity}*",
            f"*/*/*/*/*{identity}*",
        ):
            for found in controller.glob(pattern):
                return found
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


def _number(file: Path) -> int | None:
    """The number in a file; None if there is none."""
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _fields(file: Path) -> dict[str, int]:
    """Names and numbers of a file with a pair in each line."""
    pairs = (line.split() for line in _text(file).splitlines())
    return {p[0]: int(p[1]) for p in pairs if len(p) == 2 and p[1].isdigit()}
