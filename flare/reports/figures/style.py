"""Holds what all figures for a paper look like, in colour and in grey."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flare.reports.pages.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS_MM = {"column": 85.0, "page": 175.0}
"""Each figure is drawn for one column of a paper, and for a whole page."""

TALLEST_MM = 230.0
"""No figure is higher, so that it fits on a page with its caption."""

ROW_MM = 4.4
"""Height of a row, where there are few."""

TEXT_PT = 7.0
LEAST_TEXT_PT = 4.5
"""Names beside rows that are very low."""

INK = LIGHT.ink
DOT = "#4d6f8f"
BOX = "#dde5ec"
"""Behind dots, in grey too lighter than these."""
RULE = "#d0d5da"
"""Of lines that help to read an axis."""
SHADES = LIGHT.shades
"""From good to bad, each darker than the last."""
ON_SHADES = LIGHT.on_shades
EFFECT_SHADES = ("#b7cde2", "#7fa6ca", "#3f74a8", "#0b3c6b")
"""From a small effect to a large one, each darker than the last."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h", "d", "H", "8")
"""Of lines that cross: no two of one figure have the same."""
LINES = ("-", (0, (4, 1)), (0, (1, 1)))
"""Styles of lines, in turn."""

_SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: equal on every computer
    "font.size": TEXT_PT,
    "axes.labelsize": TEXT_PT,
    "axes.titlesize": TEXT_PT,
    "xtick.labelsize": TEXT_PT - 1,
    "ytick.labelsize": TEXT_PT - 1,
    "legend.fontsize": TEXT_PT - 1,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.0,
    "ytick.major.size": 0.0,
    "legend.frameon": False,
    "text.usetex": False,
    "text.parse_math": False,  # a name may hold dollars
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "flare",  # not drawn by chance
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "pdf.compression": 0,  # packed bytes differ with the library that packs
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw in this style, whatever settings the user has, and without a word.

    All settings are as they were afterwards.
    """
    with quiet():
        import matplotlib

        usual: dict[Any, Any] = {
            name: value
            for name, value in matplotlib.rcParamsDefault.items()
            if not name.startswith("backend")
        }
        with matplotlib.rc_context({**usual, **_SETTINGS}):
            yield


@contextmanager
def quiet() -> Iterator[None]:
    """Let the libraries that draw print and warn of nothing."""
    loggers = [logging.getLogger(name) for name in ("matplotlib", "fontTools")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL + 1)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def row_mm(rows: int, *, around_mm: float) -> float:
    """How high each of some rows is, so that the figure fits on a page.

    Examples
    --------
    >>> row_mm(5, around_mm=30), round(row_mm(400, around_mm=30), 2)
    (4.4, 0.5)
    """
    wanted = ROW_MM if rows <= 12 else max(ROW_MM * 12 / rows, 2.4)
    return min(wanted, (TALLEST_MM - around_mm) / rows)


def new_axes(
    width_mm: float, rows: int, *, around_mm: float = 14.0
) -> tuple[Figure, Axes, float]:
    """An empty figure of some rows, its axes, and the size of names beside them.

    Parameters
    ----------
    width_mm : float
        Of the whole figure.
    rows : int
        The first is at the top, and its middle at 0.
    around_mm : float
        What is above and below the rows.
    """
    from matplotlib.figure import Figure

    each = row_mm(rows, around_mm=around_mm)
    size = (width_mm / 25.4, (rows * each + around_mm) / 25.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_ylim(rows - 0.5, -0.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    text = max(min(TEXT_PT, each * 72 / 25.4 * 0.85), LEAST_TEXT_PT)
    return figure, axes, text


def name_rows(axes: Axes, names: tuple[str, ...], size: float, each_mm: float) -> None:
    """Write names beside the rows; of rows that are lower than text, only some."""
    step = max(1, -(-int(size * 25.4 / 72 * 1.05 * 100) // int(each_mm * 100)))
    places = range(0, len(names), step)
    axes.set_yticks(list(places), [names[n] for n in places], fontsize=size)
