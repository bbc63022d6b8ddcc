"""Makes the organisers' page of a ranking, and the charts of all teams' values."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flare.common.text import count
from flare.ranking.rank import Analysis
from flare.ranking.sensitivity import Scheme
from flare.ranking.uncertainty import ALPHA, fewest_cases_to_test
from flare.reports.charts import field_chart, rank_ticks, spread_chart
from flare.reports.evaluation import GROUPS_NOTE
from flare.reports.model import (
    ABSENT,
    MANY_ROWS,
    NO_RESULT,
    Cell,
    Chart,
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
    metric_key,
    metric_shade,
    number_cell,
    table,
    text_cell,
)
from flare.reports.ranking.page import (
    LOOKED_AT,
    ORGANISERS_NOTE,
    PublicRanking,
    lines_or,
    ranking_page,
)
from flare.reports.ranking.words import (
    Printed,
    missing_lines,
    printed,
    recount_text,
    scheme_moves,
)
from flare.reports.scores import Mean, group_title
from flare.results.groups_csv import Grouping

TIMES_NOTE = (
    "Running time and memory have no interval: they have no bounds, on which those of"
    " scores rest."
)
TESTS_NOTE = (
    "A field is filled where the team of the row is significantly better than the team"
    " of the column, which has the number of its row: one-sided Wilcoxon tests paired"
    " by case, 5 %, after Holm over all ordered pairs of a metric. The darker, the"
    " larger the effect (matched-pairs rank-biserial correlation)."
)

EFFECTS = (0.25, 0.5, 0.75)
"""An effect above a bound has a darker shade than one up to it."""

EFFECT_KEY: Key = (
    ("e0", "effect up to 0.25"),
    ("e1", "up to 0.50"),
    ("e2", "up to 0.75"),
    ("e3", "above"),
)


@dataclass(frozen=True, slots=True)
class MetricValues:
    """The values of all competing teams by one metric, and how they differ."""

    metric: Printed
    teams: Sequence[str]
    """In the order of the ranking."""
    cases: Sequence[str]
    values: Sequence[Sequence[float | None]]
    """By team, and case."""
    effects: Mapping[tuple[str, str], tuple[float, bool]]
    """How much better a team is than another one, and whether significantly so."""


def metric_values(analysis: Analysis) -> list[MetricValues]:
    """The values of all teams, by metric; None where a table has NaN."""
    board = analysis.board
    return [
        MetricValues(
            printed(name),
            board.teams,
            board.cases,
            [
                [None if math.isnan(value) else value for value in row]
                for row in board.values[:, :, number].tolist()
            ],
            {
                (test.team, test.other): (test.effect, test.p_holm <= ALPHA)
                for test in analysis.tests
                if test.metric == name
            },
        )
        for number, name in enumerate(analysis.rules.names)
    ]


def organiser_page(
    analysis: Analysis,
    public: PublicRanking,
    metrics: Sequence[MetricValues],
    groupings: Sequence[Grouping],
    links: Mapping[str, str],
) -> Page:
    """Everything that organisers look at before they publish."""
    cases = analysis.board.cases
    flags = list(analysis.flags)
    look: list[Part] = []
    if not 0 < len(flags) <= LOOKED_AT:
        look = [lines_or(flags, "Nothing odd was found.")]
    if missing := missing_lines(analysis):
        look += [Heading("Missing results"), Lines(missing)]
    hard = [case_chart(own) for own in metrics if own.metric.is_score][:1]
    doubts: list[Part] = []
    tests: list[Part] = []
    others: list[Part] = []
    if len(public.teams) > 1:
        recount = [recount_text(own, len(cases)) for own in analysis.sensitivity]
        doubts = [Heading("What first place depends on"), Lines(recount)]
        tests = [Words(TESTS_NOTE), Pair([tests_chart(own) for own in metrics])]
        fewest = fewest_cases_to_test(len(public.teams) * (len(public.teams) - 1))
        # Of fewer cases, steps of one size can be enough.
        is_shown = any(test.p_holm <= ALPHA for test in analysis.tests)
        if len(cases) < fewest and not is_shown:
            few = (
                f"Of {count(len(cases), 'case')} no test can tell: it takes {fewest}"
                " until any difference is significant, however large."
            )
            tests = [Words(few)]
        others = [_schemes_table(analysis.schemes)]
    before = "To be looked at before it is published"
    values = [Pair([values_chart(own) for own in metrics])]
    means: list[Part] = []
    for grouping in groupings:
        note = Words(f"{GROUPS_NOTE} {TIMES_NOTE}", "note")
        means += [Heading(f"Means by {grouping.column}"), note]
        means += (mean_table(grouping, each) for each in metrics)
    page = ranking_page(
        public,
        links,
        look=flags,
        doubts=doubts,
        means=means,
        more=[
            Section("look", "To be looked at", before, look),
            Section("cases", "Cases", "Which cases are hard, and for whom", hard),
            Section("values", "Values", "Values by each metric", values),
            Section("tests", "Tests", "Who is better than whom", tests),
            Section("schemes", "Other schemes", "Ranked in other ways", others),
        ],
    )
    title = f"{page.title}, for organisers"
    return replace(page, title=title, audience_note=ORGANISERS_NOTE)


def mean_table(grouping: Grouping, own: MetricValues) -> Table:
    """The means of a metric in all groups."""
    names = (group_title(group, len(cases)) for group, cases in grouping.groups)
    rows = [
        (team, *(_mean_cell(own.metric, row, n) for _, n in grouping.groups))
        for team, row in zip(own.teams, own.values, strict=True)
    ]
    interval = ", with 95 % intervals" if own.metric.is_score else ""
    what = f"means of the cases with a result{interval}"
    caption = f"{own.metric.title} by {grouping.column}: {what}"
    return table(caption, ("team", *names), rows, words=("team",))


def _mean_cell(
    metric: Printed, row: Sequence[float | None], numbers: Sequence[int]
) -> Cell:
    """A mean, its interval, and what is missing."""
    found = Mean(metric.name, [row[number] for number in numbers])
    if found.value is None:
        return number_cell(None)
    text = metric.text(found.value)
    if metric.is_score:
        text += f" ({found.interval_text})"
    if missing := len(numbers) - len(found.known):
        text += f", {missing} missing"
    return Cell(text, exact=repr(found.value))


def hardest_first(values: Sequence[Sequence[float | None]]) -> list[int]:
    """The numbers of the cases, lowest mean first; a missing score counts as 0."""
    cases = zip(*values, strict=True)
    sums = [math.fsum(value or 0.0 for value in case) for case in cases]
    return sorted(range(len(sums)), key=lambda number: (sums[number], number))


def case_chart(own: MetricValues) -> Chart:
    """Which cases are hard, and for whom."""
    shade_of = partial(metric_shade, own.metric.record)
    order = hardest_first(own.values)
    names = [own.cases[number] for number in order]
    rows = (
        (
            own.cases[n],
            *(number_cell(row[n], css=shade_of(row[n])) for row in own.values),
        )
        for n in order
    )
    caption = f"{own.metric.title} of each case and team, the hardest cases first"
    return field_chart(
        own.teams,
        names,
        [[row[number] for number in order] for row in own.values],
        shade_of,
        ".2f",
        title=f"{own.metric.title} of each team and case, the hardest case first",
        note=f"From left to right: {names[0]} to {names[-1]}.",
        summary=f"the hardest case is {names[0]}, the easiest {names[-1]}",
        key=(*metric_key(own.metric.record), (ABSENT, NO_RESULT)),
        axis_title=f"{count(len(names), 'case')}, the hardest first",
        table=table(caption, ("case", *own.teams), rows, words=("case",)),
        is_map=True,
    )


def values_chart(own: MetricValues) -> Chart:
    """How the values of each team are spread."""
    labels, rows = [], []
    for team, values in zip(own.teams, own.values, strict=True):
        known = [value for value in values if value is not None]
        absent = len(values) - len(known)
        labels.append(f"{team} ({absent} missing)" if absent else team)
        numbers: list[float | None] = [None] * 6
        if known:
            quarters = np.quantile(known, (0, 0.25, 0.5, 0.75, 1)).tolist()
            numbers = [float(np.mean(known)), *quarters]
        cells = map(own.metric.cell, numbers)
        rows.append((team, str(absent or "none"), *cells))
    heads = ("mean", "lowest", "first quartile", "median", "third quartile", "highest")
    caption = f"{own.metric.title}: all statistics are of the cases with a result"
    tips = own.cases, own.values, own.metric.decimals
    return spread_chart(
        own.metric.record or own.metric.name,
        labels,
        own.values,
        has_boxes=True,
        title=own.metric.title,
        summary=f"{len(own.teams)} teams, best first; the table has the statistics",
        table=table(caption, ("team", NO_RESULT, *heads), rows, words=("team",)),
        # Of more teams, the page would become too large.
        tips=tips if len(own.teams) <= MANY_ROWS else None,
    )


def tests_chart(own: MetricValues) -> Chart:
    """Which team is better than which other."""
    numbers = range(1, len(own.teams) + 1)
    rows, fields = [], []
    for number, team in zip(numbers, own.teams, strict=True):
        pairs = [own.effects.get((team, other)) for other in own.teams]
        words = (f"{pair[0]:+.2f}{'*' * pair[1]}" if pair else "" for pair in pairs)
        rows.append((f"{number} {team}", *words))
        shades = (f"e{bisect_left(EFFECTS, p[0])}" if p and p[1] else "" for p in pairs)
        fields.append(Fields(list(shades)))
    sure = sum(is_sure for _, is_sure in own.effects.values())
    caption = (
        f"{own.metric.title}: effect of row against column (-1 to 1); * significant"
    )
    heads = ("team", *map(str, numbers))
    return Chart(
        title=own.metric.title,
        summary=f"{sure} of {len(own.effects)} ordered pairs differ significantly",
        labels=tuple(f"{n} {team}" for n, team in enumerate(own.teams, start=1)),
        rows=fields,
        axis=rank_ticks(len(own.teams)),
        axis_title="than team",
        key=EFFECT_KEY,
        table=table(caption, heads, rows, words=("team",), sortable=False),
    )


def _schemes_table(schemes: Sequence[Scheme]) -> Table:
    """Who moves where when the teams are ranked in another way."""
    found, still = scheme_moves(schemes)
    rows: list[tuple[object, ...]] = []
    for scheme, moves in found:
        tau = number_cell(scheme.tau, decimals=2, exact=True)
        if scheme.tau is None:
            tau = replace(tau, text="undefined")
        rows.append((Cell(scheme.name), tau, text_cell(", ".join(moves))))
    if still:
        rows.append((Cell(still), "", text_cell("nobody")))
    heads = ("scheme", "tau", "who moves")
    caption = "Other schemes: Kendall's tau with the ranking, and who moves"
    return table(caption, heads, rows, words=("scheme", "who moves"))
