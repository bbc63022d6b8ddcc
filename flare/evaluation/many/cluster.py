"""Scores on the workers of a Dask scheduler that runs already, where one is given."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flare.common.environment import (
    __version__,
    available_cpus,
    install_remedy,
    source_commit,
)
from flare.common.executor import LocalPool, Pool
from flare.common.text import listing, safe
from flare.evaluation.errors import ClusterError

_log = logging.getLogger(__name__)

WAIT_S = 60
"""A scheduler and its first worker have to answer within this time."""

SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
"""The beginnings of a scheduler's address."""

ENCRYPTED = ("tls://", "wss://")
"""The schemes that keep others out, if Dask has been given certificates."""

UNLINKED_FOLDERS = ("teams",)
"""The folders that must not be links on a worker: it scores nothing behind a link."""


@contextmanager
def opened_pool(
    workers: int | None,
    address: str | None,
    folders: Mapping[str, Path],
    on_start: Callable[[str], None] | None,
) -> Iterator[Pool]:
    """Workers: processes here, or those of a scheduler, which see the same folders."""
    if address is None:
        yield LocalPool(workers or available_cpus())
        return
    with connected(address) as client:
        check_workers(client, folders)
        if on_start:
            on_start(client.dashboard_link)
        yield ClusterPool(client)


class ClusterPool:
    """The workers of a scheduler, as a `Pool`."""

    def __init__(self, client: Any) -> None:
        from distributed import KilledWorker

        self._client = client
        self.workers = max(len(client.nthreads()), 1)
        # Dask's executor raises a ValueError for a result that is lost with its worker
        # (cfexecutor.py unpacks what is not a traceback). The work itself raises none:
        # it returns its errors as results.
        self.fatal_errors: tuple[type[Exception], ...] = (KilledWorker, ValueError)

    @contextmanager
    def started(self, workers: int) -> Iterator[Executor]:
        """Dask's executor; work that is left at the end of the block is cancelled."""
        executor: Executor = self._client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a running scheduler that has a worker.

    With ``tls://``, Dask's own settings say where certificates are. A ClusterError is
    raised if it is no address, Dask is not installed, or no worker answers; within the
    block, if the scheduler is lost.
    """
    if not address.startswith(SCHEMES):
        raise ClusterError(
            f"--cluster {safe(address)}: it is no address of a Dask scheduler",
            "Start one, and give its address as tls://HOST:PORT.",
        )
    try:
        from distributed import Client
        from distributed.comm.core import CommClosedError
    except ModuleNotFoundError as error:
        raise ClusterError(
            "--cluster needs Dask, which is not installed",
            f"{install_remedy('distributed')} Or leave --cluster out.",
        ) from error
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        try:
            client = stack.enter_context(Client(address, timeout=WAIT_S))
            client.wait_for_workers(1, timeout=WAIT_S)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            # Without a certificate, Dask raises a TypeError.
            raise ClusterError(
                f"{safe(address)}: no worker answers there",
                "Start the scheduler and its workers; for tls://, set"
                " DASK_DISTRIBUTED__COMM__TLS__CA_FILE, and as CLIENT__CERT and"
                " CLIENT__KEY what is to be used.",
            ) from error
        if not address.startswith(ENCRYPTED):
            _log.warning(
                "%s is not encrypted: whoever reaches this port, or sees what goes"
                " through it, can run programs as you. Use tls:// (machines.md).",
                safe(address),
            )
        try:
            yield client
        except (CancelledError, CommClosedError) as error:
            raise scheduler_lost(address) from error


def scheduler_lost(scheduler: str) -> ClusterError:
    """The error of a scheduler that has stopped answering."""
    problem = f"{safe(scheduler)}: the scheduler does not answer any more"
    remedy = "Start it again, and this command: it goes on where it was."
    return ClusterError(problem, remedy)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own log away: all that matters is raised."""
    names = ("distributed", "distributed.client", "distributed.worker")
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def check_workers(
    client: Any, folders: Mapping[str, Path], workers: Sequence[str] | None = None
) -> None:
    """Check that workers run this program, and see the same folders.

    The folders come with their names for messages, and `workers` are addresses; without
    any, all workers are checked. A ClusterError is raised if a worker does not.
    """
    paths = {name: str(path.resolve()) for name, path in folders.items()}
    answers = client.run(_look, paths, workers=workers, on_error="return")
    for address, answer in answers.items():
        # An OSError says that a worker has just ended: others do its work.
        if not isinstance(answer, OSError):
            _check_answer(f"Worker {safe(address)}", answer)


def _check_answer(worker: str, answer: Any) -> None:
    """Refuse a worker if `_look` has failed there, or shows that it is unfit."""
    if isinstance(answer, Exception):
        raise ClusterError(
            f"{worker}: it cannot run this program ({safe(str(answer))})",
            f"Install flare {__version__} there, with the same Python and Dask.",
        ) from answer
    # In another version of the program, `_look` may return other findings.
    version, *findings = answer
    if version != _program():
        raise ClusterError(
            f"{worker}: it runs flare {' '.join(version)}, not {' '.join(_program())}",
            "Install the same version everywhere.",
        )
    unseen_folders = findings[0]
    if unseen_folders:
        raise ClusterError(
            f"{worker}: it does not see {listing(unseen_folders)}",
            "All machines need the same folders under the same paths; those of"
            " teams are no links.",
        )


def _look(paths: Mapping[str, str]) -> tuple[tuple[str, str], list[str]]:
    """The program on the worker that runs this, and the folders that it does not see.

    They include a folder of teams that is a link there.
    """
    unseen_folders = []
    for name, path in paths.items():
        is_link = os.path.realpath(path) != path
        if (is_link and name in UNLINKED_FOLDERS) or not Path(path).is_dir():
            unseen_folders.append(f"{path} ({name})")
    return _program(), unseen_folders


def _program() -> tuple[str, str]:
    return __version__, source_commit()
