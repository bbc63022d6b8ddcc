"""Takes label maps from images in memory, which nibabel or SimpleITK has made.

SimpleITK takes half a second to load, so it is not imported here: whoever has an image
of it has loaded it.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import nibabel as nib
import numpy as np
import numpy.typing as npt
from nibabel.spatialimages import SpatialImage

from flare.common.streams import PlainStream
from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.headers import (
    LPS,
    ONE_VOLUME,
    Header,
    check_sizes,
    check_type,
    make_placed_grid,
    named,
)
from flare.evaluation.labelmaps.reading import LabelMap, read_labels
from flare.evaluation.metrics.finder import Labels

_Floats = npt.NDArray[np.float64]

_Place = tuple[_Floats, _Floats, _Floats, _Floats]
"""Axes, spacing, origin and space, as `make_placed_grid` takes them."""


def is_image(value: object) -> bool:
    """Whether something is an image of nibabel or SimpleITK."""
    return isinstance(value, SpatialImage) or _is_simpleitk(value)


def read_image_grid(image: Any, name: str) -> Grid:
    """The grid of an image, called `name` in an error.

    Raises
    ------
    FileFormatError
        If it is of a kind that no label map has.
    """
    place_of = _simpleitk_place if _is_simpleitk(image) else _nibabel_place
    sizes, place = place_of(image, name)
    with named(name):
        return make_placed_grid(check_sizes(sizes), *place)


def read_image_labels(
    image: Any,
    name: str,
    known: Sequence[int],
    allocate: Callable[[int], Labels] | None = None,
) -> LabelMap:
    """The labels of an image.

    Parameters
    ----------
    image : nibabel or SimpleITK image
        Whatever `is_image` accepts.
    name : str
        What it is called in an error.
    known, allocate
        As for `flare.evaluation.labelmaps.reading.read_label_map`.

    Raises
    ------
    FileFormatError
        If it is of a kind that no label map has.
    DamagedFileError
        If nibabel cannot read its voxels from its file.
    FractionError
        If a voxel is not a whole number.
    """
    grid = read_image_grid(image, name)
    values_of = _simpleitk_values if _is_simpleitk(image) else _nibabel_values
    values, slope, intercept = values_of(image, name)
    with named(name):
        check_type(values.dtype)
        header = Header(grid=grid, dtype=values.dtype, slope=slope, intercept=intercept)
        stream = PlainStream(io.BytesIO(values.tobytes()))
        return read_labels(stream, header, known, allocate)


# --- nibabel, whose arrays are (x, y, z) ------------------------------------------


def _nibabel_place(image: Any, _: str) -> tuple[Sequence[int], _Place]:
    """Numbers of voxels along x, y, z, and where they are."""
    header = image.header
    spacing = np.array(header.get_zooms(), dtype=np.float64)
    if isinstance(header, nib.Nifti1Header):  # as `nifti` takes it
        spacing = np.abs(header["pixdim"][1:4].astype(np.float64))
    affine = header.get_best_affine() if image.affine is None else image.affine
    steps = np.array(affine[:3], dtype=np.float64)
    return image.shape, (steps[:, :3].T, spacing, steps[:, 3], np.ones(3))


def _nibabel_values(image: Any, name: str) -> tuple[npt.NDArray[Any], float, float]:
    """Its values, of shape (Z, Y, X), with what turns them into labels."""
    data = image.dataobj
    if not isinstance(data, nib.arrayproxy.ArrayProxy):
        return np.asarray(data).T, 1.0, 0.0
    try:
        values = data.get_unscaled()  # nibabel reads voxels when they are needed
    except (OSError, EOFError, ValueError, zlib.error) as error:
        problem = "its voxels cannot be read from its file"
        raise DamagedFileError(name, problem) from error
    return np.asarray(values).T, float(data.slope), float(data.inter)


# --- SimpleITK, whose positions are in LPS ----------------------------------------


def _is_simpleitk(value: object) -> bool:
    """Whether something is an image of SimpleITK."""
    package = sys.modules.get("SimpleITK")
    return package is not None and isinstance(value, package.Image)


def _simpleitk_place(image: Any, name: str) -> tuple[Sequence[int], _Place]:
    """Numbers of voxels along x, y, z, and where they are."""
    if image.GetNumberOfComponentsPerPixel() != 1:
        raise FileFormatError(name, "its voxels have several channels", ONE_VOLUME)
    spacing = np.array(image.GetSpacing())
    turn = np.array(image.GetDirection()).reshape(spacing.size, spacing.size)
    # Each column of the direction is where an axis of the voxels points.
    axes = turn.T * spacing[:, np.newaxis]
    return image.GetSize(), (axes, spacing, np.array(image.GetOrigin()), LPS)


def _simpleitk_values(image: Any, name: str) -> tuple[npt.NDArray[Any], float, float]:
    """Its values, of shape (Z, Y, X), which are the labels themselves."""
    kind = image.GetPixelIDTypeAsString()
    if kind.startswith("label"):  # SimpleITK would end the whole program
        raise FileFormatError(
            name,
            f"its voxels are of type {kind}, expected numbers",
            "Use SimpleITK.LabelMapToLabel first.",
        )
    values = sys.modules["SimpleITK"].GetArrayViewFromImage(image)
    return values, 1.0, 0.0
