"""Makes the page of each team: its own, and that of organisers among all others.

The one is made from `OwnStanding`, which holds nothing of other teams.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from flare.common.text import count
from flare.ranking.means import Means
from flare.ranking.rank import Analysis
from flare.ranking.ranks import Values
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
from flare.reports.ranking.own import OwnStanding
from flare.reports.ranking.page import ORGANISERS_NOTE, draws_chart
from flare.reports.ranking.words import Printed, counted_text, plain, printed

NOTE = (
    "For this team alone: its own values, to three decimals, and ranks. It has nothing"
    " of any other team."
)

LOW = 0.5
"""A team fails on a case if its score is not above this: the two darkest shades."""

_Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InField:
    """A team among all others: by metric its values, and theirs."""

    values: Sequence[_Values]
    """By case."""
    others: Sequence[_Values]
    """The median of all other competing teams that have a result on the case."""
    means: Sequence[_Values]
    """The team's, and of those of the others the lowest, the median and the highest."""
    alone: Table | None
    """The cases where it fails, and no other."""
    missing: Sequence[tuple[str, str, str]]
    """With the whole reasons, of which a team is told less."""


class Field:
    """The values of all teams, and their means, among which organisers see one's."""

    def __init__(self, analysis: Analysis, means: Means) -> None:
        self.analysis, self._names = analysis, analysis.rules.names
        known = analysis.table
        self._every = known.cube("value", known.teams, list(self._names))
        self._means = {(m.metric, m.team): m.mean for m in means.rows if not m.organ}

    def of(self, team: str) -> InField:
        """What organisers are told of a team."""
        known = self.analysis.table
        rivals = {*self.analysis.board.teams} - {team}
        own = self._every[known.teams.index(team)]
        others = self._every[[other in rivals for other in known.teams]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what is NaN alone
            medians = np.nanmedian(others, axis=0)
        alone = None
        shown = list(map(printed, self._names))
        score = next((n for n, own in enumerate(shown) if own.is_score), None)
        if score is not None and len(others):
            lowest = np.nan_to_num(others[:, :, score]).min(axis=0)
            failed = np.flatnonzero(~(own[:, score] > LOW) & (lowest > LOW))
            cells = zip(
                _known(own[failed, score]), lowest[failed].tolist(), strict=True
            )
            rows = [
                (known.cases[n], *pair) for n, pair in zip(failed, cells, strict=True)
            ]
            alone = _alone_table(shown[score], rows)
        return InField(
            values=[_known(column) for column in own.T],
            others=[_known(column) for column in medians.T],
            means=[self._means_of(metric, team, rivals) for metric in self._names],
            alone=alone,
            missing=[
                (found.case, printed(found.metric).title, found.reason)
                for found in known.missing
                if found.team == team
            ],
        )

    def _means_of(self, metric: str, team: str, rivals: set[str]) -> _Values:
        """The team's mean, and of the others' the lowest, the median, the highest."""
        means = (self._means[metric, rival] for rival in rivals)
        known = [mean for mean in means if mean is not None]
        ends = (
            (min(known), float(np.median(known)), max(known)) if known else [None] * 3
        )
        return self._means[metric, team], *ends


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
                metric.name,
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
    caption = "Values and ranks of each case; a rank has a shade of its own"
    if field:
        caption = "Values and ranks of each case, and the median of the other teams"
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
    alone: list[Part] = []
    if field:
        lead.insert(0, Words("", href=f"../{INDEX}", link="The ranking of all teams"))
        alone = [field.alone] if field.alone else []
        lost = str(len(field.alone.rows) if field.alone else 0)
        tiles.append(Tile(name="Fails alone", value=lost, note="cases"))
    missing = _missing(field.missing if field else own.missing)
    return Page(
        title=f"{own.team} in the ranking",
        kicker=own.challenge,
        audience_note=ORGANISERS_NOTE if field else NOTE,
        lead=lead,
        tiles=tiles,
        sections=[
            Section("ranks", "Ranks", "Means and ranks by each metric", told),
            Section("alone", "Fails alone", "Cases where it fails alone", alone),
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
        counted = own.counted.get(metric.name)
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


def _mean(values: _Values, counted: float | None) -> float | None:
    """The mean, in which missing values count, or are left out; None of no value."""
    known = [value for value in values if value is not None]
    if known and counted is not None:
        known += [counted] * (len(values) - len(known))
    return fmean(known) if known else None


def _alone_table(
    metric: Printed, rows: Sequence[tuple[str, float | None, float]]
) -> Table | None:
    """Cases where a team fails, and no other: its score, and the lowest of theirs."""
    if not rows:
        return None
    title = metric.title
    cells = ((case, *map(metric.shaded, scores)) for case, *scores in rows)
    caption = f"{count(len(rows), 'case')} where it alone has no {title} above {LOW:g}"
    heads = ("case", title, "lowest of the others")
    return table(caption, heads, cells, words=("case",))


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
