"""Keeps in refused.csv what could not be run or scored, with the reasons."""

from __future__ import annotations

import csv
import io
import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from flare.common.files import csv_text, open_regular, unwritable, write_whole
from flare.common.text import cell_text
from flare.results.csv_rows import read_rows

REFUSED_CSV = "refused.csv"
"""In RESULTS."""

PAUSE_S = 1.0
"""Written so often at most, however many are refused: each time, all rows are."""

COLUMNS = ("team", "archive", "archive_sha256", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that a team has sent, and that was refused."""

    team: str
    file: str
    reason: str
    archive_sha256: str = ""
    """Of the file, if it is known."""


class RefusedRows:
    """The rows of refused.csv, for a process that has many to change.

    Parameters
    ----------
    results : Path
        The folder of all teams; nobody else changes its refused.csv meanwhile.
    """

    def __init__(self, results: Path) -> None:
        self._file = results / REFUSED_CSV
        self._rows: defaultdict[str, list[list[str]]] = defaultdict(list)
        for row in _own_rows(self._file):
            self._rows[row[0]].append(row)
        self._is_written, self._written_at = True, time.monotonic()

    def replace(self, team: str, refusals: Iterable[Refusal]) -> None:
        """Let these be all refusals of a team; written at most once in `PAUSE_S`."""
        rows = [[f.team, f.file, f.archive_sha256, f.reason] for f in refusals]
        if rows != self._rows.pop(team, []):
            self._is_written = False
        if rows:
            self._rows[team] = rows
        if time.monotonic() > self._written_at + PAUSE_S:
            self.write()

    def write(self) -> None:
        """Write the file, whole, if anything has changed.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        if not self._is_written:
            rows = sorted(row for rows in self._rows.values() for row in rows)
            write_whole(self._file, csv_text(COLUMNS, rows))
        self._is_written, self._written_at = True, time.monotonic()


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
    rows, refusals = RefusedRows(results), list(refusals)
    for team in {*teams, *(refusal.team for refusal in refusals)}:
        rows.replace(team, [found for found in refusals if found.team == team])
    rows.write()


def _own_rows(file: Path) -> list[list[str]]:
    """What was refused before; nothing if that was not written by this program.

    Raises
    ------
    OutputError
        If it cannot be read now: what it holds would be lost.
    """
    try:
        with open_regular(file) as content:
            text = content.read().decode("utf-8-sig")  # a spreadsheet may have saved it
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unwritable(file, error) from error
    except (ValueError, csv.Error):
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
    if not os.path.lexists(file):
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
