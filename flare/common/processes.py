"""Lets child processes end when their parent does, however that is."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
"""Linux's prctl option: the signal to get when the parent ends."""


def end_with_parent() -> Callable[[], None]:
    """What a child process calls first, so that it ends when this one does."""
    parent = os.getpid()
    return lambda: end_with(parent)


def end_with(parent: int) -> None:
    """End this process when its parent ends, however that is.

    Parameters
    ----------
    parent : int
        Process ID that the parent had when it made this process.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before we asked
            os._exit(1)
