"""Reads the voxels of CTs with SimpleITK, as most segmentation programs do.

SimpleITK says nothing of a file that is damaged, so each is verified first. It takes
half a second to load, and is loaded when the first CT is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt

from flare.evaluation.errors import FileFormatError
from flare.evaluation.labelmaps.reading import verify_voxels

PIECE_VOXELS = 2**18
"""How many voxels are handed on at once: they stay in the CPU's cache until used."""

VOXEL_BYTES = 8
"""The most that a voxel of a CT takes in memory."""

_ANY_ORIENTATION = "ITK_NIFTI_SFORM_PERMISSIVE"
"""While this is 1, ITK reads CTs of tilted gantries, whose headers are sheared."""


def read_ct(path: Path, name: str) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The values of a CT, scaled, piece by piece, in the order of the file.

    With each piece comes the number of the voxels before it. None may be kept.

    Raises
    ------
    FileFormatError, InputError
        As `read_grid`; the first also if SimpleITK cannot read what can be verified.
    DamagedFileError
        If the file is damaged, or ends early.
    """
    import SimpleITK as sitk

    verify_voxels(path, name)
    sitk.ProcessObject.SetGlobalWarningDisplay(False)  # type: ignore[no-untyped-call]
    try:
        with _any_orientation():
            image = sitk.ReadImage(path)
    except RuntimeError as error:
        raise FileFormatError(name, "SimpleITK cannot read it") from error
    values = sitk.GetArrayViewFromImage(image).reshape(-1)  # valid while `image` lives
    for start in range(0, values.size, PIECE_VOXELS):
        yield start, values[start : start + PIECE_VOXELS]


@contextmanager
def _any_orientation() -> Iterator[None]:
    """Let ITK read sheared headers: where voxels lie is not asked of it."""
    before = os.environ.get(_ANY_ORIENTATION)
    os.environ[_ANY_ORIENTATION] = "1"
    try:
        yield
    finally:
        del os.environ[_ANY_ORIENTATION]
        if before is not None:
            os.environ[_ANY_ORIENTATION] = before
