"""The errors of exchanges with grand-challenge.org, and with the hosts of its files."""

from __future__ import annotations

from flare.common.errors import HostError


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer.

    `download` was refused, or got no answer: the message says which. A token has to be
    that of an admin of the challenge. A network with a proxy needs HTTPS_PROXY, and
    SSL_CERT_FILE if the proxy looks into TLS.
    """

    code = "H09"
    remedy = "The documentation's page Phase settings tells how to get results."


class FileRefusedError(PlatformError):
    """A host refuses to give a file, with this status."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem, "See whether this token's user may fetch it.")
        self.status = status


class TokenError(PlatformError):
    """The platform does not accept a token, such as one that has run out."""


class TooLargeError(PlatformError):
    """A file has more bytes than are taken of one."""

    remedy = "Ask the team for a smaller one."


class LongAnswerError(PlatformError):
    """An answer to a call has more bytes than are taken of one."""

    remedy = "Is --api right?"


class PassingError(Exception):
    """Something has failed that may not fail the next time.

    The host may want to be asked again after some seconds.
    """

    def __init__(self, problem: str, pause_s: float = 0.0) -> None:
        super().__init__(problem)
        self.pause_s = pause_s
