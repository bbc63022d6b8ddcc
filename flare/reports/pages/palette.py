"""Holds the colours of all pages, which can be read, and be printed in grey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
