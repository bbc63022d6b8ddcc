"""Makes the organisers' page of a ranking, and the charts of all teams' values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flare.challenge.metrics import is_score
from flare.common.text import count, listing, printable, safe
from flare.ranking.rank import Analysis
from flare.ranking.robustness.schemes import Scheme
from flare.ranking.robustness.uncertainty import ALPHA, fewest_cases_to_test
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
    name_cell,
    number_cell,
    table,
    text_cell,
)
from flare.reports.ranking.page import (
    LOOKED_AT,
    PublicRanking,
    lines_or,
    ranking_page,
)
from flare.reports.ranking.words import (
    decimals_of,
    metric_title,
    missing_lines,
    recount_text,
)
from flare.reports.scores import group_mean, group_title, interval_words
from flare.results.groups_csv import Grouping

ORGANISERS_NOTE = (
    "For the organisers: it holds all teams' values on all cases. Do not publish it as"
    " it is."
)
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
NOTHING_ODD = "Nothing odd was found."

EFFECTS = (0.25, 0.5, 0.75)
"""An effect above a bound has a darker shade than one up to it."""

EFFECT_KEY: Key = (
    ("e0", "effect up to 0.25"),
    ("e1", "up to 0.50"),
    ("e2", "up to 0.75"),
    ("e3", "above"),
)

ITSELF = "the ranking itself"


@dataclass(frozen=True, slots=True)
class MetricValues:
    """The values of all competing teams by one metric."""

    metric: str
    title: str
    values: tuple[tuple[float | None, ...], ...]
    """By team, in the order of the ranking, and case."""

    @property
    def decimals(self) -> int:
        """Of its values in tables."""
        return decimals_of(self.metric)


def metric_values(analysis: Analysis) -> list[MetricValues]:
    """The values of all teams, by metric; None where a table has NaN."""
    return [
        MetricValues(
            rule.metric,
            metric_title(rule.metric),
            tuple(
                tuple(None if math.isnan(value) else value for value in row)
                for row in analysis.board.values[:, :, number].tolist()
            ),
        )
        for number, rule in enumerate(analysis.rules.metrics)
    ]


def organiser_page(
    analysis: Analysis,
    public: PublicRanking,
    links: Mapping[str, str],
    *,
    groupings: Sequence[Grouping] = (),
    curves: Sequence[Chart] = (),
) -> Page:
    """Everything that organisers look at before they publish."""
    teams, cases, metrics = public.teams, analysis.board.cases, metric_values(analysis)
    flags = [printable(line) for line in analysis.flags]
    missing = missing_lines(analysis)
    look = [] if 0 < len(flags) <= LOOKED_AT else [lines_or(flags, NOTHING_ODD)]
    if missing:
        look += [Heading("Missing results"), Lines(missing)]
    scored = [own for own in metrics if is_score(own.metric)][:1]
    values = [Pair([values_chart(own, teams, cases) for own in metrics])]
    schemes = analysis.schemes if len(teams) > 1 else ()
    doubts: list[Part] = []
    tests: list[Part | None] = []
    if schemes:
        recount = recount_text(analysis.sensitivity, len(cases)).split("\n")
        doubts = [Heading("What first place depends on"), Lines(recount)]
        fewest = fewest_cases_to_test(len(teams))
        few = Words(
            f"Of {count(len(cases), 'case')} no test can tell: it takes {fewest} until"
            " any difference is significant, however large."
        )
        charts = Pair([tests_chart(own, analysis, teams) for own in metrics])
        tests = [few] if len(cases) < fewest else [Words(TESTS_NOTE), charts]
    others = [_schemes_table(schemes)] if schemes else []
    hard = [case_chart(own, teams, cases) for own in scored]
    memory = "Memory over time, on one case"
    before = "To be looked at before it is published"
    more = [
        Section("look", "To be looked at", before, look),
        Section("cases", "Cases", "Which cases are hard, and for whom", hard),
        Section("values", "Values", "Values by each metric", values),
        Section("memory", "Memory over time", memory, curves),
        Section("tests", "Tests", "Who is better than whom", tests),
        Section("schemes", "Other schemes", "Ranked in other ways", others),
    ]
    means: list[Part] = []
    for own in groupings:
        note = Words(f"{GROUPS_NOTE} {TIMES_NOTE}", "note")
        means += [Heading(f"Means by {safe(own.column)}"), note]
        means += (mean_table(own, teams, each) for each in metrics)
    page = ranking_page(
        public,
        links,
        ORGANISERS_NOTE,
        look=flags,
        doubts=doubts,
        means=means,
        more=more,
    )
    return replace(page, title=f"{page.title}, for organisers")


def mean_table(grouping: Grouping, teams: Sequence[str], own: MetricValues) -> Table:
    """The means of a metric in all groups."""
    names = (group_title(group, len(cases)) for group, cases in grouping.groups)
    rows = [
        (name_cell(team), *(_mean_cell(own, row, n) for _, n in grouping.groups))
        for team, row in zip(teams, own.values, strict=True)
    ]
    interval = ", with 95 % intervals" if is_score(own.metric) else ""
    caption = (
        f"{own.title} by {safe(grouping.column)}: means of the cases with a result"
        f"{interval}"
    )
    return table(caption, ("team", *names), rows, words=("team",))


def _mean_cell(
    own: MetricValues, row: Sequence[float | None], numbers: Sequence[int]
) -> Cell:
    """A mean, its interval, and what is missing."""
    found = group_mean(own.metric, row, numbers)
    if found.mean is None:
        return number_cell(None)
    text = f"{found.mean:.{own.decimals}f}"
    if is_score(own.metric):
        text += f" ({interval_words(own.metric, found.interval)})"
    if found.missing:
        text += f", {found.missing} missing"
    return Cell(text, exact=repr(found.mean))


def hardest_first(values: Sequence[Sequence[float | None]]) -> list[int]:
    """The numbers of the cases, lowest mean first; a missing score counts as 0."""
    cases = zip(*values, strict=True)
    sums = [math.fsum(value or 0.0 for value in case) for case in cases]
    return sorted(range(len(sums)), key=lambda number: (sums[number], number))


def case_chart(own: MetricValues, teams: Sequence[str], cases: Sequence[str]) -> Chart:
    """Which cases are hard, and for whom."""
    order = hardest_first(own.values)
    names = [safe(cases[number]) for number in order]
    hardest, easiest = names[0], names[-1]
    return field_chart(
        list(map(safe, teams)),
        names,
        [[row[number] for number in order] for row in own.values],
        partial(metric_shade, own.metric),
        ".2f",
        title=f"{own.title} of each team and case, the hardest case first",
        note=f"From left to right: {hardest} to {easiest}.",
        summary=f"the hardest case is {hardest}, the easiest {easiest}",
        key=(*metric_key(own.metric), (ABSENT, NO_RESULT)),
        axis_title=f"{count(len(cases), 'case')}, the hardest first",
        table=table(
            f"{own.title} of each case and team, the hardest cases first",
            ("case", *map(safe, teams)),
            (
                (
                    name_cell(cases[n]),
                    *(
                        number_cell(row[n], css=metric_shade(own.metric, row[n]))
                        for row in own.values
                    ),
                )
                for n in order
            ),
            words=("case",),
        ),
        is_map=True,
    )


def values_chart(
    own: MetricValues, teams: Sequence[str], cases: Sequence[str]
) -> Chart:
    """How the values of each team are spread."""
    labels, rows = [], []
    for team, values in zip(teams, own.values, strict=True):
        known = [value for value in values if value is not None]
        absent = len(values) - len(known)
        labels.append(f"{safe(team)} ({absent} missing)" if absent else safe(team))
        numbers: list[float | None] = [None] * 6
        if known:
            quarters = np.quantile(known, (0, 0.25, 0.5, 0.75, 1)).tolist()
            numbers = [float(np.mean(known)), *quarters]
        cells = (number_cell(value, decimals=own.decimals) for value in numbers)
        rows.append((name_cell(team), str(absent or "none"), *cells))
    heads = ("mean", "lowest", "first quartile", "median", "third quartile", "highest")
    caption = f"{own.title}: all statistics are of the cases with a result"
    return spread_chart(
        own.metric,
        labels,
        own.values,
        has_boxes=True,
        title=own.title,
        summary=f"{len(teams)} teams, best first; the table has the statistics",
        table=table(caption, ("team", NO_RESULT, *heads), rows, words=("team",)),
        # Of more teams, the page would become too large.
        tips=(cases, own.values, own.decimals) if len(teams) <= MANY_ROWS else None,
    )


Effects = Mapping[tuple[str, str], tuple[float, bool]]
"""By a team and another one: how much better it is, and whether significantly so."""


def effects_of(analysis: Analysis, metric: str) -> Effects:
    """How much better each team is than each other, by a metric."""
    return {
        (test.team, test.other): (test.effect, test.p_holm <= ALPHA)
        for test in analysis.tests
        if test.metric == metric
    }


def tests_chart(own: MetricValues, analysis: Analysis, teams: Sequence[str]) -> Chart:
    """Which team is better than which other."""
    better = effects_of(analysis, own.metric)
    rows, fields = [], []
    for number, team in enumerate(teams, start=1):
        pairs = [better.get((team, other)) for other in teams]
        words = (f"{pair[0]:+.2f}{'*' * pair[1]}" if pair else "" for pair in pairs)
        rows.append((name_cell(f"{number} {team}"), *words))
        shades = (effect_shade(p[0]) if p and p[1] else "" for p in pairs)
        fields.append(Fields(list(shades)))
    sure = sum(is_sure for _, is_sure in better.values())
    return Chart(
        title=own.title,
        summary=f"{sure} of {len(better)} ordered pairs differ significantly",
        labels=tuple(f"{n} {safe(team)}" for n, team in enumerate(teams, start=1)),
        rows=fields,
        axis=rank_ticks(len(teams)),
        axis_title="than team",
        key=EFFECT_KEY,
        table=table(
            f"{own.title}: effect of row against column (-1 to 1); * significant",
            ("team", *map(str, range(1, len(teams) + 1))),
            rows,
            words=("team",),
            sortable=False,
        ),
    )


def effect_shade(effect: float) -> str:
    """The class of an effect's shade.

    Examples
    --------
    >>> effect_shade(0.1), effect_shade(1.0)
    ('e0', 'e3')
    """
    return f"e{sum(effect > bound for bound in EFFECTS)}"


def scheme_ranks(
    schemes: Sequence[Scheme], teams: Sequence[str]
) -> tuple[list[str], list[list[int]]]:
    """Schemes with all teams, the ranking itself first; and the ranks under each."""
    whole = [scheme for scheme in schemes if scheme.left_out is None]
    if not whole:
        return [], []
    names = [ITSELF, *(scheme.name for scheme in whole)]
    columns = [whole[0].before, *(scheme.ranks for scheme in whole)]
    return names, [[ranks[team] for team in teams] for ranks in columns]


def _schemes_table(schemes: Sequence[Scheme]) -> Table:
    """Who moves where when the teams are ranked in another way."""
    still = [s for s in schemes if s.left_out is not None and not s.moved]
    rows: list[tuple[object, ...]] = []
    for scheme in schemes:
        moves = [
            f"{safe(team)} {scheme.before[team]} to {scheme.ranks[team]}"
            for team in scheme.moved
        ]
        tau = number_cell(scheme.tau, decimals=2, exact=True)
        if scheme.tau is None:
            tau = replace(tau, text="undefined")
        if scheme not in still:
            rows.append((scheme.name, tau, text_cell(", ".join(moves) or "nobody")))
    if still:
        names = listing(scheme.left_out or "" for scheme in still)
        name = f"without any one of {names}" if len(still) > 1 else still[0].name
        rows.append((printable(name), "", text_cell("nobody")))
    return table(
        "Other schemes: Kendall's tau with the ranking, and who moves",
        ("scheme", "tau", "who moves"),
        rows,
        words=("scheme", "who moves"),
    )
