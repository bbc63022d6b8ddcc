"""A process that measures one team: how it is started, and what it does.

It is a new program, not a copy of this one: that may have threads, or be one of Dask's
workers, which may have no children of `multiprocessing`. When whoever has started it
ends, however that is, it is killed, and the guard of its team removes what it has left.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, cast

from flare.common.files import closed_to_others
from flare.common.processes import end_with
from flare.measuring.lanes.job import TeamJob, measure_team
from flare.measuring.lanes.messages import Message, Said

PROGRAM = "from flare.measuring.lanes.process import main; main()"
"""What the new process runs."""

STOP_S = 150.0
"""So long a process may take to remove what it has made: an engine may be slow."""


class LaneProcess:
    """A process that measures a team, as whoever has started it sees it.

    Parameters
    ----------
    job : TeamJob
        What it is to do.
    """

    def __init__(self, job: TeamJob) -> None:
        self.connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | {"PYTHONPATH": _search_path()},
            )
        with suppress(OSError):  # if it has died, that is seen when it is asked
            self.connection.send(job)

    def receive(self) -> Message | None:
        """What it tells next, which is waited for; None if it has ended."""
        try:
            return cast("Message", self.connection.recv())
        except (EOFError, OSError):
            return None

    def ask_to_stop(self) -> None:
        """Let it end as soon as it has removed what it has made."""
        self._process.terminate()

    def close(self) -> None:
        """Let it end, and wait for that; nothing if it has ended."""
        self.ask_to_stop()
        self.connection.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """Nothing more is needed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let it end."""
        self.close()


def _search_path() -> str:
    """Where a new process finds the modules that this one has."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)


# --- In the process ---------------------------------------------------------------


class _StoppedError(BaseException):
    """Whoever has started this process wants it to end, or has ended."""


class _Teller(logging.Handler):
    """Tells whoever has started this process what it logs."""

    def __init__(self, tell: Callable[[Message], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Tell a line."""
        self._tell(Said(level=record.levelno, text=self.format(record)))


def main() -> None:
    """Measure the team that comes through a pipe, whose number is an argument."""
    descriptor, parent = map(int, sys.argv[1:])
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever has started us tells us
    is_stopping = threading.Event()

    def stop(*_: Any) -> NoReturn:
        """End by an exception, so that everything is removed on the way."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        is_stopping.set()
        raise _StoppedError

    signal.signal(signal.SIGTERM, stop)
    end_with(parent)
    connection = Connection(descriptor)

    def tell(message: Message) -> None:
        if is_stopping.is_set():  # an error of a clean-up may have taken its place
            raise _StoppedError
        try:
            connection.send(message)
        except OSError as error:
            raise _StoppedError from error

    log = logging.getLogger("flare")
    log.addHandler(_Teller(tell))
    log.setLevel(logging.INFO)
    log.propagate = False
    with suppress(_StoppedError, EOFError):
        job = connection.recv()
        _stay_apart(job)
        with closed_to_others():  # on a cluster, nobody has seen to that
            measure_team(job, tell)


def _stay_apart(job: TeamJob) -> None:
    """Do not use the processors of other lanes."""
    if job.lane.of > 1:
        with suppress(OSError):
            os.sched_setaffinity(0, {*job.lane.cpus, *job.lane.spare})
