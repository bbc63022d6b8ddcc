"""A line at the end of other commands, where most cases have one cause."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from flare.challenge.rules import Challenge
from flare.common.errors import FlareError
from flare.common.text import listing
from flare.evaluation.doctor.diagnose import (
    ALL_LABELS,
    examination,
    find_explanation,
    find_repairs,
)
from flare.evaluation.doctor.words import cause_texts
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.scoring.case import Explanation
from flare.evaluation.scoring.reading import read_reference
from flare.evaluation.submission.match import CasePair

CASES_LOOKED_AT = 5
"""At most this many cases are looked at: each takes a few tenths of a second."""


def explain_file(pair: CasePair, challenge: Challenge) -> Explanation | None:
    """Read a case once more, and find what was done to its prediction as a whole."""
    reference = read_reference(pair.reference, challenge)
    prediction = pair.prediction.read_labels(ALL_LABELS)
    return explain(reference, prediction, challenge)


def explain(
    reference: LabelMap, prediction: LabelMap, challenge: Challenge
) -> Explanation | None:
    """Find what was done to a prediction as a whole, if that explains its score.

    Both are of one size; the prediction was read with all of its labels.
    """
    if reference.grid.shape != prediction.grid.shape:
        return None
    case = examination(reference, prediction, challenge)
    best = find_explanation(find_repairs(case), case)
    if best is None:
        return None
    causes = cause_texts(best.repair, reference.grid, challenge, misplacement="")
    return Explanation(text="; ".join(cause.text for cause in causes), dsc=best.dsc)


def common_cause(pairs: Sequence[CasePair], challenge: Challenge) -> str:
    """Say in a line what most of some cases suffer from; empty if that is nothing."""
    looked_at = pairs[:: max(1, len(pairs) // CASES_LOOKED_AT)][:CASES_LOOKED_AT]
    cases: dict[str, list[str]] = {}
    dsc: dict[str, list[float]] = {}
    for pair in looked_at:
        try:
            explanation = explain_file(pair, challenge)
        except FlareError:
            continue  # it is only a hint
        if explanation:
            cases.setdefault(explanation.text, []).append(pair.case)
            dsc.setdefault(explanation.text, []).append(explanation.dsc)
    for text, names in cases.items():
        if 2 * len(names) > len(looked_at):
            return (
                f"{len(names)} of {len(looked_at)} cases that were looked at: {text}"
                f" ({listing(names)}). Without that, their DSC would be about"
                f" {fmean(dsc[text]):.2f}. flare doctor says more, and mends it."
            )
    return ""
