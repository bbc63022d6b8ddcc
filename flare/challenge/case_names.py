"""What cases, and the files of label maps, are called."""

from __future__ import annotations

from pathlib import Path

SUFFIXES = (".nii.gz", ".nii", ".mha", ".nrrd")
"""What names of label maps end in, in any mixture of upper and lower case."""

NPZ = ".npz"
"""What names of NumPy's files end in, which some challenges read as label maps."""

SUFFIX = SUFFIXES[0]
"""The one to recommend."""

CHANNEL = "_0000"
"""What nnU-Net's convention adds to the name of an image, but not of its label map."""


def case_name(path: Path, *, may_be_npz: bool = False) -> str | None:
    """The name of the case that a file is for; None if it is no label map.

    `may_be_npz` is for challenges that read such files.

    Examples
    --------
    >>> case_name(Path("team/validation_001.nii.gz"))
    'validation_001'
    """
    for suffix in (*SUFFIXES, NPZ) if may_be_npz else SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return None


def case_of(name: str) -> str:
    """The case that is meant by the name of a label map, or by its own name.

    Examples
    --------
    >>> case_of("validation_001.nii.gz"), case_of("validation_001")
    ('validation_001', 'validation_001')
    """
    return case_name(Path(name), may_be_npz=True) or name
