"""Makes names fit into a figure: short, different, and of letters that its font has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from flare.common.text import printable

_LETTERS = {"column": 18, "page": 34}
"""Of a name, by the figure's width."""


def figure_names(names: Sequence[str], width: str) -> tuple[str, ...]:
    """Names as a figure shows them; those that differ look different.

    Parameters
    ----------
    names : sequence of str
        Any text.
    width : str
        ``column`` or ``page``.
    """
    found: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        if name not in found:
            short = figure_text(name, _LETTERS[width])
            is_taken = short in found.values()
            found[name] = f"{short} ({number})" if is_taken else short
    return tuple(found[name] for name in names)


def figure_text(text: str, letters: int) -> str:
    r"""A text in letters that the font has; a longer one is shortened in its middle.

    Examples
    --------
    >>> figure_text("a long name indeed", 9), figure_text("\u533b", 9)
    ('a l...eed', '\\u533b')
    """
    known = _known_letters()
    shown = "".join(
        char if ord(char) in known else char.encode("unicode_escape").decode("ascii")
        for char in printable(text)
    )
    if len(shown) > letters:
        half = (letters - 3) // 2
        shown = f"{shown[:half]}...{shown[-half:]}"
    return shown


@lru_cache(maxsize=1)
def _known_letters() -> frozenset[int]:
    """What the font can draw."""
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font

    font = FT2Font(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf")
    return frozenset(font.get_charmap())


def file_stem(text: str) -> str:
    """What a file may be called after a text, on any computer.

    Examples
    --------
    >>> file_stem("dsc_left_kidney"), file_stem("../Centre (NL)")
    ('dsc_left_kidney', 'centre_nl')
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:40].strip("_") or "x"
