"""Makes texts for people: names that are safe to print, lists, tables and reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

NAMES_LIMIT = 10
"""Names that a message lists before it counts the rest."""

NAMES_CHARACTERS = 150
"""Characters that the names of one message may take together."""

NAME_CHARACTERS = 80
"""Characters of a single name; a longer one is shortened in its middle."""


def listing(names: Iterable[str | Path], *, last: str = ", ") -> str:
    """Some names, safe to print, and the number of the rest.

    Examples
    --------
    >>> listing(["a.nii.gz", "b.nii.gz", "c.nii.gz"], last=" and ")
    'a.nii.gz, b.nii.gz and c.nii.gz'
    >>> listing(f"c{n:02}" for n in range(22))
    'c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 12 more'
    """
    texts = [safe(name) for name in names]
    shown = texts[:1]
    for text in texts[1:NAMES_LIMIT]:
        if len(", ".join([*shown, text])) > NAMES_CHARACTERS:
            break
        shown.append(text)
    surplus = len(texts) - len(shown)
    if surplus:
        return f"{', '.join(shown)} and {surplus} more"
    return joined(shown, last)


def joined(texts: Iterable[str], last: str = " and ") -> str:
    """All of some texts, for a paper or a table: none is shortened, or only counted.

    Examples
    --------
    >>> joined(["DSC", "NSD", "HD95"])
    'DSC, NSD and HD95'
    """
    *before, end = map(printable, ("", *texts))
    return f"{', '.join(before[1:])}{last}{end}" if before[1:] else end


def runs(numbers: Iterable[int]) -> list[str]:
    """Whole numbers, smallest first, as texts; those that follow each other as one.

    Examples
    --------
    >>> runs([1, 2, 3, 5])
    ['1 to 3', '5']
    """
    texts = []
    for _, run in groupby(enumerate(numbers), key=lambda place: place[1] - place[0]):
        first, *further = (number for _, number in run)
        texts.append(f"{first} to {further[-1]}" if further else str(first))
    return texts


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about a wrong name: the one that was meant, or all names.

    Examples
    --------
    >>> nearest("case_004", ["case_0004", "case_0005"]), nearest("x", ["a", "b"])
    (' (did you mean case_0004?)', ', expected a, b')
    """
    import difflib  # not at the top: a run whose names are right starts sooner

    expected = list(names)
    matches = difflib.get_close_matches(name, expected, n=1, cutoff=0.75)
    if matches:
        return f" (did you mean {safe(matches[0])}?)"
    return f", expected {listing(expected)}"


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "team"), count(2, "team")
    ('1 team', '2 teams')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def safe(name: str | Path) -> str:
    r"""Return a name that cannot break, forge or overflow the line it is printed on.

    Examples
    --------
    >>> safe("two\nlines")
    'two\\nlines'
    """
    text = printable(name)
    if len(text) > NAME_CHARACTERS:
        half = (NAME_CHARACTERS - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    return text


def shell_word(name: str | Path) -> str:
    """A whole name as one word of a command line.

    Examples
    --------
    >>> shell_word("my results")
    "'my results'"
    """
    import shlex  # not at the top: an evaluation, which prints none, starts sooner

    return shlex.quote(printable(name))


def printable(name: str | Path) -> str:
    r"""Return a whole name in which characters that cannot be printed are escaped."""
    text = str(name)
    if text.isprintable():
        return text
    # Half a surrogate pair, which a file's name may have, cannot be printed as UTF-8.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


_LEFTWARD = (
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
    "\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_LEFTWARD_WORD = rf"{_LEFTWARD}[\w-]*"
_LEFTWARD_WORDS = re.compile(f"{_LEFTWARD_WORD}(?: {_LEFTWARD_WORD})*")
"""Words that are read from right to left, without the numbers beside them."""


def isolated(text: str, begin: str = "\u2068", end: str = "\u2069") -> str:
    """Keep words that are read from right to left from moving the numbers beside them.

    `begin` and `end` stand around such words: by default, the isolates of Unicode.

    Examples
    --------
    >>> isolated("team \u05d0\u05d1 0.9", "<bdi>", "</bdi>")
    'team <bdi>\u05d0\u05d1</bdi> 0.9'
    """
    if text.isascii():
        return text
    return _LEFTWARD_WORDS.sub(lambda match: f"{begin}{match[0]}{end}", text)


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")
"""Spreadsheets take a cell for a formula if it begins with one of these signs, also in
full width. The last sign is the one that `csv_cell` puts before them."""


def csv_cell(text: str) -> str:
    r"""Return a printable text that a spreadsheet takes for text.

    Different printable texts stay different. Tabs and line breaks, with which formulas
    may begin as well, are escaped.

    Examples
    --------
    >>> csv_cell("=1+1"), csv_cell("'=1+1"), csv_cell("\t=1+1")
    ("'=1+1", "''=1+1", '\\t=1+1')
    """
    text = printable(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def cell_text(cell: str) -> str:
    """The text from which `csv_cell` has made a cell.

    Examples
    --------
    >>> cell_text("'=1+1"), cell_text("'tis")
    ('=1+1', "'tis")
    """
    # An apostrophe before another sign is part of the text.
    is_marked = cell.startswith("'") and cell[1:].startswith(_FORMULA)
    return cell[1:] if is_marked else cell


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table whose columns are as wide as their longest cell.

    Examples
    --------
    >>> aligned([("rank", "team"), ("1", "a")])
    ['rank  team', '1     a']
    """
    columns = zip(*rows, strict=True)
    widths = [max(map(columns_of, column)) for column in columns]
    lines = []
    for row in rows:
        cells = [
            cell + " " * (width - columns_of(cell))
            for cell, width in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes.

    Examples
    --------
    >>> columns_of("team"), columns_of("\u533b\u7597"), columns_of("e\u0301")
    (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    import unicodedata  # not at the top: most names need none of it

    # East Asian characters take two columns, accents and invisible characters none.
    wide = sum(unicodedata.east_asian_width(char) in ("W", "F") for char in text)
    invisible = sum(unicodedata.category(char) in ("Mn", "Me", "Cf") for char in text)
    return len(text) + wide - invisible


def why(error: OSError) -> str:
    """Why a file could not be read or written, in lower case.

    Examples
    --------
    >>> why(FileNotFoundError(2, "No such file or directory"))
    'no such file or directory'
    """
    return (error.strerror or "unknown error").lower()
