"""Notes in refused.csv which archives of teams could not be run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flare.common.errors import FlareError, ProgramError, SubmissionError
from flare.measuring.archive.reading import SUFFIX, Archive
from flare.measuring.errors import ArchiveError
from flare.results import refused_csv
from flare.results.refused_csv import Refusal


def write_refused(
    archives: Sequence[Archive],
    results: Path,
    failed: Sequence[tuple[str, FlareError]] = (),
) -> None:
    """Write down which archives were refused, and why.

    Teams that are not among these archives stay in the file as they are.

    Parameters
    ----------
    archives : sequence of Archive
        All that were looked at.
    results : Path
        The folder of all teams.
    failed : sequence of tuple of str and FlareError
        Teams that were not measured or scored to the end, and why. Where the host is to
        blame, a team is not refused: the same command goes on with it.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    found: list[tuple[str, FlareError]] = [
        (archive.team, problem) for archive in archives for problem in archive.problems
    ]
    blamed = SubmissionError | ProgramError
    found += [(team, error) for team, error in failed if isinstance(error, blamed)]
    digests = {archive.team: archive.sha256 for archive in archives}
    refusals = [
        Refusal(
            team=team,
            file=getattr(problem, "file", f"{team}{SUFFIX}"),
            # With another model or program, the same archive may be accepted.
            archive_sha256=digests.get(team, "")
            if isinstance(problem, ArchiveError)
            else "",
            reason=str(problem),
        )
        for team, problem in found
    ]
    refused_csv.write_refused(results, refusals, {*digests, *dict(failed)})
