"""Draws planes on film: outlines of exact voxel edges, patterns, a few colours."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from flare.evaluation.metrics.arrays import Box, Mask, Spacing
from flare.reports.render.svg import decimal, element

COLOURS = 14
"""Outlines of references have this many colours, in the order of labels; then they
begin anew. The style sheet of these pages has them, and all colours but the next."""

SURFACES = ("#dfe3e8", "#ffb000", "#ef6510", "#c2255c")
"""Colours of surfaces: within the tolerance, then by how far they are beyond; in grey,
too, each is darker than the last."""


Pixels = npt.NDArray[Any]
"""Shape (rows, columns)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """One of the planes that doctors look at, and a side to look from."""

    name: str
    across: int
    """The turned axis that its slices follow each other along."""
    down: int
    """The turned axis of its rows."""
    right: int
    """The turned axis of its columns."""
    letters: str
    """The directions at its left, right, top and bottom."""
    side: str
    """The side from which its surface is looked at."""
    is_far_end: bool = False
    """Whether that is the end of the axis across, and not its beginning."""

    @property
    def is_upside_down(self) -> bool:
        """Whether its rows run against their axis: the head is on top."""
        return self.down == 0

    def cut(self, volume: Pixels, number: int, field: FieldOfView) -> Pixels:
        """A slice of a turned array, as far as it is seen; rows from the top."""
        index: list[slice | int] = list(field.box)
        index[self.across] = number
        pixels = volume[tuple(index)]  # the axes that remain are in the right order
        return pixels[::-1] if self.is_upside_down else pixels


PLANES = (
    Plane(name="axial", across=0, down=1, right=2, letters="RLAP", side="below"),
    Plane(name="coronal", across=1, down=0, right=2, letters="RLSI", side="the front"),
    Plane(
        name="sagittal",
        across=2,
        down=0,
        right=1,
        letters="APSI",
        side="the patient's left",
        is_far_end=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOfView:
    """The part of a case that is seen."""

    box: Box
    spacing: Spacing
    """The size of a voxel along z, y, x, in mm."""

    def pixels(self, axis: int) -> int:
        """Its voxels along an axis."""
        part = self.box[axis]
        return int(part.stop - part.start)

    def length(self, axis: int) -> float:
        """Its length along an axis, in mm."""
        return self.pixels(axis) * self.spacing[axis]


def bar_length(width: float) -> int:
    """How long a scale bar is in mm, in a picture whose width is in mm, too.

    Examples
    --------
    >>> bar_length(300.0), bar_length(40.0)
    (50, 10)
    """
    fitting = [length for length in (1, 2, 5, 10, 20, 50, 100) if length <= width / 4]
    return fitting[-1] if fitting else 1


def organ_class(number: int) -> str:
    """The class of an organ's colour.

    Examples
    --------
    >>> organ_class(0), organ_class(14)
    ('o0', 'o0')
    """
    return f"o{number % COLOURS}"


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A PNG of pixels that are 0 where nothing is, and else 1 more than their band."""
    rows, columns = pixels.shape
    lines = np.zeros((rows, columns + 1), dtype=np.uint8)  # each begins with its filter
    lines[:, 1:] = pixels
    size = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    colours = b"".join(bytes.fromhex(colour[1:]) for colour in SURFACES)
    chunks = (
        _png_chunk(b"IHDR", size),
        _png_chunk(b"PLTE", bytes(3) + colours),
        _png_chunk(b"tRNS", b"\0"),
        _png_chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
        _png_chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _png_chunk(kind: bytes, content: bytes) -> bytes:
    """A part of a file, between its length and its checksum."""
    checksum = zlib.crc32(kind + content)
    return (
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    )


def data_uri(content: bytes, kind: str) -> str:
    """A picture as part of a page; `kind` is such as png."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def outline(mask: Mask) -> str:
    """The path around all voxels of a mask; it can be filled by the rule evenodd.

    It is in units of a voxel, columns first; empty if no voxel is in the mask.

    A path turns only at corners of voxels. On each line of the grid, its corners follow
    each other in pairs, the ends of an edge. So from corner to corner, edges along the
    rows and along the columns take turns, until the first corner is reached again.

    Examples
    --------
    >>> outline(np.array([[True, True]]))
    'M0 0h2v1h-2z'
    """
    padded = np.pad(mask, 1).view(np.uint8)
    above = padded[:-1, :-1] | padded[:-1, 1:] << 1
    codes = above | padded[1:, :-1] << 2 | padded[1:, 1:] << 3
    times = _TURNS[codes]
    rows, columns = np.nonzero(times)
    number = times[rows, columns]
    rows, columns = np.repeat(rows, number), np.repeat(columns, number)
    order = np.lexsort((rows, columns))
    across = np.empty_like(order)
    across[order] = order[np.arange(order.size) ^ 1]
    return _path(rows.tolist(), columns.tolist(), across.tolist())


_TURNS = np.array([0, 1, 1, 0, 1, 0, 2, 1, 1, 2, 0, 1, 0, 1, 1, 0], dtype=np.uint8)
"""How often a path turns where two by two voxels meet, by their code: twice where only
two are in the mask, and touch at that corner alone."""


def _path(rows: list[int], columns: list[int], across: list[int]) -> str:
    """Go from corner to corner, until all of them were passed."""
    words: list[str] = []
    is_left = bytearray(b"\1") * len(rows)
    for start in range(len(rows)):
        if not is_left[start]:
            continue
        words.append(f"M{columns[start]} {rows[start]}")
        corner = start
        while True:
            row_end = corner ^ 1  # the other end of the edge along the row
            column_end = across[row_end]  # the other end of the edge along the column
            is_left[corner] = is_left[row_end] = 0
            words.append(f"h{columns[row_end] - columns[corner]}")
            if column_end == start:
                words.append("z")
                break
            words.append(f"v{rows[column_end] - rows[row_end]}")
            corner = column_end
    return "".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing on film."""

    title: str
    summary: str
    """A description for those who cannot see it."""
    drawing: Markup


def unit_of(plane: Plane, field: FieldOfView) -> float:
    """A hundredth of a picture's width in mm, or more of a high one: sizes letters."""
    return max(field.length(plane.right) / 100, field.length(plane.down) / 80)


def film(plane: Plane, field: FieldOfView, inside: Markup, *over: Markup) -> Markup:
    """A picture of a plane, with its directions and a bar.

    `inside` is in units of a voxel, from the top left, and `over` in mm.
    """
    wide, high = field.length(plane.right), field.length(plane.down)
    unit, bar = unit_of(plane, field), bar_length(wide)
    size = {"width": wide, "height": high}
    box = f"0 0 {field.pixels(plane.right)} {field.pixels(plane.down)}"
    places = (
        (2.5 * unit, high / 2 + unit),
        (wide - 2.5 * unit, high / 2 + unit),
        (wide / 2, 3.5 * unit),
        (wide / 2, high - 1.5 * unit),
    )
    letters = [
        element("text", letter, x=x, y=y, font_size=3 * unit, text_anchor="middle")
        for letter, (x, y) in zip(plane.letters, places, strict=True)
    ]
    end, low = wide - 2 * unit, high - 2 * unit
    at = {"x": end, "y": low - unit, "font_size": 2.4 * unit, "text_anchor": "end"}
    return element(
        "svg",
        element("rect", **size, class_="film"),
        element("svg", inside, **size, viewBox=box, preserveAspectRatio="none"),
        *over,
        *letters,
        element("path", d=f"M{decimal(end)} {decimal(low)}h-{bar}", class_="bar"),
        element("text", f"{bar} mm", **at),
        viewBox=f"0 0 {decimal(wide)} {decimal(high)}",
        class_="picture",
        aria_hidden="true",
    )


def patterns(plane: Plane, field: FieldOfView) -> Markup:
    """The patterns of what is missed, lines, and of what is added, dots.

    They are square even where the voxels are not.
    """
    unit = unit_of(plane, field)
    down, right = field.spacing[plane.down], field.spacing[plane.right]
    size: dict[str, object] = {"width": 2, "height": 2}
    elements = []
    for name, step, d in (
        ("missed", 0.8, "M-1 1L1 -1M-1 3L3 -1M1 3L3 1"),
        ("added", 0.7, "M1 1h0"),
    ):
        scale = f"scale({unit * step / right:.4g} {unit * step / down:.4g})"
        pattern = element(
            "pattern",
            element("rect", **size),
            element("path", d=d),
            **size,
            patternUnits="userSpaceOnUse",
            patternTransform=scale,
            id=f"{name}-{plane.name}",
            class_=f"pattern-{name}",
        )
        elements.append(pattern)
    return element("defs", *elements)
