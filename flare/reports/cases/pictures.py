"""Draws a case: the worst slice of each plane, and its surfaces from three sides.

What is nearest to the eye is seen, be it the reference's surface or the prediction's.
If the farthest part on each line of sight was shown instead, a few surfels deep inside
would make a good case look like a bad one. All slices are packed for the viewer.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy import ndimage
from zlib_ng import zlib_ng

from flare.common.text import count
from flare.evaluation.metrics.arrays import Labels, Mask
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
from flare.reports.cases.findings import CaseFinding, Mending, OrganFinding
from flare.reports.cases.surfaces import Side
from flare.reports.cases.words import scores_text
from flare.reports.render.svg import decimal, element

BANDS_MM = (5.0, 10.0)
"""Surfels beyond the tolerance have a colour up to the first distance, another up to
the second, and a third beyond it."""

BANDS = (
    ("far0", "within the tolerance of the organ"),
    ("far1", f"beyond it, up to {BANDS_MM[0]:g} mm"),
    ("far2", f"{BANDS_MM[0]:g} mm to {BANDS_MM[1]:g} mm"),
    ("far3", f"farther than {BANDS_MM[1]:g} mm, or nothing to be near to"),
)
"""The classes of these colours, and what they mean where organs have tolerances."""

NAME = 2.4
"""Size of an organ's name, in units of its picture."""

LETTER = 0.7
"""Width of a letter of a name, by its size: that of a wide font."""

Floats = npt.NDArray[np.float64]
"""Rows and columns, in mm."""

Image = npt.NDArray[np.uint8]
"""Numbers of colours, shape (rows, columns); 0 where nothing is."""


MOST_PARTS = 15
"""The numbers of this many fit into half a byte, beside the background."""

MOST_VOXELS = 2**26
"""At most this many voxels are for a browser to unpack: four CTs of usual size."""

COMPRESSION = 6
"""The level: the last one takes three times as long for a tenth less."""


def band_key(finding: CaseFinding) -> Iterable[tuple[str, str]]:
    """The classes of colours, and what they mean: some challenges have no tolerance."""
    texts = dict(BANDS)
    if not finding.has_tolerance:
        texts |= {"far0": "in both label maps", "far1": f"up to {BANDS_MM[0]:g} mm"}
    elif not all(map(attrgetter("tolerance_mm"), finding.organs)):
        texts["far0"] += ", which is 0 where none is set"
    return texts.items()


def surface_views(finding: CaseFinding) -> list[Image]:
    """The surfels of all organs, of both label maps, from the sides of all planes."""
    corners: list[npt.NDArray[np.int32]] = []
    bands: list[Image] = []
    for organ in finding.organs:
        if surfaces := organ.surfaces:
            for side in (surfaces.reference, surfaces.prediction):
                corners.append(side.surfels.corners)
                bands.append(_bands(side))
    starts = np.array([part.start for part in finding.field.box], dtype=np.int32)
    all_corners, all_bands = np.concatenate(corners) - starts, np.concatenate(bands)
    shape = [finding.field.pixels(axis) + 1 for axis in range(3)]
    return [view(all_corners, all_bands, shape, plane) for plane in PLANES]


def _bands(side: Side) -> Image:
    """The band of each surfel: 0 within the tolerance, then 1 to 3; shape (n,)."""
    bands = np.zeros(side.surfels.codes.size, dtype=np.uint8)
    is_beyond = side.surfels.is_beyond
    bands[is_beyond] = 1 + np.digitize(side.distances, BANDS_MM, right=True)
    return bands


def view(
    corners: npt.NDArray[np.integer], bands: Image, shape: Sequence[int], plane: Plane
) -> Image:
    """An image of the surfels nearest to the eye, as 1 more than their bands.

    Corners are the places of surfels, turned, and have shape (n, 3); bands have shape
    (n,); `shape` is the number of corners along each axis.
    """
    depth = corners[:, plane.across] * (1 if plane.is_far_end else -1)
    order = np.argsort(depth, kind="stable")  # the nearest last
    down, right = corners[order][:, [plane.down, plane.right]].T
    image = np.zeros((shape[plane.down], shape[plane.right]), dtype=np.uint8)
    image[down, right] = 1 + bands[order]
    return image[::-1] if plane.is_upside_down else image


def surface_pictures(finding: CaseFinding, images: list[Image]) -> list[Picture]:
    """Both surfaces of all organs from three sides."""
    words = "beyond the tolerance" if finding.has_tolerance else "in one map alone"
    pictures = []
    for plane, image in zip(PLANES, images, strict=True):
        seen = int(np.count_nonzero(image))
        beyond = int(np.count_nonzero(image > 1))
        share = beyond / (seen or 1)
        surface = _image(data_uri(png(image), "png"), image, x=-0.5, y=-0.5)
        picture = Picture(
            title=f"From {plane.side}",
            summary=f"{share:.0%} of what is seen is {words}",
            drawing=film(plane, finding.field, surface),
        )
        pictures.append(picture)
    return pictures


def plane_pictures(
    finding: CaseFinding, backgrounds: Sequence[str] = ()
) -> list[Picture]:
    """The worst slice of each plane, over the CTs of these slices as data URIs."""
    pictures = []
    for plane, background in zip(PLANES, backgrounds or [""] * 3, strict=True):
        pictures.append(_plane_picture(finding, plane, background))
    return pictures


def layers(backgrounds: Sequence[str]) -> list[str]:
    """The layers of a picture that can be hidden, CTs behind it among them."""
    return ["reference", "prediction", "errors", "names", *(["CT"] * bool(backgrounds))]


def mending_pictures(
    finding: CaseFinding, mending: Mending, background: str = ""
) -> list[Picture]:
    """The worst axial slice as submitted and mended."""
    mended = replace(finding, prediction=mending.labels, scores=mending.scores)
    pictures = []
    for name, case in (("submitted", finding), ("mended", mended)):
        picture = axial_picture(case, name, background)
        title = f"{picture.title}; mean of the case: {scores_text(case.scores)}"
        pictures.append(replace(picture, title=title))
    return pictures


def axial_picture(finding: CaseFinding, name: str, background: str = "") -> Picture:
    """The worst axial slice; each such picture on a page needs a name of its own.

    The background is a data URI, or ``#ct-NAME``: that of another picture.
    """
    return _plane_picture(finding, replace(PLANES[0], name=name), background)


def _plane_picture(finding: CaseFinding, plane: Plane, background: str) -> Picture:
    """The worst slice of a plane, over its CT if there is one."""
    field, place = finding.field, finding.worst[plane.across]
    reference = plane.cut(finding.reference, place, field)
    prediction = plane.cut(finding.prediction, place, field)
    parts = [patterns(plane, field)]
    if background.startswith("#"):
        parts.append(element("use", href=background, class_="ct"))
    elif background:
        ct = _image(background, reference, class_="ct", id=f"ct-{plane.name}")
        parts.append(ct)
    masks = [organ.masks(reference, prediction) for organ in finding.organs]
    for side, name in enumerate(("missed", "added")):
        wrong = [organ_masks[side] & ~organ_masks[2] for organ_masks in masks]
        fill = f"url(#{name}-{plane.name})"
        is_wrong = np.logical_or.reduce(wrong)
        parts += _outline(is_wrong, fill=fill, class_=f"wrong {name}")
    for _, in_prediction, _ in masks:
        parts += _outline(in_prediction, class_="pred")
    for number, (in_reference, _, _) in enumerate(masks):
        parts += _outline(in_reference, class_=f"ref {organ_class(number)}")
    names = _names(finding, plane, [reference, prediction])
    size = finding.reference.shape[plane.across]
    return Picture(
        title=f"{plane.name.capitalize()}, slice {place + 1} of {size}",
        summary=_summary(finding, reference, prediction),
        drawing=film(plane, field, Markup("").join(parts), names),
    )


def _summary(finding: CaseFinding, reference: Pixels, prediction: Pixels) -> str:
    """How many voxels of each organ are wrong in a slice, in words."""
    phrases = []
    for organ in finding.organs:
        in_reference, in_prediction, is_shared = organ.masks(reference, prediction)
        missed = int(np.count_nonzero(in_reference & ~is_shared))
        added = int(np.count_nonzero(in_prediction & ~is_shared))
        if missed or added:
            voxels = count(missed, "voxel")
            phrases.append(f"{organ.title} {voxels} missed, {added} added")
    return "; ".join(phrases) or "no voxel is wrong"


def _outline(mask: Mask, **attributes: object) -> list[Markup]:
    """The path around a mask, if it holds anything."""
    path = outline(mask)
    return [element("path", d=path, **attributes)] if path else []


def _image(href: str, pixels: Pixels, **attributes: object) -> Markup:
    """A picture that is stretched over its voxels."""
    rows, columns = pixels.shape
    attributes |= {"width": columns, "height": rows, "preserveAspectRatio": "none"}
    return element("image", href=href, **attributes)


def _names(finding: CaseFinding, plane: Plane, maps: list[Pixels]) -> Markup:
    """The name of each organ in it or beside it, the largest first, in mm."""
    unit, spacing = unit_of(plane, finding.field), finding.field.spacing
    places = Places(maps, [spacing[plane.down], spacing[plane.right]], 5 * unit)
    parts, size = [], NAME * unit
    masks = [_named_mask(organ, maps) for organ in finding.organs]
    sizes = [np.count_nonzero(mask) for mask in masks]
    for number in sorted(range(len(masks)), key=lambda n: -sizes[n]):
        if not sizes[number]:
            continue
        name, css = finding.organs[number].title, f"name {organ_class(number)}"
        half = np.array([size, LETTER * size * len(name)]) / 2
        (y, x), line = places.find(masks[number], half)
        if line:
            path = "M{} {}L{} {}".format(*map(decimal, line))
            parts.append(element("path", d=path, class_=css))
        at = {"x": x, "y": y + size / 3, "font_size": size, "text_anchor": "middle"}
        parts.append(element("text", name, **at, class_=css))
    return Markup("").join(parts)


def _named_mask(organ: OrganFinding, maps: list[Pixels]) -> Mask:
    """The voxels of an organ in the reference, or else in the prediction."""
    in_reference, in_prediction, _ = organ.masks(*maps)
    return in_reference if in_reference.any() else in_prediction


class Places:
    """Finds free places for names in a picture.

    A name covers no other name, and as little as possible of outlines and other organs.
    """

    def __init__(
        self, maps: list[Pixels], spacing: Sequence[float], edge: float
    ) -> None:
        self._organs = np.where(maps[0] > 0, maps[0], maps[1])
        self._spacing = np.array(spacing)
        self._size = self._spacing * self._organs.shape
        self._edges = sum(ndimage.morphological_gradient(m, 3) > 0 for m in maps)
        self._names = np.zeros(self._organs.shape, dtype=np.bool_)
        self._margin = np.array([edge, 0.0])  # where letters and the bar are

    def find(
        self, mask: Mask, half: Floats
    ) -> tuple[tuple[float, float], list[float] | None]:
        """The middle of a name of half this height and width, and a line to its organ.

        All is in mm, and the line, if the name is not within, from left to right and
        from top to bottom.
        """
        inside = ndimage.distance_transform_edt(mask, self._spacing)
        deepest = np.array(np.unravel_index(inside.argmax(), mask.shape))
        heart = (deepest + 0.5) * self._spacing
        places = self._candidates(mask, heart, half)
        best = min(places, key=lambda place: self._cost(place, half, mask, heart))
        self._names[self._box(best, half)] = True
        end = np.clip(heart, best - half, best + half)
        line = [*end[::-1], *heart[::-1]] if np.any(end != heart) else None
        return (float(best[0]), float(best[1])), line

    def _candidates(self, mask: Mask, heart: Floats, half: Floats) -> list[Floats]:
        """Places for a name: the heart of its organ, then others farther off."""
        voxels = np.argwhere(mask)
        low = voxels.min(axis=0) * self._spacing
        high = (voxels.max(axis=0) + 1) * self._spacing
        places = [heart]
        for far in (0, 2, 4, 8, 14):  # halves of the height of a name
            off = half + far * half[0]
            ways = np.stack([low - off, heart, high + off], 1)
            places += map(np.array, itertools.product(*ways))
        edge = self._margin + half
        return [np.clip(place, edge, self._size - edge) for place in places]

    def _box(self, place: Floats, half: Floats) -> tuple[slice, slice]:
        """The pixels that a name covers."""
        low = np.floor((place - half) / self._spacing).astype(int).clip(0)
        high = np.ceil((place + half) / self._spacing).astype(int)
        return slice(low[0], high[0]), slice(low[1], high[1])

    def _cost(self, place: Floats, half: Floats, mask: Mask, heart: Floats) -> float:
        """How bad a place is for the name of the organ with this heart."""
        box = self._box(place, half)
        is_other_organ = (self._organs[box] > 0) & ~mask[box]
        covered = (
            20.0 * self._names[box] + 0.5 * self._edges[box] + 2.0 * is_other_organ
        )
        hidden = np.count_nonzero(mask[box]) / np.count_nonzero(mask)
        away = np.linalg.norm(np.clip(heart, place - half, place + half) - heart)
        return float(covered.mean() + hidden + 4 * away / self._size.max())


def volume(finding: CaseFinding) -> dict[str, object] | None:
    """The volume that the viewer reads; None if a case has more than it can show.

    Its numbers are of parts that belong to the same organs, as regions share voxels.
    Label maps are packed as they are: differences of rows, or of slices, take more.
    """
    field = finding.field
    voxels = math.prod(field.pixels(axis) for axis in range(3))
    labels_by_part = _labels_by_part(finding)
    if len(labels_by_part) > MOST_PARTS + 1 or voxels > MOST_VOXELS:
        return None
    low, high = bytearray(256), bytearray(256)
    for part, labels in enumerate(labels_by_part.values()):
        for label in labels:
            low[label], high[label] = part, part << 4
    reference = _translated(finding.reference[field.box], low)
    both = reference | _translated(finding.prediction[field.box], high)
    packed = zlib_ng.compress(both.tobytes(), COMPRESSION)
    return {
        "shape": both.shape,
        "spacing": [round(length, 4) for length in field.spacing],
        "first": [part.start for part in field.box],
        "sizes": finding.reference.shape,
        "worst": finding.worst,
        "names": [organ.title for organ in finding.organs],
        "colours": [organ_class(number) for number in range(len(finding.organs))],
        "parts": [*labels_by_part],
        "voxels": base64.b64encode(packed).decode("ascii"),
    }


def _labels_by_part(finding: CaseFinding) -> dict[tuple[int, ...], list[int]]:
    """The labels that belong to the same organs, by their numbers; first no organ's."""
    labels_by_part: dict[tuple[int, ...], list[int]] = {(): []}
    for label in range(1, 256):
        numbers = (n for n, o in enumerate(finding.organs) if label in o.labels)
        labels_by_part.setdefault(tuple(numbers), []).append(label)
    return labels_by_part


def _translated(labels: Labels, table: bytearray) -> Labels:
    """The byte of each label in a table; many times as fast as an index."""
    content = labels.tobytes().translate(table)
    return np.frombuffer(content, dtype=np.uint8).reshape(labels.shape)
