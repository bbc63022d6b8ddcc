"""Reads the two label maps of a case; errors blame whoever can repair them."""

from __future__ import annotations

import logging
import math
from functools import partial

from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import Challenge, GridComparison, UnknownLabels
from flare.common.errors import FileError
from flare.common.text import listing, safe
from flare.evaluation.errors import (
    FileFormatError,
    GridPositionError,
    GridSizeError,
    GroundTruthError,
    LabelError,
)
from flare.evaluation.labelmaps.grid import compare_positions, compare_sizes
from flare.evaluation.labelmaps.reading import UNKNOWN_LABELS_LIMIT, LabelMap
from flare.evaluation.metrics.arrays import ReusedMemory
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair

_log = logging.getLogger(__name__)


def check_headers(pair: CasePair, challenge: Challenge) -> tuple[int, str]:
    """Compare the grids of a pair, without reading any voxel.

    Returns
    -------
    tuple of int and str
        The number of voxels in each of both, and a difference that the challenge lets
        pass, if there is one.

    Raises
    ------
    FileError
        If the header of the prediction cannot be read, or its grid is another one.
    GroundTruthError
        If the header of the reference cannot be read or has no spacing.
    """
    file, name = pair.reference, pair.prediction.name
    try:
        expected = file.read_grid()
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    if size_problem := expected.spacing_problem:
        raise GroundTruthError(f"{safe(file.name)}: {size_problem}")
    try:
        grid = pair.prediction.read_grid()
    except FileFormatError as error:
        if not file.is_hidden:
            raise
        _log.info("%s", error.finding)
        text, _, _ = error.problem.partition(" (")  # of sizes, in brackets
        raise FileFormatError(name, text, error.remedy) from error
    wrong = compare_sizes(grid, expected)
    if wrong:
        hidden = "its size is not that of the CT"
        raise GridSizeError(name, _grid_text(file, wrong, hidden))
    voxels = math.prod(grid.shape)
    wrong = compare_positions(grid, expected, challenge.grid.tolerance_mm)
    if not wrong:
        return voxels, ""
    text = _grid_text(file, wrong, "it lies elsewhere than the CT")
    problem = GridPositionError(name, text)
    if challenge.grid.compare is GridComparison.SIZE:
        return voxels, problem.finding
    raise problem


def _grid_text(reference: LabelMapFile, text: str, hidden: str) -> str:
    """How a grid differs; of a secret image, only the log gets the numbers."""
    if not reference.is_hidden:
        return text
    _log.info("%s: %s", safe(reference.name), text)
    return hidden


def read_prediction(
    file: LabelMapFile, challenge: Challenge, memory: ReusedMemory | None = None
) -> LabelMap:
    """Read the prediction of a case, and refuse what the challenge does not allow.

    Raises
    ------
    FileError
        If it is damaged, or holds fractions or labels that are not allowed.
    """
    prediction = _read(file, "prediction", challenge, memory)
    if (
        prediction.unknown
        and challenge.unknown_labels.prediction is UnknownLabels.REFUSE
    ):
        raise LabelError(
            file.name,
            unknown_labels_text(prediction) + other_edition_text(prediction, challenge),
            challenge.labels_text,
        )
    return prediction


def read_reference(
    file: LabelMapFile, challenge: Challenge, memory: ReusedMemory | None = None
) -> LabelMap:
    """Read the reference of a case; mistakes in it are the organisers' to repair.

    Raises
    ------
    GroundTruthError
        If it is damaged, or holds fractions or labels that are not allowed.
    """
    try:
        reference = _read(file, "reference", challenge, memory)
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    if reference.unknown and challenge.unknown_labels.reference is UnknownLabels.REFUSE:
        unknown, name = unknown_labels_text(reference), safe(file.name)
        _log.info("Reference %s has %s", name, unknown)
        raise GroundTruthError(
            f"{name}: it has labels that the challenge does not know"
        )
    return reference


def _read(
    file: LabelMapFile, role: str, challenge: Challenge, memory: ReusedMemory | None
) -> LabelMap:
    """Read the organs of a label map into memory that its role has reserved."""
    labels = [organ.label for organ in challenge.organs]
    allocate = partial((memory or ReusedMemory()).take, role)
    return file.read_labels(labels, allocate)


LOWEST_LABEL = -100
"""Lower values are not labels that were mixed up, but those of an image."""

FEW_LABELS = 16
"""A label map under the header of a CT has fewer values, and a CT has more."""


def other_edition_text(labels: LabelMap, challenge: Challenge) -> str:
    """A hint, if unknown labels are those of another challenge, or of an image."""
    if labels.unknown and labels.unknown[0] < LOWEST_LABEL:
        if labels.intercept and len(labels.unknown) < FEW_LABELS:
            return (
                f": scl_inter {labels.intercept:.6g} of its header is added to each"
                " voxel, as in the header of a CT; set it to 0"
            )
        return ": it looks like a CT instead of a label map"
    if len(labels.unknown) > 1:
        for name in challenge_names():
            edition = read_challenge(name)
            edition_labels = {organ.label for organ in edition.organs}
            is_other = edition.key != challenge.key
            if is_other and edition_labels.issuperset(labels.unknown):
                return f", as in {edition.name}"
    return ""


def unknown_labels_text(labels: LabelMap) -> str:
    """Name the unknown labels of a label map."""
    if len(labels.unknown) >= UNKNOWN_LABELS_LIMIT:
        return (
            f"{len(labels.unknown)} or more unknown labels, such as {labels.unknown[0]}"
        )
    word = "label" if len(labels.unknown) == 1 else "labels"
    return f"unknown {word} {listing(map(str, labels.unknown), last=' and ')}"
