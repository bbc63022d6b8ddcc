"""Reads and writes rows of CSV files: strictly, each with its place, or as records."""

from __future__ import annotations

import csv
import functools
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_type_hints

from flare.challenge.metrics import RUNTIME, MetricName, is_score, metric_of
from flare.common.files import csv_text, open_regular
from flare.common.schema import Is, Text, build, dump
from flare.common.text import cell_text, listing, safe
from flare.results.errors import RankingError

_Record = TypeVar("_Record")

Sha256OrEmpty = Annotated[str, Is(pattern="^[0-9a-f]{64}$", may_be_empty=True)]
TeamName = Annotated[str, Is(about="Name of the team, as it is shown.", minLength=1)]


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


def rows_text(
    kind: type, rows: Iterable[Any], columns: Sequence[str] | None = None
) -> str:
    """The content of a table of records: all their fields, or those that are named."""
    names = columns or list(cell_types(kind))
    return csv_text(names, [[dump(getattr(row, n)) for n in names] for row in rows])


def record_of(kind: type[_Record], cells: Mapping[str, str]) -> _Record:
    """A record from the cells of its row, as `rows_text` has written all of them.

    Raises
    ------
    ValueError
        If a column is not there, or a cell holds what the record cannot.
    """
    values: dict[str, Any] = {}
    for name, hint in cell_types(kind).items():  # type: ignore[arg-type]
        if name not in cells:
            raise ValueError(f"{name} is missing")
        cell = cells[name]
        if hint is float:
            values[name] = float(cell) if cell else None
            if cell and not math.isfinite(values[name]):
                raise ValueError(f"{name} is {cell}, expected a number")
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
    return {
        field.name: get_args(hints[field.name])[0]
        if get_args(hints[field.name])
        else hints[field.name]
        for field in fields(kind)
    }


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


LARGEST = 1e15
"""A larger number is a mistake: nothing that is ranked comes near it."""


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
    value: Annotated[float, Is(maximum=10**15)] | None
    """The value, in the metric's unit; empty if it is missing. Only a difference may be
    below 0."""


COLUMNS = tuple(ValueRow.__annotations__)

KEYS = COLUMNS[:-1]
"""What identifies a result, from the outermost to the innermost level of a table."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def number(text: str, path: Path, where: str) -> float | None:
    """The number that a cell holds; None if the cell is empty.

    Raises
    ------
    RankingError
        If the text is something else, or no value that a metric can have.
    """
    text = text.strip()
    if not text:
        return None
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise RankingError(str(path), f"{where}: {safe(text)} is not finite")
    if not _NUMBER.fullmatch(text):
        raise RankingError(str(path), f"{where}: {safe(text)} is no number")
    return float(text)


def check_value(value: float, metric: str, path: Path, where: str) -> float:
    """A value, if a metric can have it.

    Raises
    ------
    RankingError
        If not.
    """
    problem, known = "", metric_of(metric)
    if not math.isfinite(value) or value > LARGEST:
        problem = f"{metric} is {value}, which nothing that was measured is"
    elif value < (known.range[0] if known else 0):
        # Not a sentinel of some other program: it would be the best running time.
        problem = f"{metric} is {value:g}, negative; leave a missing value empty"
    elif value > 1 and is_score(metric):
        problem = f"{metric} is {value}, above 1; is it percent? Divide it by 100"
    elif value == 0 and metric.startswith(RUNTIME):
        problem = f"{metric} is 0, which no run takes; leave a missing value empty"
    if problem:
        raise RankingError(str(path), f"{where}: {problem}")
    return value
