"""Measures teams in processes of this computer, one for each lane at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Protocol

from flare.measuring.lanes.job import TeamJob
from flare.measuring.lanes.lane import Lane
from flare.measuring.lanes.messages import Message
from flare.measuring.lanes.process import LaneProcess


class Pool(Protocol):
    """Lanes to which jobs can be given, wherever they are."""

    def lanes(self) -> Sequence[Lane]:
        """All that there are at this moment."""

    def free(self) -> Sequence[Lane]:
        """Lanes that have no job."""

    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Give a job to a lane that has none."""

    def events(self) -> Iterator[tuple[Lane, Message | None]]:
        """What lanes tell next, for which it is waited; None for the end of a job."""

    def may_grow(self) -> bool:
        """Whether there may soon be a lane, although there is none now."""

    def close(self) -> None:
        """Let all jobs end, and wait for that."""


class LocalPool:
    """Lanes of this computer.

    Parameters
    ----------
    lanes : sequence of Lane
        All of them.
    start : callable
        Starts a process for a job.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        start: Callable[[TeamJob], LaneProcess] = LaneProcess,
    ) -> None:
        self._lanes, self._start = lanes, start
        self._running: dict[Lane, LaneProcess] = {}

    def lanes(self) -> Sequence[Lane]:
        """All of them."""
        return self._lanes

    def free(self) -> Sequence[Lane]:
        """Lanes that have no job."""
        return [lane for lane in self._lanes if lane not in self._running]

    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Start a process for a job."""
        self._running[lane] = self._start(job)

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

    def may_grow(self) -> bool:
        """A computer has the lanes that it has."""
        return False

    def close(self) -> None:
        """Let all processes end, at the same time."""
        for process in self._running.values():
            process.ask_to_stop()
        for process in self._running.values():
            process.close()
        self._running.clear()
