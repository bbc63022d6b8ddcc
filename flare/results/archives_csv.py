"""Keeps what became of what teams have sent, in tables of RESULTS.

ledger.csv: which archive counts, the first that was sent; refused.csv: what could not
be used; flags.csv: what is odd about what was scored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any, TypeVar

from flare.common.errors import unwritable
from flare.common.files import write_whole
from flare.common.schema import Is, Sha256, Text
from flare.common.text import safe
from flare.results.csv_rows import Sha256OrEmpty, read_rows, read_table, rows_text
from flare.results.errors import MeasurementError, RankingError

LEDGER_CSV = "ledger.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
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

    @property
    def sent(self) -> tuple[str, str]:
        """The archive and the model that it is of."""
        return self.archive_sha256, self.model_sha256


def read_ledger(file: Path) -> tuple[LedgerEntry, ...]:
    """All entries, the oldest first; none if there is no ledger yet.

    A MeasurementError is raised if it cannot be read.
    """
    try:
        return tuple(read_table(file, LedgerEntry)) if lexists(file) else ()
    except RankingError as error:
        raise MeasurementError(str(file), error.problem) from error


def find_earlier(file: Path, entry: LedgerEntry) -> LedgerEntry | None:
    """The latest entry of the same team, if it may be replaced.

    A MeasurementError is raised if that was another archive, and there is no reason.
    """
    entries = [earlier for earlier in read_ledger(file) if earlier.team == entry.team]
    if not entries:
        return None
    latest = entries[-1]
    if latest.sent != entry.sent and not entry.reason:
        kind, old, new = "archive", latest.archive_sha256, entry.archive_sha256
        if old == new:
            kind, old, new = "model", latest.model_sha256, entry.model_sha256
        raise MeasurementError(
            str(file),
            f"team {safe(entry.team)} has sent another {kind} on {latest.date}"
            f" (SHA-256 {old[:12] or 'none'}, now {new[:12] or 'none'})",
            "A team sends one; if it may replace it, say why: --new-archive REASON.",
        )
    return latest


def register(file: Path, entry: LedgerEntry) -> LedgerEntry:
    """Accept an archive, if it is a team's first one, or there is a reason.

    Returns the entry of the archive, which may be older than the one given. A
    MeasurementError is raised if it is not accepted.
    """
    earlier = find_earlier(file, entry)
    if earlier and earlier.sent == entry.sent:
        return earlier
    write_whole(file, rows_text(LedgerEntry, (*read_ledger(file), entry)))
    return entry


# --- What was refused, and what is odd ----------------------------------------------


REFUSED_CSV = "refused.csv"
"""The table of refusals, in RESULTS."""

FLAGS_CSV = "flags.csv"
"""The table of flags, in RESULTS: a team may get its own folder, and not its flags."""

_Row = TypeVar("_Row", bound="Refusal | Flag")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Refusal:
    """What teams have sent that could not be run or scored, a row for each problem."""

    team: Text
    """Name of the team."""
    archive: Text
    """Name of the file, without folders."""
    archive_sha256: Sha256OrEmpty = ""
    """SHA-256 of the file; empty if it is not known."""
    problem: Text
    """What is wrong with it, and what to do; it ends with the code of the message."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Flag:
    """What organisers should look at, a row for each line of a team that was scored."""

    team: Text
    """Name of the team."""
    flag: Text
    """What is odd about its predictions."""


_FILES: dict[type[Any], str] = {Refusal: REFUSED_CSV, Flag: FLAGS_CSV}


def replace_rows(
    results: Path, kind: type[_Row], rows: Iterable[_Row], teams: Collection[str]
) -> None:
    """Let these be all rows of some teams; those of other teams stay as they are.

    Rows of each kind are in a table of their own.
    """
    file = results / _FILES[kind]
    old_rows = sorted(_written_rows(file, kind))
    rows_of_other_teams = [row for row in old_rows if row.team not in teams]
    new_rows = sorted([*rows_of_other_teams, *rows])
    if new_rows != old_rows:
        write_whole(file, rows_text(kind, new_rows))


def _written_rows(file: Path, kind: type[_Row]) -> list[_Row]:
    """The rows that this program has written before; none of another program's file.

    An OutputError is raised if it cannot be read now: what it holds would be lost.
    """
    try:
        # A row that somebody has spoilt takes no other with it.
        return read_table(file, kind, is_strict=False)
    except RankingError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise unwritable(file, cause) from error
        return []


EXPLAINED = "without that"
"""A flag that explains low scores ends so."""


def read_flags(results: Path) -> tuple[Flag, ...]:
    """Read what was odd when teams were scored, by team."""
    return tuple(sorted(_written_rows(results / FLAGS_CSV, Flag)))


def read_refused(results: Path) -> tuple[Refusal, ...]:
    """Read what was refused, by team; nothing if nothing was.

    Organisers may have added rows. A RankingError is raised if refused.csv cannot be
    read.
    """
    file = results / REFUSED_CSV
    if not lexists(file):
        return ()
    refusals = [
        Refusal(
            team=row.text("team"),
            archive=row.text("archive") or "what it has sent",
            archive_sha256=row.text("archive_sha256"),
            problem=row.text("problem") or "no reason is given",
        )
        for row in read_rows(file, ("team", "archive", "problem"))
    ]
    return tuple(sorted(refusals, key=lambda r: (r.team, r.archive, r.problem)))
