"""Draws rows of fields, each of some class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from markupsafe import Markup

from flare.reports.pages.svg import WIDE, boxes, decimal, element

ABSENT = "absent"
"""Class of a field in which there is nothing but a line."""


def mosaic(rows: Sequence[Sequence[str]], height: float, top: float) -> list[Markup]:
    """Fields of some classes, as one path for each class; neighbours are one field."""
    fields: dict[str, list[tuple[float, float, float, float]]] = {}
    for number, row in enumerate(rows):
        y, width = top + height * number, WIDE / len(row)
        for css, first, count in _runs(row):
            own = (width * first, y + 1, width * count, height - 2)
            fields.setdefault(css, []).append(own)
    return [
        element("path", d=_crosses(own) if css == ABSENT else boxes(own), class_=css)
        for css, own in sorted(fields.items())
        if css
    ]


def _runs(row: Iterable[str]) -> list[tuple[str, int, int]]:
    """Equal neighbours: what they are, where they begin, and how many there are."""
    found = []
    start = 0
    for css, group in groupby(row):
        count = len(list(group))
        found.append((css, start, count))
        start += count
    return found


def _crosses(fields: Iterable[tuple[float, float, float, float]]) -> str:
    """A line through the middle of fields, which are empty otherwise."""
    return "".join(
        f"M{decimal(x)} {decimal(y + height / 2)}h{decimal(width)}"
        for x, y, width, height in fields
    )
