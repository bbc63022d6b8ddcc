"""Says which figures and tables for a paper a ranking has, and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from flare.challenge.metrics import RUNTIME
from flare.common.files import csv_text, write_whole
from flare.common.text import count, printable
from flare.ranking.rank import Analysis
from flare.ranking.robustness.schemes import Scheme
from flare.reports.charts import field_chart
from flare.reports.methods import methods_text
from flare.reports.model import Chart, rank_shade
from flare.reports.paper_figures import (
    KEY,
    MEAN_COLUMNS,
    Plate,
    file_stem,
    group_name,
    group_names,
    score_fields,
    stems,
    write_plates,
)
from flare.reports.ranking.files import latex_text
from flare.reports.ranking.organisers import (
    MetricValues,
    case_chart,
    hardest_first,
    mean_table,
    metric_values,
    tests_chart,
    values_chart,
)
from flare.reports.ranking.page import (
    GroupRanks,
    PublicRanking,
    draws_chart,
    rank_table,
)
from flare.reports.render.text import latex
from flare.reports.scores import Mean
from flare.results.groups_csv import Grouping


def write_ranking_figures(
    analysis: Analysis,
    public: PublicRanking,
    groupings: Sequence[Grouping],
    folder: Path,
) -> None:
    """Write the figures of a ranking, ranking.tex, groups.tex and methods.txt.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    metrics = metric_values(analysis)
    plates = list(_ranking_plates(analysis, public, metrics))
    tables = []
    for (stem, grouping), ranked in zip(stems(groupings), public.groups, strict=True):
        heads = ("Team", *group_names(grouping))
        found = rank_table(ranked, public)
        found = replace(found, heads=("Team", "all cases", *heads[1:]), words=("Team",))
        tables.append(latex(found, f"{stem}_ranks"))
        plates.append(_rank_group_plate(public, ranked, f"{stem}_ranks"))
        for own in metrics:
            name = f"{stem}_{file_stem(own.name)}"
            found = mean_table(grouping, own)
            caption = f"{found.caption}."
            found = replace(found, heads=heads, caption=caption, words=("Team",))
            tables.append(latex(found, name))
            if own.metric.is_score:
                plates.append(_mean_group_plate(own, grouping, name))
                continue
            rows = (row[:5] for row in _mean_rows(own, grouping))
            text = csv_text(("team", "group", *MEAN_COLUMNS[:3]), rows)
            write_whole(folder / f"{name}.csv", text)
    write_plates(plates, folder, tables, methods_text(analysis))
    write_whole(folder / "ranking.tex", latex_text(analysis))


def _ranking_plates(
    analysis: Analysis, public: PublicRanking, metrics: Sequence[MetricValues]
) -> Iterator[Plate]:
    """All figures of a ranking; those of a metric have it in their names."""
    yield _means_plate(public)
    if public.draws:
        yield _draws_plate(public)
    for own in metrics:
        yield _values_plate(own)
        if own.metric.is_score:
            yield _hardest_plate(own)
        if own.effects:
            yield _tests_plate(own)
    if len(public.teams) > 1:
        yield _schemes_plate(analysis.schemes, public.teams)


def _means_plate(public: PublicRanking) -> Plate:
    """The mean rank of each team by each metric."""
    means = [
        tuple(float(place.mean_ranks[own.name]) for own in public.metrics)
        for place in public.places
    ]
    return Plate(
        name="mean_ranks",
        caption=f"Mean rank of each team by each metric over"
        f" {count(public.cases, 'case')}; lower and lighter is better.",
        columns=("team", "rank", "score", *(own.name for own in public.metrics)),
        rows=tuple(
            (o.team, o.rank, float(o.score) if o.rank else None, *own)
            for o, own in zip(public.places, means, strict=True)
        ),
        chart=_rank_fields(
            [f"{place.rank or '-'} {place.team}" for place in public.places],
            [own.title for own in public.metrics],
            means,
            len(public.teams),
            ".2f",
        ),
    )


def _rank_fields(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    teams: int,
    form: str = ".0f",
) -> Chart:
    """Fields on the shades of ranks."""
    shade_of = partial(rank_shade, teams=teams)
    return field_chart(rows, columns, values, shade_of, form, title="ranks")


def _draws_plate(public: PublicRanking) -> Plate:
    """How sure the ranks are."""
    ranks = range(1, len(public.draws) + 1)
    return Plate(
        name="ranks_over_draws",
        caption="Ranks when other cases are drawn: the area of a blob is the share of"
        " the draws with that rank, a line spans the ranks of 95 % of the draws."
        f" {public.draws_note}",
        columns=("team", "lowest", "highest", *(f"rank_{rank}" for rank in ranks)),
        rows=tuple((d.team, *d.interval, *d.frequencies) for d in public.draws),
        chart=draws_chart(public.draws, public.draws_note),
    )


def _values_plate(own: MetricValues) -> Plate:
    """How the values of each team are spread."""
    note = " On a logarithmic axis." if own.name.startswith(RUNTIME) else ""
    return Plate(
        name=f"values_{file_stem(own.name)}",
        caption=f"{printable(own.title)} of each team on each case with a result, in"
        f" the order of the ranking.{note} {KEY}",
        columns=("team", "case", own.name),
        rows=tuple(
            (team, case, value)
            for team, row in zip(own.teams, own.values, strict=True)
            for case, value in zip(own.cases, row, strict=True)
        ),
        chart=replace(values_chart(own), labels=tuple(own.teams)),
    )


def _hardest_plate(own: MetricValues) -> Plate:
    """Which cases are hard, and for whom."""
    order = hardest_first(own.values)
    names = [printable(own.cases[number]) for number in order]
    return Plate(
        name=f"cases_{file_stem(own.name)}",
        caption=f"{printable(own.title)} of each team and case, the hardest case first,"
        f" from {names[0]} to {names[-1]}; a line marks what has no result.",
        columns=("case", *own.teams),
        rows=tuple(
            (case, *(row[number] for row in own.values))
            for case, number in zip(names, order, strict=True)
        ),
        chart=case_chart(own),
    )


def _tests_plate(own: MetricValues) -> Plate:
    """Which team is better than which other."""
    return Plate(
        name=f"tests_{file_stem(own.name)}",
        caption=f"{printable(own.title)}: a square is where the team of the row is"
        " significantly better than the team of the column, which has the number of its"
        " row (one-sided Wilcoxon tests paired by case, 5 %, after Holm); the larger"
        " and darker, the larger the effect (rank-biserial correlation).",
        columns=("team", "other", "effect", "significant"),
        rows=tuple(
            (*pair, own.effects[pair][0], "yes" if own.effects[pair][1] else "no")
            for pair in product(own.teams, own.teams)
            if pair in own.effects
        ),
        chart=tests_chart(own),
    )


def _schemes_plate(schemes: Sequence[Scheme], teams: Sequence[str]) -> Plate:
    """How the teams rank in other ways."""
    whole = [scheme for scheme in schemes if scheme.left_out is None]
    names = ["the ranking itself", *(scheme.name for scheme in whole)]
    labels = [f"{number} {name}" for number, name in enumerate(names)]
    columns = [schemes[0].before, *(scheme.ranks for scheme in whole)]
    ranks = [[column[team] for team in teams] for column in columns]
    return Plate(
        name="other_schemes",
        caption="Ranks of the teams in other ways of ranking, each of which changes one"
        " thing; lighter is better. The numbers also have the rankings without one of"
        f" the teams. Rows: {'; '.join(labels)}.",
        columns=("scheme", "kendall_tau", "team", "rank", "rank_before"),
        rows=tuple(
            (scheme.name, scheme.tau, team, rank, scheme.before[team])
            for scheme in schemes
            for team, rank in scheme.ranks.items()
        ),
        chart=_rank_fields(labels, teams, ranks, len(teams)),
    )


def _rank_group_plate(public: PublicRanking, ranked: GroupRanks, name: str) -> Plate:
    """The rank of each team within each group."""
    places = [place for place in public.places if place.rank is not None]
    values = [
        [place.rank or 0, *(own[row] for own in ranked.ranks)]
        for row, place in enumerate(places)
    ]
    groups = [group_name(*group) for group in ranked.groups]
    return Plate(
        name=name,
        caption=f"Ranks of the teams by {printable(ranked.column)}, with the number of"
        " cases of each group, each of which is ranked by itself by the same rules;"
        " lighter is better.",
        columns=("team", "group", "cases", "rank", "rank_of_all_cases"),
        rows=tuple(
            (place.team, group, cases, own[row], place.rank)
            for row, place in enumerate(places)
            for (group, cases), own in zip(ranked.groups, ranked.ranks, strict=True)
        ),
        chart=_rank_fields(public.teams, ["all cases", *groups], values, len(places)),
    )


def _mean_group_plate(own: MetricValues, grouping: Grouping, name: str) -> Plate:
    """The mean score of each team in each group."""
    means = [
        [
            Mean(own.name, [row[n] for n in numbers]).value
            for _, numbers in grouping.groups
        ]
        for row in own.values
    ]
    names = group_names(grouping)
    return Plate(
        name=name,
        caption=f"{printable(own.title)} by {printable(grouping.column)}: means of the"
        " cases with a result, with the number of cases of each group; the numbers"
        " have their intervals.",
        columns=("team", "group", *MEAN_COLUMNS),
        rows=tuple(_mean_rows(own, grouping)),
        chart=score_fields(own.teams, names, means, ".3f", own.name),
    )


def _mean_rows(own: MetricValues, grouping: Grouping) -> Iterator[tuple[object, ...]]:
    """The mean of each team in each group, with what belongs to it."""
    for team, row in zip(own.teams, own.values, strict=True):
        for group, numbers in grouping.groups:
            yield team, group, *Mean(own.name, [row[n] for n in numbers]).numbers
