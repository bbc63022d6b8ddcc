"""Lanes on which teams are measured: in this process, or each in one of its own.

Such a process is a new program, not a copy of this one: that may have threads, or be
one of Dask's workers, which may have no children of `multiprocessing`. When its parent
ends, however that is, it is killed, and the guard of its team removes what it has left.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from logging.handlers import QueueHandler
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from flare.common.environment import end_with
from flare.common.errors import FlareError, as_flare_error, raise_stop
from flare.common.files import closed_to_others
from flare.measuring.lane import Lane
from flare.measuring.team import TeamJob, measure_team
from flare.results.efficiency_csv import CaseRecord

PROGRAM = "from flare.measuring.lanes.process import main; main()"
"""The program of a new process."""


@dataclass(frozen=True, slots=True)
class TeamEnd:
    """The end of a team's measurement on a lane; nothing of it is left behind."""

    error: FlareError | None = None
    """Why it has ended before it was done; None if it was done."""


Message = CaseRecord | logging.LogRecord | TeamEnd
"""A message about a team: the records of its cases, lines of the log, and its end."""


def messages_of(job: TeamJob) -> Generator[CaseRecord | TeamEnd]:
    """Measure a team, and yield messages about it, always between containers."""
    error = None
    try:
        yield from measure_team(job)
    except Exception as raised:  # noqa: BLE001  it ends this team alone
        raise_stop(raised)
        error = as_flare_error(raised)
    yield TeamEnd(error)


class LaneProcess:
    """A process that measures a team, as its parent sees it."""

    def __init__(self, job: TeamJob) -> None:
        self.connection, far_end = Pipe()
        # It finds the modules that this one has.
        path = os.pathsep.join(p or str(Path.cwd()) for p in sys.path)
        with far_end:
            descriptor = far_end.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(descriptor), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=(descriptor,),
                env=os.environ | {"PYTHONPATH": path},
            )
        with suppress(OSError):  # if it has died, that is seen when it is asked
            self.connection.send(job)

    def receive(self) -> Message | None:
        """Wait for its next message; None if it has ended."""
        try:
            return cast("Message", self.connection.recv())
        except (EOFError, OSError):
            return None

    def ask_to_stop(self) -> None:
        """Let it end as soon as it has removed what it has made."""
        self._process.terminate()

    def close(self) -> None:
        """Let it end, if it has not, and wait for that."""
        self.ask_to_stop()
        self.connection.close()
        try:
            self._process.wait(150.0)  # an engine may take this long to remove things
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# --- In the process ---------------------------------------------------------------


class _StoppedError(BaseException):
    """The parent wants this process to end, or has ended."""


def main() -> None:
    """Measure the team that comes through a pipe, whose number is an argument."""
    descriptor, parent = map(int, sys.argv[1:])
    os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells us
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
    log.addHandler(QueueHandler(cast("Any", SimpleNamespace(put_nowait=tell))))
    log.setLevel(logging.INFO)
    log.propagate = False
    with suppress(_StoppedError, EOFError):
        job = connection.recv()
        if job.lane.of > 1:  # do not use the processors of other lanes
            with suppress(OSError):
                os.sched_setaffinity(0, {*job.lane.cpus, *job.lane.spare})
        # On a cluster, nobody has seen to that.
        with closed_to_others(), closing(messages_of(job)) as messages:
            for message in messages:
                tell(message)


# --- Lanes ------------------------------------------------------------------------


class LanePool(ABC):
    """Lanes to which jobs can be given, wherever they are."""

    _running: Mapping[Lane, Any]
    """The runner of each lane that has a job."""

    @abstractmethod
    def lanes(self) -> Sequence[Lane]:
        """All lanes at this moment."""

    def free(self) -> Sequence[Lane]:
        """Lanes that have no job."""
        return [lane for lane in self.lanes() if lane not in self._running]

    @abstractmethod
    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Give a job to a lane that has none."""

    @abstractmethod
    def events(self) -> Iterator[tuple[Lane, Message | None]]:
        """Wait for the next messages of lanes; None stands for the end of a job."""

    def may_grow(self) -> bool:
        """Whether a lane may come soon, while no lane is free now."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Let all jobs end, and wait for that."""


class SingleLane(LanePool):
    """A computer that is not divided: its jobs run in this process."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._running: dict[Lane, Generator[CaseRecord | TeamEnd]] = {}

    def lanes(self) -> Sequence[Lane]:
        """The only one."""
        return [self._lane]

    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Begin a job, which goes on while its messages are asked for."""
        self._running[lane] = messages_of(job)

    def events(self) -> Iterator[tuple[Lane, Message | None]]:
        """Go on with the job until its next message."""
        for lane, messages in list(self._running.items()):
            message = next(messages, None)
            if message is None:
                del self._running[lane]
            yield lane, message

    def close(self) -> None:
        """Let the job end, where it is."""
        for messages in self._running.values():
            messages.close()


class LocalLanes(LanePool):
    """Lanes of this computer, with a process for each job."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._running: dict[Lane, LaneProcess] = {}

    def lanes(self) -> Sequence[Lane]:
        """All of them."""
        return self._lanes

    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Start a process for a job."""
        self._running[lane] = LaneProcess(job)

    def events(self) -> Iterator[tuple[Lane, Message | None]]:
        """Wait for messages of processes; None where one has ended."""
        ready = wait([process.connection for process in self._running.values()])
        for lane, process in list(self._running.items()):
            if process.connection in ready:
                message = process.receive()
                if message is None:
                    process.close()
                    del self._running[lane]
                yield lane, message

    def close(self) -> None:
        """Let all processes end, at the same time."""
        for process in self._running.values():
            process.ask_to_stop()
        for process in self._running.values():
            process.close()
        self._running.clear()
