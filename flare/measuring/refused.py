"""Notes in refused.csv which archives of teams could not be run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flare.measuring.archive.reading import Archive
from flare.measuring.errors import ModelError
from flare.results import refused_csv
from flare.results.refused_csv import Refusal


def write_refused(archives: Sequence[Archive], results: Path) -> None:
    """Write down which archives were refused, and why.

    Teams that are not among these archives stay in the file as they are.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    refusals = [
        Refusal(
            team=archive.team,
            file=problem.file,
            # With another model, the same archive may be accepted.
            archive_sha256="" if isinstance(problem, ModelError) else archive.sha256,
            reason=str(problem),
        )
        for archive in archives
        for problem in archive.problems
    ]
    refused_csv.write_refused(results, refusals, {a.team for a in archives})
