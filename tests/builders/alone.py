"""Lets one process of the tests at a time do what others must not do beside it."""

import fcntl
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(what):
    """Wait until no other process is within a block of this name."""
    with (Path(tempfile.gettempdir()) / f"flare-tests-{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
