"""Makes a team's own page of a ranking, and the organisers' page of a team.

The one is made from `OwnStanding`, which holds nothing of other teams; the other has
the team's values among those of all others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flare.challenge.metrics import is_score
from flare.common.text import count, printable, safe
from flare.ranking.rank import Analysis, Standing
from flare.ranking.robustness.uncertainty import RankInterval
from flare.ranking.rules import Values
from flare.reports.charts import blobs, rank_ticks, spread_chart
from flare.reports.model import (
    SCORE_BOUNDS,
    Cell,
    Chart,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    name_cell,
    number_cell,
    rank_shade,
    shade,
    table,
    text_cell,
)
from flare.reports.ranking.organisers import ORGANISERS_NOTE
from flare.reports.ranking.own import OwnMetric, OwnStanding, own_standing
from flare.reports.ranking.page import DRAWS_KEY, PublicRanking
from flare.reports.ranking.words import metric_title, plain

NOTE = (
    "For this team alone: its own values, to three decimals, and ranks. It has nothing"
    " of any other team."
)

LOW = SCORE_BOUNDS[1]
"""A team fails on a case if its score is not above this: the two darkest shades."""

OTHERS = "median of the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInField:
    """A team's values by one metric, and the others'."""

    metric: str
    title: str
    values: tuple[float | None, ...]
    """By case."""
    ranks: tuple[float, ...]
    others: tuple[float | None, ...]
    """The median of all other competing teams that have a result on the case."""
    means: tuple[tuple[str, float | None], ...]
    """What is told of means over the cases: of the team, and of the others."""

    @property
    def is_score(self) -> bool:
        """Whether values are from 0 to 1."""
        return is_score(self.metric)

    @property
    def decimals(self) -> int:
        """How many of them are shown."""
        return 3 if self.is_score else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamInField:
    """What the organisers' page of a team is made from."""

    own: OwnStanding
    cases: tuple[str, ...]
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
    analysis: Analysis, every: Values, standing: Standing, public: PublicRanking
) -> TeamInField:
    """What organisers are told of a team; `every` is of `all_values`."""
    table, team = analysis.table, standing.team
    rivals = {*analysis.board.teams} - {team}
    values = every[table.teams.index(team)]
    others = every[[own in rivals for own in table.teams]]
    medians = middle(others)
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(values.shape)
    return TeamInField(
        own=own_standing(analysis, standing, public),
        cases=table.cases,
        metrics=tuple(
            MetricInField(
                metric=rule.metric,
                title=metric_title(rule.metric),
                values=_known(values[:, n]),
                ranks=tuple(ranks[:, n].tolist()),
                others=_known(medians[:, n]),
                means=_means(values[:, n], others[:, :, n]),
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


def _means(own: Values, others: Values) -> tuple[tuple[str, float | None], ...]:
    """Means over the cases with a result: of the team, and how the others' are."""
    mean = _mean(own)
    every = [found for row in others if (found := _mean(row)) is not None]
    told: list[float | None] = [None] * 3
    if every:
        told = [min(every), float(np.median(every)), max(every)]
    names = ("the team", "lowest of the others", OTHERS, "highest of the others")
    return tuple(zip(names, (mean, *told), strict=True))


def _mean(values: Values) -> float | None:
    """The mean of what is there."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


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
    """The page for the team."""
    charts, heads = [], ["case"]
    for number, metric in enumerate(own.metrics):
        heads += [metric.title] * metric.is_told + [f"rank: {metric.title}"]
        told = [row[number].thousandths for row in own.results]
        values = [None if value is None else value / 1000 for value in told]
        if metric.is_told:
            charts.append(_values(metric, own.cases, {own.team: values}))
    rows = []
    for case, results in zip(own.cases, own.results, strict=True):
        cells = [name_cell(case)]
        for metric, result in zip(own.metrics, results, strict=True):
            value = result.thousandths
            if metric.is_told and value is not None:
                css = shade(value / 1000) if metric.is_score else ""
                cells.append(Cell(metric.text(value), css=css))
            elif metric.is_told:
                cells.append(number_cell(None))
            cells.append(_rank_cell(result.rank, own.teams))
        rows.append(cells)
    caption = "Values and ranks of each case; a rank has a shade of its own"
    cases = table(caption, heads, rows, words=("case",))
    return _page(own, NOTE, charts, cases, own.missing)


def field_page(found: TeamInField, curves: Sequence[Chart]) -> Page:
    """The organisers' page of a team among all others."""
    heads, charts, rows = ["case"], [], []
    teams = found.own.teams
    for own in found.metrics:
        heads += [own.title, f"rank: {own.title}", f"others' {own.title}"]
        named = {found.own.team: own.values, OTHERS: own.others}
        chart = _values(
            own,
            found.cases,
            named,
            decimals=own.decimals,
            has_boxes=True,
            means=_means_table(own),
            name=own.metric,
        )
        charts.append(chart)
    for number, case in enumerate(found.cases):
        cells = [name_cell(case)]
        for own in found.metrics:
            cells.append(_field_cell(own, own.values[number]))
            cells.append(_rank_cell(own.ranks[number], teams))
            cells.append(_field_cell(own, own.others[number]))
        rows.append(cells)
    caption = "Values and ranks of each case, and the median of the other teams"
    cases = table(caption, heads, rows, words=("case",))
    note = "On the cases where it needs most; the page of its folder has all."
    memory: list[Part] = [Words(note, "note"), *curves] if curves else []
    return _page(
        found.own,
        ORGANISERS_NOTE,
        charts,
        cases,
        found.missing,
        tiles=[Tile(name="Fails alone", value=str(len(found.alone)), note="cases")],
        alone=[_alone_table(found)] if found.alone else [],
        more=[Section("memory", "Memory over time", "Memory over time", memory)],
    )


def _page(
    own: OwnStanding,
    audience_note: str,
    charts: Sequence[Chart],
    cases: Table,
    missing: Sequence[tuple[str, str, str]],
    *,
    tiles: Sequence[Tile] = (),
    alone: Sequence[Part] = (),
    more: Sequence[Section] = (),
) -> Page:
    """What both pages have."""
    absent = len({case for case, _, _ in own.missing})
    note = f"results are missing on {absent}" if absent else ""
    lead = [Words("", href="../index.html", link="The ranking of all teams")]
    means = [
        (name_cell(m.title), number_cell(m.mean_rank, decimals=2, css=css))
        for m in own.metrics
        for css in [rank_shade(m.mean_rank, own.teams)]
    ]
    caption = f"Mean ranks over {count(len(own.cases), 'case')}; smaller is better"
    ranks: list[Part | None] = [
        Words(f"{own.score_note}."),
        table(caption, ("metric", "mean rank"), means, words=("metric",)),
        Words(own.gate_note, "note") if own.gate_note else None,
        Words(own.left_out, "note") if own.left_out else None,
    ]
    draws = [_draws_chart(own.draws, own.draws_note) if own.draws else None]
    title = "Cases where it fails alone"
    return Page(
        title=f"{safe(own.team)} in the ranking",
        kicker=printable(own.challenge),
        audience_note=audience_note,
        lead=[*lead, *([Words(own.interim, "banner")] if own.interim else [])],
        tiles=[
            Tile(name="Rank", value=own.place),
            Tile(name="Score", value=f"{own.score:.4f}" if own.rank else "none"),
            Tile(name="Cases", value=str(len(own.cases)), note=note),
            *tiles,
        ],
        sections=[
            Section("ranks", "Ranks", "Ranks by each metric", ranks),
            Section("draws", "How sure it is", "How sure it is", draws),
            Section("alone", "Fails alone", title, alone),
            Section("values", "Values", "Values by each metric", [Pair(charts)]),
            Section("cases", "All cases", "All cases", [cases]),
            Section("missing", "Missing results", "Missing results", _missing(missing)),
            *more,
        ],
    )


def _draws_chart(draws: RankInterval, note: str) -> Chart:
    """How sure the rank of a single team is."""
    shares = list(enumerate(draws.frequencies, 1))
    often = ", ".join(f"{rank} in {part:.1%}" for rank, part in shares if part)
    ends = f"from {draws.lowest} to {draws.highest}"
    return Chart(
        title="Ranks when other cases are drawn",
        note=note,
        summary=f"95 % of the draws {ends}: {often}",
        labels=("rank",),
        rows=[blobs(draws.frequencies, draws.lowest, draws.highest)],
        axis=rank_ticks(len(shares)),
        key=DRAWS_KEY,
        table=table(
            f"Percent of the draws with each rank; 95 % of them {ends}",
            ("rank", *(str(rank) for rank, _ in shares)),
            [("percent", *(f"{100 * p:.1f}" if p else "" for _, p in shares))],
            words=("rank",),
            sortable=False,
        ),
    )


def _values(
    metric: OwnMetric | MetricInField,
    cases: Sequence[str],
    rows: Mapping[str, Sequence[float | None]],
    *,
    decimals: int = 3,
    has_boxes: bool = False,
    means: Table | None = None,
    name: str = "",
) -> Chart:
    """A row of dots for each of some named sequences of values."""
    number = sum(value is not None for row in rows.values() for value in row)
    return spread_chart(
        "dsc" if metric.is_score else name,
        [safe(name) for name in rows],
        list(rows.values()),
        has_boxes=has_boxes,
        title=metric.title,
        summary=f"{number} values of {count(len(cases), 'case')}, as in the tables",
        table=means,
        tips=(cases, list(rows.values()), decimals),
    )


def _rank_cell(rank: float, teams: int) -> Cell:
    """A rank on its shade."""
    return Cell(str(plain(rank)), css=rank_shade(rank, teams))


def _field_cell(own: MetricInField, value: float | None) -> Cell:
    """A value on its shade."""
    css = shade(value) if value is not None and own.is_score else ""
    return number_cell(value, decimals=own.decimals, css=css)


def _means_table(own: MetricInField) -> Table:
    """The mean over the cases, and those of the others."""
    rows = [
        (name_cell(name), number_cell(mean, decimals=own.decimals, exact=True))
        for name, mean in own.means
    ]
    caption = f"{own.title}: means over the cases with a result"
    return table(caption, ("whose", "mean"), rows, words=("whose",))


def _alone_table(found: TeamInField) -> Table:
    """Where the team fails, and no other."""
    title = next(own.title for own in found.metrics if own.is_score)
    caption = f"{count(len(found.alone), 'case')} where it alone has no {title} above"
    rows = (
        (
            name_cell(case),
            number_cell(score, css="" if score is None else shade(score)),
            number_cell(lowest, css=shade(lowest)),
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
