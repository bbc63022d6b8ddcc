"""What is wrong with the results of teams."""

from __future__ import annotations

from flare.common.errors import HostError, OrganiserError
from flare.common.text import safe


class MetricsFileError(OrganiserError):
    """A file is not a metrics.json that can be read."""

    code = "G05"
    remedy = "Give the metrics.json that an evaluation has written."

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"


class RankingError(OrganiserError):
    """Results of teams contradict themselves, or cannot be ranked as asked."""

    code = "G06"
    remedy = 'README says what results have to look like, under "The final ranking".'

    def __init__(self, file: str, problem: str, remedy: str = "") -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"
        if remedy:
            self.remedy = remedy


class MeasurementError(HostError):
    """A measurement cannot begin, or cannot go on as it was."""

    code = "H07"
    remedy = "docs/measuring.md tells how teams are measured."

    def __init__(self, file: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{safe(file)}: {problem}", remedy)
