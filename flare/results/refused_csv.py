"""Keeps in refused.csv what could not be run or scored, with the reasons."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from flare.common.files import csv_text, write_whole
from flare.common.text import cell_text
from flare.results.csv_rows import read_rows

REFUSED_CSV = "refused.csv"
"""In RESULTS."""

COLUMNS = ("team", "archive", "archive_sha256", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that a team has sent, and that was refused."""

    team: str
    file: str
    reason: str
    archive_sha256: str = ""
    """Of the file, if it is known."""


def write_refused(
    results: Path, refusals: Iterable[Refusal], teams: Collection[str]
) -> None:
    """Record what was refused of some teams; the rows of others stay as they are.

    Parameters
    ----------
    results : Path
        The folder of all teams.
    refusals : iterable of Refusal
        All of these teams.
    teams : collection of str
        Whose archives were looked at.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    file = results / REFUSED_CSV
    rows = [row for row in _own_rows(file) if row[0] not in teams]
    rows += [[f.team, f.file, f.archive_sha256, f.reason] for f in refusals]
    if rows or file.exists():
        write_whole(file, csv_text(COLUMNS, sorted(rows)))


def _own_rows(file: Path) -> list[list[str]]:
    """What was refused before; nothing if that was not written by this program."""
    try:
        with file.open(encoding="utf-8", newline="") as content:
            rows = list(csv.reader(content))
    except (OSError, ValueError, csv.Error):
        return []
    if not rows or tuple(rows[0]) != COLUMNS:
        return []
    return [list(map(cell_text, row)) for row in rows[1:] if len(row) == len(rows[0])]


def read_refused(results: Path) -> tuple[Refusal, ...]:
    """What was refused, by team; nothing if nothing was.

    Raises
    ------
    RankingError
        If refused.csv is there, but cannot be read.
    """
    file = results / REFUSED_CSV
    if not file.is_file():
        return ()
    found = []
    for _, row in read_rows(file, ("team",)):
        cells = {key: cell_text(cell.strip()) for key, cell in row.items()}
        reason = cells.get("problem") or cells.get("reason") or "no reason is given"
        name = cells.get("archive") or cells.get("file") or "what it has sent"
        found.append(
            Refusal(
                team=cells["team"],
                file=name,
                reason=reason,
                archive_sha256=cells.get("archive_sha256", ""),
            )
        )
    return tuple(sorted(found, key=lambda f: (f.team, f.file, f.reason)))
