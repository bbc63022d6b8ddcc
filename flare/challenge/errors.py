"""What is wrong with a challenge file."""

from __future__ import annotations

from flare.common.errors import OrganiserError
from flare.common.text import safe


class ChallengeError(OrganiserError):
    """A challenge file breaks its rules.

    For organisers: the file, the key, the value and what is allowed are in the message.
    See `docs/reference/challenge-files.md`.
    """

    code = "G01"
    remedy = "The documentation's page Challenge files explains every key."

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"
