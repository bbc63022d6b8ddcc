"""The formats of label maps, and how their files are called.

Which files are found, what reads them, and the lists of suffixes in messages are made
from a record for each format; of NumPy's files, a challenge says what they hold. What
the files of a case are called, a challenge may say as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Literal

from flare.common.schema import check
from flare.common.text import listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of label maps."""

    name: str
    """The name in messages."""
    suffixes: tuple[str, ...]
    """The endings of its files, in any mixture of upper and lower case; one that ends
    in another comes first."""
    reader: str
    """Module below `flare.evaluation.labelmaps` that reads it, which is imported when
    the first such file may be there. It has `is_start`, which says whether a file may
    begin with some bytes, and `open_voxels`, which reads the header of a file, and
    returns it with the stream of its voxels."""
    elsewhere: str = ""
    """If it is read only where the challenge says what is in it, which `open_voxels` is
    told, too: what is wrong with such a file for other challenges."""


FORMATS = (
    Format(name="NIfTI", suffixes=(".nii.gz", ".nii"), reader="nifti"),
    Format(name="MetaImage", suffixes=(".mha",), reader="text_headers"),
    Format(name="NRRD", suffixes=(".seg.nrrd", ".nrrd"), reader="text_headers"),
    Format(
        name="NumPy",
        suffixes=(".npz",),
        reader="npz",
        elsewhere="it is a NumPy file, which has no grid; only the tasks from RECIST to"
        " 3-D of FLARE 2025 and 2026 use them",
    ),
)
"""In the order in which a file is tried. The first suffix is the one to recommend."""

_USUAL_FORMATS = tuple(format for format in FORMATS if not format.elsewhere)
"""The formats that are read for every challenge."""

SUFFIXES = sum((format.suffixes for format in _USUAL_FORMATS), ())
"""The suffixes of formats that are read for every challenge."""

ALL_SUFFIXES = sum((format.suffixes for format in FORMATS), ())
"""Those and the suffixes of formats that are read for some challenges."""

SUFFIX = SUFFIXES[0]
"""The one to recommend."""

ANY_SUFFIX = listing(SUFFIXES, last=" or ")
ANY_FORMAT = listing((format.name for format in _USUAL_FORMATS), last=" or ")
"""The formats that are read for every challenge, as a message lists them."""

CASE = "{case}"
"""Stands for the name of a case where a challenge says what files are called."""

CHANNEL = "_0000"
"""The ending that nnU-Net's convention adds to the name of an image alone."""

CHANNEL_NUMBER = "{channel}"
"""Stands for the four digits that tell the images of a case apart."""

_LATER_CHANNEL = re.compile(r"_(?!0000)[0-9]{4}$")
"""The ending of a case's further images."""


def suffix_of(name: str, suffixes: Iterable[str] = SUFFIXES) -> str:
    """The longest suffix of a name, in lower case; empty if it has none of these.

    Examples
    --------
    >>> suffix_of("LIVER.NII.GZ"), suffix_of("liver.png")
    ('.nii.gz', '')
    """
    lower_name = name.lower()
    endings = [suffix for suffix in suffixes if lower_name.endswith(suffix)]
    return max(endings, key=len, default="")


def case_name(path: Path, *, may_be_npz: bool = False) -> str | None:
    """The name of the case that a file is for; None if it is not a label map.

    `may_be_npz` is for challenges that read NumPy's files.

    Examples
    --------
    >>> case_name(Path("team/validation_001.nii.gz"))
    'validation_001'
    """
    suffix = suffix_of(path.name, ALL_SUFFIXES if may_be_npz else SUFFIXES)
    return path.name[: -len(suffix)] if suffix else None


@lru_cache(maxsize=8192)  # a ranking asks for each case of each team, many times
def case_of(name: str, pattern: str = CASE) -> str:
    """The case that is meant by the name of a label map, or by its own name.

    Examples
    --------
    >>> case_of("validation_001.nii.gz"), case_of("validation_001")
    ('validation_001', 'validation_001')
    >>> case_of("case_004_gt.nii.gz", "{case}_gt")
    'case_004'
    """
    file_name = Path(name).name if "/" in name else name
    suffix = suffix_of(file_name, ALL_SUFFIXES)
    stem = (suffix and file_name[: -len(suffix)]) or name
    return stem if pattern == CASE else _fitting(pattern, stem) or stem


def _fitting(pattern: str, stem: str) -> str:
    """The case of a file whose name, without extension, fits a pattern; else empty."""
    match = _match(pattern, stem)
    return match["case"] if match else ""


def _match(pattern: str, stem: str) -> re.Match[str] | None:
    """The case and the channel of a file whose name fits a pattern."""
    text = re.escape(unicodedata.normalize("NFC", pattern))
    text = text.replace(re.escape(CASE), r"(?P<case>[^.].*)")
    text = text.replace(re.escape(CHANNEL_NUMBER), "(?P<channel>[0-9]{4})")
    return re.fullmatch(text, stem, re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNames:
    """What the files of a case are called, without extensions."""

    reference: str = CASE
    """What its reference is called."""
    prediction: str = CASE
    """What its prediction is called; the name of the case alone is accepted, too, and
    that of the reference or the image."""
    image: str = CASE
    """What its image is called; the name of the case alone is accepted, too, and both
    with `_0000` behind. `{channel}` in it stands for the four digits that tell several
    images of a case apart."""

    def __post_init__(self) -> None:
        """Check the patterns."""
        for key in ("reference", "prediction", "image"):
            pattern = getattr(self, key)
            frame = pattern.replace(CASE, "", 1)
            if key == "image":
                frame = frame.replace(CHANNEL_NUMBER, "", 1)
            for holds, expected in (
                (CASE in pattern and not {*"{}"} & {*frame}, f"{CASE} in it once"),
                (not {*"/\\"} & {*frame} and frame.isprintable(), "a name, no folder"),
                (not pattern.startswith("."), "a name of no hidden file"),
                (not suffix_of(pattern, (*ALL_SUFFIXES, ".gz")), "no extension"),
            ):
                check(holds, key, pattern, f"{expected}, such as {CASE}_gt")

    def case_of_reference(self, stem: str) -> str:
        """The case of a reference, by its name without extension; empty if none."""
        return _fitting(self.reference, unicodedata.normalize("NFC", stem))

    def with_channels(self, stems: Collection[str]) -> FileNames:
        """These names, with channels if they have them, or an image is not the first.

        Examples
        --------
        >>> FileNames().with_channels(["a_0000", "a_0001", "b_0000", "b_0001"]).image
        '{case}_{channel}'
        >>> FileNames().with_channels(["a_0000", "b_0001"]).image
        '{case}'
        """
        if CHANNEL_NUMBER in self.image:
            return self
        for stem in stems:
            first = _LATER_CHANNEL.sub(CHANNEL, stem)
            if first != stem and first in stems:
                return replace(self, image=f"{self.image}_{CHANNEL_NUMBER}")
        return self

    def channel_of(self, stem: str) -> str:
        """The four digits in the name of an image; empty if it has none."""
        match = _match(self.image, unicodedata.normalize("NFC", stem))
        return match.groupdict().get("channel") or "" if match else ""

    def case_of(
        self,
        role: Literal["prediction", "image"],
        stem: str,
        cases: Container[str] = (),
    ) -> str:
        """The case of another file, by its name without extension.

        Of `cases`, as far as they are known: the one of just that name, or by the
        patterns, or without the ending `_0000` of an image. A file of none of them has
        a name all the same.

        Examples
        --------
        >>> names = FileNames(image="{case}_ct")
        >>> [names.case_of("image", stem) for stem in ("a_ct", "a_0000", "a")]
        ['a', 'a', 'a']
        """
        # A Mac takes letters apart.
        stem = plain = unicodedata.normalize("NFC", stem)
        has_channels = CHANNEL_NUMBER in self.image
        if role == "image" and not has_channels:
            plain = stem.removesuffix(CHANNEL) or stem
        patterns = self._patterns(role)
        by_stem = [_fitting(pattern, stem) for pattern in patterns]
        by_plain_stem = [_fitting(pattern, plain) for pattern in patterns]
        for case in (stem, *by_stem, *by_plain_stem, plain):
            if case in cases:
                return case
        if role == "prediction" and has_channels:
            # Cases whose own names end in four digits would all be taken for one.
            by_stem, by_plain_stem = by_stem[:-1], by_plain_stem[:-1]
        return next(filter(None, (*by_plain_stem, *by_stem)), plain)

    def _patterns(self, role: Literal["prediction", "image"]) -> list[str]:
        """The patterns by which files of a role are called, that of images last."""
        patterns = [self.image]
        if role == "prediction":
            patterns = [self.prediction, self.reference, self.image]
        return [pattern for pattern in patterns if pattern != CASE]

    def prediction_of(self, case: str, suffix: str = SUFFIX) -> str:
        """The name that the prediction of a case is to have."""
        return self.prediction.replace(CASE, case) + suffix


PLAIN_NAMES = FileNames()
"""All files are called like their case."""


class SpacingOrder(Enum):
    """Along which axes the three numbers of a spacing are."""

    XYZ = "xyz"
    """As SimpleITK tells it."""
    ZYX = "zyx"
    """As the axes of the array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpzLayout:
    """The arrays in the .npz files of one role."""

    labels: str
    """Name of the array of labels, of shape (Z, Y, X)."""
    spacing_order: SpacingOrder
    may_have_more: bool = False
    """Whether there may be other arrays, which are not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpzRules:
    """The arrays in .npz files, which are not read unless they have names here."""

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

    def layout(self, role: Literal["prediction", "reference"]) -> NpzLayout | None:
        """The content of the files of a role; None if they cannot be such files."""
        labels = getattr(self, role)
        if not labels:
            return None
        return NpzLayout(
            labels=labels,
            spacing_order=self.spacing,
            may_have_more=role == "reference",
        )


NO_NPZ = NpzRules()
"""The rules of challenges whose label maps are never NumPy files."""
