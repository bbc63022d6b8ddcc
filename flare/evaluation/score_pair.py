"""Scores one pair of label maps: files, or images and arrays in memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from flare.challenge.formats import NpzLayout, case_name
from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.errors import FileError
from flare.common.schema import build
from flare.common.streams import PlainStream
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.labelmaps.grid import Grid, named
from flare.evaluation.labelmaps.images import (
    ArrayImage,
    image_header,
    image_values,
    is_image,
)
from flare.evaluation.labelmaps.reading import LabelMap, read_labels
from flare.evaluation.masks import three_lengths
from flare.evaluation.metrics.arrays import Spacing
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.plan import with_options
from flare.evaluation.scoring.case import score_case
from flare.evaluation.scoring.reading import check_headers
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore

MEND = "Repair the reference, or write it anew."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInMemory(LabelMapFile):
    """An image of nibabel or SimpleITK, or an array, which has no file."""

    image: Any

    def read_grid(self) -> Grid:
        """Its grid."""
        with named(self.name):
            return image_header(self.image).grid

    def read_labels(self, known_labels: Sequence[int]) -> LabelMap:
        """Its labels."""
        with named(self.name):
            values = PlainStream(BytesIO(image_values(self.image).tobytes()))
            return read_labels(values, image_header(self.image), known_labels)


def score_pair(
    reference: Any,
    prediction: Any,
    challenge: str | Challenge = "flare21",
    *,
    spacing: Sequence[float] | None = None,
    labels: Mapping[str, int | Sequence[int]] | None = None,
    tolerance: float | None = None,
    grid: Literal["strict", "size"] | None = None,
    unknown_labels: Literal["refuse", "ignore"] | None = None,
) -> CaseScore:
    """Score one prediction against its reference, by all the rules of a challenge.

    Parameters
    ----------
    reference, prediction : array, image of SimpleITK or nibabel, or str or Path
        Label maps in any mixture. Nothing is changed. Arrays are of shape (Z, Y, X),
        and of NumPy or of what has ``__array__``, as a tensor on the CPU; whole numbers
        of any type are labels. A file is verified down to its checksum; what is in
        memory is taken as it is.
    challenge : str or Challenge
        Name of a bundled challenge, path of a TOML file, or a challenge read before.
    spacing : sequence of float, optional
        Voxel size in mm along z, y, x. Arrays need it; nothing else may have it.
    labels : mapping of str to int, or to several, optional
        In place of a challenge: the label of each organ by its name, in lower-case
        letters, digits and underscores; several for a region, which may share them.
        All other labels are background, and an organ counts 1 where neither has it, 0
        where one has it.
    tolerance : float, optional
        The tolerance of NSD in mm for all organs, 1 mm if left out. It goes with
        `labels` alone: the organs of a challenge have their own.
    grid : {"strict", "size"}, optional
        How strictly grids are compared, if not as the challenge says. With "size", the
        log warns of other differences. Of an array, size and spacing are compared.
    unknown_labels : {"refuse", "ignore"}, optional
        What unknown labels in the prediction mean, if not what the challenge says.

    Returns
    -------
    CaseScore
        DSC and NSD of each organ, and their means: what `flare.evaluate` says of the
        same two label maps. A prediction without any organ is scored like one of
        many, and ``is_empty`` tells of it; `flare.evaluate` refuses a submission in
        which all are empty.

    Raises
    ------
    TypeError
        If something is neither an array, an image nor a path, or `spacing` or `labels`
        is of another type.
    ValueError
        If another argument has no value listed above, or does not go with the others;
        says what is allowed.
    SubmissionError
        If the prediction cannot be scored: its grid, its labels, or its file.
    OrganiserError
        If that is so for the reference, or the challenge is at fault.
    HostError
        If a file cannot be read.

    Notes
    -----
    NSD takes the spacing as it is read. An NRRD file of an oblique image holds no
    spacing, only vectors, whose lengths may differ from it in the last digit:
    0.8000000000000003 mm for 0.8 mm. SimpleITK reads the same. Where two surfaces are
    exactly the tolerance apart, that digit decides: NSD of a small lesion can then
    differ by 0.1 from that of the image in memory. NIfTI files hold the spacing.

    Examples
    --------
    >>> import nibabel, numpy
    >>> labels = numpy.zeros((8, 8, 8), dtype=numpy.uint8)
    >>> labels[2:6, 2:6, 2:6] = 1  # the liver
    >>> image = nibabel.Nifti1Image(labels, numpy.diag((0.8, 0.8, 2.5, 1)))
    >>> score = score_pair(image, image, "flare21")
    >>> score.organs[0].organ, score.organs[0].dsc, score.nsd
    ('liver', 1.0, 1.0)

    The same label maps as arrays, by their labels alone; a voxel more is the spleen's:

    >>> prediction = labels.copy()
    >>> prediction[0, 0, 0] = 3
    >>> score = score_pair(
    ...     labels,
    ...     prediction,
    ...     spacing=(2.5, 0.8, 0.8),
    ...     labels={"liver": 1, "spleen": 3},
    ...     tolerance=1.0,
    ... )
    >>> {organ.organ: organ.dsc for organ in score.organs}, score.dsc
    ({'liver': 1.0, 'spleen': 0.0}, 0.5)
    """
    options = EvaluationOptions(grid=grid, unknown_labels=unknown_labels)
    if labels is not None:
        challenge = _challenge_of(labels, tolerance, challenge)
    elif tolerance is not None:
        raise ValueError("tolerance goes with labels: a challenge has its own")
    challenge = as_challenge(challenge)
    has_arrays = _is_array(reference) or _is_array(prediction)
    if spacing is not None and not has_arrays:
        raise ValueError("spacing goes with arrays: files and images have their own")
    voxel_size = three_lengths(spacing) if has_arrays else None
    reference_npz = challenge.npz.layout("reference")
    reference_file = _source(reference, "reference", reference_npz, voxel_size)
    prediction_npz = challenge.npz.layout("prediction")
    prediction_file = _source(prediction, "prediction", prediction_npz, voxel_size)
    rules = with_options(challenge, options)
    named_file = prediction_file if prediction_file.file_name else reference_file
    pair = CasePair(
        case=named_file.case, reference=reference_file, prediction=prediction_file
    )
    try:
        _, warning = check_headers(pair, rules)
        if warning:
            _log.warning("%s", warning)
        return score_case(pair, rules)
    except GroundTruthError as error:
        # Whoever calls this has the reference: no organiser has to repair it.
        cause = error.__cause__
        error.remedy = cause.remedy if isinstance(cause, FileError) else MEND
        raise


def _challenge_of(
    labels: Mapping[str, int | Sequence[int]],
    tolerance: float | None,
    challenge: str | Challenge,
) -> Challenge:
    if challenge != "flare21":
        raise ValueError("give a challenge or labels, not both")
    if not isinstance(labels, Mapping):
        text = "labels must be a mapping such as {'liver': 1}"
        raise TypeError(f"{text}, not {type(labels).__name__}")
    tolerance_mm = 1.0 if tolerance is None else tolerance
    organs = [
        {"name": name, "label": label, "tolerance_mm": tolerance_mm}
        for name, label in labels.items()
    ]
    ignore = UnknownLabels.IGNORE.value
    unknown_labels = {"reference": ignore, "prediction": ignore}
    rules = {"name": "labels", "organs": organs, "unknown_labels": unknown_labels}
    try:
        return build(Challenge, rules, key="labels", checksum="")
    except ValueError as error:
        raise ValueError(f"labels and tolerance: {error}") from error


def _is_array(value: object) -> bool:
    """Whether something is an array of NumPy, or becomes one."""
    return hasattr(value, "__array__") and not is_image(value)


def _source(
    value: object, kind: str, npz: NpzLayout | None, spacing: Spacing | None
) -> LabelMapFile:
    if _is_array(value) and spacing:
        value = ArrayImage(values=np.asarray(value), spacing=spacing)
    if isinstance(value, ArrayImage) or is_image(value):
        return ImageInMemory(case="", path=Path(), name=kind, image=value)
    if isinstance(value, (str, os.PathLike)):
        path = Path(value)
        case = case_name(path, may_be_npz=npz is not None) or ""
        return LabelMapFile(case=case, path=path, name=path.name, npz=npz)
    raise TypeError(
        f"{kind} must be an array, an image of SimpleITK or nibabel, or the path of a"
        f" file, not {type(value).__name__}"
    )
