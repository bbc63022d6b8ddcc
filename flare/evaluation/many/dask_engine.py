"""Scores batches on Dask's workers: of this computer, or of a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flare.common.errors import WorkerError
from flare.common.machine import available_bytes
from flare.common.text import safe
from flare.evaluation.many.batches import Batch, Finished, score_batch
from flare.evaluation.many.dask_workers import (
    SCHEMES,
    WAIT_S,
    check_dask,
    check_workers,
    explained,
    quiet,
)
from flare.evaluation.many.errors import ClusterError

_log = logging.getLogger(__name__)

DEATHS = 3
"""So many workers of this computer may die of a batch before it is given up."""

QUEUE_WAIT_S = 24 * 3600
"""So long the first job of a queue is waited for."""

BATCHES_PER_WORKER = 3
"""As many are on their way at a time: one is scored, others wait for their turn."""

SETTINGS = {
    # Whichever batch a worker died of: it was the only one it had.
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.allowed-failures": DEATHS - 1,
    # Nothing of a batch could be put on a disk to save memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # A thread that looks a hundred times a second what another one does takes a fifth
    # of a worker's time; timers that look every 20 ms whether a loop is late take about
    # as much of the scheduler's as its work.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.diagnostics.nvml": False,
    # Looks at memory, disks and network: each is some files of the kernel.
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Of Dask, for the scheduler and the workers that are started here."""


class DaskEngine:
    """Scores batches on the workers of a Dask scheduler.

    Parameters
    ----------
    cluster : str, optional
        The address of a scheduler, or a file that says which jobs to start; None for
        workers on this computer.
    workers : int, optional
        Of this computer.
    folders : mapping of str to Path
        What all workers have to see, by what it is for messages.
    """

    def __init__(
        self,
        cluster: str | None,
        workers: int,
        folders: Mapping[str, Path],
        on_start: Callable[[str], None] | None = None,
    ) -> None:
        check_dask("Several processes need", "Or score with --workers 1.")
        self._cluster = cluster
        self._workers = workers
        self._folders = folders
        self._on_start = on_start

    def run(self, batches: Iterator[Batch]) -> Iterator[Finished]:
        """Score batches; those whose workers died are scored again, each case alone."""
        suspects: list[Batch] = []
        with self.client() as client, explained(self._cluster or "Dask"):
            for finished in _finish(client, batches, DEATHS):
                if finished.error:
                    suspects.append(finished.batch)
                else:
                    yield finished
            # One at a time: none is to blame for the end of another one's worker.
            for suspect in suspects:
                for batch in suspect.single():
                    yield from _finish(client, iter((batch,)), DEATHS)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Connect to the scheduler, whose workers are as they should be."""
        import dask
        from distributed import Client

        with ExitStack() as stack:
            stack.enter_context(dask.config.set(SETTINGS))
            stack.enter_context(quiet())
            address = stack.enter_context(self._scheduler())
            try:
                client = stack.enter_context(Client(address, timeout=WAIT_S))
                client.wait_for_workers(1, timeout=self._wait_s)
            except (OSError, TimeoutError, ValueError) as error:
                problem = f"{safe(str(self._cluster))}: no worker answers there"
                remedy = "Start the scheduler and its workers, or leave --cluster out."
                raise ClusterError(problem, remedy) from error
            check_workers(client, self._folders)
            if self._on_start:
                self._on_start(client.dashboard_link)
            yield client

    @property
    def _wait_s(self) -> float:
        """How long the first worker may take."""
        is_queued = self._cluster and not self._cluster.startswith(SCHEMES)
        return QUEUE_WAIT_S if is_queued else WAIT_S

    @contextmanager
    def _scheduler(self) -> Iterator[Any]:
        """The address of the scheduler, or the cluster that was started for us."""
        if self._cluster is None:
            with _local_cluster(self._workers) as cluster:
                yield cluster
        elif self._cluster.startswith(SCHEMES):
            yield self._cluster
        else:
            from flare.evaluation.many.cluster_jobs import started_jobs

            with started_jobs(Path(self._cluster)) as cluster:
                yield cluster


@contextmanager
def _local_cluster(workers: int) -> Iterator[Any]:
    """Workers on this computer, which share its memory; nobody else reaches them."""
    from distributed import LocalCluster

    with (
        _same_environment(),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=available_bytes() // workers,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


@contextmanager
def _same_environment() -> Iterator[None]:
    """Leave to our caller the variables as they were: Dask sets some for workers."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _finish(client: Any, batches: Iterator[Batch], deaths: int) -> Iterator[Finished]:
    """Have batches scored, a few for each worker on their way at a time."""
    from distributed import KilledWorker, as_completed

    running: dict[Any, Batch] = {}
    done = as_completed()

    def send() -> None:
        """Ask for the next batch, and send it."""
        batch = next(batches, None)
        if batch is not None:
            future = client.submit(score_batch, batch, pure=False)
            running[future] = batch
            done.add(future)

    for _ in range(BATCHES_PER_WORKER * max(len(client.nthreads()), 1)):
        send()
    try:
        for future in done:
            batch = running.pop(future)
            try:
                finished = Finished(batch=batch, attempts=future.result())
            except KilledWorker:
                name = safe(batch.pairs[0].prediction.name)
                text = f"{name}: {deaths} processes that scored it were killed"
                finished = Finished(batch=batch, error=WorkerError(text))
            except WorkerError as error:
                finished = Finished(batch=batch, error=error)
            send()
            yield finished
    finally:
        for future in running:
            future.cancel()
