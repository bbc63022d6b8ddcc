"""Makes the organisers' page of a ranking, and the charts of all teams' values."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from flare.challenge.metrics import Metric
from flare.common.text import count, listing, safe
from flare.ranking.rank import Analysis
from flare.ranking.sensitivity import Scheme
from flare.ranking.uncertainty import methods_of
from flare.reports.charts import (
    field_chart,
    gain_shade,
    rank_ticks,
    spread_chart,
)
from flare.reports.evaluation import GROUPS_NOTE
from flare.reports.model import (
    ABSENT,
    MANY_ROWS,
    NO_RESULT,
    Cell,
    Chart,
    Column,
    Fields,
    Heading,
    Key,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Words,
    folded,
    metric_key,
    metric_shade,
    number_cell,
    table_of,
    table_of_rows,
    text_cell,
)
from flare.reports.ranking.page import (
    LOOKED_AT,
    ORGANISERS_NOTE,
    lines_or,
    ranking_page,
)
from flare.reports.ranking.values import MetricValues, WholeRanking
from flare.reports.ranking.words import (
    missing_lines,
    recount_text,
    scheme_moves,
    scheme_title,
    tau_text,
    tests_text,
)
from flare.reports.scores import Mean, group_title, metric_cell
from flare.results.groups_csv import Grouping
from flare.results.scores import present
from flare.statistics import ALPHA
from flare.statistics.paired import fewest_cases_to_test

TIMES_NOTE = (
    "Distances, running time and memory have no interval: one organ that is missed, or"
    " one slow run, can decide their mean."
)
TESTS_NOTE = (
    "A field is filled where the team of the row is significantly better than the team"
    " of the column, which has the number of its row: {}, 5 %, after Holm over all"
    " ordered pairs of a metric. The darker, the larger the effect (matched-pairs"
    " rank-biserial correlation{})."
)
EFFECTS = (0.25, 0.5, 0.75)
"""An effect above a bound has a darker shade than one up to it."""

EFFECT_KEY: Key = (
    ("e0", "effect up to 0.25"),
    ("e1", "up to 0.50"),
    ("e2", "up to 0.75"),
    ("e3", "above"),
)


_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": np.mean,
    "lowest": min,
    "first quartile": partial(np.quantile, q=0.25),
    "median": partial(np.quantile, q=0.5),
    "third quartile": partial(np.quantile, q=0.75),
    "highest": max,
}
"""The columns of a table of values by their heads."""


def organiser_page(
    ranking: WholeRanking,
    links: Mapping[str, str],
    case_links: Mapping[str, str] | None = None,
) -> Page:
    """Everything that organisers look at before they publish.

    `links` leads to the pages of teams, `case_links` to those of cases by all teams.
    """
    analysis, metrics = ranking.analysis, ranking.metrics
    hard = _hard_cases(metrics, case_links or {})
    doubts: list[Part] = []
    tests: list[Part] = []
    schemes: list[Part] = []
    if len(ranking.public.teams) > 1:
        cases = len(analysis.board.cases)
        rules = analysis.rules
        recounts = [recount_text(w, cases, rules) for w in analysis.sensitivity]
        doubts = [Heading("What first place depends on"), Lines(recounts)]
        tests = _tests_parts(analysis, metrics)
        schemes = [Words(_firsts_text(analysis.schemes))]
        schemes.append(schemes_chart(analysis.schemes))
    charts: list[Part] = [Pair(list(map(values_chart, ranking.of_each_case)))]
    if len(ranking.of_each_case) < len(metrics):
        charts.append(_answers_table(metrics))
    page = ranking_page(
        ranking.public,
        links,
        look=analysis.flags,
        doubts=doubts,
        means=_mean_parts(ranking),
        sections=[
            _look_section(analysis),
            Section("cases", "Cases", "Which cases are hard, and for whom", hard),
            Section("values", "Values", "Values by each metric", charts),
            Section("tests", "Tests", "Who is better than whom", tests),
            Section("schemes", "Other schemes", "Ranked in other ways", schemes),
        ],
    )
    title = f"{page.title}, for organisers"
    return replace(page, title=title, audience_note=ORGANISERS_NOTE)


def _look_section(analysis: Analysis) -> Section:
    """All flags, unless the box above the ranking has them, and missing results."""
    missing = missing_lines(analysis)
    missing_parts: list[Part] = [Lines(missing)] if missing else []
    flags = analysis.flags
    is_told_above = 0 < len(flags) <= LOOKED_AT
    if is_told_above:
        return Section("look", "Missing results", "Missing results", missing_parts)
    look: list[Part] = [lines_or(flags, "Nothing odd was found.")]
    if missing:
        look += [Heading("Missing results"), *missing_parts]
    title = "To be looked at before it is published"
    return Section("look", "To be looked at", title, look)


def _hard_cases(
    metrics: Sequence[MetricValues], case_links: Mapping[str, str]
) -> list[Part]:
    """The map of cases by the first metric that tells it, and the pages of cases."""
    parts: list[Part] = []
    for case, file in case_links.items():
        parts.append(Words(" by every team, side by side", href=file, link=case))
    for values in metrics:
        if values.has_hard_cases:
            return [*parts, case_chart(values, case_links)]
    return parts


def _answers_table(metrics: Sequence[MetricValues]) -> Table:
    columns = [Column("team", metrics[0].teams, is_text=True)]
    for values in metrics:
        if not values.metric.is_of_each_case:
            (numbers,) = zip(*values.rows, strict=True)
            cell = partial(metric_cell, values.metric, is_shaded=False)
            columns.append(Column(values.metric.heading, map(cell, numbers)))
    return table_of("Values of all cases together", columns)


def _tests_parts(analysis: Analysis, metrics: Sequence[MetricValues]) -> list[Part]:
    """The tests of all pairs of teams; or how many cases it takes for any to tell."""
    teams, cases = len(analysis.board.teams), len(analysis.board.cases)
    fewest = fewest_cases_to_test(teams * (teams - 1))
    # Of fewer cases, steps of one size can be enough.
    is_any_sure = any(test.p_holm <= ALPHA for test in analysis.tests)
    names = analysis.rules.names
    if cases < fewest and not is_any_sure and not analysis.rules.of_all_cases:
        too_few = (
            f"Of {count(cases, 'case')} no test can tell: it takes {fewest}"
            " until any difference is significant, however large."
        )
        return [Words(too_few)]
    charts = [tests_chart(values) for values in metrics]
    effect = "".join(method.effect for method in methods_of(analysis.rules.records))
    return [Words(TESTS_NOTE.format(tests_text(names), effect)), Pair(charts)]


def _mean_parts(ranking: WholeRanking) -> list[Part]:
    parts: list[Part] = []
    for grouping in ranking.groupings:
        parts.append(Heading(f"Means by {grouping.column}"))
        parts += folded(map(partial(mean_table, grouping), ranking.of_each_case))
    if parts:
        parts.append(Words(f"{GROUPS_NOTE} {TIMES_NOTE}", "note"))
    return parts


def mean_table(grouping: Grouping, values: MetricValues) -> Table:
    """The means of a metric in all groups."""
    metric = values.metric
    columns = [Column("team", values.teams, is_text=True)]
    for group, cases in grouping.groups:
        cells = []
        for team in range(len(values.teams)):
            mean, missing = values.mean_and_missing(team, cases)
            cells.append(_mean_cell(metric, mean, missing))
        columns.append(Column(group_title(group, len(cases)), cells))
    intervals = ", with 95 % intervals" if metric.is_share else ""
    caption = f"{metric.heading} by {grouping.column}: means{intervals}"
    caption = "; ".join(filter(None, (caption, values.counted_text)))
    return table_of(caption, columns)


def _mean_cell(metric: Metric, mean: Mean, missing: int) -> Cell:
    """The mean of a group, its interval, and the number of missing results."""
    if mean.value is None:
        return number_cell(None)
    text = metric.text(mean.value)
    if metric.is_share:
        text += f" ({mean.interval_text})"
    if missing:
        text += f", {missing} missing"
    return Cell(text, exact=repr(mean.value))


def hardest_first(values: Sequence[Sequence[float | None]]) -> list[int]:
    """The numbers of the cases, lowest mean first; a missing score counts as 0."""
    cases = zip(*values, strict=True)
    sums = [math.fsum(value or 0.0 for value in case) for case in cases]
    return sorted(range(len(sums)), key=lambda number: (sums[number], number))


def case_chart(values: MetricValues, links: Mapping[str, str] | None = None) -> Chart:
    """The values of each team and case: which cases are hard, and for whom.

    `links` leads to the pages of cases by all teams.
    """
    links = links or {}
    metric, shade_of = values.metric, partial(metric_shade, values.metric)
    order = hardest_first(values.rows)
    names = [values.cases[number] for number in order]
    ordered = [[row[number] for number in order] for row in values.rows]
    cases = [Cell(case, href=links.get(case, "")) for case in names]
    columns = [Column("case", cases, is_text=True)]
    for team, row in zip(values.teams, ordered, strict=True):
        cells = [number_cell(value, css=shade_of(value)) for value in row]
        columns.append(Column(team, cells))
    caption = f"{metric.heading} of each case and team, the hardest cases first"
    return field_chart(
        values.teams,
        names,
        ordered,
        shade_of,
        ".2f",
        title=f"{metric.heading} of each team and case, the hardest case first",
        note=_order_words(names),
        summary=f"the hardest case is {names[0]}, the easiest {names[-1]}",
        key=(*metric_key(metric), (ABSENT, NO_RESULT)),
        axis_title=f"{count(len(names), 'case')}, the hardest first",
        table=table_of(caption, columns),
        is_map=True,
    )


def _order_words(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"The only case is {names[0]}."
    return (
        f"From left to right: {names[0]} to {names[-1]}, by their mean over all"
        f" teams; the hardest are {listing(names[:3])}."
    )


def values_chart(values: MetricValues) -> Chart:
    """How the values of each team are spread."""
    metric, labels = values.metric, []
    counted_rows = list(map(values.counted_row, range(len(values.teams))))
    for number, team in enumerate(values.teams):
        _, absent = values.mean_and_missing(number, range(len(values.cases)))
        labels.append(f"({absent} missing) {team}" if absent else team)
    tips = values.cases, values.rows, metric.decimals
    return spread_chart(
        values.axis,
        labels,
        values.rows,
        counted=counted_rows,
        has_boxes=True,
        title=metric.heading,
        summary=f"{len(values.teams)} teams, best first; the table has the statistics",
        table=_statistics_table(values, counted_rows),
        # Of more teams, the page would become too large.
        tips=tips if len(values.teams) <= MANY_ROWS else None,
    )


def _statistics_table(
    values: MetricValues, counted_rows: Sequence[Sequence[float | None]]
) -> Table:
    """The mean and the quartiles of each team, and how many results are missing."""
    metric = values.metric
    absent = [row.count(None) or "none" for row in values.rows]
    columns = [Column("team", values.teams, is_text=True), Column(NO_RESULT, absent)]
    all_results = list(map(present, counted_rows))
    for head, statistic in _STATISTICS.items():
        cells = []
        for results in all_results:
            value = statistic(results) if results else None
            cells.append(metric_cell(metric, value, is_shaded=False))
        columns.append(Column(head, cells))
    caption = f"{metric.heading}: statistics of all cases"
    caption = "; ".join(filter(None, (caption, values.counted_text)))
    return table_of(caption, columns)


def tests_chart(values: MetricValues) -> Chart:
    """How much better each team is than each other one, and how surely.

    Teams are in the order of the metric itself, so that significant pairs lie above the
    diagonal; behind each name is its place in the whole ranking.
    """
    title, fields, ends = values.metric.heading, [], []
    places = {team: place for place, team in enumerate(values.teams, start=1)}
    teams, effects = values.own_order, values.effects
    labels = [f"{n} {team}" for n, team in enumerate(teams, start=1)]
    rivals = _significant_rivals(values)
    columns = [
        Column("team", labels, is_text=True),
        Column("place", map(places.get, teams)),
    ]
    for number, other in enumerate(teams, start=1):
        texts = [_effect_text(effects.get((team, other))) for team in teams]
        columns.append(Column(str(number), texts))
    for team in teams:
        shades = [_effect_shade(effects.get((team, other))) for other in teams]
        fields.append(Fields(shades))
        beaten, beaten_by = rivals[team]
        ends.append(f"{len(beaten)} / {len(beaten_by)}")
    _, better = rivals[values.teams[0]]
    note = f"In the order of {title} alone; behind a row: teams beaten, beaten by."
    if better:
        winner = safe(values.teams[0])
        note += f" Significantly better than {winner}: {listing(better)}."
    sure = sum(is_sure for _, is_sure in values.effects.values())
    caption = f"{title}: effect of row against column (-1 to 1); * significant"
    return Chart(
        title=title,
        note=note,
        summary=f"{sure} of {len(values.effects)} ordered pairs differ significantly",
        labels=tuple(labels),
        rows=fields,
        ends=tuple(ends),
        ends_title="beats/by",
        axis=rank_ticks(len(values.teams)),
        axis_title="than team",
        key=EFFECT_KEY,
        table=table_of(caption, columns, sortable=False),
    )


def _significant_rivals(values: MetricValues) -> dict[str, tuple[list[str], list[str]]]:
    """The teams that each is significantly better than, and those better than it."""
    rivals: dict[str, tuple[list[str], list[str]]] = {}
    for team in values.teams:
        rivals[team] = [], []
    for (better, worse), (_, is_significant) in values.effects.items():
        if is_significant:
            rivals[better][0].append(worse)
            rivals[worse][1].append(better)
    return rivals


def _effect_text(effect: tuple[float, bool] | None) -> str:
    """An effect, with a star if it is significant; nothing of a team with itself."""
    if effect is None:
        return ""
    size, is_significant = effect
    return f"{size:+.2f}{'*' * is_significant}"


def _effect_shade(effect: tuple[float, bool] | None) -> str:
    if effect is None or not effect[1]:
        return ""
    return f"e{bisect_left(EFFECTS, effect[0])}"


GAIN_BOUNDS = (0, 1, 3)
"""A team that gains, or loses, more places than one of these has a darker shade."""

MOVES_KEY: Key = (("g2", "places gained"), ("s4", "places lost"))


def _telling(schemes: Sequence[Scheme]) -> Sequence[Scheme]:
    """Ways of ranking that have all teams, but those that tie all of them.

    If each of them ties all teams, they are all told.
    """
    whole = [scheme for scheme in schemes if scheme.left_out is None]
    return [scheme for scheme in whole if scheme.tau is not None] or whole


def _firsts_text(schemes: Sequence[Scheme]) -> str:
    """Who is first in other ways of ranking that have all teams."""
    ways: dict[str, list[str]] = {}
    telling = _telling(schemes)
    for scheme in telling:
        for team, rank in scheme.ranks.items():
            if rank == 1:
                ways.setdefault(safe(team), []).append(scheme_title(scheme))
    number = len(telling)
    most = max(ways, key=lambda team: len(ways[team]))
    titles_of_most = ways.pop(most)
    phrases = [f"{most} is first in {len(titles_of_most)} of {count(number, 'way')}"]
    phrases += (f"{team} {listing(titles)}" for team, titles in ways.items())
    return f"{'; '.join(phrases)}."


def schemes_chart(schemes: Sequence[Scheme]) -> Chart:
    """The places that each team gains or loses in other ways of ranking.

    Ways without one of the teams are in the table alone, and so is what ties all of
    them, and what moves nobody, unless nothing moves anybody.
    """
    whole = _telling(schemes)
    moving = [scheme for scheme in whole if scheme.moved]
    shown = moving or whole
    teams = tuple(shown[0].before)
    gains = []
    for scheme in shown:
        gains.append([scheme.before[team] - scheme.ranks[team] for team in teams])
    return field_chart(
        [scheme_title(scheme) for scheme in shown],
        teams,
        gains,
        partial(gain_shade, bounds=GAIN_BOUNDS),
        "+.0f",
        title="Who moves, with Kendall's tau",
        note=f"From left to right: {teams[0]} to {teams[-1]}, as in the ranking.",
        summary=f"{count(len(moving), 'way')} of ranking a team moves in",
        ends=tuple(map(tau_text, shown)),
        ends_title="tau",
        axis=rank_ticks(len(teams)),
        axis_title="place in the ranking",
        key=MOVES_KEY,
        table=_schemes_table(schemes),
        has_whole_labels=True,
    )


def _schemes_table(schemes: Sequence[Scheme]) -> Table:
    moves_by_scheme, still = scheme_moves(schemes)
    rows = []
    for scheme, moves in moves_by_scheme:
        tau = number_cell(scheme.tau, decimals=2, exact=True)
        tau = replace(tau, text=tau_text(scheme))
        rows.append((scheme_title(scheme), tau, text_cell(", ".join(moves))))
    if still:
        rows.append((still, Cell(""), text_cell("nobody")))
    caption = "Other schemes: Kendall's tau with the ranking, and who moves"
    heads = ("scheme", "tau", "who moves")
    return table_of_rows(caption, heads, rows, words=("scheme", "who moves"))
