"""Holds the look of pages and figures: readable, in colour and in grey."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from flare.common.text import listing, printable

_log = logging.getLogger(__name__)

SHADES = 7
"""The number of shades from good to bad: in grey, each is farther from the paper."""

GAINS = 3
"""The number of shades from a small gain to a large one, where losses have shades."""


def _palette(colours: str, shades: str, gains: str) -> dict[str, str]:
    """Colours by the names that they have in the style sheet.

    `s1` is a shade, and `t1` the text on it; `g1` a gain, and `u1` the text on it.
    """
    names = ["paper", "panel", "ink", "quiet", "rule", "mark", "alarm", "soft"]
    for shade in range(SHADES):
        names += [f"s{shade}", f"t{shade}"]
    for gain in range(1, GAINS + 1):
        names += [f"g{gain}", f"u{gain}"]
    return dict(zip(names, f"{colours} {shades} {gains}".split(), strict=True))


LIGHT = _palette(
    "#ffffff #f4f6f8 #1a1f24 #525c66 #d5dbe1 #0b5c9e #a3211b #c3d5e6",
    "#f7fafc #1a1f24 #fce3bd #1a1f24 #fbca8e #1a1f24 #f7a75f #1a1f24"
    " #e67a3a #1a1f24 #b8431b #ffffff #701d0a #ffffff",
    "#d3e5f6 #1a1f24 #7fb3e3 #1a1f24 #1d5c9c #ffffff",
)
"""Paper, and the panel behind what stands out; ink, that of notes and labels, and of
lines that part; marks and links, what has failed, and intervals behind dots."""

DARK = _palette(
    "#14181c #1d232a #e6eaee #a3aeb9 #39424c #6cb4f0 #ff9d8f #2f4d68",
    "#1b2127 #f2f5f7 #432a18 #f2f5f7 #69371a #f2f5f7 #964a1d #f2f5f7"
    " #d27332 #14181c #f4ab6e #14181c #ffe3c2 #14181c",
    "#1b3a57 #f2f5f7 #2d6296 #f2f5f7 #9ccdf8 #14181c",
)


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

INK = LIGHT["ink"]
DOT = "#4d6f8f"
BOX = "#dde5ec"
"""The colour behind dots, in grey too lighter than these."""
RULE = "#d0d5da"
"""The colour of lines that help to read an axis."""
EFFECT_SHADES = ("#b7cde2", "#7fa6ca", "#3f74a8", "#0b3c6b")
"""Colours from a small effect to a large one, each darker than the last."""

FONT = "DejaVu Sans"
"""A font that comes with matplotlib: it is equal on every computer."""

_SETTINGS: dict[Any, Any] = {
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
def drawing_style(names: Iterable[str] = ()) -> Iterator[None]:
    """Draw in this style, whatever settings the user has, and without a word.

    `names` are drawn with installed fonts where the usual one lacks their letters; the
    log has a line on letters that no font has. All settings are as they were
    afterwards.
    """
    with quiet():
        import matplotlib

        usual: dict[Any, Any] = {
            name: value
            for name, value in matplotlib.rcParamsDefault.items()
            if not name.startswith("backend")
        }
        letters = set(map(ord, "".join(map(printable, names))))
        style = {**usual, **_SETTINGS, "font.family": _families(letters)}
        with matplotlib.rc_context(style):
            yield


def _families(letters: set[int]) -> list[str]:
    """The usual font, and the fewest others that have all of these letters."""
    from matplotlib.font_manager import fontManager

    families, missing = [FONT], letters - letters_of(FONT)
    fonts = _fonts_with(missing) if missing else {}
    while any(covered & missing for covered, _ in fonts.values()):
        path = max(fonts, key=lambda p: (len(fonts[p][0] & missing), "Regular" in p))
        covered, family = fonts[path]
        fontManager.addfont(path)
        families.append(family)
        missing -= covered
    if missing:
        names = listing([chr(letter) for letter in sorted(missing)])
        _log.warning("No installed font has %s: figures show codes instead", names)
    return families


def _fonts_with(missing: set[int]) -> dict[str, tuple[set[int], str]]:
    """The installed fonts by path: the missing letters that they have, and names."""
    from matplotlib.font_manager import findSystemFonts
    from matplotlib.ft2font import FT2Font

    fonts = {}
    for path in sorted(findSystemFonts()):
        with suppress(OSError, RuntimeError):  # of another kind, or damaged
            file = FT2Font(path)
            if "resort" not in file.family_name.lower():  # boxes for all letters
                letters = missing.intersection(file.get_charmap())
                fonts[path] = letters, file.family_name
    return fonts


@lru_cache
def letters_of(*families: str) -> frozenset[int]:
    """All letters that some fonts can draw."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    letters = frozenset[int]()
    for family in families:
        file = findfont(FontProperties(family=[family]))
        letters = letters.union(get_font(file).get_charmap())
    return letters


def drawn_letters() -> frozenset[int]:
    """All letters that the fonts of the current style can draw."""
    from matplotlib import rcParams

    families = (family for family in rcParams["font.family"] if family != FONT)
    return letters_of(FONT, *families)


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
