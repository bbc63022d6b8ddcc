"""Draws how values are spread: a dot for each, a box for the middle half, the mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flare.reports.figures.names import figure_names
from flare.reports.figures.style import (
    BOX,
    DOT,
    INK,
    RULE,
    WIDTHS_MM,
    name_rows,
    new_axes,
    row_mm,
)
from flare.reports.pages.distributions import GOLDEN, Scale
from flare.reports.pages.parts import NO_RESULT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEY = (
    "Dots are cases; above them, boxes are their middle half, lines their medians,"
    " diamonds their means."
)

INTERVALS = " Thin lines between them are 95 % intervals of the means (Gaffke's)."

_BOX = (-0.42, -0.10)
_DOTS = (0.06, 0.42)
"""Top and bottom of boxes and of dots, as parts of a row, from its middle."""

_FEWEST_FOR_BOX = 3

Ticks = Sequence[tuple[float, str]]


def draw_spreads(
    width: str,
    *,
    names: Sequence[str],
    values: Sequence[Sequence[float] | None],
    axis: tuple[Scale, Ticks],
    title: str,
    missing: Sequence[int] = (),
    intervals: Sequence[tuple[float, float] | None] = (),
) -> Figure:
    """A row for each name; one without any value says so.

    Parameters
    ----------
    width : str
        ``column`` or ``page``.
    names, values : sequence
        Of the rows, the first at the top; None for a row that is a heading.
    axis : tuple
        A scale from 0 to 1, and its ticks, of `flare.reports.pages.distributions`.
    title : str
        Of the axis.
    missing : sequence of int
        How many values of each row are not there, if some may be.
    intervals : sequence
        Of the mean of each row; None where there is none.
    """
    figure, axes, size = new_axes(WIDTHS_MM[width], len(names), around_mm=12)
    scale, ticks = axis
    axes.set_xlim(-0.015, 1.015)
    axes.set_xticks([place for place, _ in ticks], _apart(ticks, width))
    axes.set_xlabel(title)
    axes.grid(axis="x", color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)
    shown = figure_names(names, width)
    name_rows(axes, shown, size, row_mm(len(names), around_mm=12))
    for row, own in enumerate(values):
        if own is None:
            axes.get_yticklabels()[row].set_fontweight("bold")
        elif own:
            _draw_box(axes, row, [scale(value) for value in own])
        else:
            axes.text(0, row, NO_RESULT, va="center", fontsize=size)
    for row, number in enumerate(missing):
        if number and values[row]:
            text = f" {number} missing"
            axes.text(1.02, row, text, va="center", fontsize=size)
    for row, interval in enumerate(intervals):
        if interval:
            _draw_interval(axes, row, [scale(end) for end in interval])
    known = [own or () for own in values]
    _draw_dots(axes, known, scale)
    _draw_means(axes, known, scale)
    return figure


def _draw_interval(axes: Axes, row: int, ends: Sequence[float]) -> None:
    """The interval of a mean, between the box and the dots."""
    axes.plot(ends, [row - 0.02] * 2, color=INK, linewidth=0.7)
    for end in ends:
        axes.plot([end] * 2, [row - 0.06, row + 0.02], color=INK, linewidth=0.7)


def _apart(ticks: Ticks, width: str) -> list[str]:
    """The words of ticks; nothing where one would touch the one before."""
    room = 0.11 if width == "column" else 0.045
    last = -1.0
    shown = []
    for place, text in ticks:
        is_free = place - last >= room
        shown.append(text if is_free else "")
        last = place if is_free else last
    return shown


def _draw_box(axes: Axes, row: int, places: Sequence[float]) -> None:
    """The middle half of a row, and its median; of very few values neither."""
    if len(places) < _FEWEST_FOR_BOX:
        return
    low, median, high = np.quantile(np.asarray(places), (0.25, 0.5, 0.75)).tolist()
    top, bottom = (row + part for part in _BOX)
    axes.barh(
        (top + bottom) / 2,
        high - low,
        left=low,
        height=bottom - top,
        color=BOX,
        edgecolor=INK,
        linewidth=0.5,
    )
    axes.plot([median] * 2, [top, bottom], color=INK, linewidth=1.3)


def _draw_dots(axes: Axes, values: Sequence[Sequence[float]], scale: Scale) -> None:
    """A dot for each value; those of a row do not lie in one line."""
    top, bottom = _DOTS
    points = [
        (scale(value), row + top + (bottom - top) * (GOLDEN * number % 1))
        for row, own in enumerate(values)
        for number, value in enumerate(own, start=1)
    ]
    if points:
        size = 2.2 if len(values) <= 20 else 1.3
        axes.plot(
            *zip(*points, strict=True),
            linestyle="none",
            marker="o",
            markersize=size,
            markerfacecolor="none",
            markeredgecolor=DOT,
            markeredgewidth=0.5,
        )


def _draw_means(axes: Axes, values: Sequence[Sequence[float]], scale: Scale) -> None:
    """A diamond at the mean of each row."""
    points = [
        (scale(float(np.mean(own))), row + sum(_BOX) / 2)
        for row, own in enumerate(values)
        if own
    ]
    if points:
        axes.plot(
            *zip(*points, strict=True),
            linestyle="none",
            marker="D",
            markersize=3.0 if len(values) <= 20 else 2.0,
            markerfacecolor="white",
            markeredgecolor=INK,
            markeredgewidth=0.7,
        )
