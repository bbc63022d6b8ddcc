"""Reads tables of results, and refuses numbers that no measurement gives."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.common.text import listing, safe
from flare.results.errors import RankingError

SCORES = ("dsc", "nsd")
"""Metrics of a label map, also of one organ, as dsc_liver; all others are of
efficiency."""

RUNTIME = "runtime"
"""Metrics that begin with this are running times."""

LARGEST = 1e15
"""A larger number is a mistake: nothing that is ranked comes near it."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One result, and where it stands."""

    team: str
    case: str
    metric: str
    value: float | None
    """None if it is missing."""
    reason: str
    """Why it is missing, if it is."""
    where: str
    spread: float | None = None
    """How far repeated measurements lay apart."""


def read_rows(
    path: Path, columns: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a CSV file that has some columns, and where they stand.

    Raises
    ------
    RankingError
        If it cannot be read, or a row has another number of cells than the first.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            names = list(table.fieldnames or [])
            absent = [c for c in columns if c not in names]
            if absent:
                problem = f"it has no column {listing(absent)}; {_found(names)}"
                raise RankingError(str(path), problem, _columns_remedy(names, columns))
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                problem = f"it has two columns {listing(twice)}"
                raise RankingError(str(path), problem)
            for row in table:
                where = f"line {table.line_num}"
                if None in row or None in row.values():
                    problem = f"{where} has another number of cells than the first line"
                    raise RankingError(str(path), problem)
                yield where, {key: value.strip() for key, value in row.items()}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problem = f"it cannot be read ({safe(str(error))})"
        raise RankingError(str(path), problem) from error


def _found(names: Sequence[str]) -> str:
    """Which columns a table has."""
    return f"its columns are: {listing(names)}" if names else "it is empty"


def _columns_remedy(names: Sequence[str], columns: Sequence[str]) -> str:
    """What to do about a table that has other columns, if that can be seen."""
    expected = ",".join(columns)
    for separator, what in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and separator in names[0]:
            return (
                f"Its cells are separated by {what}: save it with commas, {expected}."
            )
    if "team" in names and "value" not in names and "value" in columns:
        return f"If it has a column for each metric: write a row for each, {expected}."
    return ""


def number(text: str, path: Path, where: str) -> float | None:
    """A number as people write it; None if there is none.

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


def is_score(metric: str) -> bool:
    """Whether a metric is one of a label map, from 0 to 1.

    Examples
    --------
    >>> is_score("dsc_liver"), is_score("dscent")
    (True, False)
    """
    return metric.partition("_")[0] in SCORES


def check_value(value: float, metric: str, path: Path, where: str) -> float:
    """A value, if a metric can have it.

    Raises
    ------
    RankingError
        If not.
    """
    problem = ""
    if not math.isfinite(value) or value > LARGEST:
        problem = f"{metric} is {value}, which nothing that was measured is"
    elif value < 0:
        # Not a sentinel of some other program: it would be the best running time.
        problem = f"{metric} is {value:g}, negative; leave a missing value empty"
    elif value > 1 and is_score(metric):
        problem = f"{metric} is {value}, above 1; is it percent? Divide it by 100"
    elif value == 0 and metric.startswith(RUNTIME):
        problem = f"{metric} is 0, which no run takes; leave a missing value empty"
    if problem:
        raise RankingError(str(path), f"{where}: {problem}")
    return value
