"""What the platform refuses, or would refuse."""

from __future__ import annotations

from flare.common.errors import HostError


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer.

    `download` was refused, or got no answer: the message says which. A token has to be
    that of an admin of the challenge.
    """

    code = "H09"
    remedy = "The documentation's page Phase settings tells how to get results."


class FileRefusedError(PlatformError):
    """Whoever has a file does not give it, with this status."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem, "See whether this token's user may fetch it.")
        self.status = status


class TooLargeError(PlatformError):
    """A file has more bytes than are taken of one."""

    remedy = "Ask the team for a smaller one."
