"""What the platform refuses, or would refuse."""

from __future__ import annotations

from flare.common.errors import HostError


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer.

    `download` was refused, or got no answer: the message says which. A token has to be
    that of an admin of the challenge.
    """

    code = "H09"
    remedy = (
        "docs/organisers/phase-settings.md tells how results are got off the platform."
    )


class FileRefusedError(PlatformError):
    """The host of a file does not give it, which may pass."""

    def __init__(self, problem: str, remedy: str, status: int, /) -> None:
        super().__init__(problem, remedy)
        self.status = status
        """What it has answered, such as 404."""
