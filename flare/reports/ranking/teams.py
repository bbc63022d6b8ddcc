"""Makes the page of a team, for itself alone or for organisers.

Its own holds what the team may know; that for organisers has it among all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import attrgetter
from statistics import fmean, median

import numpy as np

from flare.challenge.metrics import LEFT_OUT, Metric, metric_named
from flare.common.text import count
from flare.reports.charts import rank_shade, spread_chart, value_axis
from flare.reports.model import (
    INDEX,
    Axis,
    Cell,
    Chart,
    Column,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    number_cell,
    table_of,
    table_of_rows,
    text_cell,
)
from flare.reports.ranking.organs import team_table
from flare.reports.ranking.page import ORGANISERS_NOTE, PublicRanking, draws_chart
from flare.reports.ranking.standing import OwnStanding, ValuesByCase
from flare.reports.ranking.values import WholeRanking, counted_row, without_nan
from flare.reports.ranking.words import counted_text, plain
from flare.reports.scores import INTERVAL, Mean, metric_cell
from flare.results.scores import present

NOTE = (
    "For this team alone: its own values, to three decimals, and ranks. It has nothing"
    " of any other team."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMetric:
    """A metric on the page of a team; only organisers see a value of any other team."""

    metric: Metric
    values: ValuesByCase
    mean: Mean
    """The mean, in which missing values count, or are left out."""
    axis: Axis
    rival_means: ValuesByCase = ()
    """The lowest, the median and the highest mean of its rivals."""
    medians: ValuesByCase | None = None
    """The medians of all other competing teams that have a result on the case."""

    @property
    def is_shown(self) -> bool:
        """Whether the page may have the values, not only the ranks."""
        return self.metric.tells_cases or self.medians is not None


def own_columns(standing: OwnStanding) -> Iterator[OwnMetric]:
    """The metrics of a team, as it may know them."""
    for metric, results in zip(standing.metrics, standing.results, strict=True):
        values: list[float | None] = []
        left_out = []
        for case, result in enumerate(results):
            if result.reason == LEFT_OUT:
                left_out.append(case)
            thousandths = result.thousandths
            values.append(None if thousandths is None else thousandths / 1000)
        counted = counted_row(values, standing.counted[metric.name], left_out)
        mean = Mean(metric.name, counted, standing.means.get(metric.name))
        yield OwnMetric(
            metric=metric,
            values=values,
            mean=mean,
            axis=value_axis(metric, present(values)),
        )


def columns_in_field(ranking: WholeRanking, team: str) -> Iterator[OwnMetric]:
    """The metrics of a team among all others, for organisers."""
    analysis, names = ranking.analysis, ranking.analysis.rules.names
    rivals = [rival for rival in analysis.board.teams if rival != team]
    values = analysis.table.cube("value", [team], names)[0]
    for number, field_values in enumerate(ranking.metrics):
        own_values = without_nan(values[:, number].tolist())
        means = _means_in_field(ranking.public, names[number], team, rivals)
        counted = ranking.public.counted[names[number]]
        flags = analysis.table.left_out_of([team], [names[number]])[0, :, 0]
        left_out = np.flatnonzero(flags).tolist()
        mean = Mean(names[number], counted_row(own_values, counted, left_out))
        yield OwnMetric(
            metric=field_values.metric,
            values=own_values,
            mean=replace(mean, recorded=means[0] if mean.present else None),
            rival_means=means[1:],
            axis=field_values.axis,
            medians=field_values.medians_without(team),
        )


def _means_in_field(
    public: PublicRanking, metric: str, team: str, rivals: Sequence[str]
) -> ValuesByCase:
    """The mean of a team, and the lowest, the median and the highest of its rivals."""
    counted = present(public.counted[metric])
    without_results = fmean(counted) if counted else None
    means = {}
    for place, (mean, _) in zip(public.places, public.means[metric], strict=True):
        means[place.team] = without_results if mean is None else mean
    rival_means = present([means[rival] for rival in rivals])
    if not rival_means:
        return means[team], None, None, None
    return means[team], min(rival_means), median(rival_means), max(rival_means)


# --- The pages --------------------------------------------------------------------


def team_page(standing: OwnStanding, ranking: WholeRanking | None = None) -> Page:
    """The page of a team.

    Its own leads nowhere, as it is sent alone; that of organisers has it among all
    others of the ranking, and whole reasons of missing results.
    """
    lead: list[Part] = [Words(standing.interim, "banner")] if standing.interim else []
    if ranking:
        lead.insert(0, Words("", href=f"../{INDEX}", link="The ranking of all teams"))
        warned = ranking.analysis.table.warned
        lines = [line for team, line in warned if team == standing.team]
        lead += [Lines(lines, "What its evaluation has warned of")] if lines else []
        columns = list(columns_in_field(ranking, standing.team))
        missing = _whole_reasons(ranking, standing.team)
    else:
        columns, missing = list(own_columns(standing)), standing.missing
    means: list[Part] = [_means_table(standing, columns, exact=bool(ranking))]
    means += (Words(note, "note") for note in standing.notes)
    organs = []
    if standing.organs:
        organs.append(team_table(standing.team, standing.organs))
    draws = []
    if standing.draws:
        draws.append(draws_chart(standing.draws, standing.draws_note))
    values, cases = _value_parts(standing, columns)
    return Page(
        title=f"{standing.team} in the ranking",
        kicker=standing.challenge,
        audience_note=ORGANISERS_NOTE if ranking else NOTE,
        lead=lead,
        tiles=_tiles(standing),
        sections=[
            Section("ranks", "Ranks", "Means and ranks by each metric", means),
            Section("organs", "Organs", "Means by organ", organs),
            Section("draws", "How sure it is", "How sure it is", draws),
            Section("values", "Values", "Values by each metric", values),
            Section("cases", "All cases", "All cases", cases),
            Section("missing", "Missing results", "Missing results", _missing(missing)),
        ],
    )


def _tiles(standing: OwnStanding) -> list[Tile]:
    score, note = "none", standing.score_note
    if standing.rank:
        score = f"{standing.score:.4f}"
        note = f"from the {standing.rank_word}s; smaller is better"
    absent = len({case for case, _, _ in standing.missing})
    missing = f"results are missing on {absent}" if absent else "no result is missing"
    interval = ""
    for draw in standing.draws:
        low, high = draw.interval
        ranks = f"{low} to {high}" if low < high else f"{low}"
        interval = f"{ranks} in 95 % of draws of the cases"
    return [
        Tile(name="Rank", value=standing.place, note=interval),
        Tile(name="Score", value=score, note=note),
        Tile(name="Cases", value=str(len(standing.cases)), note=missing),
    ]


def _value_parts(
    standing: OwnStanding, columns: Sequence[OwnMetric]
) -> tuple[list[Part], list[Part]]:
    """The charts and the table of cases; a metric of answers has no value of any."""
    of_cases, charts = {}, []
    for number, column in enumerate(columns):
        if column.metric.is_of_each_case:
            of_cases[number] = column
            if column.is_shown:
                charts.append(_value_chart(standing, column))
    if not of_cases:
        return [], []
    table = _cases_table(standing, of_cases)
    cases: list[Part] = [table] if len(table.heads) > 1 else []
    return [Pair(charts)] if charts else [], cases


def _value_chart(standing: OwnStanding, column: OwnMetric) -> Chart:
    """How the values of a team are spread, above the medians of its rivals."""
    metric, labels, rows = column.metric, [standing.team], [column.values]
    if column.medians is not None:
        labels.append("median of the others")
        rows.append(column.medians)
    number = sum(len(present(row)) for row in rows)
    cases = count(len(standing.cases), "case")
    return spread_chart(
        column.axis,
        labels,
        rows,
        has_boxes=column.medians is not None,
        title=metric.heading,
        summary=f"{number} values of {cases}, as in the tables",
        tips=(standing.cases, rows, metric.decimals),
    )


def _cases_table(standing: OwnStanding, columns: Mapping[int, OwnMetric]) -> Table:
    shown = [Column("case", standing.cases, is_text=True)]
    medians = ""
    for number, column in columns.items():
        title, cell = column.metric.heading, partial(metric_cell, column.metric)
        if column.is_shown:
            shown.append(Column(title, map(cell, column.values)))
        if standing.has_case_ranks and (
            column.is_shown or not column.metric.hides_cases
        ):
            cells = []
            for result in standing.results[number]:
                cells.append(_rank_cell(result.rank, standing.teams))
            shown.append(Column(f"rank: {title}", cells))
        if column.medians is not None:
            medians = ", and the median of the other teams"
            shown.append(Column(f"others' {title}", map(cell, column.medians)))
    ranks, shades = "", ""
    if standing.has_case_ranks:
        ranks, shades = " and ranks", "; a rank has a shade of its own"
    return table_of(f"Values{ranks} of each case{medians}{shades}", shown)


@lru_cache(maxsize=1 << 12)
def _rank_cell(rank: float, teams: int) -> Cell:
    if math.isnan(rank):
        return Cell("none", css="none")
    return Cell(str(plain(rank)), css=rank_shade(rank, teams))


def _means_table(
    standing: OwnStanding, columns: Sequence[OwnMetric], *, exact: bool
) -> Table:
    shown = [
        Column("metric", map(attrgetter("heading"), standing.metrics), is_text=True),
        Column("mean", map(partial(_mean_cell, exact=exact), columns)),
        *_rank_columns(standing),
    ]
    if exact:
        for number, word in enumerate(("lowest", "median", "highest")):
            cells = []
            for column in columns:
                mean = column.rival_means[number]
                cell = metric_cell(column.metric, mean, exact=True, is_shaded=False)
                cells.append(cell)
            shown.append(Column(f"others: {word}", cells))
    cases = count(len(standing.cases), "case")
    caption = f"Means and {standing.rank_word}s over {cases}"
    caption += f"; small print: {INTERVAL} by bootstrap"
    if standing.missing and standing.counted:
        caption = f"{caption}; a missing result {counted_text(standing.counted)}"
    return table_of(caption, shown)


def _rank_columns(standing: OwnStanding) -> Iterator[Column]:
    """The mean ranks by each metric, and for a team that competes what they make."""
    cells = []
    for rank in standing.mean_ranks:
        css = rank_shade(rank, standing.teams)
        cells.append(number_cell(rank, decimals=2, css=css))
    yield Column(standing.rank_word, cells)
    if standing.rank:
        yield Column("place by it", standing.places)
    if any(standing.ranks_without):
        ranks = [rank or "-" for rank in standing.ranks_without]
        yield Column("whole rank without it", ranks)


def _mean_cell(column: OwnMetric, *, exact: bool) -> Cell:
    """The mean of a team, and its interval; organisers get all of its digits."""
    mean = column.mean
    if not column.is_shown and mean.recorded is None:
        return Cell("not told", css="none")
    cell = metric_cell(column.metric, mean.value, exact=exact, is_shaded=False)
    if not column.metric.is_of_each_case or not mean.interval:
        return cell
    return replace(cell, note=mean.interval_text)


def _whole_reasons(ranking: WholeRanking, team: str) -> list[tuple[str, str, str]]:
    """Case, metric and reason of each missing result; a team is told less of it."""
    results = ranking.analysis.table
    values = results.cube("value", [team], results.metrics)[0]
    reasons = results.cube("reason", [team], results.metrics)[0]
    missing = []
    for case, metric in np.argwhere(np.isnan(values) & (reasons != LEFT_OUT)).tolist():
        title = metric_named(results.metrics[metric]).heading
        missing.append((results.cases[case], title, reasons[case, metric]))
    return missing


def _missing(missing: Sequence[tuple[str, str, str]]) -> list[Part]:
    """The results that are not there, and why: a row for each case and reason."""
    titles: dict[tuple[str, str], list[str]] = {}
    for case, title, reason in missing:
        titles.setdefault((case, reason), []).append(title)
    if not titles:
        return []
    rows, heads = [], ("case", "of", "why")
    for (case, reason), of in titles.items():
        rows.append((case, text_cell(", ".join(of)), text_cell(reason)))
    caption = "Results that are not there, and why"
    return [table_of_rows(caption, heads, rows, words=heads)]
