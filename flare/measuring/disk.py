"""Watches how much of a disk is taken, and tells afterwards who has taken it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SPARE_BYTES = 2**30
"""So much of a disk is left free."""

SPARE_FILES = 20_000
"""And room for so many files."""

MOST_FILES = 2_000_000
"""A container that makes more files than this is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is free on a file system."""

    free_bytes: int
    free_files: int | None
    """None where files are not counted."""


def room(folder: Path) -> Room:
    """What is free where a folder lies."""
    found = os.statvfs(folder)
    return Room(
        free_bytes=found.f_bavail * found.f_frsize,
        free_files=found.f_favail if found.f_files else None,
    )


class DiskWatch:
    """Watches a disk from now on.

    Parameters
    ----------
    folder : Path, optional
        Where it is mounted, or below; None for a disk that cannot be seen from here,
        of which nothing is alarming.
    limit_bytes : int
        So much may be taken.
    """

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        self._folder, self._limit_bytes = folder, limit_bytes
        self._before = room(folder) if folder else None
        self._alarm: tuple[Room, bool, bool] | None = None

    @property
    def is_full(self) -> bool:
        """Whether there was too little room already when this began."""
        return self._before is not None and any(_is_low(self._before))

    def is_alarming(self) -> bool:
        """Whether too much was taken, or too little is left."""
        if not self._folder or not self._before:
            return False
        now = room(self._folder)
        taken_bytes, taken_files = _taken(self._before, now)
        has_few_bytes, has_few_files = _is_low(now)
        bytes_ = has_few_bytes or taken_bytes > self._limit_bytes
        files = has_few_files or taken_files > MOST_FILES
        if bytes_ or files:
            self._alarm = (now, bytes_, files)
        return self._alarm is not None

    def is_given_back(self) -> bool:
        """Whether most of what was taken at the alarm is free again.

        Asked when what is suspected has been removed: then it was its doing.
        """
        if not self._folder or not self._before or not self._alarm:
            return False
        at_alarm, *alarms = self._alarm
        now = room(self._folder)
        return any(
            is_alarm and was > 0 and back * 2 >= was
            for is_alarm, was, back in zip(
                alarms,
                _taken(self._before, at_alarm),
                _taken(now, at_alarm),
                strict=True,
            )
        )


def _is_low(now: Room) -> tuple[bool, bool]:
    """Whether there is too little room for bytes, and for files."""
    has_few_files = now.free_files is not None and now.free_files < SPARE_FILES
    return now.free_bytes < SPARE_BYTES, has_few_files


def _taken(before: Room, after: Room) -> tuple[int, int]:
    """Bytes and files that were taken between two moments."""
    files = (before.free_files or 0) - (after.free_files or 0)
    return before.free_bytes - after.free_bytes, files
