"""Names the metrics that this program makes."""

from __future__ import annotations

from flare.challenge.rules import Challenge
from flare.results.efficiency_csv import VALUES


def known_metrics(challenge: Challenge) -> tuple[str, ...]:
    """All metrics of a challenge that lie in RESULTS/TEAM, ranked or not."""
    organs = [organ.name for organ in challenge.organs]
    scores = (f"{score}_{organ}" for score in challenge.metrics for organ in organs)
    return (*challenge.metrics, *VALUES, *scores)
