"""Reads the two label maps of a case; errors blame whoever can repair them."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

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
from flare.evaluation.labelmaps.grid import Grid, compare_positions, compare_sizes
from flare.evaluation.labelmaps.reading import UNKNOWN_LABELS_LIMIT, LabelMap
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair

_log = logging.getLogger(__name__)


def check_headers(pair: CasePair, challenge: Challenge) -> tuple[int, str]:
    """Compare the grids of a pair, without reading any voxel.

    Returns the number of voxels that each label map has, and a difference of the grids
    that the challenge lets pass; empty without one. A FileError is raised if the header
    of the prediction cannot be read, or its grid is another one. A GroundTruthError is
    raised if the header of the reference cannot be read or has no spacing.
    """
    reference, name = pair.reference, pair.prediction.name
    reference_grid = _read_reference_grid(reference)
    grid = _read_prediction_grid(pair)
    difference = compare_sizes(grid, reference_grid)
    if difference:
        text = _grid_text(reference, difference, "its size is not that of the CT")
        raise GridSizeError(name, text)
    voxels = math.prod(grid.shape)
    difference = compare_positions(grid, reference_grid, challenge.grid.tolerance_mm)
    if not difference:
        return voxels, ""
    text = _grid_text(reference, difference, "it lies elsewhere than the CT")
    position_error = GridPositionError(name, text)
    if challenge.grid.compare is GridComparison.SIZE:
        return voxels, position_error.finding
    raise position_error


def _read_reference_grid(reference: LabelMapFile) -> Grid:
    """Read the grid of a reference; a bad one is the organisers' mistake."""
    try:
        grid = reference.read_grid()
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    _check_spacing(reference, grid)
    return grid


def _check_spacing(reference: LabelMapFile, grid: Grid) -> None:
    """Raise a GroundTruthError if nothing can be measured on a reference's grid."""
    if grid.spacing_problem:
        raise GroundTruthError(f"{safe(reference.name)}: {grid.spacing_problem}")


def _read_prediction_grid(pair: CasePair) -> Grid:
    """Read the grid of a prediction; of a secret image, only the log gets the sizes."""
    try:
        return pair.prediction.read_grid()
    except FileFormatError as error:
        if not pair.reference.is_hidden:
            raise
        _log.info("%s", error.finding)
        text, _, _ = error.problem.partition(" (")  # sizes stand in the brackets
        raise FileFormatError(pair.prediction.name, text, error.remedy) from error


def _grid_text(reference: LabelMapFile, text: str, vague_text: str) -> str:
    """How a grid differs; of a secret image, only the log gets the numbers."""
    if not reference.is_hidden:
        return text
    _log.info("%s: %s", safe(reference.name), text)
    return vague_text


def read_prediction(file: LabelMapFile, challenge: Challenge) -> LabelMap:
    """Read the prediction of a case, and refuse what the challenge does not allow.

    A FileError is raised if it is damaged, or holds fractions or labels that are not
    allowed.
    """
    prediction = file.read_labels(challenge.labels)
    refuse_unknown(file, prediction, challenge)
    return prediction


def refuse_unknown(
    file: LabelMapFile, prediction: LabelMap, challenge: Challenge
) -> None:
    """Raise a LabelError if a prediction has labels that are not allowed."""
    rule = challenge.unknown_labels.prediction
    if prediction.unknown and rule is UnknownLabels.REFUSE:
        raise LabelError(
            file.name,
            unknown_labels_text(prediction)
            + unknown_labels_hint(prediction, challenge),
            challenge.labels_text,
        )


def read_reference(file: LabelMapFile, challenge: Challenge) -> LabelMap:
    """Read the reference of a case; mistakes in it are the organisers' to repair.

    All that can be said against one is said here, to whoever reads it. A
    GroundTruthError is raised if it is damaged, has no voxel size, or holds fractions
    or labels that are not allowed.
    """
    try:
        reference = file.read_labels(challenge.labels)
    except FileError as error:
        raise GroundTruthError(error.finding) from error
    _check_spacing(file, reference.grid)
    if reference.unknown and challenge.unknown_labels.reference is UnknownLabels.REFUSE:
        unknown, name = unknown_labels_text(reference), safe(file.name)
        _log.info("Reference %s has %s", name, unknown)
        raise GroundTruthError(
            f"{name}: it has labels that the challenge does not know"
        )
    return reference


def has_organs(references: Iterable[LabelMapFile], challenge: Challenge) -> bool:
    """Whether any of them has an organ: if none has, empty predictions are right."""
    return any(read_reference(file, challenge).present for file in references)


LOWEST_LABEL = -100
"""A file with lower values is an image, and not a label map with wrong labels."""

FEW_LABELS = 16
"""A label map with the header of a CT has fewer unknown values, a CT has more."""


def unknown_labels_hint(labels: LabelMap, challenge: Challenge) -> str:
    """A hint, if unknown labels are those of another challenge, or of an image."""
    # The unknown labels are sorted: the first one is the lowest.
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
    number = len(labels.unknown)
    if number >= UNKNOWN_LABELS_LIMIT:
        return f"{number} or more unknown labels, such as {labels.unknown[0]}"
    word = "label" if number == 1 else "labels"
    return f"unknown {word} {listing(map(str, labels.unknown), last=' and ')}"
