"""Describes reports as data: pages of sections, of tables, charts and lines.

Nothing here knows HTML, SVG or LaTeX: the modules of `flare.reports.render` do. They
make all texts safe to show, and shorten names beside rows and above columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from flare.challenge.metrics import Better, Metric, lesion_notes

INDEX = "index.html"
"""The page of a folder that leads to the others."""

TEAMS = "teams"
"""Folder of the pages of single teams."""

MANY_ROWS = 20
"""With more rows than this, they are closer together."""

NO_RESULT = "no result"
"""The text of a cell without a value, in every table."""

ABSENT = "absent"
"""Class of a field without a value, which holds a line."""

BEST = "best"
"""Class of a cell that is bold: the best of its column, or as good as that."""

GAINS = ("g1", "g2", "g3")
"""Classes of gains, small ones first."""

Key = tuple[tuple[str, str], ...]
"""Classes of marks and shades, and their meaning."""


# --- Tables -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; of names, too, it has the whole text."""

    text: str
    css: str = ""
    exact: str = ""
    """The value in full precision, where a page may have it: tables sort by it."""
    href: str = ""
    place: str = ""
    """The slices of the page of a case that it leads to, too."""
    note: str = ""
    """Small, below the text."""
    alarm: str = ""
    """A remark on something odd, behind a sign."""
    mark: Blobs | None = None
    """Drawn before the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, which sorts by each of its columns where scripts run."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: Collection[str] = ()
    """The heads of columns that are not of numbers."""
    quiet: Collection[int] = ()
    """Numbers of rows that stand apart from the others."""
    sortable: bool = True
    name_column: int = 0
    """The column that names its row."""
    is_whole: bool = False
    """Whether all of its rows are shown at once."""
    is_closed: bool = False
    """Whether a click opens it."""
    key: Key = ()
    """The meaning of its shades, above it."""


def folded(tables: Iterable[Table], shown: int = 1) -> list[Part]:
    """Tables alike by several metrics: all but the first are closed."""
    return [replace(part, is_closed=n >= shown) for n, part in enumerate(tables)]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head and its cells, which belong together.

    A table gets another column by one more of these where `table_of` is called.

    Examples
    --------
    >>> table_of("", [Column("team", ["a", "b"], is_text=True), Column("DSC", [0.9])])
    Traceback (most recent call last):
    ValueError: the column DSC has 1 of 2 cells
    """

    head: str
    cells: Iterable[object]
    """From the first row to the last: each a `Cell`, or its text or number."""
    is_text: bool = False
    """Whether it is not of numbers; the first such column names its row."""


def table_of(
    caption: str,
    columns: Iterable[Column],
    *,
    quiet: Collection[int] = (),
    sortable: bool = True,
    is_whole: bool = False,
    key: Key = (),
) -> Table:
    """A table of columns; the others are its fields."""
    columns = list(columns)
    texts = [number for number, column in enumerate(columns) if column.is_text]
    cells = [tuple(map(_cell, column.cells)) for column in columns]
    for column, column_cells in zip(columns, cells, strict=True):
        if len(column_cells) != len(cells[0]):
            lengths = f"{len(column_cells)} of {len(cells[0])} cells"
            raise ValueError(f"the column {column.head} has {lengths}")
    return Table(
        caption=caption,
        heads=tuple(column.head for column in columns),
        rows=tuple(zip(*cells, strict=True)),
        words=tuple(columns[number].head for number in texts),
        quiet=quiet,
        sortable=sortable,
        name_column=texts[0],
        is_whole=is_whole,
        key=key,
    )


def table_of_rows(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    words: Collection[str],
) -> Table:
    """A table of rows that are made one by one; `words` are heads of texts."""
    is_text = [head in words for head in heads]
    return table_of(caption, map(Column, heads, zip(*rows, strict=True), is_text))


def _cell(content: object) -> Cell:
    return content if isinstance(content, Cell) else plain_cell(str(content))


@lru_cache(maxsize=1 << 15)
def plain_cell(text: str, css: str = "") -> Cell:
    """A cell with nothing but a text; equal ones are one, as many pages have them."""
    return Cell(text, css=css)


def pairs_table(
    caption: str,
    pairs: Iterable[tuple[str, str]],
    heads: tuple[str, str] = ("what", "value"),
    *,
    sortable: bool = False,
) -> Table:
    """A table of names and words."""
    texts = dict(pairs)
    columns = (
        Column(heads[0], texts, is_text=True),
        Column(heads[1], map(text_cell, texts.values()), is_text=True),
    )
    return table_of(caption, columns, sortable=sortable)


def text_cell(text: str) -> Cell:
    """Words, whole, in as many lines as it takes."""
    return Cell(text, css="wrap")


def number_cell(
    value: float | None,
    *,
    decimals: int = 3,
    exact: bool = False,
    css: str = "",
    absent: str = NO_RESULT,
) -> Cell:
    """The cell of a number, or of a missing result, whose words are `absent`.

    Examples
    --------
    >>> number_cell(0.97394).text, number_cell(None).text
    ('0.974', 'no result')
    """
    if value is None:
        return Cell(absent, css="none")
    text = f"{value:z.{decimals}f}"
    return Cell(text, css, repr(float(value))) if exact else plain_cell(text, css)


def ml_cell(volume: float) -> Cell:
    """The cell of a volume in ml; a small one has digits behind the point."""
    return Cell(
        f"{volume:.0f}" if volume >= 100 else f"{volume:.3g}", exact=repr(volume)
    )


def shade(value: float, bounds: Sequence[float]) -> str:
    """The class of a shade: the darker, the fewer bounds the value is above.

    Examples
    --------
    >>> shade(3, (1, 2)), shade(2, (1, 2)), shade(0, (1, 2))
    ('s0', 's1', 's2')
    """
    return f"s{len(bounds) - bisect_left(bounds, value)}"


def metric_shade(metric: Metric, value: float | None) -> str:
    """The class of the shade of a metric's value; empty if it has none.

    Examples
    --------
    >>> from flare.challenge.metrics import METRICS
    >>> [metric_shade(METRICS["dsc"], value) for value in (0.97, 0.95, 0.0, None)]
    ['s0', 's1', 's6', '']
    """
    if value is None or not metric.bounds:
        return ""
    if metric.better is Better.HIGHER:
        return shade(value, metric.bounds)
    return shade(-value, [-bound for bound in metric.bounds])


def metric_key(metric: Metric) -> Key:
    """The meaning of a metric's shades; empty if it has none.

    Examples
    --------
    >>> from flare.challenge.metrics import METRICS
    >>> metric_key(METRICS["dsc"])[0]
    ('s0', 'above 0.95')
    """
    if not metric.bounds:
        return ()
    *middle, last = (f"{bound:.2f}" for bound in metric.bounds)
    words = ("above", "up to") if metric.better is Better.HIGHER else ("below", "from")
    texts = [f"{words[0]} {last}", f"{words[1]} {last}"]
    texts += [f"{words[1]} {bound}" for bound in reversed(middle)]
    if metric.bounds[0] == metric.range[0]:
        texts[-1] = middle[0]
    return tuple((f"s{n}", text) for n, text in enumerate(texts))


# --- Charts -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis, whose left end is at 0 and whose right end is at 1."""

    scale: Callable[[float], float]
    """From values to places."""
    ticks: tuple[tuple[float, str], ...]
    note: str = ""
    """A remark without which it may be misread."""

    def place(self, value: float) -> float:
        """The place of a value; one beyond the axis is at its end."""
        return min(max(self.scale(value), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Dots:
    """A dot for each value, at places from 0 to 1."""

    places: Sequence[float]
    box: tuple[float, ...] | None = None
    """The middle half of the values, and the median between."""
    mean: float | None = None
    """Drawn on paper alone, as what follows."""
    interval: tuple[float, ...] | None = None
    """The confidence interval of the mean."""
    missing: int = 0
    edges: tuple[str, str] = ("", "")
    """The words at both ends: the values that are beyond them."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields side by side, each of a class."""

    classes: Sequence[str]
    texts: Sequence[str] = ()
    """The texts in them on paper, where there is room."""


@dataclass(frozen=True, slots=True)
class Steps:
    """An area below heights from 0 to 1, each kept until the next place."""

    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Blobs:
    """Blobs whose areas are shares, with their words, and a line between two places."""

    blobs: Sequence[tuple[float, float, str]]
    span: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Says:
    """Words instead of marks."""

    text: str = NO_RESULT


@dataclass(frozen=True, slots=True)
class Point:
    """A dot in a square, at places from 0 to 1."""

    x: float
    y: float
    number: str
    words: str
    is_front: bool
    is_hollow: bool = False
    """Whether it is worth nothing: however many others there are, it has its number."""


@dataclass(frozen=True, slots=True)
class Points:
    """Dots above an axis and beside another one; the only row of its chart."""

    points: Sequence[Point]
    axis: Sequence[tuple[float, str]]
    axis_title: str

    @property
    def drawn(self) -> list[tuple[Point, bool]]:
        """The points, the front last, and whether each has room for its number."""
        has_room = len(self.points) <= MANY_ROWS
        ordered = sorted(self.points, key=lambda point: (point.is_front, point.x))
        return [(p, has_room or p.is_front or p.is_hollow) for p in ordered]

    @property
    def front(self) -> list[Point]:
        """The points of the front from left to right."""
        return [point for point, _ in self.drawn if point.is_front]


Mark = Dots | Fields | Steps | Blobs | Says | Points


Tips = tuple[Sequence[str], Sequence[Sequence[float | None]], int]
"""Names of the dots, their values by row, and decimals: no more than in tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Rows of marks on one axis, and the table behind them."""

    title: str
    note: str = ""
    summary: str = ""
    """A description for those who cannot see it."""
    labels: tuple[str, ...]
    rows: Sequence[Mark] = ()
    """The mark of each label."""
    ends: tuple[str, ...] = ()
    """The mean behind each row, or another number; empty without that column."""
    ends_title: str = "mean"
    axis: Sequence[tuple[float, str]] = ()
    """Places and texts of its ticks; empty without an axis."""
    zero: float | None = None
    """The place of an upright line that parts gains from losses."""
    key: Key = ()
    table: Table | None = None
    tips: Tips | None = None
    is_map: bool = False
    """Whether it has a field for each cell of its table, rows and columns exchanged."""
    axis_title: str = ""
    """The title of the axis or of the columns, on paper."""
    columns: tuple[str, ...] = ()
    """Names of the fields of each row, on paper, where there is no axis."""
    has_whole_labels: bool = False
    """Whether no label is shortened on paper."""


# --- Pages ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph, and what it leads to."""

    text: str
    kind: str = ""
    """``note``, ``lead``, ``banner``, or a plain one."""
    href: str = ""
    link: str = ""
    """The words before the text that lead there."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A list of lines."""

    items: Sequence[str]
    title: str = ""
    """The title above them; they are in a box if they have one."""
    places: Sequence[str] = ()
    """The slices that lines lead to on the page of a case; empty for one that does
    not."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Charts side by side where there is room."""

    charts: Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Raw:
    """HTML that a template has made."""

    html: str
    """As `markupsafe.Markup`: any other text is escaped."""


Part = Table | Chart | Words | Lines | Heading | Pair | Raw


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page that its navigation leads to, unless it holds nothing."""

    id: str
    name: str
    """The name in the navigation."""
    title: str
    """The title above it; empty without one."""
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number that stands at the head of a page."""

    name: str
    value: str
    exact: str = ""
    note: str = ""
    is_alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report."""

    title: str
    kicker: str = ""
    """A line above the title."""
    audience_note: str
    sections: Sequence[Section]
    tiles: Sequence[Tile] = ()
    lead: Sequence[Part] = ()
    """The parts above the tiles."""
    refresh_s: int = 0
    """How often a browser reads the page anew; 0: never."""
    notes: Sequence[str] = field(default_factory=lesion_notes)
    """The definitions of what it shows, below all sections."""

    @property
    def shown(self) -> list[Section]:
        """The sections that hold something."""
        return [section for section in self.sections if section.parts]
