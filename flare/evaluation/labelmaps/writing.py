"""Writes a label map as a .nii.gz file."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np

from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.metrics.arrays import Labels


def write_label_map(path: Path, labels: Labels, grid: Grid) -> None:
    """Write labels of shape (Z, Y, X) as .nii.gz; equal input gives equal bytes."""
    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    image = nib.Nifti1Image(labels.transpose(2, 1, 0), affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    nib.save(image, path)
