"""Holds what pages and figures look like: readable, in colour and in grey."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

TEXT_CONTRAST = 4.5
"""Least contrast of a text with what is behind it (WCAG 2.2, 1.4.3)."""

SHAPE_CONTRAST = 3.0
"""Least contrast of a dot or line that has to be seen (WCAG 2.2, 1.4.11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The colours of a page, in light or in dark."""

    paper: str
    panel: str
    """Behind what stands out."""
    ink: str
    quiet: str
    """Of notes and labels."""
    rule: str
    """Of lines that part, and of which nothing has to be read."""
    mark: str
    """Of dots, links, and what is pointed at."""
    alarm: str
    """Of what has failed."""
    soft: str
    """Of intervals and boxes behind the dots."""
    shades: tuple[str, ...]
    """From good to bad; in grey, too, each is farther from the paper than the last."""
    on_shades: tuple[str, ...]
    """The text on each shade."""
    gains: tuple[str, ...]
    """From a small to a large gain, where losses have shades."""
    on_gains: tuple[str, ...]

    @property
    def variables(self) -> Mapping[str, str]:
        """The colours by the names that they have in the style sheet."""
        names = ("paper", "panel", "ink", "quiet", "rule", "mark", "alarm", "soft")
        found = {name: getattr(self, name) for name in names}
        for number, (shade, text) in enumerate(
            zip(self.shades, self.on_shades, strict=True)
        ):
            found[f"s{number}"] = shade
            found[f"t{number}"] = text
        for number, (gain, text) in enumerate(
            zip(self.gains, self.on_gains, strict=True), start=1
        ):
            found[f"g{number}"] = gain
            found[f"u{number}"] = text
        return found


LIGHT = Palette(
    paper="#ffffff",
    panel="#f4f6f8",
    ink="#1a1f24",
    quiet="#525c66",
    rule="#d5dbe1",
    mark="#0b5c9e",
    alarm="#a3211b",
    soft="#c3d5e6",
    shades=(
        *("#f7fafc", "#fce3bd", "#fbca8e", "#f7a75f", "#e67a3a"),
        *("#b8431b", "#701d0a"),
    ),
    on_shades=(*("#1a1f24",) * 5, "#ffffff", "#ffffff"),
    gains=("#d3e5f6", "#7fb3e3", "#1d5c9c"),
    on_gains=("#1a1f24", "#1a1f24", "#ffffff"),
)

DARK = Palette(
    paper="#14181c",
    panel="#1d232a",
    ink="#e6eaee",
    quiet="#a3aeb9",
    rule="#39424c",
    mark="#6cb4f0",
    alarm="#ff9d8f",
    soft="#2f4d68",
    shades=(
        *("#1b2127", "#432a18", "#69371a", "#964a1d", "#d27332"),
        *("#f4ab6e", "#ffe3c2"),
    ),
    on_shades=(*("#f2f5f7",) * 4, *("#14181c",) * 3),
    gains=("#1b3a57", "#2d6296", "#9ccdf8"),
    on_gains=("#f2f5f7", "#f2f5f7", "#14181c"),
)


def luminance(colour: str) -> float:
    """Relative luminance of a colour such as ``#0b5c9e``, from 0 to 1 (WCAG 2.2).

    Examples
    --------
    >>> luminance("#000000"), round(luminance("#ffffff"), 6)
    (0.0, 1.0)
    """
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2.2).

    Examples
    --------
    >>> round(contrast("#ffffff", "#000000"), 6)
    21.0
    """
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


# --- Figures for papers -----------------------------------------------------------

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
