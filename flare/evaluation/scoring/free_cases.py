"""Counts the cases without an organ, such as a lesion, that were left empty."""

from __future__ import annotations

from collections.abc import Iterable

from flare.challenge.rules import Challenge, UnknownLabels
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.scoring.reading import LabelMapSource, read_reference
from flare.results.scores import CaseScore, FreeCases


def free_organs(reference: LabelMap, challenge: Challenge) -> tuple[str, ...]:
    """Organs that a reference does not have, of those whose absence is reported."""
    present = reference.present
    return tuple(
        organ.name
        for organ in challenge.organs
        if organ.free_cases and organ.label not in present
    )


def left_empty(
    free_of: tuple[str, ...], prediction: LabelMap, challenge: Challenge
) -> tuple[str, ...]:
    """Those of some organs that a prediction does not have either.

    One that scores 0 because of another label has left nothing empty.
    """
    rules = challenge.unknown_labels
    if prediction.unknown and rules.prediction is UnknownLabels.ZERO:
        return ()
    present, labels = prediction.present, challenge.labels_by_name
    return tuple(name for name in free_of if labels[name] not in present)


def free_of_case(reference: LabelMapSource, challenge: Challenge) -> tuple[str, ...]:
    """The same of a case that was not scored, whose reference is read for that alone.

    Else whoever fails on such a case would be told of fewer of them.

    Raises
    ------
    GroundTruthError
        If the reference is at fault.
    """
    if not any(organ.free_cases for organ in challenge.organs):
        return ()
    return free_organs(read_reference(reference, challenge), challenge)


def count_free_cases(
    cases: Iterable[CaseScore], challenge: Challenge
) -> tuple[FreeCases, ...]:
    """Of each organ whose absence is reported, over all cases."""
    scores = tuple(cases)
    return tuple(
        FreeCases(
            organ=organ.name,
            cases=sum(organ.name in score.free_of for score in scores),
            left_empty=sum(organ.name in score.left_empty for score in scores),
        )
        for organ in challenge.organs
        if organ.free_cases
    )
