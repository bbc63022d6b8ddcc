"""A line at the end of other commands, where most cases have one cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from flare.challenge.rules import Challenge
from flare.common.errors import FlareError
from flare.common.text import listing
from flare.evaluation.doctor.diagnose import (
    find_explanation,
    find_repairs,
    judge_of,
    read_whole,
    sample_organs,
)
from flare.evaluation.doctor.words import cause_texts
from flare.evaluation.scoring.case import MEMORY, Explanation
from flare.evaluation.scoring.reading import read_reference
from flare.evaluation.submission.match import CasePair

CASES_LOOKED_AT = 5
"""At most this many cases are looked at: each takes a few tenths of a second."""


def explain_file(pair: CasePair, challenge: Challenge) -> Explanation | None:
    """Find what was done to a prediction as a whole, if that explains its score.

    The case was read before, and both of its label maps are of one size.
    """
    reference = read_reference(pair.reference, challenge, MEMORY)
    sample = sample_organs(reference, challenge)
    prediction, _ = read_whole(pair.prediction)
    judge = judge_of(sample, prediction, challenge)
    best = find_explanation(find_repairs(judge), judge)
    if best is None:
        return None
    causes = cause_texts(best.repair.cause, sample.grid, challenge)
    return Explanation(text="; ".join(cause.text for cause in causes), dsc=best.dsc)


def common_cause(pairs: Sequence[CasePair], challenge: Challenge) -> str:
    """Say in a line what most of some cases suffer from; empty if that is nothing."""
    looked_at = pairs[:: max(1, len(pairs) // CASES_LOOKED_AT)][:CASES_LOOKED_AT]
    dsc_by_text: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for pair in looked_at:
        try:
            explanation = explain_file(pair, challenge)
        except FlareError:
            continue  # it is only a hint
        if explanation:
            dsc_by_text[explanation.text][pair.case] = explanation.dsc
    for text, dsc in dsc_by_text.items():
        if 2 * len(dsc) > len(looked_at):
            return (
                f"{len(dsc)} of {len(looked_at)} cases that were looked at: {text}"
                f" ({listing(dsc)}). Without that, their DSC would be about"
                f" {fmean(dsc.values()):.2f}. flare doctor says more, and mends it."
            )
    return ""
