"""Reads and writes rows of CSV files: strictly, each with its place, or as records.

A record's fields are the columns, in their order: see `flare.common.schema`.
"""

from __future__ import annotations

import functools
import io
import math
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_args, get_type_hints

from flare.challenge.metrics import LEFT_OUT, MOST, MetricName, metric_named
from flare.common.files import csv_text, open_regular
from flare.common.schema import Is, Text, build, dump
from flare.common.tables import NOT_TEXT, check_is_text, csv_rows, number
from flare.common.text import cell_text, listing, safe, why
from flare.results.errors import RankingError

_Record = TypeVar("_Record")

Sha256OrEmpty = Annotated[str, Is(pattern="^[0-9a-f]{64}$", may_be_empty=True)]
TeamName = Annotated[str, Is(about="Name of the team, as it is shown.", minLength=1)]

_MISSING = ("", "na", "nan", "n/a", "#n/a", "null", "none")
"""A missing value, as R, pandas and Excel write it, in small letters."""

_SAVE = "Save the table as CSV UTF-8, as Excel calls it."
_SCORE = (
    "Give the folder of the teams' results. What nnU-Net's summary.json is about, flare"
    " score scores from the label maps."
)
_NO_TABLES = {b"{": ("JSON", _SCORE), b"[": ("JSON", _SCORE), b"<": ("HTML", _SAVE)}
"""Other kinds of texts, by their first letter, and what to do."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table that any program may have written."""

    file: Path
    where: str
    """The place in the file, such as ``line 2``."""
    cells: Mapping[str, str]
    """The texts of the row, by column."""
    marks: dict[str, str] | None = None
    """Where semicolons or tabs separate the cells: the decimal marks that numbers of
    the table have had so far, with their places. Elsewhere it is the point."""

    def error(self, problem: str) -> RankingError:
        """The error that names the row, and what is wrong with it."""
        return RankingError(str(self.file), f"{self.where}: {problem}")

    def text(self, column: str) -> str:
        """The text of a cell; empty if it is not there."""
        return cell_text(self.cells.get(column, "").strip())

    def number(self, column: str) -> float | None:
        """The number that a cell holds; None if it is missing, or not there.

        A RankingError is raised if the cell holds something else.
        """
        text = self.cells.get(column, "").strip()
        if text.lower() in _MISSING:
            return None
        try:
            value = number(text if self.marks is None else self._with_point(text))
            if math.isinf(value):
                raise ValueError("not finite")
        except ValueError as error:
            problem = f"{safe(text)}: {error}; leave a missing value empty"
            raise self.error(problem) from error
        return value

    def _with_point(self, text: str) -> str:
        """A number with a decimal point; a ValueError if its table has both marks."""
        mark = next((mark for mark in ",." if mark in text), "")
        if self.marks is None or not mark:
            return text
        self.marks.setdefault(mark, self.where)
        if len(self.marks) > 1:
            other = next(filter(mark.__ne__, self.marks))
            raise ValueError(f"{self.marks[other]} has the decimal mark {other}")
        return text.replace(",", ".", 1)

    def is_left_out(self, column: str) -> bool:
        """Whether a cell says that a rule of the challenge leaves its value out."""
        return self.cells.get(column, "").strip().lower() == LEFT_OUT

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
    path: Path,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    is_strict: bool = True,
) -> Iterator[Row]:
    """The rows of a CSV file that has these columns, in small or capital letters.

    Columns that are optional may be spelt in either, too. Semicolons or tabs may stand
    between the cells, and the file may be in UTF-16, as spreadsheets write it. A first
    column without a name, which R and pandas write, is left out.

    A RankingError is raised if the file cannot be read, or a row has another number of
    cells than the first, and is not left out.
    """
    try:
        with open_regular(path) as content:
            file = io.TextIOWrapper(content, _encoding(path, content), newline="")
            head = list(_head(file))
            line = head[-1] if head else ""
            delimiter = next((mark for mark in ",;\t" if mark in line), ",")
            rows = csv_rows(chain(head, file), delimiter=delimiter, is_strict=is_strict)
            _, first = next(rows, ("", []))
            names = spelt_as(first, (*columns, *optional))
            check_columns(path, list(filter(None, names)), columns)
            marks: dict[str, str] | None = None if delimiter == "," else {}
            skipped = 0 if all(names[:1]) else 1
            names = names[skipped:]
            for where, cells in rows:
                row_cells = dict(zip(names, cells[skipped:], strict=True))
                yield Row(path, where, row_cells, marks)
    except UnicodeDecodeError as error:
        raise RankingError(str(path), NOT_TEXT, _SAVE) from error
    except OSError as error:
        problem = f"it cannot be read ({why(error)})"
        raise RankingError(str(path), problem) from error
    except ValueError as error:
        raise RankingError(str(path), str(error)) from error


def _encoding(path: Path, content: io.BufferedReader) -> str:
    """The encoding of a file that begins as a table may; a RankingError if not."""
    start = content.peek(64)
    try:
        check_is_text(start)
    except ValueError as error:
        raise RankingError(str(path), str(error), _SAVE) from error
    letter = start.removeprefix(BOM_UTF8).lstrip()[:1]
    if letter in _NO_TABLES:
        kind, remedy = _NO_TABLES[letter]
        raise RankingError(str(path), f"it is {kind}, not a table", remedy)
    is_wide = start.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    if b"\0" in start and not is_wide:
        raise RankingError(str(path), NOT_TEXT, _SAVE)
    return "utf-16" if is_wide else "utf-8-sig"


def _head(lines: Iterable[str]) -> Iterator[str]:
    """The lines up to the first one that is not blank."""
    for line in lines:
        yield line
        if line.strip():
            return


def spelt_as(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The names in a table, of which those of some columns are spelt as these are.

    Examples
    --------
    >>> spelt_as(["Team", " DSC"], ["team", "case"])
    ['team', 'DSC']
    """
    spellings = {column.lower(): column for column in columns}
    stripped = map(str.strip, names)
    return [spellings.get(name.lower(), name) for name in stripped]


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


def rows_text(kind: type, rows: Iterable[Any]) -> str:
    """The content of a table of records, with all their fields."""
    names = list(cell_types(kind))
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
    value: Annotated[float, Is(maximum=MOST)] | Literal["left_out"] | None
    """The value, in the metric's unit; empty if it is missing, and `left_out` where the
    challenge leaves it out. Only a difference may be
    below 0. By a metric of answers, each case has the value of all together."""


COLUMNS = tuple(ValueRow.__annotations__)

KEYS = COLUMNS[:-1]
"""The columns that identify a result, from the outermost to the innermost level."""
