"""Label maps that are in memory: images of nibabel or SimpleITK, and plain arrays."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.evaluation.errors import DamagedFileError, FileFormatError
from flare.evaluation.labelmaps.grid import (
    LPS,
    ONE_VOLUME,
    Header,
    check_sizes,
    check_type,
    make_placed_grid,
    make_unplaced_grid,
)
from flare.evaluation.labelmaps.nifti import unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayImage:
    """An array of labels, without a place."""

    values: npt.NDArray[Any]
    """Expected to be of shape (Z, Y, X)."""
    spacing: tuple[float, float, float]
    """Voxel size in mm along z, y, x."""


def _is_simpleitk(value: object) -> bool:
    """Whether something is an image of SimpleITK, which takes half a second to load."""
    return hasattr(value, "GetPixelIDTypeAsString")


def is_image(value: object) -> bool:
    """Whether something is an image of nibabel or SimpleITK."""
    return _is_simpleitk(value) or hasattr(value, "dataobj")


def image_header(image: Any) -> Header:
    """The header that an image of nibabel or SimpleITK would have in a file.

    That of an `ArrayImage` tells no place. A FileFormatError is raised if no label map
    is of its kind.
    """
    if isinstance(image, ArrayImage):
        return _array_header(image)
    if _is_simpleitk(image):
        return _simpleitk_header(image)
    return _nibabel_header(image)


def _nibabel_header(image: Any) -> Header:
    """The header of an image of nibabel, whose positions are in RAS."""
    header = image.header
    spacing, unit = np.array(header.get_zooms(), dtype=np.float64), ""
    if "pixdim" in getattr(header, "keys", tuple)():  # as `nifti` takes it
        spacing = np.abs(header["pixdim"][1:4].astype(np.float64))
        unit = unit_of(header["xyzt_units"])
    affine = header.get_best_affine() if image.affine is None else image.affine
    steps = np.array(affine[:3], dtype=np.float64)
    shape = check_sizes(image.shape)
    axes, origin, to_ras = steps[:, :3].T, steps[:, 3], np.ones(3)
    grid = make_placed_grid(shape, axes, spacing, origin, to_ras, unit)
    data = image.dataobj
    check_type(data.dtype)
    slope, intercept = getattr(data, "slope", 1), getattr(data, "inter", 0)
    return Header(
        grid=grid, dtype=data.dtype, slope=float(slope), intercept=float(intercept)
    )


def _array_header(image: ArrayImage) -> Header:
    shape = image.values.shape
    if len(shape) != 3:
        problem = f"its shape is {shape}, expected three axes (z, y, x)"
        raise FileFormatError("", problem, ONE_VOLUME)
    grid = make_unplaced_grid(check_sizes(shape[::-1]), image.spacing[::-1])
    dtype = image_values(image).dtype
    check_type(dtype)
    return Header(grid=grid, dtype=dtype)


def _simpleitk_header(image: Any) -> Header:
    """The header of an image of SimpleITK, whose positions are in LPS."""
    kind = image.GetPixelIDTypeAsString()
    if image.GetNumberOfComponentsPerPixel() != 1:
        raise FileFormatError("", "its voxels have several channels", ONE_VOLUME)
    # To look at the voxels of such an image would end the whole program.
    if kind.startswith("label"):
        raise FileFormatError(
            "",
            f"its voxels are of type {kind}, expected numbers",
            "Use SimpleITK.LabelMapToLabel first.",
        )
    spacing, origin = np.array(image.GetSpacing()), np.array(image.GetOrigin())
    turn = np.array(image.GetDirection()).reshape(spacing.size, spacing.size)
    # Each column of the direction is where an axis of the voxels points.
    axes = turn.T * spacing[:, np.newaxis]
    grid = make_placed_grid(check_sizes(image.GetSize()), axes, spacing, origin, LPS)
    dtype = image_values(image).dtype
    check_type(dtype)
    return Header(grid=grid, dtype=dtype)


def image_values(image: Any) -> npt.NDArray[Any]:
    """The stored values of an image, of shape (Z, Y, X).

    A DamagedFileError is raised if nibabel, which reads them when they are needed,
    cannot do so.
    """
    if isinstance(image, ArrayImage):
        values = image.values
        return values.view(np.uint8) if values.dtype == np.bool_ else values
    if _is_simpleitk(image):
        import SimpleITK as sitk  # which is loaded already

        return np.asarray(sitk.GetArrayViewFromImage(image))
    data = image.dataobj
    try:
        return np.asarray(getattr(data, "get_unscaled", lambda: data)()).T
    except (OSError, EOFError, ValueError, zlib.error) as error:
        problem = "its voxels cannot be read from its file"
        raise DamagedFileError("", problem) from error
