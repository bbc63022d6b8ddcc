"""Holds the colours of what is drawn on the dark film of pictures, in both palettes.

A CT is dark in the light and in the dark, and its colours stay what they are; only what
stands on paper has a colour for each palette.
"""

from __future__ import annotations

FILM = "#0b0e11"
"""Behind pictures, and what lies outside of a CT."""

LETTERS = "#ffffff"
"""Of letters and bars on film."""

PREDICTION = "#ffffff"
"""Of the dashed outline of a prediction."""

MISSED = "#ff6b5e"
"""Of what the prediction misses, on film; its pattern is of lines that rise."""

ADDED = "#ffe14d"
"""Of what the prediction adds, on film; its pattern is of dots."""

ON_PAPER = {
    "light": {"missed": "#b3261e", "added": "#8a6100", "curve": "#525c66"},
    "dark": {"missed": "#ff8a7d", "added": "#ffd24d", "curve": "#a3aeb9"},
}
"""Of marks below the curves of slices."""

ORGANS = (
    *("#e69f00", "#56b4e9", "#2fc79a", "#e58bc2", "#9f8cff", "#a8d94a", "#c9a27a"),
    *("#5fd7e0", "#f3b3a0", "#8fb3c9", "#c4b454", "#b3e6c2", "#d9a6ff", "#9aa05a"),
)
"""Of the outlines of references, in the order of labels; then they begin anew."""

SURFACES = ("#dfe3e8", "#ffb000", "#ef6510", "#c2255c")
"""Of surfaces: within the tolerance, then by how far they are beyond; in grey, too,
each is darker than the last."""


def organ_class(number: int) -> str:
    """The class of an organ's colour.

    Examples
    --------
    >>> organ_class(0), organ_class(14)
    ('o0', 'o0')
    """
    return f"o{number % len(ORGANS)}"


def film_style() -> str:
    """The style of all colours."""
    organs = "".join(
        f".o{number}{{stroke:{colour};background:{colour}}}"
        for number, colour in enumerate(ORGANS)
    )
    surfaces = "".join(
        f".far{number}{{background:{colour}}}" for number, colour in enumerate(SURFACES)
    )
    light, dark = (
        ";".join(f"--{name}:{colour}" for name, colour in ON_PAPER[name_].items())
        for name_ in ("light", "dark")
    )
    return (
        f":root{{--film:{FILM};--letters:{LETTERS};--outline:{PREDICTION};"
        f"--film-missed:{MISSED};--film-added:{ADDED};{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{organs}\n{surfaces}\n"
    )
