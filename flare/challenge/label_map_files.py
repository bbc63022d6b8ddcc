"""What the files of label maps are called, and what NumPy's hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from flare.common.schema import check

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


class SpacingOrder(Enum):
    """Along which axes the three numbers of a spacing are."""

    XYZ = "xyz"
    """As SimpleITK tells it."""
    ZYX = "zyx"
    """As the axes of the array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpzLayout:
    """What is in the .npz files of one role."""

    labels: str
    """Name of the array of labels, of shape (Z, Y, X)."""
    spacing_order: SpacingOrder
    may_have_more: bool = False
    """Whether there may be other arrays, which are not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpzRules:
    """What is in .npz files; they are not read unless names are given."""

    prediction: str = ""
    """Name of the array of labels in a prediction, which has no other but spacing."""
    reference: str = ""
    """The same in a reference, which may hold others besides."""
    spacing: SpacingOrder = SpacingOrder.XYZ
    """The order of the three numbers of the array `spacing`."""

    def __post_init__(self) -> None:
        """Check what belongs together."""
        names = (self.prediction, self.reference)
        for key, name in zip(("prediction", "reference"), names, strict=True):
            expected = "the name of an array, for prediction and reference, or neither"
            check(bool(name) == any(names), key, name, expected)
            check("spacing" not in name, key, name, "another array than spacing")

    @property
    def predictions(self) -> NpzLayout | None:
        """What is in predictions; None if they cannot be such files."""
        if not self.prediction:
            return None
        return NpzLayout(labels=self.prediction, spacing_order=self.spacing)

    @property
    def references(self) -> NpzLayout | None:
        """What is in references; None if they cannot be such files."""
        if not self.reference:
            return None
        return NpzLayout(
            labels=self.reference, spacing_order=self.spacing, may_have_more=True
        )


NO_NPZ = NpzRules()
"""Such files are not read."""
