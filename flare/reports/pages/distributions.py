"""Draws how values are spread: a dot for each, and a box for the middle half."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup

from flare.reports.pages.parts import NO_RESULT, row_height
from flare.reports.pages.svg import (
    WIDE,
    boxes,
    decimal,
    dots,
    element,
    percent,
    stretched,
)

TOP = 24
"""Height of an axis above the rows, in pixels; also in the style sheet."""

GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, without their whole part, lie nowhere close together."""

Scale = Callable[[float], float]
"""From a value to its place, 0 at the left end of the axis and 1 at its right."""


def score_axis(values: Sequence[float]) -> tuple[Scale, tuple[tuple[float, str], ...]]:
    """An axis from 0, or from 0.5 where all scores lie above, to 1; with its ticks."""
    start = 0.5 if values and min(values) >= 0.5 else 0.0
    steps = np.linspace(start, 1, 6)
    ticks = tuple((float((s - start) / (1 - start)), f"{s:.1f}") for s in steps)
    return lambda value: (value - start) / (1 - start), ticks


def linear_axis(values: Sequence[float]) -> tuple[Scale, tuple[tuple[float, str], ...]]:
    """An axis from 0 to beyond the largest value, with round ticks."""
    top = max([*values, 0.0]) or 1.0
    unit = 10 ** math.floor(math.log10(top))
    step = next(s * unit for s in (0.5, 1, 2, 5) if top <= 3 * s * unit)
    end = math.ceil(top / step) * step
    marks = [step * n for n in range(round(end / step) + 1)]
    return lambda value: value / end, tuple((m / end, f"{m:g}") for m in marks)


def log_axis(values: Sequence[float]) -> tuple[Scale, tuple[tuple[float, str], ...]]:
    """An axis on which equal factors are equally long, for values above 0."""
    low = math.log10(min(values))
    high = math.log10(max(values))
    middle, half = (low + high) / 2, max((high - low) / 2 * 1.04, 0.17)
    start, width = middle - half, 2 * half
    marks = [
        factor * 10.0**power
        for power in range(math.floor(start), math.ceil(start + width) + 1)
        for factor in ((1, 2, 5) if width < 2.5 else (1,))
    ]
    places = [((math.log10(mark) - start) / width, f"{mark:g}") for mark in marks]
    ticks = tuple(place for place in places if 0 <= place[0] <= 1)
    return lambda value: (math.log10(value) - start) / width, ticks


def difference_axis(
    values: Sequence[float],
) -> tuple[Scale, tuple[tuple[float, str], ...], bool]:
    """An axis with 0 in its middle; its ticks; and whether it is stretched there.

    Where a few have changed much, and most have hardly changed, these could not be told
    from 0 otherwise: then places follow the square root.
    """
    sizes = [abs(value) for value in values if value] or [0.0]
    end = next(e for e in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if max(sizes) <= e)
    is_stretched = end > 0.2 and float(np.median(sizes)) < end / 20
    inner = end / 4 if is_stretched else end / 2

    def scale(value: float) -> float:
        part = abs(value) / end
        part = math.sqrt(part) if is_stretched else part
        return 0.5 + math.copysign(part, value) / 2

    marks = (-end, -inner, 0.0, inner, end)
    return (
        scale,
        tuple((scale(m), f"{m:+g}" if m else "0") for m in marks),
        is_stretched,
    )


def drawing(
    height: float, ticks: Sequence[tuple[float, str]], *children: Markup
) -> Markup:
    """A drawing with an axis above it, whose lines reach down to its end."""
    lines = [
        element("line", x1=x, x2=x, y1=TOP, y2=TOP + height, class_="grid")
        for x in (percent(place) for place, _ in ticks)
    ]
    texts = [
        element("text", text, x=percent(place), y=TOP - 8, text_anchor="middle")
        for place, text in ticks
    ]
    return element(
        "svg",
        *lines,
        *texts,
        *children,
        width="100%",
        height=TOP + height,
        aria_hidden="true",
    )


def spread_rows(
    rows: Sequence[Sequence[float]],
    scale: Scale,
    ticks: Sequence[tuple[float, str]],
    *,
    has_boxes: bool,
    middle_line: bool = False,
) -> Markup:
    """A row of dots for each sequence of values, with their box, and their mean.

    A row without any value says so. A line in the middle parts gains from losses.
    """
    row = row_height(len(rows))
    height = row * len(rows)
    inner: list[Markup] = []
    words: list[Markup] = []
    lines: list[Markup] = []
    if middle_line:
        ends = {"x1": "50%", "x2": "50%", "y1": TOP, "y2": TOP + height}
        lines.append(element("line", **ends, class_="zero"))
    for number, values in enumerate(rows):
        middle = TOP + row * (number + 0.5)
        if not values:
            words.append(
                element("text", NO_RESULT, x="1%", y=middle + 4, font_style="italic")
            )
            continue
        inner += _row(values, scale, (middle, row), has_boxes=has_boxes)
    layer = stretched(*inner, height=TOP + height) if inner else Markup("")
    return drawing(height, ticks, *lines, layer, *words)


def _row(
    values: Sequence[float], scale: Scale, at: tuple[float, int], *, has_boxes: bool
) -> list[Markup]:
    """Box, median and dots of some values, about the middle of a row of some height."""
    middle, height = at
    half = height / 2 - 4
    frame: list[Markup] = []
    found: list[Markup] = []
    if has_boxes and len(values) > 2:
        quarters = np.quantile(np.asarray(values), (0.25, 0.5, 0.75))
        low, median, high = (WIDE * scale(float(q)) for q in quarters)
        box = boxes([(low, middle - half, max(high - low, 1), 2 * half)])
        found.append(element("path", d=box, class_="box"))
        line = f"M{decimal(median)} {decimal(middle - half)}v{decimal(2 * half)}"
        frame = [
            element("path", d=box, class_="frame"),
            element("path", d=line, class_="middle"),
        ]
    points = [
        (WIDE * scale(value), middle + half * (GOLDEN * n % 1 - 0.5))
        for n, value in enumerate(values, start=1)
    ]
    found.append(element("path", d=dots(points), class_="dots"))
    return [*found, *frame]
