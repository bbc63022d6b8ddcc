"""Sees that a Dask scheduler answers, and that its workers are as they should be."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flare.common.extras import install_remedy
from flare.common.text import listing, safe
from flare.common.version import __version__, source_commit
from flare.evaluation.many.errors import ClusterError

WAIT_S = 60
"""So long a scheduler and its first worker are waited for."""

SCHEMES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
"""What the address of a scheduler begins with."""


def check_dask(need: str, otherwise: str) -> None:
    """See that Dask is installed, before anything else is done.

    Parameters
    ----------
    need, otherwise : str
        What needs it, and how one can do without, for the message.

    Raises
    ------
    ClusterError
        If it is not; says how to install it here.
    """
    try:
        import distributed  # noqa: F401  found out by importing it
    except ModuleNotFoundError as error:
        problem = f"{need} Dask, which is not installed"
        remedy = install_remedy("distributed", "cluster")
        raise ClusterError(problem, f"{remedy} {otherwise}") from error


@contextmanager
def explained(scheduler: str) -> Iterator[None]:
    """Say what to do where the scheduler is lost.

    Raises
    ------
    ClusterError
        Then.
    """
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except (FutureCancelledError, CommClosedError) as error:
        raise scheduler_lost(scheduler) from error


def scheduler_lost(scheduler: str) -> ClusterError:
    """What is said where a scheduler that has answered is lost."""
    problem = f"{safe(scheduler)}: the scheduler does not answer any more"
    remedy = "Start it again, and this command: it goes on where it was."
    return ClusterError(problem, remedy)


@contextmanager
def quiet() -> Iterator[None]:
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
            problem = f"Worker {safe(address)}: it cannot run this program ({why})"
            remedy = (
                f"Install flare {__version__} there, with the same Python and Dask."
            )
            raise ClusterError(problem, remedy) from found
        version, missing = found
        if version != here:
            theirs, ours = (" ".join(v) for v in (version, here))
            problem = f"Worker {safe(address)}: it runs flare {theirs}, not {ours}"
            raise ClusterError(problem, "Install the same version everywhere.")
        if missing:
            problem = f"Worker {safe(address)}: it does not see {listing(missing)}"
            remedy = "All machines need the same folders under the same paths."
            raise ClusterError(problem, remedy)


def _look(paths: Mapping[str, str]) -> tuple[tuple[str, str], list[str]]:
    """What a worker runs, and the paths that it does not see."""
    missing = [f"{path} ({w})" for w, path in paths.items() if not Path(path).is_dir()]
    return (__version__, source_commit()), missing
