"""Locks a folder against other processes, until the last one that has the lock ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from flare.common.errors import OutputError
from flare.common.text import safe, why
from flare.results.errors import MeasurementError

WAIT_S = 60
"""So long a folder is waited for: a clean-up may be at work in it."""


class FolderLock:
    """A folder that is ours until this is closed; it is made if need be.

    Nothing is left in it, and a process that is given `fileno` keeps it locked.

    Parameters
    ----------
    folder : Path
        What is locked. If it is moved, it is another one that is locked.
    use : str
        What others do to it while they have it, for the message.
    wait_s : float, optional
        How long it is waited for.

    Raises
    ------
    MeasurementError
        If another process has it, and does not let it go meanwhile.
    OutputError
        If it cannot be made, or may not be read.
    """

    def __init__(
        self, folder: Path, use: str = "measured", wait_s: float | None = None
    ) -> None:
        deadline = time.monotonic() + (WAIT_S if wait_s is None else wait_s)
        while True:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            except OSError as error:
                problem = f"{safe(folder)}: it cannot be written to ({why(error)})"
                raise OutputError(problem) from error
            if self._is_taken() and self._is_still(folder):
                return
            os.close(self._descriptor)
            if time.monotonic() > deadline:
                problem = f"it is being {use} by another process"
                raise MeasurementError(str(folder), problem, "Wait for it, or end it.")
            time.sleep(0.1)

    def _is_taken(self) -> bool:
        """Whether the lock was free, and is ours now."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _is_still(self, folder: Path) -> bool:
        """Whether the folder was not moved while we waited for it."""
        try:
            now = folder.stat()
        except OSError:
            return False
        return os.path.samestat(now, os.fstat(self._descriptor))

    def fileno(self) -> int:
        """What a process has to be given that keeps the lock."""
        return self._descriptor

    def close(self) -> None:
        """Let it go; nothing if that was done."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        """Nothing more is needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let it go."""
        self.close()
