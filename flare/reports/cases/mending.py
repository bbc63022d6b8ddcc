"""Mends the prediction of a case, where something was done to all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flare.challenge.rules import Challenge
from flare.evaluation.doctor.diagnose import ALL_LABELS, diagnose_case
from flare.evaluation.doctor.report import texts_of
from flare.evaluation.doctor.words import CauseText
from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.submission.match import CasePair

LOW_DSC = 0.5
"""Without an organ below this score, nothing is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """The causes that `flare doctor` finds, and the prediction without them."""

    causes: tuple[CauseText, ...]
    scores: Mapping[str, float]
    """The exact mean of each metric, mended."""
    labels: Labels
    """The mended labels of the organs, on the grid of the reference."""

    @property
    def text(self) -> str:
        """All causes, such as ``mirrored left to right``."""
        return "; ".join(cause.text for cause in self.causes)


def find_mending(
    pair: CasePair, challenge: Challenge, scores: Mapping[str, float]
) -> Mending | None:
    """Diagnose a case as `flare doctor` does, if it scores low; None if it is sound."""
    if min(scores[f"dsc_{organ.name}"] for organ in challenge.organs) >= LOW_DSC:
        return None
    finding = diagnose_case(pair, challenge=challenge)
    if finding.repair is None or finding.after is None:
        return None
    submitted = pair.prediction.read_labels(ALL_LABELS).labels
    labels = finding.repair.apply(submitted, finding.sample.grid.shape)
    organs = [organ.label for organ in challenge.organs]
    return Mending(
        causes=texts_of(finding, challenge),
        scores=finding.after.by_metric,
        labels=labels * np.isin(labels, organs),
    )
