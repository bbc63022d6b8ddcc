"""Says what a team may know of a ranking: its own place, values and ranks.

A score in full precision gives away how many voxels the reference has. So every value
is rounded here as its metric says, and one in voxels is not here at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from flare.challenge.metrics import is_score, metric_of
from flare.common.text import printable
from flare.ranking.rank import Analysis, Standing
from flare.ranking.robustness.uncertainty import RankInterval
from flare.reports.ranking.page import PublicRanking
from flare.reports.ranking.words import (
    left_out_text,
    metric_title,
)
from flare.results.efficiency_csv import VALUES, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMetric:
    """A metric by which teams are ranked."""

    metric: str
    mean_rank: float

    @property
    def title(self) -> str:
        """In print."""
        return metric_title(self.metric)

    @property
    def is_told(self) -> bool:
        """Whether its values may be told, not only their ranks.

        Efficiency has nothing of references; what is no metric of ours may have.
        """
        known = metric_of(self.metric)
        return known.for_participants if known else self.metric in VALUES

    def text(self, thousandths: int) -> str:
        """A value for people."""
        text = f"{thousandths / 1000:.3f}"
        return text if is_score(self.metric) else text.rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResult:
    """The team's result on a case by a metric."""

    thousandths: int | None
    """The value, which cannot hold any more digits; None if it may not be told."""
    rank: float
    reason: str | None = None
    """Why the result is missing, if it is."""

    def __post_init__(self) -> None:
        """See that the value is a whole number."""
        if self.thousandths is not None and type(self.thousandths) is not int:
            raise ValueError(f"{self.thousandths!r} is not in whole thousandths")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStanding:
    """What a team may know; it has no field for anything of another team."""

    team: str
    challenge: str
    teams: int
    """How many compete."""
    rank: int | None
    """None out of competition."""
    score: float
    metrics: tuple[OwnMetric, ...]
    cases: tuple[str, ...]
    results: tuple[tuple[OwnResult, ...], ...]
    """By case, and metric."""
    gate_dsc: float
    left_out: str
    """By which metrics nobody is ranked, and why; empty without any."""
    draws: tuple[RankInterval, ...] = ()
    """Of the team; empty without bootstrap, and for a team out of competition."""
    draws_note: str = ""
    interim: str = ""
    counted: Mapping[str, float | None] = field(default_factory=dict)
    """What missing results count as in means, by metric."""

    @property
    def place(self) -> str:
        """The rank in words."""
        return f"{self.rank} of {self.teams}" if self.rank else "out of competition"

    @property
    def score_note(self) -> str:
        """What stands before the mean ranks."""
        if self.rank:
            return f"Score: {self.score:.4f}, from the mean ranks"
        teams = f"{self.teams} team{'s' if self.teams > 1 else ''} that compete"
        return f"Mean ranks, as if it alone had joined the {teams}"

    @property
    def missing(self) -> tuple[tuple[str, str, str], ...]:
        """Case, title of the metric, and reason of each result that is not there."""
        return tuple(
            (case, metric.title, own.reason)
            for case, row in zip(self.cases, self.results, strict=True)
            for metric, own in zip(self.metrics, row, strict=True)
            if own.reason is not None
        )

    @property
    def gate_note(self) -> str:
        """Why a rank may not match the value beside it; empty without a gate."""
        if not self.gate_dsc:
            return ""
        return (
            "Metrics of efficiency count only on cases with a DSC of at least"
            f" {self.gate_dsc:g}; on others they are ranked like missing ones."
        )


def own_standing(
    analysis: Analysis,
    standing: Standing,
    public: PublicRanking | None = None,
    counted: Mapping[str, float | None] | None = None,
) -> OwnStanding:
    """What a team may know of the ranking; nothing else goes on from here.

    With what everybody may know of it, the draws and notes are told, too. By metric,
    `counted` is what a missing result counts as in a mean, if it does.
    """
    drawn = public.draws if public else ()
    table, team = analysis.table, standing.team
    metrics = [rule.metric for rule in analysis.rules.metrics]
    values = table.cube("value", [team], metrics)[0]
    reasons, kinds = (
        table.cube(name, [team], metrics)[0].tolist() for name in ("reason", "kind")
    )
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(values.shape)
    told = tuple(
        OwnMetric(metric=metric, mean_rank=float(standing.mean_ranks[metric]))
        for metric in metrics
    )
    return OwnStanding(
        team=team,
        challenge=analysis.challenge.name,
        teams=len(analysis.board.teams),
        rank=standing.rank,
        score=float(standing.score),
        metrics=told,
        cases=table.cases,
        results=tuple(
            tuple(
                OwnResult(
                    thousandths=_told(value, metric),
                    rank=rank,
                    reason=_own_reason(reason, kind) if math.isnan(value) else None,
                )
                for metric, value, rank, reason, kind in zip(told, *row, strict=True)
            )
            for row in zip(values.tolist(), ranks.tolist(), reasons, kinds, strict=True)
        ),
        gate_dsc=analysis.rules.gate_dsc,
        left_out=left_out_text(analysis.rules.left_out),
        draws=tuple(own for own in drawn if own.team == team),
        draws_note=public.draws_note if public else "",
        interim=public.interim if public else "",
        counted={m: value for m, value in (counted or {}).items() if m in metrics},
    )


def _own_reason(reason: str, kind: str) -> str:
    """Why a result is missing; not what an engine says of the organisers' computer."""
    is_theirs = kind == f"status {RunStatus.ENGINE_ERROR.value}"
    return printable(kind if is_theirs else reason)


def _told(value: float, metric: OwnMetric) -> int | None:
    """A value in thousandths, if a team may know it."""
    if math.isnan(value) or not metric.is_told:
        return None
    known = metric_of(metric.metric)
    return round((known.told(value) if known else value) * 1000)
