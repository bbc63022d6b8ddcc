"""Reads the rows of a CSV file strictly, each with its place in the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from flare.common.files import open_regular
from flare.common.text import listing, safe
from flare.results.errors import RankingError


def read_rows(
    path: Path, columns: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file that has these columns, each with its line.

    Raises
    ------
    RankingError
        If it cannot be read, or a row has another number of cells than the first.
    """
    try:
        with open_regular(path) as content:
            file = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
            table = csv.DictReader(file)
            names = list(table.fieldnames or [])
            check_columns(path, names, columns)
            for row in table:
                where = f"line {table.line_num}"
                if None in row or None in row.values():
                    problem = f"{where} has another number of cells than the first line"
                    raise RankingError(str(path), problem)
                yield where, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = f"it cannot be read ({safe(str(error))})"
        raise RankingError(str(path), problem) from error


def check_columns(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    """See that a table has some columns, and none of a name twice.

    Raises
    ------
    RankingError
        If not.
    """
    absent = [c for c in columns if c not in names]
    if absent:
        problem = f"it has no column {listing(absent)}; {_found(names)}"
        raise RankingError(str(path), problem, _columns_remedy(names, columns))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        problem = f"it has two columns {listing(twice)}"
        raise RankingError(str(path), problem)


def _found(names: Sequence[str]) -> str:
    """Which columns a table has."""
    return f"its columns are: {listing(names)}" if names else "it is empty"


def _columns_remedy(names: Sequence[str], columns: Sequence[str]) -> str:
    """How to mend a table with other columns, where that can be guessed."""
    expected = ",".join(columns)
    for separator, what in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and separator in names[0]:
            return (
                f"Its cells are separated by {what}: save it with commas, {expected}."
            )
    if "team" in names and "value" not in names and "value" in columns:
        return f"If it has a column for each metric: write a row for each, {expected}."
    return ""
