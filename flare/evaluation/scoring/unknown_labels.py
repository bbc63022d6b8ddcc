"""Describes the labels of a file that are not organs of the challenge."""

from __future__ import annotations

from collections.abc import Sequence

from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.text import listing
from flare.evaluation.labelmaps.reading import UNKNOWN_LABELS_LIMIT, LabelMap

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
            other = read_challenge(name)
            known = {organ.label for organ in other.organs}
            if other.key != challenge.key and known.issuperset(labels.unknown):
                return f", as in {other.name}"
    return ""


def ignored_labels_text(files: Sequence[tuple[int, ...]], challenge: Challenge) -> str:
    """What happens to labels that are not organs; empty if there are none.

    `files` are the unknown labels of each prediction.
    """
    having = [labels for labels in files if labels]
    if not having:
        return ""
    found = sorted(set().union(*having))
    effect = "count as background"
    if challenge.unknown_labels.prediction is UnknownLabels.ZERO:
        effect = "make their case score 0"
    where = f"in {len(having)} of {len(files)} files"
    if len(found) >= UNKNOWN_LABELS_LIMIT:
        count = f"{len(found)} or more labels, such as {found[0]},"
        return f"{count} are no organs and {effect}, {where}"
    if len(found) == 1:
        effect = effect.replace("count ", "counts ").replace("make their", "makes its")
        return f"label {found[0]} is no organ and {effect}, {where}"
    names = listing(map(str, found), last=" and ")
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        names = f"{found[0]} to {found[-1]}"
    return f"labels {names} are no organs and {effect}, {where}"


def unknown_labels_text(labels: LabelMap) -> str:
    """Name the unknown labels of a label map."""
    if len(labels.unknown) >= UNKNOWN_LABELS_LIMIT:
        return (
            f"{len(labels.unknown)} or more unknown labels, such as {labels.unknown[0]}"
        )
    word = "label" if len(labels.unknown) == 1 else "labels"
    return f"unknown {word} {listing(map(str, labels.unknown), last=' and ')}"
