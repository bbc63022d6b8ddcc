"""Draws charts as small SVG; equal charts have equal bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby, pairwise

from markupsafe import Markup, escape

from flare.common.text import printable
from flare.reports.model import (
    ABSENT,
    MANY_ROWS,
    Blobs,
    Chart,
    Dots,
    Fields,
    Points,
    Says,
    Steps,
)

WIDE = 1000
"""Units that a stretched drawing is wide, whatever the width of the page."""

TOP = 24
"""Height of an axis above the rows, in pixels; also in the style sheet."""

CELL = 16
"""Height of a drawing in a cell of a table, in pixels."""

GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, without their whole part, lie nowhere close together."""


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
    """An element; all texts but `Markup` are escaped, and numbers have one decimal.

    An underscore at the end of an attribute's name is left out, others are hyphens.

    Examples
    --------
    >>> print(element("text", "<b>", x=1.25, class_="tick"))
    <text x="1.2" class="tick">&lt;b&gt;</text>
    """
    # Put together as texts: a page has thousands, and Markup parses each format anew.
    words, texts = [], []
    for key, value in attributes.items():
        words.append(f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"')
    for child in children:
        is_markup = isinstance(child, Markup)
        texts.append(child if is_markup else escape(printable(child)))
    start, inner = f"<{name}{''.join(words)}", "".join(texts)
    return Markup(f"{start}>{inner}</{name}>" if inner else f"{start}/>")


def _escaped(value: object) -> str:
    return escape(decimal(value) if isinstance(value, int | float) else value)


def percent(part: float) -> str:
    """A part of the width, for shapes that are not stretched."""
    return f"{decimal(100 * part)}%"


MANY_TICKS = 9
"""Ticks of an axis, of which more touch one another where it is short."""

POINTS_HIGH = 300
"""The height of points above their axis, in pixels."""


def chart_svg(chart: Chart) -> Markup:
    """A drawing as high as its rows, and wide as there is room."""
    mark = chart.rows[0] if chart.rows else None
    return _points(chart, mark) if isinstance(mark, Points) else _rows(chart)


def _points(chart: Chart, points: Points) -> Markup:
    """Dots between two axes; a line joins the front."""
    bottom = TOP + POINTS_HIGH
    shapes = []
    for place, text in chart.axis:
        shapes.append(_upright(place, bottom, "grid"))
        at = {"x": percent(place), "y": bottom + 20, "text_anchor": "middle"}
        shapes.append(element("text", text, **at))
    for place, text in points.axis:
        y = bottom - POINTS_HIGH * place
        shapes.append(element("line", x1=0, x2="100%", y1=y, y2=y, class_="grid"))
        shapes.append(element("text", text, x=-14, y=y + 4, text_anchor="end"))
    shapes.append(element("text", points.axis_title, x=0, y=TOP - 12))
    title = {"x": "100%", "y": bottom + 38, "text_anchor": "end"}
    shapes.append(element("text", chart.axis_title, **title))
    for left, right in pairwise(points.front):
        ends = {"x1": percent(left.x), "x2": percent(right.x), "class_": "roc"}
        low, high = bottom - POINTS_HIGH * left.y, bottom - POINTS_HIGH * right.y
        shapes.append(element("line", **ends, y1=low, y2=high))
    shapes += _numbered_dots(points, bottom)
    return element("svg", *shapes, width="100%", height=bottom + 44, aria_hidden="true")


def _numbered_dots(points: Points, bottom: float) -> list[Markup]:
    """Dots, and over all of them their numbers, so that no dot hides another's."""
    dots, numbers = [], []
    for point, has_number in points.drawn:
        x, y = percent(point.x), bottom - POINTS_HIGH * point.y
        css = "frame" if point.is_hollow else "point"
        css = "blob" if point.is_front else css
        words, radius = element("title", point.words), 9 if has_number else 4
        dots.append(element("circle", words, cx=x, cy=y, r=radius, class_=css))
        if has_number and point.number:
            css = "number on" if point.is_front else "number strong"
            numbers.append(element("text", point.number, x=x, y=y + 4, class_=css))
    return [*dots, *numbers]


def _rows(chart: Chart) -> Markup:
    """Marks in rows: shapes are stretched; words and blobs keep their own width."""
    # Heights of rows, which the style sheet has as well.
    row = 14 if len(chart.labels) > MANY_ROWS else 28
    top = TOP * bool(chart.axis)
    height = top + row * len(chart.labels)
    wide: list[Markup] = []
    fixed: list[Markup] = []
    paths: dict[str, list[str]] = {}
    for number, mark in enumerate(chart.rows):
        y = top + row * number
        if isinstance(mark, Fields):
            _add_fields(paths, mark, y, row)
        elif isinstance(mark, Blobs | Says):
            fixed += _fixed(mark, y + row / 2, row)
        elif isinstance(mark, Dots):
            wide += _dots(mark, y, row)
            fixed += _edges(mark, y + row / 2)
        elif isinstance(mark, Steps):
            path = _steps(mark, y + row - 1, row - 4)
            wide.append(element("path", d=path, class_="curve"))
    for css, parts in sorted(paths.items()):
        wide.append(element("path", d="".join(parts), class_=css))
    layers = [_stretched(wide, height)] if wide else []
    if chart.zero is not None:
        layers.insert(0, _upright(chart.zero, height, "zero"))
    return drawing(chart.axis, height, *layers, *fixed)


ROC_SIDE = 240
"""The width and height of a ROC curve, in pixels."""


def roc_svg(
    points: Sequence[tuple[float, float]], dot: tuple[float, float], title: str
) -> Markup:
    """A curve in a square, with its diagonal and a dot; places are from 0 to 1."""

    def place(point: tuple[float, float]) -> str:
        x, y = point
        return f"{decimal(ROC_SIDE * x)} {decimal(ROC_SIDE * (1 - y))}"

    frame = _box(0, 0, ROC_SIDE, ROC_SIDE)
    curve = "L".join(map(place, points))
    x, y = dot
    shapes = (
        element("title", title),
        element("path", d=frame, class_="frame"),
        element("path", d=f"M0 {ROC_SIDE}L{ROC_SIDE} 0", class_="grid"),
        element("path", d=f"M{curve}", class_="roc"),
        element("circle", cx=ROC_SIDE * x, cy=ROC_SIDE * (1 - y), r=5, class_="blob"),
    )
    middle, low = ROC_SIDE / 2, ROC_SIDE + 20
    up = {"transform": f"rotate(-90 -12 {decimal(middle)})", "text_anchor": "middle"}
    names = (
        element("text", "false positive rate", x=middle, y=low, text_anchor="middle"),
        element("text", "true positive rate", x=-12, y=middle, **up),
    )
    side = ROC_SIDE + 36
    at = {"viewBox": f"-30 -6 {side} {side}", "width": side, "height": side}
    return element("svg", *shapes, *names, **at, role="img")


def _stretched(shapes: Sequence[Markup], height: float) -> Markup:
    """Shapes that are stretched to the width of the page."""
    return element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDE} {decimal(height)}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
        class_="wide",
    )


def mark_svg(mark: Blobs) -> Markup:
    """A mark in a cell of a table."""
    return drawing((), CELL, *_blobs(mark, CELL / 2, CELL))


def drawing(
    axis: Sequence[tuple[float, str]], height: float, *children: Markup
) -> Markup:
    """A drawing, with an axis above whose lines reach down to its end."""
    lines = [_upright(place, height, "grid") for place, _ in axis]
    # Where a drawing is narrow, the style sheet hides every other one of many.
    css = {"class_": "tick"} if len(axis) > MANY_TICKS else {}
    texts = []
    for place, text in axis:
        at = {"x": percent(place), "y": TOP - 8, "text_anchor": "middle"}
        texts.append(element("text", text, **at, **css))
    inner = (*lines, *texts, *children)
    return element("svg", *inner, width="100%", height=height, aria_hidden="true")


def _upright(place: float, height: float, css: str) -> Markup:
    x = percent(place)
    return element("line", x1=x, x2=x, y1=TOP, y2=height, class_=css)


def _box(x: float, y: float, width: float, height: float) -> str:
    w, h = decimal(width), decimal(height)
    return f"M{decimal(x)} {decimal(y)}h{w}v{h}h{decimal(-width)}z"


def _add_fields(
    paths: dict[str, list[str]], fields: Fields, y: float, row: float
) -> None:
    """Add fields to the paths of their classes; equal neighbours are one field."""
    width, start = WIDE / len(fields.classes), 0
    for css, group in groupby(fields.classes):
        x, number = width * start, len(list(group))
        start += number
        if css == ABSENT:
            path = f"M{decimal(x)} {decimal(y + row / 2)}h{decimal(width * number)}"
        else:
            path = _box(x, y + 1, width * number, row - 2)
        if css:
            paths.setdefault(css, []).append(path)


def _fixed(mark: Blobs | Says, y: float, row: float) -> Iterable[Markup]:
    """The shapes and words that are not stretched."""
    if isinstance(mark, Blobs):
        return _blobs(mark, y, row)
    at = {"x": "1%", "y": y + 4, "font_style": "italic"}
    return [element("text", mark.text, **at)]


def _blobs(blobs: Blobs, y: float, row: float) -> Iterable[Markup]:
    low, high = map(percent, blobs.span)
    yield element("line", x1=low, x2=high, y1=y, y2=y, class_="span")
    for place, part, words in blobs.blobs:
        radius = max(1, (row / 2 - 2) * math.sqrt(part))
        title, at = element("title", words), {"cx": percent(place), "cy": y}
        yield element("circle", title, **at, r=radius, class_="blob")


def _dots(dots: Dots, y: float, row: float) -> list[Markup]:
    """Strokes without length, whose caps are round; over a box, and below its frame."""
    middle, half = y + row / 2, row / 2 - 4
    strokes = []
    heights = _dot_heights(len(dots.places), middle, half)
    for x, height in zip(dots.places, heights, strict=True):
        strokes.append(f"M{decimal(WIDE * x)} {height}h0")
    paths = [("dots", "".join(strokes))]
    if dots.box:
        low, median, high = (WIDE * x for x in dots.box)
        box = _box(low, middle - half, max(high - low, 1), 2 * half)
        line = f"M{decimal(median)} {decimal(middle - half)}v{decimal(2 * half)}"
        paths = [("box", box), *paths, ("frame", box), ("middle", line)]
    return [element("path", d=path, class_=css) for css, path in paths]


@lru_cache(maxsize=64)
def _dot_heights(number: int, middle: float, half: float) -> list[str]:
    """The heights of dots in a row, which lie nowhere close together."""
    parts = (GOLDEN * n % 1 - 0.5 for n in range(1, number + 1))
    return [decimal(middle + half * part) for part in parts]


def _edges(dots: Dots, y: float) -> Iterable[Markup]:
    """The words at both ends, beside the dots that stand there."""
    left, right = dots.edges
    if left:
        yield element("text", left, x=0, dx=6, y=y + 4, class_="edge")
    if right:
        at = {"x": "100%", "dx": -6, "y": y + 4, "text_anchor": "end"}
        yield element("text", right, **at, class_="edge")


def _steps(steps: Steps, bottom: float, height: float) -> str:
    """A path that keeps each height until the next corner, closed along the bottom."""
    corners = [(WIDE * x, bottom - height * part) for x, part in steps.points]
    x, y = corners[0]
    path = [f"M{decimal(x)} {decimal(bottom)}V{decimal(y)}"]
    for (_, before), (x, y) in pairwise(corners):
        path.append(f"H{decimal(x)}")
        if y != before:
            path.append(f"V{decimal(y)}")
    return "".join([*path, f"V{decimal(bottom)}z"])
