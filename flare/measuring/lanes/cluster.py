"""Connects to a Dask scheduler on whose workers teams are measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flare.common.engine import Engine
from flare.evaluation.many.cluster import connected
from flare.measuring.lanes.cluster_pool import ClusterPool
from flare.measuring.lanes.division import Wanted


class FarEngine(Engine):
    """What containers run in on the workers; nothing of it is to be seen here."""

    def folder(self) -> Path | None:
        """It is on other computers."""
        return None


@contextmanager
def opened_cluster(
    address: str, wanted: Wanted, folders: Mapping[str, Path], program: str
) -> Iterator[ClusterPool]:
    """The lanes of a scheduler's workers.

    Parameters
    ----------
    address : str
        Of the scheduler.
    wanted : Wanted
        How each computer is to be divided.
    folders : mapping of str to Path
        What all workers have to see; that of the results gets a folder for a moment,
        as another one of the same path would not do.
    program : str
        Of the engine.

    Raises
    ------
    ClusterError
        If it does not answer, or has no worker that can measure.
    """
    with connected(address) as client, ExitStack() as stack:
        results = folders["results"]
        results.mkdir(parents=True, exist_ok=True)
        mark = tempfile.TemporaryDirectory(prefix=".shared-", dir=results)
        seen = {**folders, "results": Path(stack.enter_context(mark))}
        yield ClusterPool(client, address, wanted, seen, program)
