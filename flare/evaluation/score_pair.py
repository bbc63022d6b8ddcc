"""Scores one pair of label maps: files, or images in memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from flare.challenge.formats import NpzLayout, case_name
from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.streams import PlainStream
from flare.evaluation.labelmaps.grid import (
    Grid,
    image_header,
    image_values,
    is_image,
    named,
)
from flare.evaluation.labelmaps.reading import LabelMap, read_labels
from flare.evaluation.metrics.finder import Labels
from flare.evaluation.options import Options
from flare.evaluation.plan import with_options
from flare.evaluation.scoring.case import score_case
from flare.evaluation.scoring.reading import check_headers
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInMemory(LabelMapFile):
    """An image of nibabel or SimpleITK, which has no file."""

    image: Any

    def read_grid(self) -> Grid:
        """Its grid."""
        with named(self.name):
            return image_header(self.image).grid

    def read_labels(
        self, known: Sequence[int], allocate: Callable[[int], Labels] | None = None
    ) -> LabelMap:
        """Its labels."""
        with named(self.name):
            values = PlainStream(BytesIO(image_values(self.image).tobytes()))
            return read_labels(values, image_header(self.image), known, allocate)


def score_pair(
    reference: Any,
    prediction: Any,
    challenge: str | Challenge = "flare21",
    *,
    grid: Literal["strict", "size"] | None = None,
    unknown_labels: Literal["refuse", "ignore"] | None = None,
) -> CaseScore:
    """Score one prediction against its reference, by all the rules of a challenge.

    Parameters
    ----------
    reference, prediction : image of SimpleITK or nibabel, or str or Path
        Label maps: images in memory, or files, in any mixture. Nothing is changed.
        A file is verified down to its checksum; an image is taken as it is.
    challenge : str or Challenge
        Name of a bundled challenge, path of a TOML file, or a challenge read before.
    grid : {"strict", "size"}, optional
        How strictly grids are compared, if not as the challenge says. With "size", the
        log warns of other differences.
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
        If something is neither an image nor a path.
    ValueError
        If another argument has no value listed above; says what is allowed.
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
    """
    options = Options(grid=grid, unknown_labels=unknown_labels)
    if not isinstance(challenge, Challenge):
        challenge = read_challenge(challenge)
    first = _source(reference, "reference", challenge.npz.layout("reference"))
    second = _source(prediction, "prediction", challenge.npz.layout("prediction"))
    rules = with_options(challenge, options)
    case = (second if second.file_name else first).case
    pair = CasePair(case=case, reference=first, prediction=second)
    _, warning = check_headers(pair, rules)
    if warning:
        _log.warning("%s", warning)
    return score_case(pair, rules)


def _source(value: object, kind: str, npz: NpzLayout | None) -> LabelMapFile:
    """What was given, as something to read."""
    if is_image(value):
        return ImageInMemory(case="", path=Path(), name=kind, image=value)
    if isinstance(value, (str, os.PathLike)):
        path = Path(value)
        case = case_name(path, may_be_npz=npz is not None) or ""
        return LabelMapFile(case=case, path=path, name=path.name, npz=npz)
    raise TypeError(
        f"{kind} must be an image of SimpleITK or nibabel, or the path of a file,"
        f" not {type(value).__name__}"
    )
