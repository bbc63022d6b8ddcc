"""Keeps in ledger.csv which archive of each team counts: the first that was sent."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Annotated

from flare.common.files import write_whole
from flare.common.schema import Is, Sha256, Text
from flare.common.text import safe
from flare.results.csv_rows import Sha256OrEmpty, read_table, rows_text
from flare.results.errors import MeasurementError, RankingError

LEDGER_CSV = "ledger.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Which archives of teams were accepted, the oldest first; the last one of a team
    counts.
    """  # noqa: D205  a sentence of the public schema

    team: Text
    """Name of the team."""
    archive_sha256: Sha256
    """SHA-256 of its archive."""
    model_sha256: Sha256OrEmpty = ""
    """SHA-256 of the model that was sent beside it; empty for none."""
    paper: str
    """Its short paper, as `--paper` names it."""
    date: Annotated[str, Is(format="date")]
    """When the archive was first measured, such as 2026-11-20."""
    reason: str
    """Why it replaces an earlier one, as `--new-archive` says; empty for the first."""

    def is_of(self, other: Entry) -> bool:
        """Whether both are of the same archive, with the same model."""
        return (self.archive_sha256, self.model_sha256) == (
            other.archive_sha256,
            other.model_sha256,
        )


def read_ledger(file: Path) -> tuple[Entry, ...]:
    """All entries, the oldest first; none if there is no ledger yet.

    Raises
    ------
    MeasurementError
        If it is there, but cannot be read.
    """
    try:
        return tuple(read_table(file, Entry)) if lexists(file) else ()
    except RankingError as error:
        raise MeasurementError(str(file), error.problem) from error


def find_earlier(file: Path, entry: Entry) -> Entry | None:
    """The latest entry of the same team, if it may be replaced.

    Raises
    ------
    MeasurementError
        If that was another archive, and there is no reason.
    """
    own = [known for known in read_ledger(file) if known.team == entry.team]
    if own and not own[-1].is_of(entry) and not entry.reason:
        what, was, now = "archive", own[-1].archive_sha256, entry.archive_sha256
        if was == now:
            what, was, now = "model", own[-1].model_sha256, entry.model_sha256
        raise MeasurementError(
            str(file),
            f"team {safe(entry.team)} has sent another {what} on {own[-1].date}"
            f" (SHA-256 {was[:12] or 'none'}, now {now[:12] or 'none'})",
            "A team sends one; if it may replace it, say why: --new-archive REASON.",
        )
    return own[-1] if own else None


def register(file: Path, entry: Entry) -> Entry:
    """Accept an archive, if it is a team's first one, or there is a reason.

    Returns
    -------
    Entry
        That of the archive, which may be older than the one given.

    Raises
    ------
    MeasurementError
        If the team has sent another archive before, and there is no reason.
    OutputError
        If the ledger cannot be written.
    """
    earlier = find_earlier(file, entry)
    if earlier and earlier.is_of(entry):
        return earlier
    write_whole(file, rows_text(Entry, (*read_ledger(file), entry)))
    return entry
