"""Draws tables of shaded fields, with numbers where there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flare.reports.figures.names import figure_names
from flare.reports.figures.style import (
    EFFECT_SHADES,
    INK,
    LEAST_TEXT_PT,
    ON_SHADES,
    SHADES,
    TEXT_PT,
    WIDTHS_MM,
    name_rows,
    new_axes,
    row_mm,
)
from flare.reports.pages.parts import NO_RESULT, SCORE_KEY, shade
from flare.reports.pages.rank_figures import EFFECT_KEY, EFFECTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

Rectangle = tuple[float, float, float, float]
"""Left, top, width, height."""

ShadeOf = Callable[[float], int]
"""The number of a value's shade, 0 for the best."""

_NAMES_MM = {"column": 24.0, "page": 42.0}
"""About what the names of rows take."""


def score_shade(value: float) -> int:
    """The number of a score's shade.

    Examples
    --------
    >>> score_shade(0.97), score_shade(0.0)
    (0, 6)
    """
    return int(shade(value)[1:])


def draw_mosaic(
    width: str,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    form: str,
    shade_of: ShadeOf,
    has_score_key: bool,
    title: str = "",
) -> Figure:
    """A field for each row and column, shaded by its value.

    Parameters
    ----------
    width : str
        ``column`` or ``page``.
    rows, columns : sequence of str
        Their names.
    values : sequence
        By row and column; None where there is no result: a line marks it.
    form : str
        In which numbers are written, where they fit.
    shade_of : callable
        Of `SHADES`.
    has_score_key : bool
        Whether a key tells which scores a shade stands for.
    title : str
        What the columns are, where their names do not fit.
    """
    field_mm = (WIDTHS_MM[width] - _NAMES_MM[width]) / len(columns)
    heads = _heads(columns, field_mm)
    around = heads.height_mm + 5.0 * bool(title) + 9.0 * has_score_key + 3.0
    figure, axes, size = new_axes(WIDTHS_MM[width], len(rows), around_mm=around)
    each = row_mm(len(rows), around_mm=around)
    fields: dict[int, list[Rectangle]] = {}
    for row, own in enumerate(values):
        for number, first, count in _runs([_maybe(shade_of, v) for v in own]):
            if number is None:
                axes.plot([first - 0.5, first + count - 0.5], [row] * 2, **_LINE)
            else:
                place = (first - 0.5, row - 0.45, count, 0.9)
                fields.setdefault(number, []).append(place)
    for number, places in sorted(fields.items()):
        _fill(axes, places, SHADES[number])
    axes.set_xlim(-0.5, len(columns) - 0.5)
    name_rows(axes, figure_names(rows, width), size, each)
    _name_columns(axes, heads, title)
    if field_mm >= 0.8 * len(f"{1:{form}}") + 3 and each >= 2.0:
        _write_numbers(axes, values, (form, min(size, TEXT_PT - 1)), shade_of)
    if has_score_key:
        _draw_score_key(figure, width)
    return figure


_LINE: dict[str, Any] = {"color": INK, "linewidth": 0.5, "solid_capstyle": "butt"}


def _maybe(shade_of: ShadeOf, value: float | None) -> int | None:
    """The number of a shade; None where there is no value."""
    return None if value is None else shade_of(value)


def _runs(row: Sequence[int | None]) -> list[tuple[int | None, int, int]]:
    """Equal neighbours: what they are, where they begin, and how many there are."""
    found: list[tuple[int | None, int, int]] = []
    for place, number in enumerate(row):
        if found and found[-1][0] == number:
            found[-1] = (number, found[-1][1], found[-1][2] + 1)
        else:
            found.append((number, place, 1))
    return found


def _fill(axes: Axes, places: Iterable[Rectangle], colour: str) -> None:
    """Rectangles of one colour, as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = [
        ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
        for x, y, w, h in places
    ]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    points = np.array(corners, dtype=np.float64).reshape(-1, 2)
    path = Path(points, codes * len(corners))
    axes.add_patch(PathPatch(path, facecolor=colour, edgecolor="none", linewidth=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heads:
    """Names above columns."""

    texts: tuple[str, ...]
    """Empty where there is no room for them."""
    size: float
    is_upright: bool
    height_mm: float


def _heads(columns: Sequence[str], field_mm: float) -> _Heads:
    """Names in lines as wide as a column, or else upright, if they fit at all."""
    if field_mm < LEAST_TEXT_PT * 0.4:
        return _Heads(texts=(), size=0, is_upright=False, height_mm=0)
    names = figure_names(columns, "column")
    letters = max(1, int(field_mm / 1.25))
    lines = [textwrap.wrap(name, letters, break_long_words=False) for name in names]
    size = min(TEXT_PT - 1, max(field_mm * 72 / 25.4 * 0.85, LEAST_TEXT_PT))
    is_upright = max(len(line) for own in lines for line in own) > letters
    rows = max(map(len, names)) * 0.62 if is_upright else max(map(len, lines)) * 1.3
    return _Heads(
        texts=names if is_upright else tuple("\n".join(own) for own in lines),
        size=size,
        is_upright=is_upright,
        height_mm=rows * size * 25.4 / 72 + 2,
    )


def _name_columns(axes: Axes, heads: _Heads, title: str) -> None:
    """Names above the columns, and what they are."""
    axes.xaxis.tick_top()
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)
    if title:
        axes.xaxis.set_label_position("top")
        axes.set_xlabel(title)
    axes.set_xticks(
        range(len(heads.texts)),
        heads.texts,
        rotation=90 if heads.is_upright else 0,
        fontsize=heads.size or None,
    )


def _write_numbers(
    axes: Axes,
    values: Sequence[Sequence[float | None]],
    text: tuple[str, float],
    shade_of: ShadeOf,
) -> None:
    """The value in each field; words where there is none, if all words fit."""
    form, size = text
    for row, own in enumerate(values):
        for column, value in enumerate(own):
            if value is not None:
                colour = ON_SHADES[shade_of(value)]
                axes.text(
                    column,
                    row,
                    f"{value:{form}}",
                    ha="center",
                    va="center_baseline",
                    color=colour,
                    fontsize=size,
                )


def _draw_score_key(figure: Figure, width: str) -> None:
    """What the shades of scores stand for."""
    from matplotlib.lines import Line2D

    handles: list[Patch | Line2D] = [
        _swatch(colour, text)
        for colour, (_, text) in zip(SHADES, SCORE_KEY, strict=True)
    ]
    handles.append(Line2D([], [], label=NO_RESULT, color=INK, linewidth=0.5))
    _draw_key(figure, handles, 4 if width == "column" else 8)


def _draw_key(figure: Figure, handles: Sequence[Patch | Line2D], columns: int) -> None:
    """A key below the figure."""
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=columns,
        handlelength=1.2,
        handleheight=0.9,
        columnspacing=1.2,
        borderpad=0.2,
    )


def _swatch(colour: str, text: str) -> Patch:
    """A colour of a key, with what it stands for."""
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor=INK, linewidth=0.3, label=text)


# --- Who is better than whom ------------------------------------------------------


def draw_effects(
    width: str, *, teams: Sequence[str], effects: dict[tuple[int, int], float]
) -> Figure:
    """A square for each team that is significantly better than another one.

    Parameters
    ----------
    width : str
        ``column`` or ``page``.
    teams : sequence of str
        Their names, best first.
    effects : dict
        By the numbers of the better team, a row, and of the other one, a column: the
        larger an effect, the larger and the darker its square.
    """
    around = 17.0
    figure, axes, size = new_axes(WIDTHS_MM[width], len(teams), around_mm=around)
    squares: dict[int, list[Rectangle]] = {}
    for (team, other), effect in sorted(effects.items()):
        number = sum(effect > bound for bound in EFFECTS)
        side = (0.42, 0.58, 0.74, 0.9)[number]
        corner = (other - side / 2, team - side / 2, side, side)
        squares.setdefault(number, []).append(corner)
    for number, places in sorted(squares.items()):
        _fill(axes, places, EFFECT_SHADES[number])
    axes.set_xlim(-0.5, len(teams) - 0.5)
    names = [f"{n} {team}" for n, team in enumerate(teams, start=1)]
    each = row_mm(len(teams), around_mm=around)
    name_rows(axes, figure_names(names, width), size, each)
    step = 1 if len(teams) <= (12 if width == "column" else 25) else 5
    shown = [n for n in range(len(teams)) if n == 0 or (n + 1) % step == 0]
    axes.xaxis.tick_top()
    axes.set_xticks(shown, [str(n + 1) for n in shown])
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("than team")
    axes.spines["bottom"].set_visible(False)
    ends = [-0.5, len(teams) - 0.5]
    axes.plot(ends, ends, **_LINE, alpha=0.4)
    handles = [
        _swatch(colour, text)
        for colour, (_, text) in zip(EFFECT_SHADES, EFFECT_KEY, strict=True)
    ]
    _draw_key(figure, handles, 4)
    return figure
