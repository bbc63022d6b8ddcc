"""What can go wrong with the processes that score or measure many teams."""

from __future__ import annotations

from flare.common.errors import HostError


class ClusterError(HostError):
    """The processes that should score or measure cannot be used.

    Dask is not installed, no scheduler answers at the address, a worker has another
    version of this program, or it does not see the files: all machines of a cluster
    need the same folders under the same paths, and no link may lead to what teams have
    sent. To measure, workers have to be started with `--resources GPU=1`, and no more
    of them on a computer than it has lanes.
    """

    code = "H10"
    remedy = "Leave --cluster out to work on this computer alone."
