"""What the platform refuses, or would refuse."""

from __future__ import annotations

from flare.common.errors import HostError


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer."""

    code = "H09"
    remedy = "docs/phase-settings.md tells how results are got off the platform."
