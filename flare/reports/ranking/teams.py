"""Says what a team may know of a ranking, and makes its sheet and its pages.

A score in full precision gives away how many voxels the reference has. So every value
is rounded here as its metric says, and one in voxels is not here at all. The page for
organisers has the team among all others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from flare.common.files import file_names
from flare.common.text import count
from flare.ranking.rank import Analysis, Standing
from flare.ranking.ranks import Values
from flare.ranking.uncertainty import RankInterval
from flare.reports.charts import spread_chart
from flare.reports.model import (
    INDEX,
    Cell,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    number_cell,
    rank_shade,
    table,
    text_cell,
)
from flare.reports.ranking.page import ORGANISERS_NOTE, PublicRanking, draws_chart
from flare.reports.ranking.words import (
    Printed,
    counted_text,
    left_out_text,
    plain,
    printed,
)
from flare.reports.render.text import escaped_markdown, markdown
from flare.results.efficiency_csv import RunStatus

NOTE = (
    "For this team alone: its own values, to three decimals, and ranks. It has nothing"
    " of any other team."
)

_Values = Sequence[float | None]
"""None where there is no result."""


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
    draws: tuple[RankInterval, ...]
    """Of the team; empty without bootstrap, and for a team out of competition."""
    draws_note: str
    interim: str
    counted: Mapping[str, _Values]
    """What missing results count as in means, by metric and case."""

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
    analysis: Analysis, standing: Standing, public: PublicRanking
) -> OwnStanding:
    """What a team may know of the ranking; nothing else goes on from here."""
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
        draws=tuple(own for own in public.draws if own.team == team),
        draws_note=public.draws_note,
        interim=public.interim,
        counted=public.counted,
    )


def _own_reason(reason: str, kind: str) -> str:
    """Why a result is missing; not what an engine says of the organisers' computer."""
    is_theirs = kind == f"status {RunStatus.ENGINE_ERROR.value}"
    return kind if is_theirs else reason


def _told(value: float, metric: Printed) -> int | None:
    """A value in thousandths, if a team may know it."""
    if math.isnan(value) or not metric.is_told:
        return None
    return round((metric.record.told(value) if metric.record else value) * 1000)


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
                cells.append(_own_text(metric, result.thousandths))
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


def _own_text(metric: Printed, thousandths: int | None) -> str:
    """A value of the team; one of a metric of label maps with all of its decimals."""
    if thousandths is None:
        return "missing"
    if metric.record:
        return metric.text(thousandths / 1000)
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")


# --- Among all others, for organisers ---------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InField:
    """A team among all others: by metric its values, and theirs."""

    values: Sequence[_Values]
    """By case."""
    others: Sequence[_Values]
    """The median of all other competing teams that have a result on the case."""
    means: Sequence[_Values]
    """The team's, and of those of the others the lowest, the median and the highest."""
    missing: Sequence[tuple[str, str, str]]
    """With the whole reasons, of which a team is told less."""


def in_field(analysis: Analysis, public: PublicRanking, team: str) -> InField:
    """What organisers are told of a team."""
    known, names = analysis.table, analysis.rules.names
    rivals = [other for other in analysis.board.teams if other != team]
    values = known.cube("value", [team, *rivals], names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what is NaN alone
        medians = np.nanmedian(values[1:], axis=0)
    means = []
    for name in names:
        counted = _without_none(public.counted[name])
        none = fmean(counted) if counted else None
        told = zip(public.places, public.means[name], strict=True)
        by_team = {own.team: none if mean is None else mean for own, (mean, _) in told}
        theirs = [own for rival in rivals if (own := by_team[rival]) is not None]
        ends = (min(theirs), median(theirs), max(theirs)) if theirs else (None,) * 3
        means.append((by_team[team], *ends))
    return InField(
        values=list(map(_known, values[0].T)),
        others=list(map(_known, medians.T)),
        means=means,
        missing=[
            (found.case, printed(found.metric).title, found.reason)
            for found in known.missing
            if found.team == team
        ],
    )


def _known(values: Values) -> list[float | None]:
    """Values; None where a table has NaN."""
    return [None if math.isnan(value) else value for value in values.tolist()]


# --- The pages --------------------------------------------------------------------


def team_page(own: OwnStanding, field: InField | None = None) -> Page:
    """The page of a team.

    Its own leads nowhere, as it is sent alone; that of organisers has the field.
    """
    values: Sequence[_Values] = [
        [None if one.thousandths is None else one.thousandths / 1000 for one in column]
        for column in zip(*own.results, strict=True)
    ]
    charts, heads = [], ["case"]
    columns: list[Sequence[object]] = [own.cases]
    for number, metric in enumerate(own.metrics):
        shown = field.values[number] if field else values[number]
        named = {own.team: shown}
        if metric.is_told or field:
            if field:
                named["median of the others"] = field.others[number]
            rows = list(named.values())
            number_of = sum(value is not None for row in rows for value in row)
            cases = count(len(own.cases), "case")
            chart = spread_chart(
                metric.record or metric.name,
                list(named),
                rows,
                has_boxes=bool(field),
                title=metric.title,
                summary=f"{number_of} values of {cases}, as in the tables",
                tips=(own.cases, rows, metric.decimals),
            )
            charts.append(chart)
            heads.append(metric.title)
            columns.append(list(map(metric.shaded, shown)))
        heads.append(f"rank: {metric.title}")
        ranks = [float(row[number].rank) for row in own.results]
        cells = (Cell(str(plain(r)), css=rank_shade(r, own.teams)) for r in ranks)
        columns.append(list(cells))
        if field:
            heads.append(f"others' {metric.title}")
            columns.append(list(map(metric.shaded, field.others[number])))
    others = ", and the median of the other teams" if field else ""
    caption = f"Values and ranks of each case{others}; a rank has a shade of its own"
    every = table(caption, heads, zip(*columns, strict=True), words=("case",))
    means = _means_table(own, field.means if field else None, values)
    told: list[Part] = [means, *(Words(note, "note") for note in own.notes)]
    draws = [draws_chart(own.draws, own.draws_note)] if own.draws else []
    absent = len({case for case, _, _ in own.missing})
    score = f"{own.score:.4f}" if own.rank else "none"
    smaller = "from the mean ranks; smaller is better"
    tiles = [
        Tile(name="Rank", value=own.place),
        Tile(name="Score", value=score, note=smaller if own.rank else own.score_note),
        Tile(
            name="Cases",
            value=str(len(own.cases)),
            note=f"results are missing on {absent}" if absent else "",
        ),
    ]
    lead = [Words(own.interim, "banner")] if own.interim else []
    if field:
        lead.insert(0, Words("", href=f"../{INDEX}", link="The ranking of all teams"))
    missing = _missing(field.missing if field else own.missing)
    return Page(
        title=f"{own.team} in the ranking",
        kicker=own.challenge,
        audience_note=ORGANISERS_NOTE if field else NOTE,
        lead=lead,
        tiles=tiles,
        sections=[
            Section("ranks", "Ranks", "Means and ranks by each metric", told),
            Section("draws", "How sure it is", "How sure it is", draws),
            Section("values", "Values", "Values by each metric", [Pair(charts)]),
            Section("cases", "All cases", "All cases", [every]),
            Section("missing", "Missing results", "Missing results", missing),
        ],
    )


def _means_table(
    own: OwnStanding, field: Sequence[_Values] | None, values: Sequence[_Values]
) -> Table:
    """Means and mean ranks by metric; for organisers, means of the others as well."""
    rows = []
    for number, (metric, mean_rank) in enumerate(
        zip(own.metrics, own.mean_ranks, strict=True)
    ):
        counted = own.counted[metric.name]
        means = field[number] if field else [_mean(values[number], counted)]
        mean, *others = (metric.cell(value, exact=bool(field)) for value in means)
        rank = number_cell(mean_rank, decimals=2, css=rank_shade(mean_rank, own.teams))
        shown = mean if metric.is_told or field else Cell("not told", css="none")
        rows.append((metric.title, shown, rank, *others))
    heads = ["metric", "mean", "mean rank"]
    if field:
        heads += [f"others: {what}" for what in ("lowest", "median", "highest")]
    caption = f"Means and mean ranks over {count(len(own.cases), 'case')}"
    if own.missing and own.counted:
        caption = f"{caption}; a missing result {counted_text(own.counted)}"
    return table(caption, heads, rows, words=("metric",))


def _mean(values: _Values, counted: _Values) -> float | None:
    """The mean, in which missing values count, or are left out; None of no value."""
    if not _without_none(values):
        return None
    pairs = zip(values, counted, strict=True)
    filled = [other if value is None else value for value, other in pairs]
    return fmean(_without_none(filled))


def _without_none(values: _Values) -> list[float]:
    """The values that are there."""
    return [value for value in values if value is not None]


def _missing(missing: Sequence[tuple[str, str, str]]) -> list[Part]:
    """The results that are not there, and why: a row for each case and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for case, title, reason in missing:
        found.setdefault((case, reason), []).append(title)
    rows = [
        (case, text_cell(", ".join(titles)), text_cell(reason))
        for (case, reason), titles in found.items()
    ]
    heads = ("case", "of", "why")
    caption = "Results that are not there, and why"
    return [table(caption, heads, rows, words=heads)] if rows else []
