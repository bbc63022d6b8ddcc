"""Draws a case: the worst slice of each plane, and its surfaces from three sides.

What is nearest to the eye is seen, be it the reference's surface or the prediction's.
If the farthest part on each line of sight was shown instead, a few surfels deep inside
would make a good case look like a bad one. All slices are packed for the viewer.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy import ndimage
from zlib_ng import zlib_ng

from flare.common.text import count
from flare.evaluation.metrics.finder import Labels, Mask
from flare.reports.cases.drawing import (
    PLANES,
    Picture,
    Pixels,
    Plane,
    data_uri,
    film,
    organ_class,
    outline,
    patterns,
    png,
    unit_of,
)
from flare.reports.cases.findings import CaseFinding
from flare.reports.render.svg import decimal, element

BANDS_MM = (5.0, 10.0)
"""What is beyond the tolerance has a colour up to the first distance, another up to the
second, and a third beyond it."""

BANDS = (
    ("far0", "within the tolerance of the organ"),
    ("far1", f"beyond it, up to {BANDS_MM[0]:g} mm"),
    ("far2", f"{BANDS_MM[0]:g} mm to {BANDS_MM[1]:g} mm"),
    ("far3", f"farther than {BANDS_MM[1]:g} mm, or nothing to be near to"),
)
"""The classes of these colours, and what they mean."""

THUMBNAIL = 96
"""Pixels that a thumbnail is wide and high at most."""

NAME = 2.4
"""Size of an organ's name, in units of its picture."""

LETTER = 0.7
"""Width of a letter of a name, by its size: that of a wide font."""

Floats = npt.NDArray[np.float64]
"""Rows and columns, in mm."""

Image = npt.NDArray[np.uint8]
"""Numbers of colours, shape (rows, columns); 0 where nothing is."""


MOST_ORGANS = 15
"""The numbers of so many fit into half a byte, beside the background."""

MOST_VOXELS = 2**26
"""What a browser gets to unpack; four CTs of usual size."""

COMPRESSION = 6
"""The level: the last one takes three times as long for a tenth less."""


def surface_views(found: CaseFinding) -> list[Image]:
    """The surfels of all organs, of both label maps, from the sides of all planes."""
    corners: list[npt.NDArray[np.int32]] = []
    bands = []
    starts = np.array([part.start for part in found.field.box], dtype=np.int32)
    for own in filter(None, (organ.surfaces for organ in found.organs)):
        for surface, distances in (
            (own.reference, own.to_prediction),
            (own.prediction, own.to_reference),
        ):
            band = np.zeros(surface.areas.size, dtype=np.uint8)
            band[surface.is_beyond] = 1 + np.digitize(distances, BANDS_MM, right=True)
            corners.append(surface.corners - starts)
            bands.append(band)
    shape = [found.field.pixels(axis) + 1 for axis in range(3)]
    every = np.concatenate(corners), np.concatenate(bands)
    return [view(*every, shape, plane) for plane in PLANES]


def view(
    corners: npt.NDArray[np.integer], bands: Image, shape: Sequence[int], plane: Plane
) -> Image:
    """What is nearest to the eye, as 1 more than its band.

    Parameters
    ----------
    corners : ndarray of int, shape (n, 3)
        Where the surfels are, turned.
    bands : ndarray of uint8, shape (n,)
        0 within the tolerance, then 1 to 3.
    shape : sequence of int
        Corners along each axis.
    plane : Plane
        From where they are seen.
    """
    depth = corners[:, plane.across] * (1 if plane.is_far_end else -1)
    order = np.argsort(depth, kind="stable")  # the nearest last
    down, right = corners[order][:, [plane.down, plane.right]].T
    image = np.zeros((shape[plane.down], shape[plane.right]), dtype=np.uint8)
    image[down, right] = 1 + bands[order]
    return image[::-1] if plane.is_upside_down else image


def surface_pictures(found: CaseFinding, images: list[Image]) -> list[Picture]:
    """Both surfaces of all organs from three sides."""
    pictures = []
    for plane, image in zip(PLANES, images, strict=True):
        seen, beyond = (int(np.count_nonzero(image > band)) for band in (0, 1))
        share = beyond / (seen or 1)
        surface = _image(data_uri(png(image), "png"), image, x=-0.5, y=-0.5)
        pictures.append(
            Picture(
                title=f"From {plane.side}",
                summary=f"{share:.0%} of what is seen is beyond the tolerance",
                drawing=film(plane, found.field, surface),
            )
        )
    return pictures


def thumbnail(found: CaseFinding, images: list[Image]) -> Markup:
    """A small picture of what is seen from the front."""
    front, image = PLANES[1], images[1]
    lengths = [found.field.length(axis) for axis in (front.down, front.right)]
    step = max(lengths) / THUMBNAIL
    rows, columns = (
        np.linspace(0, size - 1, max(1, round(length / step))).astype(np.intp)
        for size, length in zip(image.shape, lengths, strict=True)
    )
    small = image[np.ix_(rows, columns)]
    return element(
        "img",
        src=data_uri(png(small), "png"),
        width=small.shape[1],
        height=small.shape[0],
        alt="",
    )


def plane_pictures(
    found: CaseFinding, backgrounds: Sequence[str] = ()
) -> list[Picture]:
    """The worst slice of each plane, over the CTs of these slices as data URIs."""
    pictures, field = [], found.field
    for number, plane in enumerate(PLANES):
        place = found.worst[plane.across]
        maps = [
            plane.cut(labels, place, field)
            for labels in (found.reference, found.prediction)
        ]
        reference, prediction = maps
        words, parts = [], [patterns(plane, field)]
        if backgrounds:
            parts.append(_image(backgrounds[number], reference, class_="ct"))
        differs = reference != prediction
        for name, mask in (
            ("missed", differs & (reference > 0)),
            ("added", differs & (prediction > 0)),
        ):
            fill = {"fill": f"url(#{name}-{plane.name})", "class_": f"wrong {name}"}
            parts += _outline(mask, **fill)
        for organ in found.organs:
            parts += _outline(prediction == organ.label, class_="pred")
        for count_, organ in enumerate(found.organs):
            own, other = reference == organ.label, prediction == organ.label
            parts += _outline(own, class_=f"ref {organ_class(count_)}")
            missed, added = (
                int(np.count_nonzero(m)) for m in (own & ~other, other & ~own)
            )
            if missed or added:
                words.append(
                    f"{organ.title} {count(missed, 'voxel')} missed, {added} added"
                )
        inside, names = Markup("").join(parts), _names(found, plane, maps)
        size = found.reference.shape[plane.across]
        pictures.append(
            Picture(
                title=f"{plane.name.capitalize()}, slice {place + 1} of {size}",
                summary="; ".join(words) or "no voxel is wrong",
                drawing=film(plane, field, inside, names),
            )
        )
    return pictures


def _outline(mask: Mask, **attributes: object) -> list[Markup]:
    """The path around a mask, if it holds anything."""
    path = outline(mask)
    return [element("path", d=path, **attributes)] if path else []


def _image(href: str, pixels: Pixels, **attributes: object) -> Markup:
    """A picture that is stretched over its voxels."""
    rows, columns = pixels.shape
    attributes |= {"width": columns, "height": rows, "preserveAspectRatio": "none"}
    return element("image", href=href, **attributes)


def _names(found: CaseFinding, plane: Plane, maps: list[Pixels]) -> Markup:
    """The name of each organ in it or beside it, the largest first, in mm."""
    unit, spacing = unit_of(plane, found.field), found.field.spacing
    places = Places(maps, [spacing[plane.down], spacing[plane.right]], 5 * unit)
    parts, size = [], NAME * unit
    shown = [maps[not np.any(maps[0] == o.label)] == o.label for o in found.organs]
    for number in sorted(range(len(shown)), key=lambda n: -np.count_nonzero(shown[n])):
        if not shown[number].any():
            continue
        name, css = found.organs[number].title, f"name {organ_class(number)}"
        half = np.array([size, LETTER * size * len(name)]) / 2
        (y, x), line = places.find(shown[number], half)
        if line:
            path = "M{} {}L{} {}".format(*map(decimal, line))
            parts.append(element("path", d=path, class_=css))
        at = {"x": x, "y": y + size / 3, "font_size": size, "text_anchor": "middle"}
        parts.append(element("text", name, **at, class_=css))
    return Markup("").join(parts)


class Places:
    """Finds free places for names in a picture.

    A name covers no other name, and as little as can be of outlines and other organs.
    """

    def __init__(
        self, maps: list[Pixels], spacing: Sequence[float], edge: float
    ) -> None:
        self._organs = np.where(maps[0] > 0, maps[0], maps[1])
        self._spacing = np.array(spacing)
        self._size = self._spacing * self._organs.shape
        self._edges = sum(ndimage.morphological_gradient(m, 3) > 0 for m in maps)
        self._taken = np.zeros(self._organs.shape, dtype=np.bool_)
        self._margin = np.array([edge, 0.0])  # where letters and the bar are

    def find(
        self, mask: Mask, half: Floats
    ) -> tuple[tuple[float, float], list[float] | None]:
        """The middle of a name of half this height and width, and a line to its organ.

        All is in mm, and the line, if the name is not within, from left to right and
        from top to bottom.
        """
        inside = ndimage.distance_transform_edt(mask, self._spacing)
        heart = np.array(np.unravel_index(inside.argmax(), mask.shape)) + 0.5
        own = np.argwhere(mask)
        low, high = np.array([own.min(axis=0), own.max(axis=0) + 1]) * self._spacing
        middle, places = heart * self._spacing, [heart * self._spacing]
        for far in (0, 2, 4, 8, 14):  # halves of the height of a name
            off = half + far * half[0]
            ways = np.stack([low - off, middle, high + off], 1)
            places += map(np.array, itertools.product(*ways))
        edge = self._margin + half
        places = [np.clip(place, edge, self._size - edge) for place in places]
        best = min(places, key=lambda place: self._cost(place, half, mask, middle))
        self._taken[self._box(best, half)] = True
        end = np.clip(middle, best - half, best + half)
        line = [*end[::-1], *middle[::-1]] if np.any(end != middle) else None
        return (float(best[0]), float(best[1])), line

    def _box(self, place: Floats, half: Floats) -> tuple[slice, slice]:
        """The pixels that a name covers."""
        low = np.floor((place - half) / self._spacing).astype(int).clip(0)
        high = np.ceil((place + half) / self._spacing).astype(int)
        return slice(low[0], high[0]), slice(low[1], high[1])

    def _cost(self, place: Floats, half: Floats, mask: Mask, heart: Floats) -> float:
        """How bad a place is for the name of the organ with this heart."""
        box = self._box(place, half)
        other = (self._organs[box] > 0) & ~mask[box]
        bad = 20.0 * self._taken[box] + 0.5 * self._edges[box] + 2.0 * other
        hidden = np.count_nonzero(mask[box]) / np.count_nonzero(mask)
        away = np.linalg.norm(np.clip(heart, place - half, place + half) - heart)
        return float(bad.mean() + hidden + 4 * away / self._size.max())


def volume(found: CaseFinding) -> dict[str, object] | None:
    """What the viewer reads; None if a case has more than it can show.

    Label maps are packed as they are: differences of rows, or of slices, take more.
    """
    field = found.field
    voxels = math.prod(field.pixels(axis) for axis in range(3))
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
    packed = zlib_ng.compress(both.tobytes(), COMPRESSION)
    return {
        "shape": both.shape,
        "spacing": [round(length, 4) for length in field.spacing],
        "first": [part.start for part in field.box],
        "sizes": found.reference.shape,
        "worst": found.worst,
        "names": [organ.title for organ in found.organs],
        "colours": [organ_class(n) for n in range(len(found.organs))],
        "voxels": base64.b64encode(packed).decode("ascii"),
    }
