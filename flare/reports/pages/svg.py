"""Writes small SVG, of which equal figures have equal bytes."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

WIDE = 1000
"""Units that a stretched drawing is wide, whatever the width of the page."""


def decimal(value: float) -> str:
    """A coordinate with at most one decimal.

    Examples
    --------
    >>> decimal(12.04), decimal(0.25), decimal(-0.01)
    ('12', '0.2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def element(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """An element; what is no `Markup` is escaped, and numbers have one decimal.

    An underscore at the end of an attribute's name is left out, others are hyphens.

    Examples
    --------
    >>> print(element("text", "<b>", x=1.25, class_="tick"))
    <text x="1.2" class="tick">&lt;b&gt;</text>
    >>> print(element("line", x1="5%", y2=3))
    <line x1="5%" y2="3"/>
    """
    # Put together as texts: a page has thousands, and Markup parses each format anew.
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
    )
    if not children:
        return Markup(f"<{name}{words}/>")
    inner = "".join(escape(child) for child in children)
    return Markup(f"<{name}{words}>{inner}</{name}>")


def _escaped(value: object) -> str:
    """The value of an attribute."""
    return escape(decimal(value) if isinstance(value, int | float) else value)


def stretched(*children: Markup, height: float) -> Markup:
    """A drawing that is `WIDE` units wide, on whatever width there is.

    Lines keep their width, and dots stay round, as the style sheet tells.
    """
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {WIDE} {decimal(height)}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
        class_="wide",
    )


def percent(part: float) -> str:
    """A part of the width, for what is not stretched.

    Examples
    --------
    >>> percent(0.5), percent(1 / 3)
    ('50%', '33.3%')
    """
    return f"{decimal(100 * part)}%"


def dots(points: Iterable[tuple[float, float]]) -> str:
    """The path of many dots: strokes without length, whose caps are round."""
    return "".join(f"M{decimal(x)} {decimal(y)}h0" for x, y in points)


def boxes(rectangles: Iterable[tuple[float, float, float, float]]) -> str:
    """The path of many rectangles, each by its left, top, width and height."""
    return "".join(
        f"M{decimal(x)} {decimal(y)}h{decimal(w)}v{decimal(h)}h{decimal(-w)}z"
        for x, y, w, h in rectangles
    )
