"""Draws charts for papers, with matplotlib, in colour and in grey."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from flare.common.environment import __version__
from flare.common.text import NAME_CHARACTERS, printable
from flare.reports.model import (
    ABSENT,
    MANY_ROWS,
    Blobs,
    Chart,
    Dots,
    Fields,
    Points,
    Says,
)
from flare.reports.model import GAINS as GAIN_CLASSES
from flare.reports.render.style import (
    BOX,
    DOT,
    EFFECT_SHADES,
    FONT,
    GAINS,
    INK,
    LEAST_TEXT_PT,
    LIGHT,
    ROW_MM,
    RULE,
    SHADES,
    TALLEST_MM,
    TEXT_PT,
    WIDTHS_MM,
    drawn_letters,
    letters_of,
)
from flare.reports.render.svg import GOLDEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.path import Path as Outline

_COLOURS = {
    **{f"s{n}": LIGHT[f"s{n}"] for n in range(SHADES)},
    **{f"g{n}": LIGHT[f"g{n}"] for n in range(1, GAINS + 1)},
    **{f"e{n}": colour for n, colour in enumerate(EFFECT_SHADES)},
    ABSENT: INK,
}
_SIDES = {"e0": 0.42, "e1": 0.58, "e2": 0.74, "e3": 0.9}
"""Sides of the squares of effects: the larger, the darker."""

Style = dict[str, Any]
"""Arguments of matplotlib."""

_LINE: Style = {"color": INK, "linewidth": 0.5, "solid_capstyle": "butt"}

_BOX = (-0.42, -0.10)
"""Top and bottom of boxes, as parts of a row, from its middle; dots are below."""

_NAMES_MM = {"column": 24.0, "page": 42.0}
"""About the width that the names of rows take."""

_LETTERS = {"column": 18, "page": 34}
"""The most letters of a name, by the figure's width."""

# --- A chart ----------------------------------------------------------------------


class _Layout:
    """The measures of a figure: how high rows can be beside all else that it has."""

    def __init__(self, chart: Chart, width: str) -> None:
        self.width = width  # column or page
        # Paper has colours for a part of the key alone.
        self.swatches = [(css, text) for css, text in chart.key if css in _COLOURS]
        names_mm = float(_NAMES_MM[width])
        if chart.has_whole_labels:
            names_mm = max(names_mm, 1.2 * max(map(len, chart.labels)) + 8)
        self.field_mm = (WIDTHS_MM[width] - names_mm) / max(len(chart.columns), 1)
        self.heads = _Heads(() if chart.axis else chart.columns, self.field_mm)
        around_mm = 3.0 + 9.0 * bool(self.swatches) + self.heads.height_mm
        around_mm += 9.0 * bool(chart.axis)
        around_mm += 5.0 * bool(chart.columns and chart.axis_title)
        rows = len(chart.labels)
        self.row_mm = row_mm(rows, around_mm=around_mm)
        self.height_mm = rows * self.row_mm + around_mm
        text_pt = min(TEXT_PT, self.row_mm * 72 / 25.4 * 0.85)
        self.text_pt = max(text_pt, LEAST_TEXT_PT)


def paper_figure(chart: Chart, width: str) -> Figure:
    """A chart for ``column`` or ``page``: its marks, its axis, and what shades mean."""
    from matplotlib.figure import Figure

    if chart.rows and isinstance(chart.rows[0], Points):
        return _points_figure(chart, chart.rows[0], width)
    layout = _Layout(chart, width)
    inches = WIDTHS_MM[width] / 25.4, layout.height_mm / 25.4
    figure = Figure(figsize=inches, layout="constrained")
    rows = len(chart.labels)
    axes = figure.add_subplot(xlim=(0, 1), ylim=(rows - 0.5, -0.5))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    _name_rows(axes, chart, layout)
    _draw_marks(axes, chart, layout)
    fields = [mark for mark in chart.rows if isinstance(mark, Fields)]
    _draw_fields(axes, fields)
    _write_numbers(axes, fields, layout)
    if fields:
        _name_columns(axes, chart, layout)
        _write_ends(axes, chart, layout)
    else:
        _draw_axis(axes, chart, width)
    if layout.swatches:
        _draw_key(figure, layout.swatches, width)
    return figure


def _points_figure(chart: Chart, points: Points, width: str) -> Figure:
    """Dots between two axes; those of the front are filled, and a line joins them."""
    from matplotlib.figure import Figure

    inches = WIDTHS_MM[width] / 25.4
    figure = Figure(figsize=(inches, min(inches, 4.0) * 0.8), layout="constrained")
    axes = figure.add_subplot(ylim=(-0.04, 1.04))
    _draw_axis(axes, chart, width)
    axes.set_xlim(-0.04, 1.04)
    axes.set_yticks(*zip(*points.axis, strict=True))
    axes.set_ylabel(points.axis_title)
    axes.grid(axis="y", color=RULE, linewidth=0.4)
    front = points.front
    places = [point.x for point in front], [point.y for point in front]
    axes.plot(*places, color=DOT, linewidth=0.8)
    for point, has_number in points.drawn:
        inside, colour = ("white", INK) if not point.is_front else (DOT, "white")
        edge: Style = {"mfc": inside, "mec": DOT, "mew": 0.6, "zorder": 3}
        axes.plot(point.x, point.y, "o", markersize=9 if has_number else 3, **edge)
        if has_number:
            style: Style = {"ha": "center", "va": "center_baseline", "color": colour}
            size = LEAST_TEXT_PT
            axes.text(point.x, point.y, point.number, fontsize=size, zorder=4, **style)
    return figure


def _name_rows(axes: Axes, chart: Chart, layout: _Layout) -> None:
    """Names beside the rows; of rows that are lower than text, only some have names."""
    text_mm = layout.text_pt * 25.4 / 72 * 1.05
    step = max(1, -(-int(text_mm * 100) // int(layout.row_mm * 100)))
    letters = NAME_CHARACTERS if chart.has_whole_labels else _LETTERS[layout.width]
    names = figure_names(chart.labels, letters)
    rows = range(0, len(names), step)
    axes.set_yticks(rows, names[::step], fontsize=layout.text_pt)


def _draw_marks(axes: Axes, chart: Chart, layout: _Layout) -> None:
    for row, mark in enumerate(chart.rows):
        if isinstance(mark, Dots):
            _draw_dots(axes, row, mark, len(chart.labels), layout.text_pt)
        elif isinstance(mark, Blobs):
            _draw_blobs(axes, row, mark, layout.row_mm)
        elif isinstance(mark, Says):
            axes.text(0, row, mark.text, va="center", fontsize=layout.text_pt)


def figure_file(figure: Figure, form: str) -> bytes:
    """A figure as ``svg`` or ``pdf``; equal figures have equal bytes.

    Names in other scripts are outlines in PDF: their fonts are mostly of a kind (CFF)
    that matplotlib embeds in a way which some viewers refuse.
    """
    from matplotlib.patheffects import Normal
    from matplotlib.text import Text

    usual = letters_of(FONT)
    for text in figure.findobj(Text):
        letters = map(ord, text.get_text().replace("\n", ""))
        is_outline = form == "pdf" and not usual.issuperset(letters)
        text.set_path_effects([Normal()] if is_outline else [])
    content = io.BytesIO()
    date = "Date" if form == "svg" else "CreationDate"
    metadata = {date: None, "Creator": f"FLARE evaluation kit {__version__}"}
    figure.savefig(content, format=form, metadata=metadata)
    return content.getvalue()


def _draw_axis(axes: Axes, chart: Chart, width: str) -> None:
    """An axis below the rows, and its lines."""
    axes.set_xlim(-0.015, 1.015)
    axes.set_xticks(
        [place for place, _ in chart.axis], _apart(chart.axis, WIDTHS_MM[width] - 30)
    )
    axes.set_xlabel(figure_text(chart.axis_title or chart.title, NAME_CHARACTERS))
    axes.grid(axis="x", color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)


def _apart(ticks: Sequence[tuple[float, str]], axis_mm: float) -> list[str]:
    """The words of ticks; nothing where one would touch the one before."""
    end, shown = -1.0, []
    for place, text in ticks:
        half = (0.65 * len(text) + 0.4) / axis_mm
        is_free = place - half >= end
        shown.append(text if is_free else "")
        end = place + half if is_free else end
    return shown


def _draw_dots(axes: Axes, row: int, dots: Dots, rows: int, size: float) -> None:
    """Dots below their box; between them the interval of the mean, a diamond."""
    top, bottom = row + _BOX[0], row + _BOX[1]
    middle = (top + bottom) / 2
    is_small = rows > MANY_ROWS
    if dots.box:
        low, median, high = dots.box
        edge: Style = {"color": BOX, "edgecolor": INK, "linewidth": 0.5}
        axes.barh(middle, high - low, left=low, height=bottom - top, **edge)
        axes.plot([median] * 2, [top, bottom], color=INK, linewidth=1.3)
    if dots.interval:
        # A thick line below the diamond, in its row: thin ones would be whiskers.
        thick: Style = {"color": DOT, "linewidth": 2.2, "solid_capstyle": "butt"}
        axes.plot(dots.interval, [middle] * 2, **thick)
    numbers = range(1, len(dots.places) + 1)
    ys = [row + 0.06 + 0.36 * (GOLDEN * number % 1) for number in numbers]
    dot: Style = {"mfc": "none", "mec": DOT, "mew": 0.5}
    axes.plot(dots.places, ys, "o", markersize=1.3 if is_small else 2.2, **dot)
    if dots.mean is not None:
        diamond: Style = {"color": "white", "mec": INK, "mew": 0.7}
        axes.plot(
            dots.mean, middle, "D", markersize=2.0 if is_small else 3.0, **diamond
        )
    for x, text, side in zip((0.01, 0.99), dots.edges, ("left", "right"), strict=True):
        paper: Style = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
        axes.text(x, row, text, ha=side, va="center", fontsize=size, bbox=paper)
    if dots.missing:
        text = f" {dots.missing} missing"
        axes.text(1.02, row, text, va="center", fontsize=size)


def _draw_blobs(axes: Axes, row: int, blobs: Blobs, row_mm: float) -> None:
    """Draw a line between two places, and blobs whose areas are shares."""
    axes.plot(blobs.span, (row, row), color="#b9c6d2", linewidth=1.6)
    largest = min(row_mm, 5.0) * 72 / 25.4 * 0.92
    areas = [max(largest**2 * part, 0.3) for _, part, _ in blobs.blobs]
    xs = [place for place, _, _ in blobs.blobs]
    edge: Style = {"color": DOT, "edgecolor": INK, "linewidth": 0.3}
    axes.scatter(xs, [row] * len(xs), s=areas, zorder=3, **edge)


# --- Fields -----------------------------------------------------------------------

_Rectangle = tuple[float, float, float, float]
"""Left, top, width and height."""


def _draw_fields(axes: Axes, rows: Sequence[Fields]) -> None:
    """Fields side by side: of each colour one path; effects are squares.

    Equal neighbours are one field, and what is absent is a line.
    """
    from matplotlib.patches import PathPatch

    rectangles: dict[str, list[_Rectangle]] = {}
    for row, fields in enumerate(rows):
        width, start = 1 / len(fields.classes), 0
        for css, group in groupby(fields.classes):
            number, left = len(list(group)), width * start
            start += number
            if css == ABSENT:
                axes.plot([left, left + width * number], [row] * 2, **_LINE)
            elif css in _SIDES:
                squares = _squares(_SIDES[css], row, left, width, number)
                rectangles.setdefault(css, []).extend(squares)
            elif css:
                field = (left, row - 0.45, width * number, 0.9)
                rectangles.setdefault(css, []).append(field)
    for css, places in sorted(rectangles.items()):
        path = _outline(places)
        patch = PathPatch(path, facecolor=_COLOURS[css], edgecolor="none", linewidth=0)
        axes.add_patch(patch)


def _squares(
    side: float, row: int, left: float, width: float, number: int
) -> list[_Rectangle]:
    squares = []
    for field in range(number):
        x = left + width * (field + (1 - side) / 2)
        squares.append((x, row - side / 2, width * side, side))
    return squares


def _outline(rectangles: Sequence[_Rectangle]) -> Outline:
    from matplotlib.path import Path as Outline

    corners = [
        ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
        for x, y, w, h in rectangles
    ]
    points = np.array(corners, dtype=np.float64).reshape(-1, 2)
    codes = [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY]
    return Outline(points, codes * len(corners))


def _write_numbers(axes: Axes, rows: Sequence[Fields], layout: _Layout) -> None:
    """The value in each field, where all of them have room."""
    texts = list(chain.from_iterable(fields.texts for fields in rows))
    if not texts or layout.row_mm < 2.0:
        return
    if layout.field_mm < 0.8 * max(map(len, texts)) + 3:
        return
    size = min(layout.text_pt, TEXT_PT - 1)
    style: Style = {"ha": "center", "va": "center_baseline", "fontsize": size}
    for row, fields in enumerate(rows):
        pairs = zip(fields.classes, fields.texts, strict=True)
        for number, (css, text) in enumerate(pairs):
            if text:
                colour = LIGHT[f"{'u' if css in GAIN_CLASSES else 't'}{css[1:]}"]
                x = (number + 0.5) / len(fields.classes)
                axes.text(x, row, text, color=colour, **style)


class _Heads:
    """Names above columns: in lines as wide as a column, or upright, if they fit."""

    def __init__(self, columns: Sequence[str], field_mm: float) -> None:
        self.texts: tuple[str, ...] = ()
        self.size, self.height_mm, self.is_upright = 0.0, 0.0, False
        if not columns or field_mm < LEAST_TEXT_PT * 0.4:
            return
        names = figure_names(columns, _LETTERS["column"])
        letters = max(1, int(field_mm / 1.5))
        lines = [textwrap.wrap(name, letters, break_long_words=False) for name in names]
        self.size = min(TEXT_PT - 1, max(field_mm * 72 / 25.4 * 0.85, LEAST_TEXT_PT))
        self.is_upright = max(map(len, chain.from_iterable(lines))) > letters
        rows = max(map(len, lines)) * 1.3
        if self.is_upright:
            rows = max(map(len, names)) * 0.62
        self.texts = names if self.is_upright else tuple(map("\n".join, lines))
        self.height_mm = rows * self.size * 25.4 / 72 + 2


def _name_columns(axes: Axes, chart: Chart, layout: _Layout) -> None:
    """Names above the columns, or the ticks of the axis, and what they are."""
    axes.xaxis.tick_top()
    axes.spines["bottom"].set_visible(False)
    if chart.axis_title:
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(figure_text(chart.axis_title, NAME_CHARACTERS))
    if chart.axis:
        places = [place for place, _ in chart.axis]
        axis_mm = layout.field_mm * max(len(chart.columns), 1)
        axes.set_xticks(places, _apart(chart.axis, axis_mm))
        if not chart.columns:  # a diagonal parts pairs from the same pairs turned
            axes.plot([0, 1], [-0.5, len(chart.labels) - 0.5], **_LINE, alpha=0.4)
        return
    heads = layout.heads
    axes.tick_params(axis="x", length=0)
    axes.set_xticks(
        [(n + 0.5) / len(chart.columns) for n in range(len(heads.texts))],
        heads.texts,
        rotation=90 if heads.is_upright else 0,
        fontsize=heads.size or None,
    )


def _write_ends(axes: Axes, chart: Chart, layout: _Layout) -> None:
    """The number behind each row, below its title."""
    if not chart.ends or layout.row_mm < 2.0:
        return
    style: Style = {"fontsize": layout.text_pt, "annotation_clip": False}
    above: Style = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(chart.ends_title, (1.04, 1), xytext=(0, 2), **above, **style)
    for row, text in enumerate(chart.ends):
        axes.annotate(text, (1.04, row), va="center", **style)


def _draw_key(figure: Figure, swatches: Sequence[tuple[str, str]], width: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = []
    for css, text in swatches:
        if css == ABSENT:
            handles.append(Line2D([], [], label=text, color=INK, linewidth=0.5))
        else:
            colour = _COLOURS[css]
            patch = Patch(facecolor=colour, edgecolor=INK, linewidth=0.3, label=text)
            handles.append(patch)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=4 if width == "column" else 8,
        handlelength=1.2,
        handleheight=0.9,
        columnspacing=1.2,
        borderpad=0.2,
    )


# --- Rows -------------------------------------------------------------------------


def row_mm(rows: int, *, around_mm: float) -> float:
    """How high each of some rows is, so that the figure fits on a page.

    Examples
    --------
    >>> row_mm(5, around_mm=30), round(row_mm(400, around_mm=30), 2)
    (4.4, 0.5)
    """
    usual = ROW_MM if rows <= 12 else max(ROW_MM * 12 / rows, 2.4)
    return min(usual, (TALLEST_MM - around_mm) / rows)


def figure_names(names: Sequence[str], letters: int) -> tuple[str, ...]:
    """Names as a figure shows them; those that differ look different."""
    shown: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        if name not in shown:
            short = figure_text(name, letters)
            is_taken = short in shown.values()
            shown[name] = f"{short} ({number})" if is_taken else short
    return tuple(shown[name] for name in names)


def figure_text(text: str, letters: int) -> str:
    r"""A text in letters that the fonts have; a longer one is shortened in its middle.

    Examples
    --------
    >>> figure_text("a long name indeed", 9), figure_text("\ue000", 9)
    ('a l...eed', '\\ue000')
    """
    drawn, shown = drawn_letters(), ""
    for char in printable(text):
        is_drawn = ord(char) in drawn
        shown += char if is_drawn else char.encode("unicode_escape").decode("ascii")
    if len(shown) > letters:
        half = (letters - 3) // 2
        shown = f"{shown[:half]}...{shown[-half:]}"
    return shown
