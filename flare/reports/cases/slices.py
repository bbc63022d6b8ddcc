"""Draws the worst slice of each plane, and packs all slices for the page's viewer."""

from __future__ import annotations

import base64

import numpy as np
from markupsafe import Markup
from zlib_ng import zlib_ng

from flare.common.text import count
from flare.evaluation.metrics.arrays import Labels
from flare.reports.cases.drawing import (
    ORGANS,
    Picture,
    film,
    organ_class,
    outline,
    patterns,
)
from flare.reports.cases.findings import CaseFinding
from flare.reports.cases.planes import PLANES, FieldOfView, Pixels, Plane
from flare.reports.render.svg import element

MOST_ORGANS = 15
"""The numbers of so many fit into half a byte, beside the background."""

MOST_VOXELS = 2**26
"""What a browser gets to unpack; four CTs of usual size."""

LEVEL = 6
"""Of compression: the last one takes three times as long for a tenth less."""


def plane_pictures(
    found: CaseFinding, field: FieldOfView, backgrounds: tuple[str, ...] = ()
) -> list[Picture]:
    """The worst slice of each plane.

    Parameters
    ----------
    found : CaseFinding
        The case.
    field : FieldOfView
        What is seen of it.
    backgrounds : tuple of str, optional
        For each plane, the CT of its slice as a data URI.
    """
    pictures = []
    for number, plane in enumerate(PLANES):
        place = found.worst[plane.across]
        maps = [
            plane.cut(labels, place, field)
            for labels in (found.reference, found.prediction)
        ]
        background = backgrounds[number] if backgrounds else ""
        size = found.reference.shape[plane.across]
        pictures.append(
            Picture(
                title=f"{plane.name.capitalize()}, slice {place + 1} of {size}",
                summary=_summary(found, maps[0], maps[1]),
                drawing=film(
                    plane, field, _inside(found, plane, field, maps, background)
                ),
            )
        )
    return pictures


def _inside(
    found: CaseFinding,
    plane: Plane,
    field: FieldOfView,
    maps: list[Pixels],
    background: str,
) -> Markup:
    """The CT, what is wrong, and the outlines, from the bottom to the top."""
    reference, prediction = maps
    rows, columns = reference.shape
    parts = [patterns(plane, field)]
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


def volume(found: CaseFinding, field: FieldOfView) -> dict[str, object] | None:
    """What the viewer reads; None if a case has more than it can show.

    Label maps are packed as they are: differences of rows, or of slices, take more.
    """
    voxels = int(np.prod([field.pixels(axis) for axis in range(3)], dtype=np.int64))
    if len(found.organs) > MOST_ORGANS or voxels > MOST_VOXELS:
        return None
    low, high = bytearray(256), bytearray(256)
    for number, organ in enumerate(found.organs, start=1):
        low[organ.label], high[organ.label] = number, number << 4

    def numbered(labels: Labels, table: bytearray) -> Labels:
        """What a table has for the labels of the part that is seen."""
        seen = labels[field.box]
        content = seen.tobytes().translate(table)  # many times as fast as an index
        return np.frombuffer(content, dtype=np.uint8).reshape(seen.shape)

    both = numbered(found.reference, low) | numbered(found.prediction, high)
    packed = zlib_ng.compress(both.tobytes(), LEVEL)
    return {
        "shape": both.shape,
        "spacing": [round(length, 4) for length in field.spacing],
        "first": [part.start for part in field.box],
        "sizes": found.reference.shape,
        "worst": found.worst,
        "colours": [ORGANS[n % len(ORGANS)] for n in range(len(found.organs))],
        "voxels": base64.b64encode(packed).decode("ascii"),
    }
