"""What can go wrong with the processes that score many teams."""

from __future__ import annotations

from flare.common.errors import HostError


class ClusterError(HostError):
    """The processes that should score cannot be used.

    Dask is not installed, no scheduler answers at the address, a worker has another
    version of this program, or it does not see the files: all machines of a cluster
    need the same folders under the same paths.
    """

    code = "H10"
    remedy = "Leave --cluster out to score on this computer alone."
