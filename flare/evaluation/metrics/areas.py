"""The area of a surfel, from the tables of the surface-distance package."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.evaluation.metrics.arrays import Spacing


@lru_cache(maxsize=256)
def surfel_areas(spacing: Spacing) -> npt.NDArray[np.float64]:
    """Area of the surfel of each of the 256 codes.

    Parameters
    ----------
    spacing : tuple of float
        Voxel size in mm along z, y, x.

    Returns
    -------
    ndarray of float, shape (256,)
        In mm2; 0 for codes 0 and 255, which are no surfels.

    Notes
    -----
    Equals ``create_table_neighbour_code_to_surface_area`` of surface-distance, whose
    loops take 2 ms for every new spacing, a twentieth of the time of a case.
    """
    codes, normals = _normals()
    size_z, size_y, size_x = spacing
    scaled = normals * (size_y * size_x, size_z * size_x, size_z * size_y)
    areas = np.zeros(256)
    np.add.at(areas, codes, np.sqrt((scaled**2).sum(axis=1)))
    return areas


@cache
def _normals() -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """All triangles that make up surfels: the code of each, and its normal for 1 mm.

    The file of the tables is loaded without its package, which would import SciPy: a
    quarter of a second.
    """
    package = find_spec("surface_distance")
    if package is None or package.origin is None:
        text = "the surface-distance package is not installed"
        raise ImportError(text)
    spec = spec_from_file_location(
        "surface_distance.lookup_tables",
        Path(package.origin).with_name("lookup_tables.py"),
    )
    if spec is None or spec.loader is None:
        text = "the surface-distance package has no lookup_tables"
        raise ImportError(text)
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    of_codes = tables._NEIGHBOUR_CODE_TO_NORMALS
    codes = np.repeat(np.arange(256), [len(normals) for normals in of_codes])
    return codes, np.array([normal for normals in of_codes for normal in normals])
