"""What the platform refuses, or would refuse."""

from __future__ import annotations

from flare.common.errors import HostError, OrganiserError
from flare.common.text import safe


class PhaseSettingsError(OrganiserError):
    """The file of a phase's settings breaks the platform's rules."""

    code = "G04"
    remedy = "Every field is explained in docs/phase-settings.md."

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer."""

    code = "H09"
    remedy = "docs/phase-settings.md tells how results are got off the platform."
