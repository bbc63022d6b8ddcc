"""Describes what pages are made of: tables, and figures with the table behind them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from flare.common.text import printable, safe

MANY_ROWS = 20
"""With more rows than this, they are closer together."""

NO_RESULT = "no result"
"""Stands in every table where there is no value."""

SCORE_BOUNDS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
"""A score up to a bound has a darker shade than one above it."""

RANK_BOUNDS = (-5 / 6, -4 / 6, -3 / 6, -2 / 6, -1 / 6, 0.0)
"""Of a rank among the teams, from 0 for the first to -1 for the last."""

SCORE_KEY = (
    ("s0", "above 0.95"),
    ("s1", "up to 0.95"),
    ("s2", "up to 0.90"),
    ("s3", "up to 0.80"),
    ("s4", "up to 0.70"),
    ("s5", "up to 0.50"),
    ("s6", "0"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table."""

    text: str
    css: str = ""
    exact: str = ""
    """The value in full precision, where a page may have it: tables sort by it."""
    full: str = ""
    """The whole name, where the text is shortened."""
    href: str = ""
    """Where the text leads to, if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head of a column."""

    text: str
    numeric: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table."""

    cells: tuple[Cell, ...]
    quiet: bool = False
    """Whether it stands apart from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, which sorts by each of its columns where scripts run."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    sortable: bool = True
    name_column: int = 0
    """The column that names its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing with a row for each label, and the table behind it."""

    title: str
    note: str = ""
    summary: str
    """What there is to see, for those who cannot."""
    labels: tuple[str, ...]
    drawing: Markup
    """As high as its labels, and wide as there is room."""
    key: tuple[tuple[str, str], ...] = ()
    """Classes of what is drawn, and what it means."""
    table: Table | None = None
    top: bool = False
    """Whether an axis is above the first row."""
    tips: Markup | None = None
    """The values of its dots, as `flare.reports.pages.tips` makes them."""
    is_map: bool = False
    """Whether it has a field for each cell of its table, rows and columns exchanged."""

    @property
    def dense(self) -> bool:
        """Whether its rows are close together."""
        return row_height(len(self.labels)) < row_height(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number that stands at the head of a page."""

    name: str
    value: str
    exact: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What every page has around its content."""

    title: str
    kicker: str
    sections: tuple[tuple[str, str], ...]
    """Anchors and names."""
    audience_note: str


def row_height(rows: int) -> int:
    """How high each row of a figure is, in pixels; the style sheet has both, too."""
    return 18 if rows > MANY_ROWS else 28


def name_cell(name: str, href: str = "") -> Cell:
    """A name, made safe; where it is long, a shorter one, and the whole one behind."""
    short, full = safe(name), printable(name)
    return Cell(text=short, full="" if short == full else full, href=href)


def text_cell(text: str) -> Cell:
    """Words, whole, in as many lines as it takes."""
    return Cell(text=printable(text), css="wrap")


def number_cell(
    value: float | None, *, decimals: int = 3, exact: bool = False, css: str = ""
) -> Cell:
    """A number, or that there is none.

    Examples
    --------
    >>> number_cell(0.97394).text, number_cell(None).text
    ('0.974', 'no result')
    """
    if value is None:
        return Cell(text=NO_RESULT, css="none")
    return Cell(
        text=f"{value:.{decimals}f}",
        css=css,
        exact=repr(float(value)) if exact else "",
    )


def shade(value: float, bounds: Sequence[float] = SCORE_BOUNDS) -> str:
    """The class of a score's shade, 0 for the best.

    Examples
    --------
    >>> shade(0.97), shade(0.95), shade(0.0)
    ('s0', 's1', 's6')
    """
    return f"s{len(bounds) - bisect_left(bounds, value)}"


def score_cell(value: float | None, *, exact: bool) -> Cell:
    """A score on its shade."""
    css = "" if value is None else shade(value)
    return number_cell(value, exact=exact, css=css)


def heads(*texts: str, words: Sequence[str] = ()) -> tuple[Head, ...]:
    """Heads of columns, all of numbers but those with these words."""
    return tuple(Head(text=text, numeric=text not in words) for text in texts)
