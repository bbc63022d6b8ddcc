"""Lanes on the computers of a Dask scheduler: each worker has one."""

from __future__ import annotations

import logging
import math
import pickle
import queue
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flare.common.errors import FlareError
from flare.common.text import safe
from flare.evaluation.errors import ClusterError
from flare.evaluation.many.cluster import (
    WAIT_S,
    check_workers,
    connected,
    scheduler_lost,
)
from flare.measuring.engines.interface import Engine
from flare.measuring.lane import Computer, Lane, check_alike, divide, look_at_computer
from flare.measuring.lanes.process import LanePool, LaneProcess, Message, TeamEnd
from flare.measuring.options import MeasureOptions
from flare.measuring.team import Job, TeamJob

_log = logging.getLogger(__name__)

RESOURCE = "GPU"
"""The resource of Dask workers that measure teams: ``--resources GPU=1``."""

LOOK_S = 1.0
"""Time between two looks at which workers there are, and whether a job is wanted."""

ANSWER_S = 5.0
"""If a scheduler has not answered for this time, it is seen whether it is there."""

LATE_S = 5.0
"""How much later than its end the messages of a job may come."""


def measure_on_worker(job: TeamJob, topic: str, token: str) -> None:
    """Measure a team in a process of this worker.

    The messages become events of the topic, and each has the token.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    is_stopping = False
    with closing(LaneProcess(job)) as process:
        while True:
            if process.connection.poll(LOOK_S):
                message = process.receive()
                if message is None:
                    return
                worker.log_event(topic, pickle.dumps((token, message)))
            if not is_stopping and not _is_wanted(worker, key):
                is_stopping = True
                process.ask_to_stop()


def _is_wanted(worker: Any, key: Any) -> bool:
    """Whether a task was not cancelled, and its worker is not about to end."""
    task = worker.state.tasks.get(key)
    is_running = worker.status.name in ("running", "paused")
    return is_running and task is not None and task.state == "executing"


@dataclass(slots=True, kw_only=True)
class _Running:
    token: str
    lane: Lane
    worker: str
    future: Any
    over_at: float = math.inf
    """When nothing more comes from it: at once behind its last message."""


class ClusterLanes(LanePool):
    """Lanes of the workers that have the resource.

    The options have the scheduler's address, and how each computer is to be divided;
    all workers have to see the folders, by what they are for messages.
    """

    def __init__(
        self,
        client: Any,
        options: MeasureOptions,
        folders: Mapping[str, Path],
        engine: Engine,
    ) -> None:
        self._client, self._address = client, str(options.cluster)
        self._options, self._folders, self._engine = options, folders, engine
        self._lanes: dict[str, tuple[Lane, ...]] = {}
        """The lanes of each computer, by its identity."""
        self._workers: dict[Lane, str] = {}
        self._refused: set[str] = set()
        self._running: dict[Lane, _Running] = {}
        self._messages: queue.SimpleQueue[tuple[str, Message | None]]
        self._messages = queue.SimpleQueue()
        self._looked_at = self._lost_at = time.monotonic()
        self._topic = f"flare-measure-{uuid.uuid4().hex}"
        hear = self._messages.put
        client.subscribe_topic(self._topic, lambda event: hear(pickle.loads(event[1])))
        self.computers: list[Computer] = []
        self._take(self._new())
        if not self._workers:
            raise ClusterError(
                f"{safe(self._address)}: no worker has the resource {RESOURCE}",
                f"Start workers with --resources {RESOURCE}=1.",
            )

    def lanes(self) -> Sequence[Lane]:
        """Lanes that have a worker now."""
        return list(self._workers)

    def may_grow(self) -> bool:
        """Whether a worker that was lost may still be replaced."""
        return not self._workers and time.monotonic() < self._lost_at + WAIT_S

    def begin(self, lane: Lane, job: TeamJob) -> None:
        """Send a job to the worker of a lane."""
        token, worker = uuid.uuid4().hex, self._workers[lane]
        future = self._client.submit(
            measure_on_worker,
            job,
            self._topic,
            token,
            workers=[worker],
            resources={RESOURCE: 1},
            pure=False,
        )
        self._running[lane] = _Running(
            token=token, lane=lane, worker=worker, future=future
        )
        future.add_done_callback(lambda _: self._messages.put((token, None)))

    def events(self) -> Iterator[tuple[Lane, Message | None]]:
        """Wait for messages of workers; None where a job has ended, or its worker."""
        with suppress(queue.Empty):
            token, message = self._messages.get(timeout=LOOK_S)
            jobs = self._running.values()
            job = next((job for job in jobs if job.token == token), None)
            if job and message is None:  # its messages may come later
                job.over_at = min(job.over_at, time.monotonic() + LATE_S)
            elif job:
                if isinstance(message, TeamEnd):
                    job.over_at = 0.0
                yield job.lane, message
        if time.monotonic() > self._looked_at + LOOK_S:
            self._look()
        for job in list(self._running.values()):
            if self._is_over(job):
                del self._running[job.lane]
                yield job.lane, None

    def _is_over(self, job: _Running) -> bool:
        is_gone = self._workers.get(job.lane) != job.worker
        return is_gone or time.monotonic() > job.over_at

    def close(self) -> None:
        """Let workers end what they do; they remove what they have made."""
        for job in self._running.values():
            with suppress(Exception):  # the scheduler may be gone
                job.future.cancel()
        self._running.clear()

    # --- Which workers there are --------------------------------------------------

    def _present(self) -> set[str]:
        # A client that was cut off gives up all that it has sent. Then it looks for a
        # minute whether the scheduler comes back, and callers wait meanwhile.
        for _ in range(round(WAIT_S / ANSWER_S)):
            if self._client.status != "running":
                break
            ask = self._client.scheduler.identity
            try:
                answer = self._client.sync(ask, n_workers=-1, callback_timeout=ANSWER_S)
            except TimeoutError:
                continue
            except OSError as error:
                raise scheduler_lost(self._address) from error
            return {
                address
                for address, worker in answer["workers"].items()
                if (worker.get("resources") or {}).get(RESOURCE, 0) >= 1
            }
        raise scheduler_lost(self._address)

    def _new(self) -> list[str]:
        return sorted(self._present() - {*self._workers.values(), *self._refused})

    def _look(self) -> None:
        """Forget workers that have ended, and take in new ones."""
        present = self._present()
        for lane, worker in list(self._workers.items()):
            if worker not in present:
                del self._workers[lane]
                self._lost_at = time.monotonic()
                _log.info("%s: its worker %s has ended", lane.name, safe(worker))
        for worker in self._new():
            try:
                self._take([worker])
            except FlareError as error:
                self._refused.add(worker)
                _log.info("Worker %s is not used: %s", safe(worker), error)
        self._looked_at = time.monotonic()

    def _take(self, workers: Sequence[str]) -> None:
        """Give new workers a free lane of their computer.

        A FlareError is raised if one cannot measure, or has no lane left.
        """
        if not workers:
            return
        check_workers(self._client, self._folders, workers)
        answers = self._client.run(
            look_at_computer,
            self._options.gpus,
            self._engine,
            workers=list(workers),
            on_error="return",
        )
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, FlareError):
                raise ClusterError(
                    f"Worker {safe(worker)}: {answer.finding}", answer.remedy
                ) from answer
            if isinstance(answer, OSError):
                continue  # it has just ended
            if isinstance(answer, Exception):
                raise ClusterError(
                    f"Worker {safe(worker)}: it cannot be used ({answer})"
                ) from answer
            lane = self._lane_for(worker, answer)
            check_alike([*self._workers, lane])
            self._workers[lane] = worker

    def _lane_for(self, worker: str, computer: Computer) -> Lane:
        if computer.identity not in self._lanes:
            if computer.host in [other.host for other in self.computers]:
                # Two computers of one name: the address tells them apart.
                address = worker.partition("://")[2].rpartition(":")[0]
                computer = replace(computer, host=f"{computer.host} ({address})")
            limits, count = self._options.limits, self._options.lane_count
            self._lanes[computer.identity] = divide(computer, limits, count)
            self.computers.append(computer)
        for lane in self._lanes[computer.identity]:
            if lane not in self._workers:
                return lane
        raise ClusterError(
            f"Worker {safe(worker)}: {safe(computer.host)} has more workers with the"
            f" resource {RESOURCE} than lanes ({self._options.lane_count})",
            "Start one for each GPU of --gpu, or for each of --lanes.",
        )


@contextmanager
def opened_cluster(job: Job, engine: Engine) -> Iterator[ClusterLanes]:
    """The lanes of a scheduler's workers.

    The job has absolute paths. The folder of its results gets one for a moment, which
    all workers have to see: another one of the same path would not do. A ClusterError
    is raised if the scheduler does not answer, or has no worker that can measure.
    """
    options, archive = job.options, job.runnable[0].path
    with connected(str(options.cluster)) as client:
        job.results.mkdir(parents=True, exist_ok=True)
        folders = {"images": options.images, "archives": archive.parent}
        with tempfile.TemporaryDirectory(prefix=".shared-", dir=job.results) as mark:
            folders["results"] = Path(mark)
            yield ClusterLanes(client, options, folders, engine)
