"""Starts workers as jobs of a cluster, by dask-jobqueue and a file that says how."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flare.common.extras import install_remedy
from flare.common.text import listing, safe, why
from flare.evaluation.many.errors import ClusterError

QUEUES = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "htcondor": "HTCondorCluster",
}
"""What `queue` may be in the file, and what dask-jobqueue calls it."""

_REMEDY = "See the page More than one machine for an example."


@contextmanager
def started_jobs(file: Path) -> Iterator[Any]:
    """Start the jobs that a file describes; they end with the block.

    Parameters
    ----------
    file : Path
        YAML: ``queue`` and ``jobs`` say which ones and how many; all else is given to
        the class of dask-jobqueue as it stands there.

    Raises
    ------
    ClusterError
        If the file cannot be read, or the jobs cannot be started.
    """
    settings = _read(file)
    queue, jobs = settings.pop("queue", None), settings.pop("jobs", None)
    if queue not in QUEUES:
        problem = f"{safe(file)}: queue is {queue!r}, not one of {listing(QUEUES)}"
        raise ClusterError(problem, _REMEDY)
    if type(jobs) is not int or jobs < 1:
        problem = f"{safe(file)}: jobs is {jobs!r}, not a number of jobs"
        raise ClusterError(problem, _REMEDY)
    try:
        kinds = importlib.import_module("dask_jobqueue")
    except ModuleNotFoundError as error:
        problem = f"{safe(file)}: dask-jobqueue is not installed"
        raise ClusterError(
            problem, install_remedy("dask-jobqueue", "cluster")
        ) from error
    try:
        cluster = getattr(kinds, QUEUES[queue])(**settings)
    except (TypeError, ValueError, OSError) as error:
        problem = f"{safe(file)}: dask-jobqueue does not take it ({safe(str(error))})"
        raise ClusterError(problem, _REMEDY) from error
    with cluster:
        cluster.scale(jobs=jobs)
        yield cluster


def _read(file: Path) -> dict[str, Any]:
    """The content of a YAML file."""
    import yaml  # which Dask brings

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"{safe(file)}: it cannot be read ({why(error)})"
        remedy = "Give tcp://HOST:PORT of a scheduler, or a YAML file."
        raise ClusterError(problem, remedy) from error
    except (ValueError, yaml.YAMLError) as error:
        problem = f"{safe(file)}: it is no YAML ({safe(str(error))})"
        raise ClusterError(problem, _REMEDY) from error
    if not isinstance(content, dict):
        problem = f"{safe(file)}: it holds no settings"
        raise ClusterError(problem, _REMEDY)
    return content
