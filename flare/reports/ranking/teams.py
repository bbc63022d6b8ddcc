"""Makes a team's own page of a ranking, and the organisers' page of a team.

The one is made from `OwnStanding`, which holds nothing of other teams; the other has
the team's values among those of all others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from flare.challenge.metrics import is_score
from flare.common.text import count, printable, safe
from flare.ranking.means import Means
from flare.ranking.rank import Analysis, Standing
from flare.ranking.rules import Values
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
    metric_shade,
    name_cell,
    number_cell,
    rank_shade,
    table,
    text_cell,
)
from flare.reports.ranking.organisers import ORGANISERS_NOTE
from flare.reports.ranking.own import OwnMetric, OwnStanding, own_standing
from flare.reports.ranking.page import PublicRanking, draws_chart
from flare.reports.ranking.words import counted_text, decimals_of, metric_title, plain

NOTE = (
    "For this team alone: its own values, to three decimals, and ranks. It has nothing"
    " of any other team."
)

LOW = 0.5
"""A team fails on a case if its score is not above this: the two darkest shades."""

OTHERS = "median of the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInField:
    """A team's values by one metric, and the others'."""

    metric: str
    values: tuple[float | None, ...]
    """By case."""
    others: tuple[float | None, ...]
    """The median of all other competing teams that have a result on the case."""
    mean: float | None
    other_means: tuple[float | None, ...]
    """Of the means of the others the lowest, the median and the highest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamInField:
    """What the organisers' page of a team is made from."""

    own: OwnStanding
    metrics: tuple[MetricInField, ...]
    alone: tuple[tuple[str, float | None, float], ...]
    """Cases where it fails, and no other: its score, and the lowest of the others."""
    missing: tuple[tuple[str, str, str], ...]
    """With the whole reasons, of which a team is told less."""


def all_values(analysis: Analysis) -> Values:
    """The values of all teams, of shape (teams, cases, metrics)."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    return analysis.table.cube("value", analysis.table.teams, metrics)


def team_in_field(
    analysis: Analysis,
    every: Values,
    standing: Standing,
    public: PublicRanking,
    means: Means,
) -> TeamInField:
    """What organisers are told of a team; `every` is of `all_values`."""
    told = {(own.metric, own.team): own.mean for own in means.rows if not own.organ}
    table, team = analysis.table, standing.team
    rivals = {*analysis.board.teams} - {team}
    values = every[table.teams.index(team)]
    others = every[[own in rivals for own in table.teams]]
    medians = middle(others)
    return TeamInField(
        own=own_standing(analysis, standing, public, means.counted),
        metrics=tuple(
            MetricInField(
                metric=rule.metric,
                values=_known(values[:, n]),
                others=_known(medians[:, n]),
                mean=told[rule.metric, team],
                other_means=_ends(told[rule.metric, own] for own in rivals),
            )
            for n, rule in enumerate(analysis.rules.metrics)
        ),
        alone=_alone(analysis, values, others),
        missing=tuple(
            (found.case, metric_title(found.metric), found.reason)
            for found in table.missing
            if found.team == team
        ),
    )


def middle(values: Values) -> Values:
    """The median over the first axis of what is not NaN; NaN where all are.

    Examples
    --------
    >>> middle(np.array([[1.0, np.nan], [np.nan, np.nan], [4.0, np.nan]])).tolist()
    [2.5, nan]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what is NaN alone
        found: Values = np.nanmedian(values, axis=0)
    return found


def _known(values: Values) -> tuple[float | None, ...]:
    """Values; None where a table has NaN."""
    return tuple(None if math.isnan(v) else v for v in values.tolist())


def _ends(means: Iterable[float | None]) -> tuple[float | None, ...]:
    """The lowest, the median and the highest of some means."""
    known = [mean for mean in means if mean is not None]
    if not known:
        return (None,) * 3
    return min(known), float(np.median(known)), max(known)


def _alone(
    analysis: Analysis, values: Values, others: Values
) -> tuple[tuple[str, float | None, float], ...]:
    """The cases on which a team fails by its first score, and no other team does."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    scores = [n for n, metric in enumerate(metrics) if is_score(metric)]
    if not scores or not len(others):
        return ()
    own, rest = values[:, scores[0]], others[:, :, scores[0]]
    lowest = np.nan_to_num(rest).min(axis=0)
    failed = ~(own > LOW) & (lowest > LOW)
    cases = analysis.table.cases
    return tuple(
        (cases[n], _known(own[n : n + 1])[0], float(lowest[n]))
        for n in np.flatnonzero(failed)
    )


# --- The pages --------------------------------------------------------------------


def ranked_team_page(own: OwnStanding) -> Page:
    """The page for the team, which leads nowhere: it is sent alone."""
    values = [
        [None if own.thousandths is None else own.thousandths / 1000 for own in column]
        for column in zip(*own.results, strict=True)
    ]
    return _page(own, NOTE, values, own.missing)


def field_page(found: TeamInField, curves: Sequence[Chart]) -> Page:
    """The organisers' page of a team among all others."""
    page = _page(
        found.own,
        ORGANISERS_NOTE,
        [metric.values for metric in found.metrics],
        found.missing,
        found.metrics,
    )
    note = Words("On the cases where it needs most; the page of its folder has all.")
    ranks, *sections = page.sections
    title = "Cases where it fails alone"
    alone = [_alone_table(found)] if found.alone else []
    return replace(
        page,
        lead=[
            Words("", href=f"../{INDEX}", link="The ranking of all teams"),
            *page.lead,
        ],
        tiles=[
            *page.tiles,
            Tile(name="Fails alone", value=str(len(found.alone)), note="cases"),
        ],
        sections=[
            ranks,
            Section("alone", "Fails alone", title, alone),
            *sections,
            Section(
                "memory",
                "Memory over time",
                "Memory over time",
                [note, *curves] if curves else [],
            ),
        ],
    )


def _page(
    own: OwnStanding,
    audience_note: str,
    values: Sequence[Sequence[float | None]],
    missing: Sequence[tuple[str, str, str]],
    field: Sequence[MetricInField] = (),
) -> Page:
    """What both pages have; `values` are by metric, and `field` is for organisers."""
    charts, heads, columns = [], ["case"], [list(map(name_cell, own.cases))]
    for number, metric in enumerate(own.metrics):
        named = {own.team: values[number]}
        if field:
            named[OTHERS] = field[number].others
        if metric.is_told or field:
            charts.append(_values(metric, own.cases, named, has_boxes=bool(field)))
            heads.append(metric.title)
            columns.append([_value_cell(metric, value) for value in values[number]])
        heads.append(f"rank: {metric.title}")
        columns.append([_rank_cell(row[number].rank, own.teams) for row in own.results])
        if field:
            heads.append(f"others' {metric.title}")
            columns.append([_value_cell(metric, v) for v in field[number].others])
    caption = "Values and ranks of each case; a rank has a shade of its own"
    if field:
        caption = "Values and ranks of each case, and the median of the other teams"
    cases = table(caption, heads, zip(*columns, strict=True), words=("case",))
    ranks: list[Part] = [
        _means_table(own, values, field),
        *(Words(note, "note") for note in (own.gate_note, own.left_out) if note),
    ]
    draws = [draws_chart(own.draws, own.draws_note) if own.draws else None]
    absent = len({case for case, _, _ in own.missing})
    return Page(
        title=f"{safe(own.team)} in the ranking",
        kicker=printable(own.challenge),
        audience_note=audience_note,
        lead=[Words(own.interim, "banner")] if own.interim else [],
        tiles=[
            Tile(name="Rank", value=own.place),
            Tile(
                name="Score",
                value=f"{own.score:.4f}" if own.rank else "none",
                note="from the mean ranks; smaller is better"
                if own.rank
                else own.score_note,
            ),
            Tile(
                name="Cases",
                value=str(len(own.cases)),
                note=f"results are missing on {absent}" if absent else "",
            ),
        ],
        sections=[
            Section("ranks", "Ranks", "Means and ranks by each metric", ranks),
            Section("draws", "How sure it is", "How sure it is", draws),
            Section("values", "Values", "Values by each metric", [Pair(charts)]),
            Section("cases", "All cases", "All cases", [cases]),
            Section("missing", "Missing results", "Missing results", _missing(missing)),
        ],
    )


def _mean(values: Sequence[float | None], counted: float | None) -> float | None:
    """The mean, in which missing values count, or are left out; None of no value."""
    known = [value for value in values if value is not None]
    if known and counted is not None:
        known += [counted] * (len(values) - len(known))
    return fmean(known) if known else None


def _means_table(
    own: OwnStanding,
    values: Sequence[Sequence[float | None]],
    field: Sequence[MetricInField],
) -> Table:
    """Means and mean ranks by metric; for organisers, means of the others as well."""
    rows = []
    for number, metric in enumerate(own.metrics):
        css = rank_shade(metric.mean_rank, own.teams)
        decimals, counted = decimals_of(metric.metric), own.counted.get(metric.metric)
        means: Sequence[float | None] = (_mean(values[number], counted),)
        if field:
            means = (field[number].mean, *field[number].other_means)
        mean, *others = (
            number_cell(m, decimals=decimals, exact=bool(field)) for m in means
        )
        rank = number_cell(metric.mean_rank, decimals=2, css=css)
        shown = mean if metric.is_told or field else Cell("not told", css="none")
        rows.append((name_cell(metric.title), shown, rank, *others))
    heads = ["metric", "mean", "mean rank"]
    if field:
        heads += [f"others: {what}" for what in ("lowest", "median", "highest")]
    caption = f"Means and mean ranks over {count(len(own.cases), 'case')}"
    if own.missing and own.counted:
        caption = f"{caption}; a missing result {counted_text(own.counted)}"
    return table(caption, heads, rows, words=("metric",))


def _values(
    metric: OwnMetric,
    cases: Sequence[str],
    rows: Mapping[str, Sequence[float | None]],
    *,
    has_boxes: bool,
) -> Chart:
    """A row of dots for each of some named sequences of values."""
    number = sum(value is not None for row in rows.values() for value in row)
    return spread_chart(
        metric.metric,
        [safe(name) for name in rows],
        list(rows.values()),
        has_boxes=has_boxes,
        title=metric.title,
        summary=f"{number} values of {count(len(cases), 'case')}, as in the tables",
        tips=(cases, list(rows.values()), decimals_of(metric.metric)),
    )


def _rank_cell(rank: float, teams: int) -> Cell:
    """A rank on its shade."""
    return Cell(str(plain(rank)), css=rank_shade(rank, teams))


def _value_cell(metric: OwnMetric, value: float | None) -> Cell:
    """A value; that of a score on its shade."""
    css = metric_shade(metric.metric, value)
    return number_cell(value, decimals=decimals_of(metric.metric), css=css)


def _alone_table(found: TeamInField) -> Table:
    """Where the team fails, and no other."""
    own = next(own for own in found.own.metrics if is_score(own.metric))
    title = own.title
    caption = f"{count(len(found.alone), 'case')} where it alone has no {title} above"
    rows = (
        (
            name_cell(case),
            number_cell(score, css=metric_shade(own.metric, score)),
            number_cell(lowest, css=metric_shade(own.metric, lowest)),
        )
        for case, score, lowest in found.alone
    )
    heads = ("case", title, "lowest of the others")
    return table(f"{caption} {LOW:g}", heads, rows, words=("case",))


def _missing(missing: Sequence[tuple[str, str, str]]) -> list[Part]:
    """The results that are not there, and why: a row for each case and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for case, title, reason in missing:
        found.setdefault((case, reason), []).append(title)
    rows = [
        (name_cell(case), text_cell(", ".join(titles)), text_cell(reason))
        for (case, reason), titles in found.items()
    ]
    heads = ("case", "of", "why")
    caption = "Results that are not there, and why"
    return [table(caption, heads, rows, words=heads)] if rows else []
