"""What is told of a measurement: while it goes on, and in a few lines in the end."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from flare.common.bulkhead import bulkhead
from flare.common.errors import FlareError, ProgramError, SubmissionError
from flare.common.text import aligned, safe
from flare.measuring.archive.reading import SUFFIX, Archive
from flare.measuring.archive.strict import ArchiveError
from flare.results import archives_csv
from flare.results.archives_csv import Refusal
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
)
from flare.results.errors import MeasurementError

_log = logging.getLogger(__name__)


class Listener:
    """Is told what happens, always between containers; this one does nothing with it.

    What it does takes nobody's running time. It must not raise anything.
    """

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Hear of a case that was run.

        Parameters
        ----------
        team : str
            Whose case it is.
        record : CaseRecord
            Its outcome.
        number, total : int
            Which one it was, of how many that are run.
        """

    def on_team(self, team: str) -> None:
        """Hear of a team that is measured to the end."""

    def on_failure(self, team: str, error: FlareError) -> None:
        """Hear of a team whose measurement could not begin or go on."""


class Failures:
    """Teams whose measurement has ended by an error, see `flare.common.bulkhead`.

    Parameters
    ----------
    results : Path
        The folder of all teams.
    tell : callable, optional
        Told of each team once, and of its first error.
    """

    def __init__(
        self, results: Path, tell: Callable[[str, FlareError], None] | None = None
    ) -> None:
        self.found: dict[str, FlareError] = {}
        self._results, self._tell = results, tell

    def noted(self, team: str) -> AbstractContextManager[None]:
        """Go on behind the block, whatever error ends it."""
        return bulkhead(self._results, team, lambda error: self._note(team, error))

    def _note(self, team: str, error: FlareError) -> None:
        if team not in self.found:
            self.found[team] = error
            if self._tell:
                self._tell(team, error)


def count_done(folder: Path) -> int:
    """Cases of a team that need not be run again; 0 if that cannot be read."""
    try:
        records = read_records(folder / EFFICIENCY_CSV).values()
    except MeasurementError:
        return 0
    return sum(record.status is not RunStatus.ENGINE_ERROR for record in records)


def team_table(folder: Path, team: str) -> str:
    """What was measured of a team, as text."""
    records = read_records(folder / EFFICIENCY_CSV)
    counts = Counter(record.status for record in records.values())
    found = ", ".join(f"{counts[s]} {s.value}" for s in RunStatus if counts[s])
    rows = [["case", "status", "seconds", "GPU memory in MB", ""]]
    for case, record in sorted(records.items()):
        values = (record.runtime_s, ".2f"), (record.max_gpu_memory_mb, ".0f")
        cells = ["-" if v is None else format(v, form) for v, form in values]
        said = record.message or record.doubts
        rows.append([safe(case), record.status.value, *cells, said])
    return "\n".join([f"{team}: {found}", *aligned(rows), f"Wrote {safe(folder)}"])


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
            archive=getattr(problem, "file", f"{team}{SUFFIX}"),
            # With another model or program, the same archive may be accepted.
            archive_sha256=digests.get(team, "")
            if isinstance(problem, ArchiveError)
            else "",
            problem=str(problem),
        )
        for team, problem in found
    ]
    archives_csv.write_refused(results, refusals, {*digests, *dict(failed)})
