"""Draws outlines and errors on the worst slice of each plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from flare.common.text import count
from flare.reports.cases.colours import organ_class
from flare.reports.cases.findings import CaseFinding
from flare.reports.cases.frames import PLANES, Frame, Pixels, Plane, bar_length
from flare.reports.cases.outlines import outline
from flare.reports.pages.svg import decimal, element


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A drawing on film."""

    title: str
    summary: str
    """What there is to see, for those who cannot."""
    drawing: Markup


def plane_pictures(
    found: CaseFinding, frame: Frame, backgrounds: tuple[str, ...] = ()
) -> list[Picture]:
    """The worst slice of each plane.

    Parameters
    ----------
    found : CaseFinding
        The case.
    frame : Frame
        What is seen of it.
    backgrounds : tuple of str, optional
        For each plane, the CT of its slice as a data URI.
    """
    pictures = []
    for number, plane in enumerate(PLANES):
        place = found.worst[plane.across]
        maps = [
            plane.cut(labels, place, frame)
            for labels in (found.reference, found.prediction)
        ]
        background = backgrounds[number] if backgrounds else ""
        size = found.reference.shape[plane.across]
        pictures.append(
            Picture(
                title=f"{plane.name.capitalize()}, slice {place + 1} of {size}",
                summary=_summary(found, maps[0], maps[1]),
                drawing=film(
                    plane, frame, _inside(found, plane, frame, maps, background)
                ),
            )
        )
    return pictures


def film(plane: Plane, frame: Frame, *inside: Markup) -> Markup:
    """A picture of a plane to the scale of all, with its directions and a bar.

    `inside` is in units of a voxel, from the top left.
    """
    width = frame.width
    own, high = frame.length(plane.right), frame.length(plane.down)
    unit = width / 100
    corner = {"width": own, "height": high}
    content = element(
        "svg",
        *inside,
        **corner,
        viewBox=f"0 0 {frame.pixels(plane.right)} {frame.pixels(plane.down)}",
        preserveAspectRatio="none",
    )
    bar = bar_length(width)
    places = (
        (3 * unit, high / 2 + 1.5 * unit),
        (own - 3 * unit, high / 2 + 1.5 * unit),
        (own / 2, 5.5 * unit),
        (own / 2, high - 2 * unit),
    )
    letters = [
        element("text", letter, x=x, y=y, font_size=4.5 * unit, text_anchor="middle")
        for letter, (x, y) in zip(plane.letters, places, strict=True)
    ]
    end = own - 2 * unit
    scale = [
        element(
            "path", d=f"M{decimal(end)} {decimal(high - 2 * unit)}h-{bar}", class_="bar"
        ),
        element(
            "text",
            f"{bar} mm",
            x=end,
            y=high - 4 * unit,
            font_size=3.6 * unit,
            text_anchor="end",
        ),
    ]
    return element(
        "svg",
        element("rect", **corner, rx=1.2 * unit, class_="film"),
        content,
        *letters,
        *scale,
        viewBox=f"0 0 {decimal(width)} {decimal(high)}",
        class_="picture",
        aria_hidden="true",
    )


def _inside(
    found: CaseFinding,
    plane: Plane,
    frame: Frame,
    maps: list[Pixels],
    background: str,
) -> Markup:
    """The CT, what is wrong, and the outlines, from the bottom to the top."""
    reference, prediction = maps
    rows, columns = reference.shape
    parts = [patterns(plane, frame)]
    if background:
        parts.append(
            element(
                "image",
                href=background,
                width=columns,
                height=rows,
                preserveAspectRatio="none",
                class_="ct",
            )
        )
    differs = reference != prediction
    for name, mask in (
        ("missed", differs & (reference > 0)),
        ("added", differs & (prediction > 0)),
    ):
        path = outline(mask)
        if path:
            fill = f"url(#{name}-{plane.name})"
            parts.append(element("path", d=path, fill=fill, class_=f"wrong {name}"))
    for kind, labels in (("pred", prediction), ("ref", reference)):
        for number, organ in enumerate(found.organs):
            path = outline(labels == organ.label)
            if path:
                title = element("title", organ.name.replace("_", " "))
                css = f"{kind} {organ_class(number)}" if kind == "ref" else kind
                parts.append(element("path", title, d=path, class_=css))
    return Markup("").join(parts)


def patterns(plane: Plane, frame: Frame) -> Markup:
    """The patterns of what is missed, lines, and of what is added, dots.

    They are as large in all planes, and square, whatever the voxels are.
    """
    unit = frame.width / 100
    down, right = (frame.spacing[axis] for axis in (plane.down, plane.right))
    found = []
    for name, step, content in (
        ("missed", 1.6, element("path", d="M-1 1L1 -1M-1 3L3 -1M1 3L3 1")),
        ("added", 1.4, element("path", d="M1 1h0")),
    ):
        scale = f"scale({unit * step / 2 / right:.4g} {unit * step / 2 / down:.4g})"
        tint = element("rect", width=2, height=2)
        found.append(
            element(
                "pattern",
                tint,
                content,
                id=f"{name}-{plane.name}",
                width=2,
                height=2,
                patternUnits="userSpaceOnUse",
                patternTransform=scale,
                class_=f"pattern-{name}",
            )
        )
    return element("defs", *found)


def _summary(found: CaseFinding, reference: Pixels, prediction: Pixels) -> str:
    """What is missed and added in a slice, in words."""
    words = []
    for organ in found.organs:
        first, second = reference == organ.label, prediction == organ.label
        missed = int(np.count_nonzero(first & ~second))
        added = int(np.count_nonzero(second & ~first))
        if missed or added:
            name = organ.name.replace("_", " ")
            words.append(f"{name} {count(missed, 'voxel')} missed, {added} added")
    return "; ".join(words) or "no voxel is wrong"
