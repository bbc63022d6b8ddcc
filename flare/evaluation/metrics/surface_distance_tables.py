"""Loads the tables of the surface-distance package without the package itself."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import numpy.typing as npt


@cache
def surfel_normals() -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
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
