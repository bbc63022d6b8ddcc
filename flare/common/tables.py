"""Reads tables that any program may have written: their texts, rows and numbers.

A ValueError says what is wrong, without the file, which the caller names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flare.common.text import count, safe

NOT_TEXT = "it is not a text in UTF-8"

_OTHERS = {
    b"PK\3\4": "an Excel workbook or a zip",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    b"\x1f\x8b": "compressed by gzip",
}
"""Kinds of files, by how they begin."""

# A digit has one place in it: else a long text takes time by the square of its length.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def check_is_text(start: bytes) -> None:
    """Raise a ValueError if a file begins as one of another kind does."""
    for signature, name in _OTHERS.items():
        if start.startswith(signature):
            raise ValueError(f"it is {name}, not a text file")


def csv_rows(
    lines: Iterable[str], *, delimiter: str = ",", is_strict: bool = True
) -> Iterator[tuple[str, list[str]]]:
    """The place and the cells of each row, the names of the columns first.

    Blank rows are left out, also before the names, as pandas does. A ValueError is
    raised if one is not CSV, or has another number of cells than the first, unless that
    is left out, too.
    """
    import csv  # not at the top: an evaluation of label maps, which needs none

    table = csv.reader(lines, delimiter=delimiter, strict=is_strict)
    expected = 0
    try:
        for cells in table:
            is_separator = not expected and cells == ["sep=", ""]  # written by Excel
            if is_separator or not "".join(cells).strip():
                continue
            expected = expected or len(cells)
            place = f"line {table.line_num}"
            if len(cells) == expected:
                yield place, cells
            elif is_strict:
                cells_text = count(len(cells), "cell")
                raise ValueError(
                    f"{place} has {cells_text}, expected {expected}, as in the first"
                    " line"
                )
    except csv.Error as error:
        problem = f"line {table.line_num} is not CSV ({safe(str(error))})"
        raise ValueError(problem) from error


def number(text: str) -> float:
    """The number that a cell holds; a very large one may be infinite.

    Examples
    --------
    >>> number(" 3.0 ")
    3.0
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if not text:
        raise ValueError("empty")
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise ValueError("not finite")
    if _NUMBER.fullmatch(text.replace(",", ".", 1)):
        raise ValueError("a comma where a decimal point belongs")
    raise ValueError("not a number")
