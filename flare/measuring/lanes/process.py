"""A process that measures one team on a lane: how it is started, and what it does.

It is a new program, not a copy of this one: that may have threads, or be one of Dask's
workers, which may have no children of `multiprocessing`. When its parent ends, however
that is, it is killed, and the guard of its team removes what it has left.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn, cast

from flare.common.errors import FlareError
from flare.common.files import closed_to_others
from flare.common.machine import end_with
from flare.measuring.archive.reading import Archive
from flare.measuring.lane import Lane
from flare.measuring.sampling.nvml import open_gpu
from flare.measuring.summary import Failures
from flare.measuring.team import Setup, opened_team, planned_team
from flare.results.efficiency_csv import CaseRecord
from flare.results.errors import MeasurementError
from flare.results.team_folder import FolderLock

PROGRAM = "from flare.measuring.lanes.process import main; main()"
"""What the new process runs."""

STOP_S = 150.0
"""So long a process may take to remove what it has made: an engine may be slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is left to do of the team, whose folder is locked now."""

    todo: tuple[str, ...]
    done: Mapping[str, CaseRecord]
    """What was measured before, by case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A line of the log."""

    level: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """All is done that can be done; nothing is left behind, and nothing follows."""


Message = Planned | CaseRecord | FlareError | Said | Ended
"""What a process tells; the outcome of a case is its record, of a team an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamJob:
    """All that a process needs to measure a team on a lane; paths are absolute."""

    setup: Setup
    """With the lane, and its limits; what is on its computer is opened there."""
    archive: Archive
    after: tuple[Path, ...] = ()
    """Folders of teams whose process was killed on the lane: what those have left is
    being removed while they are locked."""

    @property
    def lane(self) -> Lane:
        """Where the team is measured."""
        assert self.setup.lane
        return self.setup.lane


def measure_team(job: TeamJob, tell: Callable[[Message], None]) -> None:
    """Run all cases of a team that are left to do, and keep what was measured.

    Parameters
    ----------
    job : TeamJob
        The team, and how it is measured.
    tell : callable
        Told what happens, always between containers; `Ended` is the last.
    """
    results, wait_s = job.setup.job.results, job.setup.lock_wait_s
    failures = Failures(results, lambda _, error: tell(error))
    with failures.noted(job.archive.team):
        for folder in job.after:
            with suppress(MeasurementError), FolderLock(folder, wait_s=wait_s):
                pass
        with _opened(job) as setup, planned_team(setup, job.archive) as plan:
            names = tuple(case.name for case in plan.todo)
            tell(Planned(todo=names, done=dict(plan.done)))
            if plan.todo:
                with opened_team(plan) as team:
                    for case in plan.todo:
                        tell(team.run(case))
    tell(Ended())


@contextmanager
def _opened(job: TeamJob) -> Iterator[Setup]:
    """What the team is measured with, on the computer that this is run on."""
    described = job.setup.engine.describe()
    setup = replace(job.setup, described=described, is_here=True)
    if job.lane.gpu is None:
        yield setup
        return
    with open_gpu(job.lane.gpu.uuid) as gpu:
        yield replace(setup, conditions=replace(setup.conditions, gpu=gpu))


class LaneProcess:
    """A process that measures a team, as its parent sees it.

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
                # It finds the modules that this one has.
                env=os.environ
                | {
                    "PYTHONPATH": os.pathsep.join(
                        p or str(Path.cwd()) for p in sys.path
                    )
                },
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


# --- In the process ---------------------------------------------------------------


class _StoppedError(BaseException):
    """The parent wants this process to end, or has ended."""


class _Teller(logging.Handler):
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
    log.addHandler(_Teller(tell))
    log.setLevel(logging.INFO)
    log.propagate = False
    with suppress(_StoppedError, EOFError):
        job = connection.recv()
        if job.lane.of > 1:  # do not use the processors of other lanes
            with suppress(OSError):
                os.sched_setaffinity(0, {*job.lane.cpus, *job.lane.spare})
        with closed_to_others():  # on a cluster, nobody has seen to that
            measure_team(job, tell)


class Pool(ABC):
    """Lanes to which jobs can be given, wherever they are."""

    _running: Mapping[Lane, Any]
    """What runs the job of each lane that has one."""

    @abstractmethod
    def lanes(self) -> Sequence[Lane]:
        """All that there are at this moment."""

    def free(self) -> Sequence[Lane]:
        """Lanes that have no job."""
        return [lane for lane in self.lanes() if lane not in self._running]

    @abstractmethod
    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Give a job to a lane that has none."""

    @abstractmethod
    def events(self) -> Iterator[tuple[Lane, Message | None]]:
        """What lanes tell next, for which it is waited; None for the end of a job."""

    def may_grow(self) -> bool:
        """Whether there may soon be a lane, although there is none now."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Let all jobs end, and wait for that."""


class LocalPool(Pool):
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
        """What processes tell; None where one has ended."""
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
