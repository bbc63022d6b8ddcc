"""Cuts the slices of a CT that lie behind outlines.

They are JPEGs, which SimpleITK writes, as it reads the CTs: at the same likeness they
are a tenth larger than WebP, for which a library more would be needed, and a fifth of
a PNG, because the noise of a CT cannot be packed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.challenge.rules import Challenge
from flare.common.errors import InputError
from flare.common.text import safe
from flare.evaluation.ct_images import read_ct
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.placement import compare_positions, compare_sizes
from flare.evaluation.submission.folder import LabelMapFile
from flare.reports.cases.findings import CaseFinding
from flare.reports.cases.frames import PLANES, Frame, Plane
from flare.reports.cases.png import data_uri

WINDOW_HU = (-160.0, 240.0)
"""Black and white: the window of soft tissue."""

QUALITY = 70
"""Of the JPEGs, of 100: outlines are in front of them."""

_Pixels = npt.NDArray[np.uint8]
_Indices = npt.NDArray[np.int64]


def ct_backgrounds(
    file: LabelMapFile,
    grid: Grid,
    challenge: Challenge,
    found: CaseFinding,
    frame: Frame,
) -> tuple[str, ...]:
    """The CT of the worst slice of each plane, as data URIs.

    Raises
    ------
    InputError
        If the CT is on another grid than the reference.
    FileError
        If it cannot be read.
    """
    own = file.read_grid()
    wrong = compare_sizes(own, grid) or compare_positions(
        own, grid, challenge.grid.tolerance_mm
    )
    if wrong:
        raise InputError(
            f"{safe(file.name)}: this CT is not on the grid of its reference",
            "Give the CTs that the references were drawn on.",
        )
    places = [_places(found, plane, frame) for plane in PLANES]
    slices = _read(file, places)
    return tuple(data_uri(jpeg(pixels), "jpeg") for pixels in slices)


def _places(found: CaseFinding, plane: Plane, frame: Frame) -> _Indices:
    """Where the voxels of a slice are in the file, shape (rows, columns)."""
    steps = [0, 0, 0]
    ends = [0, 0, 0]
    for way, axis in enumerate(found.turn.axes):
        step = int(np.prod(found.file_shape[axis + 1 :], dtype=np.int64))
        size = found.file_shape[axis]
        is_flipped = found.turn.flips[way]
        steps[way] = -step if is_flipped else step
        ends[way] = (size - 1) * step if is_flipped else 0

    def along(way: int) -> _Indices:
        part = frame.box[way]
        return ends[way] + np.arange(part.start, part.stop) * steps[way]

    across = ends[plane.across] + found.worst[plane.across] * steps[plane.across]
    rows = along(plane.down)[:, np.newaxis]
    places: _Indices = across + rows + along(plane.right)
    return places[::-1] if plane.is_upside_down else places


def _read(file: LabelMapFile, places: list[_Indices]) -> list[_Pixels]:
    """Some voxels of a CT, in grey."""
    flat = [place.reshape(-1) for place in places]
    orders = [np.argsort(place) for place in flat]
    wanted = [place[order] for place, order in zip(flat, orders, strict=True)]
    greys = [np.zeros(place.size, dtype=np.uint8) for place in flat]
    for start, values in read_ct(file.path, file.name):
        for grey, order, place in zip(greys, orders, wanted, strict=True):
            first, last = np.searchsorted(place, (start, start + values.size))
            own = values[place[first:last] - start]
            grey[order[first:last]] = _grey(own)
    return [
        grey.reshape(place.shape) for grey, place in zip(greys, places, strict=True)
    ]


def _grey(values: npt.NDArray[np.number]) -> _Pixels:
    """HU as shades from black to white; what is no number is black."""
    low, high = WINDOW_HU
    shades = (np.nan_to_num(values.astype(np.float64)) - low) / (high - low)
    return np.rint(np.clip(shades, 0, 1) * 255).astype(np.uint8)


def jpeg(pixels: _Pixels) -> bytes:
    """A JPEG of shades of grey."""
    import SimpleITK as sitk

    with tempfile.TemporaryDirectory(prefix="flare-report-") as folder:
        file = Path(folder) / "slice.jpg"
        image = sitk.GetImageFromArray(np.ascontiguousarray(pixels))
        sitk.WriteImage(image, file, True, QUALITY)
        return file.read_bytes()
