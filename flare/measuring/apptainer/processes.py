"""Reads memory and processor time of all processes of a box, without control groups."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from flare.measuring.apptainer.box import Box
from flare.measuring.sampling.nvml import MB

_TIMES = slice(11, 15)
"""Behind the name in /proc/PID/stat: time of a process in user and system mode, and of
those children that it has waited for."""

_KB = 2**10


class BoxProcesses:
    """Memory and processor time of all processes of a box.

    Parameters
    ----------
    box : Box
        Has a /proc of its own, which lists them.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self._proc = box.root / "proc"

    def read(self) -> tuple[float | None, float | None]:
        """Memory in MB, with what lies in folders in memory, and seconds of CPU.

        None where nothing is run. Memory that several processes share is counted only
        where it lies in such a folder.
        """
        own = list(self._folders())
        if not own:
            return None, None
        memory = self._in_folders()
        ticks = 0
        for folder in own:
            memory += _fields(folder / "status", ("RssAnon",))
            behind_name = _text(folder / "stat").rpartition(")")[2].split()
            ticks += sum(map(int, behind_name[_TIMES]))
        return memory / MB, ticks / os.sysconf("SC_CLK_TCK")

    def processes(self) -> frozenset[int]:
        """IDs, on the host, of all processes of the box."""
        try:
            namespace = Path(f"/proc/{self._box.process.pid}/ns/user").readlink()
        except OSError:
            return frozenset()
        return frozenset(_in_namespace(namespace))

    def is_above(self, limit_bytes: int) -> bool:
        """Whether they have more memory than they may, for sure."""
        own = list(self._folders())
        in_folders = self._in_folders()
        named = ("RssAnon", "RssShmem")
        most = in_folders + sum(_fields(folder / "status", named) for folder in own)
        if most <= limit_bytes:
            return False
        # What processes share was counted for each of them. This takes longer.
        alone = sum(_fields(folder / "smaps_rollup", ("Pss_Anon",)) for folder in own)
        shared = sum(_fields(folder / "smaps_rollup", ("Pss_Shmem",)) for folder in own)
        return alone + max(shared, in_folders) > limit_bytes

    def _folders(self) -> Iterator[Path]:
        """The folders in /proc of all processes but the first, which is ours."""
        try:
            found = list(self._proc.iterdir())
        except OSError:
            return
        for folder in found:
            if folder.name.isdigit() and folder.name != "1":
                yield folder

    def _in_folders(self) -> int:
        """Bytes in the folders in memory."""
        taken = 0
        for folder in (self._box.outputs, self._box.shm):
            try:
                found = os.statvfs(f"{self._box.root}{folder}")
            except OSError:
                continue
            taken += (found.f_blocks - found.f_bfree) * found.f_frsize
        return taken


def _in_namespace(namespace: Path) -> Iterator[int]:
    """IDs of all processes of this user in a namespace of users."""
    for folder in Path("/proc").iterdir():
        try:
            is_in = (folder / "ns/user").readlink() == namespace
        except OSError:
            continue  # of another user, or no process
        if is_in and folder.name.isdigit():
            yield int(folder.name)


def _fields(file: Path, names: Iterable[str]) -> int:
    """The sum of some lines, in bytes; 0 for a process that has ended."""
    starts = tuple(f"{name}:" for name in names)
    lines = (line.split() for line in _text(file).splitlines())
    return sum(int(words[1]) * _KB for words in lines if words and words[0] in starts)


def _text(file: Path) -> str:
    """What a file of /proc says; nothing where its process has ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
