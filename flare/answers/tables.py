"""Reads and writes tables of answers: CSV, a list in JSON, or lines in JSON.

All cells become texts. The file is a stranger's: its size is bounded, and what it holds
is only told in messages that name the place.
"""

from __future__ import annotations

import io
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from flare.answers.cells import json_value, word
from flare.challenge.answers import AnswerRules
from flare.challenge.formats import case_of
from flare.common.files import open_regular
from flare.common.tables import NOT_TEXT, check_is_text, csv_rows
from flare.common.text import listing, nearest, printable, safe, why

MOST_BYTES = 2**24
"""A file of answers has at most this many: JSON takes some thirty times its size."""

MOST_ROWS, MOST_COLUMNS = 200_000, 10_000
"""A table has at most this many: a row takes a hundred times its bytes."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table, or an object in JSON."""

    place: str
    """Where it is in the file, such as ``line 2``."""
    cells: Mapping[str, str]
    """The texts by column."""


def read_table(
    file: Path, *, is_real: bool = False, suffix: str = ""
) -> list[TableRow]:
    """Read all rows of a file, which ends in .csv, .json or .jsonl, or should.

    With `is_real`, a link is refused, as in a submission. A ValueError is raised if it
    cannot be read, and says why.
    """
    text = _text_of(file, is_real=is_real)
    read_rows = _csv_rows if (suffix or file.suffix) == ".csv" else _json_rows
    rows = list(islice(read_rows(text), MOST_ROWS + 1))
    if not rows:
        raise ValueError("it has no row")
    if len(rows) > MOST_ROWS:
        raise ValueError(f"it has more than {MOST_ROWS:,} rows")
    return rows


def _text_of(file: Path, *, is_real: bool) -> str:
    """The text of a file, which has to be UTF-8, of a bounded size."""
    try:
        with open_regular(file, is_real=is_real) as stream:
            if os.fstat(stream.fileno()).st_size > MOST_BYTES:
                raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"it cannot be read ({why(error)})") from error
    check_is_text(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{NOT_TEXT}, which Excel calls CSV UTF-8") from error
    if "\0" in text:
        raise ValueError("it holds a byte 0")
    return text


def _cell(text: str) -> str:
    """A text without line breaks, which answers.csv can hold."""
    return printable(" ".join(text.split()))


def table_text(rows: Sequence[Mapping[str, str]], suffix: str) -> str:
    """The text of a file from which `read_table` reads rows again.

    A cell that a row has not is empty in CSV, and not there in JSON.

    Examples
    --------
    >>> print(table_text([{"name": "a", "probs": "[0.2, 0.8]"}], ".csv"), end="")
    name,probs
    a,"[0.2, 0.8]"
    """
    if suffix != ".csv":
        lines = [json.dumps(dict(row), ensure_ascii=False) for row in rows]
        if suffix == ".jsonl":
            return "".join(f"{line}\n" for line in lines)
        return "[\n" + ",\n".join(lines) + "\n]\n"
    import csv  # not at the top: an evaluation of label maps, which needs none

    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


# --- CSV ----------------------------------------------------------------------------


def _csv_rows(text: str) -> Iterator[TableRow]:
    rows = csv_rows(io.StringIO(text, newline=""))
    _, first = next(rows, ("", []))
    names = [_cell(name) for name in first]
    _check_names(names)
    for place, cells in rows:
        yield TableRow(place, dict(zip(names, map(_cell, cells), strict=True)))


def _check_names(names: Sequence[str]) -> None:
    """Refuse a first line that cannot be names of columns."""
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"it has more than {MOST_COLUMNS:,} columns")
    if len(names) == 1 and ";" in names[0]:
        raise ValueError(
            f"its columns are separated by semicolons ({safe(names[0])}), expected"
            " commas: save it by frame.to_csv(file, index=False)"
        )
    counts = Counter(name for name in names if name)
    duplicates = [name for name, number in counts.items() if number > 1]
    if duplicates:
        raise ValueError(f"it has two columns {listing(duplicates)}")


# --- JSON ---------------------------------------------------------------------------


def _json_rows(text: str) -> Iterator[TableRow]:
    """The objects of a list, or one on each line."""
    for number, entry in enumerate(_json_entries(text), start=1):
        place = f"entry {number}"
        if not isinstance(entry, dict):
            raise ValueError(f"{place} is not an object in braces")
        for values in _questions(entry) if "local_vqa" in entry else [entry]:
            _check_names([_cell(key) for key in values])
            cells = {_cell(key): _json_cell(value) for key, value in values.items()}
            yield TableRow(place, cells)


def _json_entries(text: str) -> Iterator[Any]:
    """The entries of a list, or those of lines that each have one."""
    if text.lstrip().startswith("["):
        yield from _parsed(text, "it")
        return
    # Not splitlines: a text in JSON may hold other line breaks, as U+2028.
    for number, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        if line.strip():
            yield _parsed(line, f"line {number}")


def _parsed(text: str, where: str) -> Any:
    try:
        return json_value(text)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON ({safe(str(error))})") from error


def _json_cell(value: object) -> str:
    """A value of JSON as a cell of CSV would have it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _cell(value)
    try:
        return json.dumps(value)
    except RecursionError as error:
        raise ValueError("its lists lie too deep in one another") from error


def _questions(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The questions of a case of FLARE-MLLM-3D: a row each, or one for each chain.

    Source: val.json of FLARE25-MLLM3D at 7441a22. A chain begins with its root, whose
    `follow_up` is -1; the questions that follow from it come in the order of their ids.
    """
    try:
        for question in case["global_vqa"]:
            yield {
                "case_id": case["case_id"],
                "scope": "global",
                "question_id": "",
                "global_vqa": question["answer"],
            }
        for root, chain in _chains(case["local_vqa"]).items():
            yield {
                "case_id": case["case_id"],
                "scope": "local",
                "question_id": root,
                "local_vqa": "|".join(chain),
            }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("its questions are not as in val.json of MLLM-3D") from error


def _chains(questions: Sequence[Mapping[str, Any]]) -> dict[int, list[str]]:
    """The answers of each chain, by the id of its root, the root's answer first.

    A question may follow from one that itself follows from another. A KeyError is
    raised if that leads to no root, or an id is there twice.
    """
    by_id = {question["id"]: question for question in questions}
    if len(by_id) < len(questions):
        raise KeyError("an id twice")
    roots: dict[int, int] = {}
    for question in questions:
        path: dict[int, None] = {}
        number = question["id"]
        while number not in roots and by_id[number]["follow_up"] != -1:
            path[number] = None
            number = by_id[number]["follow_up"]
            if number in path:
                raise KeyError(number)
        roots |= dict.fromkeys(path, roots.get(number, number))
        roots.setdefault(number, number)
    ordered = sorted(
        questions, key=lambda entry: (entry["follow_up"] != -1, entry["id"])
    )
    chains: dict[int, list[str]] = {}
    for question in ordered:
        chains.setdefault(roots[question["id"]], []).append(question["answer"])
    return chains


# --- The rows that are answers -------------------------------------------------------


def rows_that_count(
    rules: AnswerRules, columns: Sequence[str], rows: Sequence[TableRow]
) -> Iterator[TableRow]:
    """The rows with the values of `only`, each of which has all columns.

    A ValueError is raised if a column is missing, or no row counts.
    """
    has_any = False
    for row in rows:
        if is_counted(rules, row):
            _check_columns([*rules.case, *columns], row)
            has_any = True
            yield row
    if not has_any:
        values = [f"{column} is {value}" for column, value in rules.only.items()]
        raise ValueError(f"it has no row whose {listing(values)}")


def is_counted(rules: AnswerRules, row: TableRow) -> bool:
    """Whether a row has the values of `only`, as far as it has their columns."""
    return not rules.only or all(
        word(row.cells.get(column, value)) == word(value)
        for column, value in rules.only.items()
    )


def _check_columns(columns: Sequence[str], row: TableRow) -> None:
    absent = [column for column in columns if column not in row.cells]
    if absent:
        names = [name for name in row.cells if name and name not in columns]
        hint = nearest(absent[0], names) if names else ""
        hint = hint.replace(", expected", "; it has")
        is_entry = row.place.startswith("entry")
        where = f"{row.place} has no key" if is_entry else "it has no column"
        raise ValueError(f"{where} {listing(absent)}{hint}")


_DECIMAL = re.compile(r"^(\d+)\.0$")
_BACKSLASH = re.compile(r"\\(?!x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
"""One between folders of Windows, and none of a sign that cannot be printed."""


def case_of_row(rules: AnswerRules, row: TableRow) -> str:
    """The case of a row; of several columns, their texts with blanks between."""
    # pandas writes the whole numbers of a column as 3.0 if one of its cells is empty.
    texts = [_DECIMAL.sub(r"\1", row.cells[name]) for name in rules.case]
    if not texts[0]:
        raise ValueError(f"{row.place} has an empty {rules.case[0]}")
    name = " ".join([case_of(_BACKSLASH.sub("/", texts[0])), *texts[1:]])
    return unicodedata.normalize("NFC", name)  # a Mac takes letters apart
