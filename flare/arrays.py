"""The arrays that travel between modules: label maps and masks, in order z, y, x."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.uint8]
"""Labels of shape (Z, Y, X)."""

Mask = npt.NDArray[np.bool_]
"""A mask of shape (Z, Y, X)."""

Spacing = tuple[float, float, float]
"""Voxel size in mm along z, y, x."""
