"""Scores on the workers of a Dask scheduler that runs already."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flare.common.environment import __version__, install_remedy, source_commit
from flare.common.text import listing, safe
from flare.evaluation.errors import ClusterError

_log = logging.getLogger(__name__)

WAIT_S = 60
"""So long a scheduler and its first worker are waited for."""

SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
"""What the address of a scheduler begins with."""

ENCRYPTED = ("tls://", "wss://")
"""Those of them that nobody else can use or read, if Dask is set up for it."""

REAL = ("teams",)
"""What workers see through no link: no prediction that a link leads to is scored."""


class ClusterPool:
    """The workers of a scheduler, as an executor that outlives their deaths."""

    def __init__(self, client: Any) -> None:
        from distributed import KilledWorker

        self._client = client
        self.workers = max(len(client.nthreads()), 1)
        # A result that is lost with its worker is a ValueError of Dask's executor
        # (cfexecutor.py unpacks what is no traceback); of ours, none comes back.
        self.killed: tuple[type[Exception], ...] = (KilledWorker, ValueError)

    @contextmanager
    def started(self, workers: int) -> Iterator[Executor]:
        """Dask's executor; leaving early cancels what was asked for."""
        executor: Executor = self._client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of a running scheduler that has a worker.

    With ``tls://``, Dask's own settings say where certificates are.

    Raises
    ------
    ClusterError
        If it is no address, Dask is not installed, or no worker answers; also within
        the block, if the scheduler is lost.
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
            # A TypeError is how Dask says that it has no certificate.
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
    """What is said where a scheduler that has answered is lost."""
    problem = f"{safe(scheduler)}: the scheduler does not answer any more"
    remedy = "Start it again, and this command: it goes on where it was."
    return ClusterError(problem, remedy)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own log away: what matters is raised."""
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
    """See that workers run this program, and see the same files.

    Parameters
    ----------
    client : distributed.Client
        Of the scheduler.
    folders : mapping of str to Path
        What they have to see, by what it is for messages.
    workers : sequence of str, optional
        Their addresses; all if not given.

    Raises
    ------
    ClusterError
        If one does not.
    """
    here = (__version__, source_commit())
    paths = {what: str(path.resolve()) for what, path in folders.items()}
    answers = client.run(_look, paths, workers=workers, on_error="return")
    for address, found in answers.items():
        if isinstance(found, OSError):
            continue  # it has just ended: others do what it would have done
        if isinstance(found, Exception):
            why = safe(str(found))
            raise ClusterError(
                f"Worker {safe(address)}: it cannot run this program ({why})",
                f"Install flare {__version__} there, with the same Python and Dask.",
            ) from found
        version, *seen = found  # another version may have looked otherwise
        if version != here:
            theirs, ours = (" ".join(v) for v in (version, here))
            raise ClusterError(
                f"Worker {safe(address)}: it runs flare {theirs}, not {ours}",
                "Install the same version everywhere.",
            )
        if unseen := seen[0]:
            raise ClusterError(
                f"Worker {safe(address)}: it does not see {listing(unseen)}",
                "All machines need the same folders under the same paths; those of"
                " teams are no links.",
            )


def _look(paths: Mapping[str, str]) -> tuple[tuple[str, str], list[str]]:
    """What a worker runs, and the paths that it does not see, or through a link."""
    unseen = [
        f"{path} ({what})"
        for what, path in paths.items()
        if not Path(path).is_dir() or (what in REAL and os.path.realpath(path) != path)
    ]
    return (__version__, source_commit()), unseen
