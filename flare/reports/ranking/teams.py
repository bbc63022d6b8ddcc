"""Reduces a ranking to what a team may know, and makes its sheet and its pages.

A score in full precision gives away how many voxels the reference has. So every value
is rounded here as its metric says, and one in voxels is not here at all. The page for
organisers has the team among all others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
    Chart,
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
    """The part of a ranking that a team may know, with no field for another team."""

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
        """The score, or why there is none, in words before the mean ranks."""
        if self.rank:
            return f"Score: {self.score:.4f}, from the mean ranks"
        teams = f"{count(self.teams, 'team')} that compete"
        return f"Mean ranks, as if it alone had joined the {teams}"

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """Case, title of the metric, and reason of each result that is not there."""
        missing = []
        for case, row in zip(self.cases, self.results, strict=True):
            for metric, result in zip(self.metrics, row, strict=True):
                if result.reason is not None:
                    missing.append((case, metric.title, result.reason))
        return missing


def own_standing(
    analysis: Analysis, standing: Standing, public: PublicRanking
) -> OwnStanding:
    """Reduce a ranking to what a team may know of it."""
    rules = analysis.rules
    metrics = tuple(map(printed, rules.names))
    notes = [left_out_text(rules.left_out)]
    if rules.gate_dsc:
        gate = (
            "Metrics of efficiency count only on cases with a DSC of at least"
            f" {rules.gate_dsc:g}; on others they are ranked like missing ones."
        )
        notes.insert(0, gate)
    return OwnStanding(
        team=standing.team,
        challenge=analysis.challenge.name,
        teams=len(analysis.board.teams),
        rank=standing.rank,
        score=float(standing.score),
        metrics=metrics,
        mean_ranks=tuple(float(standing.mean_ranks[name]) for name in rules.names),
        cases=analysis.table.cases,
        results=_own_results(analysis, standing.team, metrics),
        notes=tuple(filter(None, notes)),
        draws=tuple(draw for draw in public.draws if draw.team == standing.team),
        draws_note=public.draws_note,
        interim=public.interim,
        counted=public.counted,
    )


def _own_results(
    analysis: Analysis, team: str, metrics: Sequence[Printed]
) -> tuple[tuple[OwnResult, ...], ...]:
    """The results of a team as it may know them, by case and metric."""
    names = [metric.name for metric in metrics]
    values, reasons, kinds = (
        analysis.table.cube(column, [team], names)[0]
        for column in ("value", "reason", "kind")
    )
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(values.shape)
    cases = zip(
        values.tolist(), ranks.tolist(), reasons.tolist(), kinds.tolist(), strict=True
    )
    results = []
    for case in cases:
        row = []
        for metric, value, rank, reason, kind in zip(metrics, *case, strict=True):
            row.append(
                OwnResult(
                    thousandths=_thousandths(value, metric),
                    rank=rank,
                    reason=_own_reason(reason, kind) if math.isnan(value) else None,
                )
            )
        results.append(tuple(row))
    return tuple(results)


def _own_reason(reason: str, kind: str) -> str:
    """Why a result is missing; not what an engine says of the organisers' computer."""
    is_theirs = kind == f"status {RunStatus.ENGINE_ERROR.value}"
    return kind if is_theirs else reason


def _thousandths(value: float, metric: Printed) -> int | None:
    """A value in thousandths, if a team may know it."""
    if math.isnan(value) or not metric.is_told:
        return None
    rounded = metric.record.told(value) if metric.record else value
    return round(rounded * 1000)


# --- Its sheet --------------------------------------------------------------------


def sheet_names(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """File names of the sheets, which no two teams share on any computer."""
    by_team = sorted(standings, key=lambda standing: standing.team)
    names = file_names([standing.team for standing in by_team])
    return [(names[standing.team], standing) for standing in by_team]


def sheet_text(standing: OwnStanding) -> str:
    """The sheet of a team: its own values and ranks, and no one else's."""
    reasons = []
    for case, title, reason in standing.missing:
        reasons.append("- Case " + escaped_markdown(f"{case}, {title}: {reason}"))
    pairs = zip(standing.metrics, standing.mean_ranks, strict=True)
    mean_ranks = "; ".join(f"{metric.title} {rank:.2f}" for metric, rank in pairs)
    lines = [
        f"# {escaped_markdown(standing.team)}",
        "",
        f"Rank in {escaped_markdown(standing.challenge)}: {standing.place}.",
        f"{standing.score_note}: {escaped_markdown(mean_ranks)}.",
        *map(escaped_markdown, standing.notes),
        "",
        *markdown(_sheet_table(standing)),
    ]
    if reasons:
        lines += ["", "Missing results:", "", *reasons]
    return "\n".join(lines) + "\n"


def _sheet_table(standing: OwnStanding) -> Table:
    """The values, where they may be told, and the ranks of each case."""
    heads, rows = ["case"], []
    for metric in standing.metrics:
        title = metric.title
        heads += [title, "rank"] if metric.is_told else [f"{title}: rank"]
    for case, results in zip(standing.cases, standing.results, strict=True):
        cells = [case]
        for metric, result in zip(standing.metrics, results, strict=True):
            if metric.is_told:
                cells.append(_own_text(metric, result.thousandths))
            cells.append(str(plain(result.rank)))
        rows.append(cells)
    return table("", heads, rows)


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
    medians: Sequence[_Values]
    """By case: the median of all other competing teams that have a result on it."""
    means: Sequence[_Values]
    """The team's, and of those of its rivals the lowest, the median and the highest."""
    missing: Sequence[tuple[str, str, str]]
    """With the whole reasons; a team is told less of them."""


def in_field(analysis: Analysis, public: PublicRanking, team: str) -> InField:
    """Compare a team with all others, for organisers."""
    names = analysis.rules.names
    rivals = [rival for rival in analysis.board.teams if rival != team]
    values = analysis.table.cube("value", [team, *rivals], names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what is NaN alone
        medians = np.nanmedian(values[1:], axis=0)
    missing = []
    for result in analysis.table.missing:
        if result.team == team:
            missing.append((result.case, printed(result.metric).title, result.reason))
    return InField(
        values=list(map(_without_nan, values[0].T)),
        medians=list(map(_without_nan, medians.T)),
        means=[_means_in_field(public, name, team, rivals) for name in names],
        missing=missing,
    )


def _means_in_field(
    public: PublicRanking, metric: str, team: str, rivals: Sequence[str]
) -> _Values:
    """The mean of a team, and the lowest, the median and the highest of its rivals."""
    counted = _without_none(public.counted[metric])
    without_results = fmean(counted) if counted else None
    means = {}
    for place, (mean, _) in zip(public.places, public.means[metric], strict=True):
        means[place.team] = without_results if mean is None else mean
    rival_means = _without_none([means[rival] for rival in rivals])
    if not rival_means:
        return means[team], None, None, None
    return means[team], min(rival_means), median(rival_means), max(rival_means)


def _without_nan(values: Values) -> list[float | None]:
    """Values; None where a table has NaN."""
    return [None if math.isnan(value) else value for value in values.tolist()]


# --- The pages --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A metric on the page of a team: its values and ranks by case."""

    metric: Printed
    values: _Values
    medians: _Values | None
    """Of the other teams; for organisers alone."""
    ranks: Sequence[float]

    @property
    def is_shown(self) -> bool:
        """Whether the page may have the values, not only the ranks."""
        return self.metric.is_told or self.medians is not None


def team_page(standing: OwnStanding, field: InField | None = None) -> Page:
    """The page of a team.

    Its own leads nowhere, as it is sent alone; that of organisers has the field.
    """
    lead = [Words(standing.interim, "banner")] if standing.interim else []
    if field:
        lead.insert(0, Words("", href=f"../{INDEX}", link="The ranking of all teams"))
    means: list[Part] = [_means_table(standing, field)]
    means += (Words(note, "note") for note in standing.notes)
    draws = []
    if standing.draws:
        draws.append(draws_chart(standing.draws, standing.draws_note))
    columns = list(_columns(standing, field))
    charts = [_value_chart(standing, column) for column in columns if column.is_shown]
    cases = _cases_table(standing, columns)
    missing = _missing(field.missing if field else standing.missing)
    return Page(
        title=f"{standing.team} in the ranking",
        kicker=standing.challenge,
        audience_note=ORGANISERS_NOTE if field else NOTE,
        lead=lead,
        tiles=_tiles(standing),
        sections=[
            Section("ranks", "Ranks", "Means and ranks by each metric", means),
            Section("draws", "How sure it is", "How sure it is", draws),
            Section("values", "Values", "Values by each metric", [Pair(charts)]),
            Section("cases", "All cases", "All cases", [cases]),
            Section("missing", "Missing results", "Missing results", missing),
        ],
    )


def _tiles(standing: OwnStanding) -> list[Tile]:
    """The rank, the score and the cases of a team."""
    score, note = "none", standing.score_note
    if standing.rank:
        score = f"{standing.score:.4f}"
        note = "from the mean ranks; smaller is better"
    absent = len({case for case, _, _ in standing.missing})
    missing = f"results are missing on {absent}" if absent else ""
    return [
        Tile(name="Rank", value=standing.place),
        Tile(name="Score", value=score, note=note),
        Tile(name="Cases", value=str(len(standing.cases)), note=missing),
    ]


def _columns(standing: OwnStanding, field: InField | None) -> Iterator[_Column]:
    """The metrics of the page; organisers see the values of the field, in full."""
    for number, metric in enumerate(standing.metrics):
        yield _Column(
            metric=metric,
            values=field.values[number] if field else _own_values(standing, number),
            medians=field.medians[number] if field else None,
            ranks=[float(row[number].rank) for row in standing.results],
        )


def _own_values(standing: OwnStanding, number: int) -> _Values:
    """The values of a team by a metric, as it may know them."""
    values: list[float | None] = []
    for row in standing.results:
        thousandths = row[number].thousandths
        values.append(None if thousandths is None else thousandths / 1000)
    return values


def _value_chart(standing: OwnStanding, column: _Column) -> Chart:
    """How the values of a team are spread, above the medians of its rivals."""
    metric, labels, rows = column.metric, [standing.team], [column.values]
    if column.medians is not None:
        labels.append("median of the others")
        rows.append(column.medians)
    number = sum(len(_without_none(row)) for row in rows)
    cases = count(len(standing.cases), "case")
    return spread_chart(
        metric.record or metric.name,
        labels,
        rows,
        has_boxes=column.medians is not None,
        title=metric.title,
        summary=f"{number} values of {cases}, as in the tables",
        tips=(standing.cases, rows, metric.decimals),
    )


def _cases_table(standing: OwnStanding, columns: Sequence[_Column]) -> Table:
    """The values and ranks of each case, beside the medians of the rivals."""
    heads = ["case"]
    cells: list[Sequence[object]] = [standing.cases]
    has_medians = False
    for column in columns:
        title, shaded = column.metric.title, column.metric.shaded
        if column.is_shown:
            heads.append(title)
            cells.append(list(map(shaded, column.values)))
        heads.append(f"rank: {title}")
        cells.append([_rank_cell(rank, standing.teams) for rank in column.ranks])
        if column.medians is not None:
            has_medians = True
            heads.append(f"others' {title}")
            cells.append(list(map(shaded, column.medians)))
    medians = ", and the median of the other teams" if has_medians else ""
    caption = f"Values and ranks of each case{medians}; a rank has a shade of its own"
    return table(caption, heads, zip(*cells, strict=True), words=("case",))


def _rank_cell(rank: float, teams: int) -> Cell:
    return Cell(str(plain(rank)), css=rank_shade(rank, teams))


def _means_table(standing: OwnStanding, field: InField | None) -> Table:
    """Means and mean ranks by metric; for organisers, means of the rivals as well."""
    rows = []
    for number, metric in enumerate(standing.metrics):
        if field:
            means = field.means[number]
        else:
            counted = standing.counted[metric.name]
            means = [_mean(_own_values(standing, number), counted)]
        mean, *rival_means = (metric.cell(value, exact=bool(field)) for value in means)
        if not (metric.is_told or field):
            mean = Cell("not told", css="none")
        mean_rank = standing.mean_ranks[number]
        css = rank_shade(mean_rank, standing.teams)
        rank = number_cell(mean_rank, decimals=2, css=css)
        rows.append((metric.title, mean, rank, *rival_means))
    heads = ["metric", "mean", "mean rank"]
    if field:
        heads += ["others: lowest", "others: median", "others: highest"]
    caption = f"Means and mean ranks over {count(len(standing.cases), 'case')}"
    if standing.missing and standing.counted:
        caption = f"{caption}; a missing result {counted_text(standing.counted)}"
    return table(caption, heads, rows, words=("metric",))


def _mean(values: _Values, counted: _Values) -> float | None:
    """The mean, in which missing values count, or are left out; None of no value."""
    if not _without_none(values):
        return None
    filled = []
    for value, substitute in zip(values, counted, strict=True):
        filled.append(substitute if value is None else value)
    return fmean(_without_none(filled))


def _without_none(values: _Values) -> list[float]:
    """The values that are there."""
    return [value for value in values if value is not None]


def _missing(missing: Sequence[tuple[str, str, str]]) -> list[Part]:
    """The results that are not there, and why: a row for each case and reason."""
    titles: dict[tuple[str, str], list[str]] = {}
    for case, title, reason in missing:
        titles.setdefault((case, reason), []).append(title)
    if not titles:
        return []
    rows = []
    for (case, reason), metrics in titles.items():
        rows.append((case, text_cell(", ".join(metrics)), text_cell(reason)))
    heads = ("case", "of", "why")
    caption = "Results that are not there, and why"
    return [table(caption, heads, rows, words=heads)]
