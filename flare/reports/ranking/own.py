"""Says what a team may know of a ranking: its own place, values and ranks.

A score in full precision gives away how many voxels the reference has. So every value
is a whole number of thousandths here, and one in voxels or mm is not here at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flare.challenge.metrics import is_score, metric_of
from flare.common.text import printable
from flare.ranking.rank import Analysis, Standing
from flare.ranking.robustness.uncertainty import RankInterval
from flare.ranking.rules import Values
from flare.reports.ranking.page import PublicRanking
from flare.reports.ranking.words import (
    counted_text,
    decimals_of,
    left_out_text,
    metric_title,
)
from flare.results.efficiency_csv import VALUES, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMetric:
    """A metric by which teams are ranked."""

    metric: str
    mean_rank: float
    mean: float | None
    """Over the cases, of the values as they are told; None without any."""

    @property
    def title(self) -> str:
        """In print."""
        return metric_title(self.metric)

    @property
    def decimals(self) -> int:
        """How many of them pages show."""
        return decimals_of(self.metric)

    @property
    def is_told(self) -> bool:
        """Whether its values may be told, not only their ranks."""
        return is_told(self.metric)

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
    missing_note: str = ""
    """What missing results count as in means."""

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
    drawn, counted = public.draws if public else (), counted or {}
    table, team = analysis.table, standing.team
    metrics = [rule.metric for rule in analysis.rules.metrics]
    values = table.cube("value", [team], metrics)[0]
    reasons, kinds = (
        table.cube(name, [team], metrics)[0].tolist() for name in ("reason", "kind")
    )
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(values.shape)
    told = np.array(
        [[_told(v, m) for v, m in zip(row, metrics, strict=True)] for row in values]
    )
    return OwnStanding(
        team=team,
        challenge=analysis.challenge.name,
        teams=len(analysis.board.teams),
        rank=standing.rank,
        score=float(standing.score),
        metrics=tuple(
            OwnMetric(
                metric=metric,
                mean_rank=float(standing.mean_ranks[metric]),
                mean=_mean(column, counted.get(metric)),
            )
            for metric, column in zip(metrics, told.T, strict=True)
        ),
        cases=table.cases,
        results=tuple(
            tuple(
                OwnResult(
                    thousandths=None if math.isnan(own) else round(own * 1000),
                    rank=rank,
                    reason=_own_reason(reason, kind) if math.isnan(value) else None,
                )
                for value, own, rank, reason, kind in zip(*row, strict=True)
            )
            for row in zip(
                *(values.tolist(), told.tolist(), ranks.tolist(), reasons, kinds),
                strict=True,
            )
        ),
        gate_dsc=analysis.rules.gate_dsc,
        left_out=left_out_text(analysis.rules.left_out),
        draws=tuple(own for own in drawn if own.team == team),
        draws_note=public.draws_note if public else "",
        interim=public.interim if public else "",
        missing_note=counted_text({m: counted[m] for m in metrics if m in counted}),
    )


def _own_reason(reason: str, kind: str) -> str:
    """Why a result is missing; not what an engine says of the organisers' computer."""
    is_theirs = kind == f"status {RunStatus.ENGINE_ERROR.value}"
    return printable(kind if is_theirs else reason)


def _mean(values: Values, counted: float | None) -> float | None:
    """The mean, in which missing values count, or are left out; None of no value."""
    if np.isnan(values).all():
        return None
    return float(
        np.nanmean(values if counted is None else np.nan_to_num(values, nan=counted))
    )


def _told(value: float, metric: str) -> float:
    """A value in thousandths, if a team may know it: else NaN."""
    known = metric_of(metric)
    if math.isnan(value) or not is_told(metric):
        return math.nan
    return round((known.told(value) if known else value) * 1000) / 1000


def is_told(metric: str) -> bool:
    """Whether a team may know its values by a metric, not only its ranks.

    Efficiency has nothing of references; another metric than ours may tell of them.
    """
    known = metric_of(metric)
    return known.for_participants if known else metric in VALUES
