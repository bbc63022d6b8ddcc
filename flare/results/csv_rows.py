"""Reads and writes rows of CSV files: strictly, each with its place, or as records.

A record's fields are the columns, in their order: see `flare.common.schema`.
"""

from __future__ import annotations

import csv
import functools
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

from flare.challenge.metrics import MOST, MetricName, metric_named
from flare.common.files import csv_text, open_regular
from flare.common.schema import Is, Text, build, dump
from flare.common.text import cell_text, listing, safe
from flare.results.errors import RankingError

_Record = TypeVar("_Record")

Sha256OrEmpty = Annotated[str, Is(pattern="^[0-9a-f]{64}$", may_be_empty=True)]
TeamName = Annotated[str, Is(about="Name of the team, as it is shown.", minLength=1)]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table that any program may have written."""

    file: Path
    where: str
    """The place in the file, such as ``line 2``."""
    cells: Mapping[str, str]
    """The texts of the row, by column."""

    def error(self, problem: str) -> RankingError:
        """The error that names the row, and what is wrong with it."""
        return RankingError(str(self.file), f"{self.where}: {problem}")

    def text(self, column: str) -> str:
        """The text of a cell; empty if it is not there."""
        return cell_text(self.cells.get(column, "").strip())

    def number(self, column: str) -> float | None:
        """The number that a cell holds; None if it is empty, or not there.

        A RankingError is raised if the cell holds something else.
        """
        text = self.cells.get(column, "").strip()
        if not text:
            return None
        is_word = text.lower().lstrip("+-") in ("nan", "inf", "infinity")
        if not is_word and not _NUMBER.fullmatch(text):
            raise self.error(f"{safe(text)} is no number")
        if is_word or math.isinf(float(text)):
            raise self.error(f"{safe(text)} is not finite")
        return float(text)

    def value(self, metric: str, column: str = "") -> float | None:
        """A value that a metric can have, in the column of its name or another one.

        A RankingError is raised if the cell holds something else.
        """
        number = self.number(column or metric)
        problem = "" if number is None else metric_named(metric).problem(number)
        if problem:
            raise self.error(problem)
        return number


def read_rows(
    path: Path, columns: Sequence[str], *, is_strict: bool = True
) -> Iterator[Row]:
    """The rows of a CSV file that has these columns.

    A RankingError is raised if it cannot be read, or a row has another number of cells
    than the first, and is not left out.
    """
    try:
        with open_regular(path) as content:
            file = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
            table = csv.DictReader(file)
            check_columns(path, list(table.fieldnames or []), columns)
            for cells in table:
                where = f"line {table.line_num}"
                if None in cells or None in cells.values():
                    if not is_strict:
                        continue
                    problem = f"{where} has another number of cells than the first line"
                    raise RankingError(str(path), problem)
                yield Row(path, where, cells)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = f"it cannot be read ({safe(str(error))})"
        raise RankingError(str(path), problem) from error


def read_table(
    file: Path, kind: type[_Record], *, is_strict: bool = True
) -> list[_Record]:
    """The records of a table that this program has written, as `read_rows`.

    A RankingError is raised if it cannot be read, or has other columns or values than
    the records.
    """
    columns = tuple(cell_types(kind))  # type: ignore[arg-type]
    records = []
    for row in read_rows(file, columns, is_strict=is_strict):
        if len(row.cells) > len(columns):
            raise row.error(f"there are other columns than {listing(columns)}")
        try:
            records.append(record_of(kind, row.cells))
        except ValueError as error:
            raise row.error(safe(str(error))) from error
    return records


def rows_text(
    kind: type, rows: Iterable[Any], columns: Sequence[str] | None = None
) -> str:
    """The content of a table of records: all their fields, or those that are named."""
    names = columns or list(cell_types(kind))
    return csv_text(names, [[dump(getattr(row, n)) for n in names] for row in rows])


def record_of(kind: type[_Record], cells: Mapping[str, str]) -> _Record:
    """A record from the cells of its row, as `rows_text` has written all of them.

    A ValueError is raised if a cell holds what the record cannot.
    """
    values: dict[str, Any] = {}
    for name, hint in cell_types(kind).items():  # type: ignore[arg-type]
        cell = cells[name]
        if hint is float:
            values[name] = float(cell) if cell else None
        else:
            values[name] = int(cell) if hint is int else cell_text(cell)
    return build(kind, values)


@functools.cache
def cell_types(kind: type[Any]) -> Mapping[str, type]:
    """The type of each column of a record, whether or not a cell may be empty.

    Examples
    --------
    >>> from flare.results.traces_csv import Sample
    >>> cell_types(Sample)["cpu_s"]
    <class 'float'>
    """
    hints = get_type_hints(kind)
    types = {}
    for field in fields(kind):
        hint = hints[field.name]
        types[field.name] = get_args(hint)[0] if get_args(hint) else hint
    return types


def check_columns(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    """See that a table has some columns, and no name twice; a RankingError if not."""
    absent = [column for column in columns if column not in names]
    if absent:
        content = f"its columns are: {listing(names)}" if names else "it is empty"
        problem = f"it has no column {listing(absent)}; {content}"
        raise RankingError(str(path), problem)
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        problem = f"it has two columns {listing(duplicates)}"
        raise RankingError(str(path), problem)


class ValueRow(TypedDict):
    """Every value of every team, also of single organs. `flare rank` reads any table of
    this form; other columns are ignored.
    """  # noqa: D205  a sentence of the public schema

    team: Text
    """Name of the team."""
    case: Text
    """Name of the case."""
    metric: MetricName
    """Name of the metric, such as dsc_liver or runtime_s."""
    value: Annotated[float, Is(maximum=MOST)] | None
    """The value, in the metric's unit; empty if it is missing. Only a difference may be
    below 0. By a metric of answers, each case has the value of all together."""


COLUMNS = tuple(ValueRow.__annotations__)

KEYS = COLUMNS[:-1]
"""The columns that identify a result, from the outermost to the innermost level."""
