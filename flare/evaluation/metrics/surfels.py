"""The area of a surfel, the element of a surface.

A surfel has a code, which tells which of the eight voxels around a corner belong to the
organ, see `flare.evaluation.metrics.plain`. Its area depends on the code and on the
voxel size alone.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

from flare.evaluation.metrics.arrays import Floats, Indices, Spacing


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
