"""A surfel, the element of a surface: its area, and a list of all with their places.

A surfel has a code, which tells which of the eight voxels around a corner belong to the
organ, see `flare.evaluation.metrics.plain`. Its area depends on the code and on the
voxel size alone.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Floats, Indices, Mask, Spacing
from flare.evaluation.metrics.tally import LabelPair


@lru_cache(maxsize=256)
def surfel_areas(spacing: Spacing) -> Floats:
    """Area of the surfel of each of the 256 codes in mm2: shape (256,).

    Codes 0 and 255 are no surfels, and have 0. The voxel size is in mm along z, y, x.
    Equals ``create_table_neighbour_code_to_surface_area`` of surface-distance, whose
    loops take 2 ms for every new spacing, a twentieth of the time of a case.

    Examples
    --------
    The face of a slice between four voxels behind a corner and none before it:

    >>> round(float(surfel_areas((2.5, 0.8, 0.8))[0x0F]), 4)  # 0.8 mm x 0.8 mm
    0.64
    """
    codes, normals = surfel_normals()
    size_z, size_y, size_x = spacing
    scaled = normals * (size_y * size_x, size_z * size_x, size_z * size_y)
    areas = np.zeros(256)
    np.add.at(areas, codes, np.sqrt((scaled**2).sum(axis=1)))
    return areas


@cache
def surfel_normals() -> tuple[Indices, Floats]:
    """All triangles that make up surfels: the code of each, and its normal for 1 mm.

    Of shape (n,) and (n, 3), in mm2 along z, y, x. The file of the tables is loaded
    without its package, which would import SciPy: a quarter of a second.
    """
    package = find_spec("surface_distance")
    if package is None or package.origin is None:
        raise ImportError("the surface-distance package is not installed")
    file = Path(package.origin).with_name("lookup_tables.py")
    spec = spec_from_file_location("surface_distance.lookup_tables", file)
    assert spec is not None
    assert spec.loader is not None  # as the file's name ends in .py
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    normals = tables._NEIGHBOUR_CODE_TO_NORMALS
    return np.arange(256).repeat([*map(len, normals)]), np.concatenate(normals)


class Surface(NamedTuple):
    """The surfels of one mask."""

    corners: npt.NDArray[np.int32]
    """Shape (n, 3): as those of `flare.evaluation.metrics.tally.Surfels`."""
    areas: Floats
    """Shape (n,), in mm2."""
    is_beyond: Mask
    """Shape (n,): farther than the tolerance from the other surface?"""

    @property
    def area(self) -> float:
        """The area of all surfels, in mm2."""
        return math.fsum(self.areas)

    @property
    def area_beyond(self) -> float:
        """The area of the surfels that are beyond the tolerance, in mm2."""
        return math.fsum(self.areas[self.is_beyond])


def locate_surfels(pair: LabelPair, tolerance: float) -> tuple[Surface, Surface]:
    """List the surfels that an NSD is made of: of the reference, and of the prediction.

    The tolerance is in mm. One minus the share of the area that is beyond it is the NSD
    of `flare.evaluation.metrics.comparison`.
    """
    areas = surfel_areas(pair.spacing)
    reference, prediction = (
        Surface(surfels.corners, areas[surfels.codes], surfels.is_beyond)
        for surfels in pair.surfels(tolerance)
    )
    return reference, prediction
