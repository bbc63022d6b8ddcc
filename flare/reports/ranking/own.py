"""Says what a team may know of a ranking: its own place, values and ranks.

A score in full precision gives away how many voxels the reference has. So every value
is rounded here as its metric says, and one in voxels is not here at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flare.challenge.metrics import metric_of
from flare.common.files import file_names
from flare.common.text import count
from flare.ranking.rank import Analysis, Standing
from flare.ranking.uncertainty import RankInterval
from flare.reports.model import table
from flare.reports.ranking.page import PublicRanking
from flare.reports.ranking.words import Printed, left_out_text, plain, printed
from flare.reports.render.text import escaped_markdown, markdown
from flare.results.efficiency_csv import RunStatus


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
    metrics: tuple[Printed, ...]
    mean_ranks: tuple[float, ...]
    """By metric."""
    cases: tuple[str, ...]
    results: tuple[tuple[OwnResult, ...], ...]
    """By case, and metric."""
    notes: tuple[str, ...]
    """Why a rank may not match its value, and by which metrics nobody is ranked."""
    draws: tuple[RankInterval, ...] = ()
    """Of the team; empty without bootstrap, and for a team out of competition."""
    draws_note: str = ""
    interim: str = ""
    counted: Mapping[str, float | None]
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
        teams = f"{count(self.teams, 'team')} that compete"
        return f"Mean ranks, as if it alone had joined the {teams}"

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """Case, title of the metric, and reason of each result that is not there."""
        return [
            (case, metric.title, own.reason)
            for case, row in zip(self.cases, self.results, strict=True)
            for metric, own in zip(self.metrics, row, strict=True)
            if own.reason is not None
        ]


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
    table, rules, team = analysis.table, analysis.rules, standing.team
    values, reasons, kinds = (
        table.cube(name, [team], list(rules.names))[0]
        for name in ("value", "reason", "kind")
    )
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(values.shape)
    told = tuple(map(printed, rules.names))
    rows = zip(
        *(part.tolist() for part in (values, ranks, reasons, kinds)), strict=True
    )
    gate = (
        "Metrics of efficiency count only on cases with a DSC of at least"
        f" {rules.gate_dsc:g}; on others they are ranked like missing ones."
    )
    notes = (gate if rules.gate_dsc else "", left_out_text(rules.left_out))
    return OwnStanding(
        team=team,
        challenge=analysis.challenge.name,
        teams=len(analysis.board.teams),
        rank=standing.rank,
        score=float(standing.score),
        metrics=told,
        mean_ranks=tuple(float(standing.mean_ranks[name]) for name in rules.names),
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
            for row in rows
        ),
        notes=tuple(filter(None, notes)),
        draws=tuple(
            own for own in (public.draws if public else ()) if own.team == team
        ),
        draws_note=public.draws_note if public else "",
        interim=public.interim if public else "",
        counted={m: v for m, v in (counted or {}).items() if m in rules.names},
    )


def _own_reason(reason: str, kind: str) -> str:
    """Why a result is missing; not what an engine says of the organisers' computer."""
    is_theirs = kind == f"status {RunStatus.ENGINE_ERROR.value}"
    return kind if is_theirs else reason


def _told(value: float, metric: Printed) -> int | None:
    """A value in thousandths, if a team may know it."""
    if math.isnan(value) or not metric.is_told:
        return None
    known = metric_of(metric.name)
    return round((known.told(value) if known else value) * 1000)


# --- Its sheet --------------------------------------------------------------------


def sheet_names(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """File names of the sheets, which no two teams share on any computer."""
    by_team = sorted(standings, key=lambda standing: standing.team)
    names = file_names([standing.team for standing in by_team])
    return [(names[standing.team], standing) for standing in by_team]


def sheet_text(own: OwnStanding) -> str:
    """What a team gets to see: its own values and ranks, and no one else's."""
    heads, rows = ["case"], []
    for metric in own.metrics:
        title = metric.title
        heads += [title, "rank"] if metric.is_told else [f"{title}: rank"]
    for case, results in zip(own.cases, own.results, strict=True):
        cells = [case]
        for metric, result in zip(own.metrics, results, strict=True):
            if metric.is_told:
                value = result.thousandths
                text = "missing" if value is None else f"{value / 1000:.3f}"
                cells.append(text if metric.is_score else text.rstrip("0").rstrip("."))
            cells.append(str(plain(result.rank)))
        rows.append(cells)
    reasons = [
        "- Case " + escaped_markdown(f"{case}, {title}: {reason}")
        for case, title, reason in own.missing
    ]
    pairs = zip(own.metrics, own.mean_ranks, strict=True)
    mean_ranks = "; ".join(f"{metric.title} {rank:.2f}" for metric, rank in pairs)
    lines = [
        f"# {escaped_markdown(own.team)}",
        "",
        f"Rank in {escaped_markdown(own.challenge)}: {own.place}.",
        f"{own.score_note}: {escaped_markdown(mean_ranks)}.",
        *map(escaped_markdown, own.notes),
        "",
        *markdown(table("", heads, rows)),
    ]
    if reasons:
        lines += ["", "Missing results:", "", *reasons]
    return "\n".join(lines) + "\n"
