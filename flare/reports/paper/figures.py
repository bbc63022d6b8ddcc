"""Fills a folder with all that a paper takes: figures, numbers, tables, Methods.

Each figure is a chart of a page, as SVG and PDF in two widths, and beside it the raw
numbers that it shows, in full precision. Groups of cases have numbers and tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from flare.challenge.metrics import RUNTIME
from flare.common.files import csv_text, write_whole
from flare.common.text import count, isolated, printable
from flare.ranking.rank import Analysis
from flare.ranking.sensitivity import Scheme
from flare.reports.charts import field_chart
from flare.reports.evaluation import distribution, group_chart
from flare.reports.model import (
    ABSENT,
    NO_RESULT,
    Chart,
    Page,
    Table,
    metric_key,
    metric_shade,
    rank_shade,
)
from flare.reports.paper.methods import evaluation_methods, methods_text
from flare.reports.paper.tables import latex_text
from flare.reports.ranking.organisers import (
    MetricValues,
    case_chart,
    hardest_first,
    tests_chart,
    values_chart,
)
from flare.reports.ranking.page import (
    GroupRanks,
    PublicRanking,
    draws_chart,
)
from flare.reports.render.paper import figure_file, paper_figure
from flare.reports.render.style import WIDTHS_MM, drawing_style
from flare.reports.render.text import latex, latex_file
from flare.reports.scores import (
    CaseScores,
    Mean,
    scores_of,
)
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile

KEY = (
    "Dots are cases; above them, boxes are their middle half, lines their medians,"
    " diamonds their means."
)
INTERVALS = " Thick lines behind these are 95 % intervals of the means (Gaffke's)."

MEAN_COLUMNS = ("cases", "missing", "mean", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """A figure, and what it is drawn from."""

    name: str
    """How its files begin."""
    caption: str
    """What it shows, and how it is read."""
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    """Whatever is drawn, in full precision."""
    chart: Chart


def write_plates(plates: Sequence[Plate], folder: Path) -> None:
    """Write figures, the numbers behind them, and what they show.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    captions = []
    charts = [plate.chart for plate in plates]
    with drawing_style(name for c in charts for name in (*c.labels, *c.columns)):
        for plate in plates:
            numbers = csv_text(plate.columns, plate.rows)
            write_whole(folder / f"{plate.name}.csv", numbers)
            for width in WIDTHS_MM:
                figure = paper_figure(plate.chart, width)
                figure.draw_without_rendering()
                figure.set_layout_engine("none")  # laid out once, for both
                for form in ("svg", "pdf"):
                    file = folder / f"{plate.name}_{width}.{form}"
                    write_whole(file, figure_file(figure, form))
            captions.append(f"{plate.name}: {printable(plate.caption)}\n")
    write_whole(folder / "captions.txt", isolated("\n".join(captions)))


def file_stem(text: str) -> str:
    """What a file may be called after a text, on any computer.

    Examples
    --------
    >>> file_stem("dsc_left_kidney"), file_stem("../Centre (NL)")
    ('dsc_left_kidney', 'centre_nl')
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:40].strip("_") or "x"


def _stems(groupings: Sequence[Grouping]) -> Iterator[str]:
    """How files about columns begin; the number, from 1, keeps columns apart."""
    for number, grouping in enumerate(groupings, start=1):
        yield f"groups_{number}_{file_stem(grouping.column)}"


# --- One evaluation ---------------------------------------------------------------


def write_evaluation_figures(
    found: EvaluationFile, folder: Path, groupings: Sequence[Grouping] = ()
) -> None:
    """Write the figures of one evaluation, organs.tex, groups.tex and methods.txt.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    scores = scores_of(found)
    write_plates([*evaluation_plates(scores)], folder)
    texts = {"methods.txt": f"{evaluation_methods(found)}\n"}
    organs = {f"organs_{own.name}": distribution(scores, own) for own in scores.metrics}
    groups = {}
    for stem, grouping in zip(_stems(groupings), groupings, strict=True):
        rows = (
            (group, title, own.name, *scores.mean(own.name + end, numbers).numbers)
            for group, numbers in grouping.groups
            for end, title in scores.rows
            for own in scores.metrics
        )
        heads = ("group", "organ", "metric", *MEAN_COLUMNS)
        texts[f"{stem}.csv"] = csv_text(heads, rows)
        for own in scores.metrics:
            groups[f"{stem}_{own.name}"] = group_chart(scores, grouping, own)
    for name, charts in (("organs.tex", organs), ("groups.tex", groups)):
        tables = [latex(own.table, stem) for stem, own in charts.items() if own.table]
        texts |= {name: latex_file(tables)} if tables else {}
    for name, text in texts.items():
        write_whole(folder / name, text)


def evaluation_plates(scores: CaseScores) -> Iterator[Plate]:
    """How organs are spread, and all cases and organs, by each metric."""
    for metric in scores.metrics:
        yield Plate(
            name=f"organs_{metric.name}",
            caption=f"{metric.title_with_unit} of each organ on"
            f" {count(len(scores.cases), 'case')}. {KEY}{INTERVALS * metric.is_share}",
            columns=("organ", "case", metric.name),
            rows=[
                (title, case, value)
                for end, title in scores.rows
                for case, value in zip(
                    scores.cases, scores.values.get(metric.name + end, ()), strict=True
                )
            ],
            chart=distribution(scores, metric),
        )
    order = scores.worst_first
    cases, titles = (
        [scores.cases[n] for n in order],
        [title for _, title in scores.rows],
    )
    for metric in scores.metrics:
        if not metric.is_share:
            continue
        columns = [scores.values[metric.name + end] for end, _ in scores.rows]
        values = [[own[number] for own in columns] for number in order]
        yield Plate(
            name=f"cases_{metric.name}",
            caption=f"{metric.title_with_unit} of each case and organ, the lowest DSC"
            " first; a line marks what has no result.",
            columns=("case", *titles),
            rows=[(case, *own) for case, own in zip(cases, values, strict=True)],
            chart=field_chart(
                cases,
                titles,
                values,
                partial(metric_shade, metric),
                ".2f",
                title=metric.title,
                key=(*metric_key(metric), (ABSENT, NO_RESULT)),
            ),
        )


# --- A ranking --------------------------------------------------------------------


def write_ranking_figures(
    analysis: Analysis,
    public: PublicRanking,
    metrics: Sequence[MetricValues],
    groupings: Sequence[Grouping],
    page: Page,
    folder: Path,
) -> None:
    """Write the figures of a ranking, ranking.tex, groups.tex and methods.txt.

    Parameters
    ----------
    analysis, public, metrics, groupings
        What organisers may know of it.
    page : Page
        The organisers' page, which has the tables of groups.
    folder : Path
        To write to.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    plates = [*_rank_plates(public)]
    plates += (plate for own in metrics for plate in _metric_plates(own))
    if len(public.teams) > 1:
        plates.append(_schemes_plate(analysis.schemes, public.teams))
    write_plates(plates, folder)
    texts = {
        "methods.txt": f"{methods_text(analysis)}\n",
        "ranking.tex": latex_text(analysis),
    }
    columns = zip(_stems(groupings), groupings, public.groups, strict=True)
    for stem, grouping, ranked in columns:
        texts[f"{stem}_ranks.csv"] = _group_ranks(public, ranked)
        for own in metrics:
            name = f"{stem}_{file_stem(own.metric.name)}.csv"
            texts[name] = _group_means(own, grouping)
    parts = [part for own in page.shown if own.id == "groups" for part in own.shown]
    tables = (own for own in parts if isinstance(own, Table))
    if shown := [latex(own, f"groups_{n}") for n, own in enumerate(tables, start=1)]:
        texts["groups.tex"] = latex_file(shown)
    for name, text in texts.items():
        write_whole(folder / name, text)


def _group_ranks(public: PublicRanking, ranked: GroupRanks) -> str:
    """The rank of each team within each group, as CSV."""
    whole = {place.team: place.rank for place in public.places}
    rows = (
        (team, group, cases, ranks[number], whole[team])
        for number, team in enumerate(public.teams)
        for (group, cases), ranks in zip(ranked.groups, ranked.ranks, strict=True)
    )
    return csv_text(("team", "group", "cases", "rank", "rank_of_all_cases"), rows)


def _group_means(own: MetricValues, grouping: Grouping) -> str:
    """The mean of each team in each group, as CSV; only scores have intervals."""
    columns = len(MEAN_COLUMNS) if own.metric.is_score else 3
    rows = (
        (team, group, *Mean(own.metric.name, [row[n] for n in cases]).numbers[:columns])
        for team, row in zip(own.teams, own.values, strict=True)
        for group, cases in grouping.groups
    )
    return csv_text(("team", "group", *MEAN_COLUMNS[:columns]), rows)


def _rank_plates(public: PublicRanking) -> Iterator[Plate]:
    """Mean ranks, and how sure the ranks are."""
    means = [
        tuple(float(place.mean_ranks[own.name]) for own in public.metrics)
        for place in public.places
    ]
    yield Plate(
        name="mean_ranks",
        caption=f"Mean rank of each team by each metric over"
        f" {count(public.cases, 'case')}; lower and lighter is better.",
        columns=("team", "rank", "score", *(own.name for own in public.metrics)),
        rows=[
            (o.team, o.rank, float(o.score) if o.rank else None, *own)
            for o, own in zip(public.places, means, strict=True)
        ],
        chart=field_chart(
            [f"{place.rank or '-'} {place.team}" for place in public.places],
            [own.title for own in public.metrics],
            means,
            partial(rank_shade, teams=len(public.teams)),
            ".2f",
            title="ranks",
        ),
    )
    if not public.draws:
        return
    ranks = range(1, len(public.draws) + 1)
    yield Plate(
        name="ranks_over_draws",
        caption="Ranks when other cases are drawn: the area of a blob is the share of"
        " the draws with that rank, a line spans the ranks of 95 % of the draws."
        f" {public.draws_note}",
        columns=("team", "lowest", "highest", *(f"rank_{rank}" for rank in ranks)),
        rows=[(d.team, *d.interval, *d.frequencies) for d in public.draws],
        chart=draws_chart(public.draws, public.draws_note),
    )


def _metric_plates(own: MetricValues) -> Iterator[Plate]:
    """The values of all teams by a metric, which cases are hard, and the tests."""
    stem, title = file_stem(own.metric.name), own.metric.title
    note = " On a logarithmic axis." if own.metric.name.startswith(RUNTIME) else ""
    yield Plate(
        name=f"values_{stem}",
        caption=f"{title} of each team on each case with a result, in the order of the"
        f" ranking.{note} {KEY}",
        columns=("team", "case", own.metric.name),
        rows=[
            (team, case, value)
            for team, row in zip(own.teams, own.values, strict=True)
            for case, value in zip(own.cases, row, strict=True)
        ],
        chart=replace(values_chart(own), labels=tuple(own.teams)),
    )
    if own.metric.is_score:
        order = hardest_first(own.values)
        names = [own.cases[number] for number in order]
        yield Plate(
            name=f"cases_{stem}",
            caption=f"{title} of each team and case, the hardest case first, from"
            f" {names[0]} to {names[-1]}; a line marks what has no result.",
            columns=("case", *own.teams),
            rows=[
                (case, *(row[number] for row in own.values))
                for case, number in zip(names, order, strict=True)
            ],
            chart=case_chart(own),
        )
    if own.effects:
        yield Plate(
            name=f"tests_{stem}",
            caption=f"{title}: a square is where the team of the row is significantly"
            " better than the team of the column, which has the number of its row"
            " (one-sided Wilcoxon tests paired by case, 5 %, after Holm); the larger"
            " and darker, the larger the effect (rank-biserial correlation).",
            columns=("team", "other", "effect", "significant"),
            rows=[
                (*pair, own.effects[pair][0], "yes" if own.effects[pair][1] else "no")
                for pair in product(own.teams, own.teams)
                if pair in own.effects
            ],
            chart=tests_chart(own),
        )


def _schemes_plate(schemes: Sequence[Scheme], teams: Sequence[str]) -> Plate:
    """How the teams rank in other ways."""
    whole = [scheme for scheme in schemes if scheme.left_out is None]
    names = ["the ranking itself", *(scheme.name for scheme in whole)]
    labels = [f"{number} {name}" for number, name in enumerate(names)]
    columns = [schemes[0].before, *(scheme.ranks for scheme in whole)]
    return Plate(
        name="other_schemes",
        caption="Ranks of the teams in other ways of ranking, each of which changes one"
        " thing; lighter is better. The numbers also have the rankings without one of"
        f" the teams. Rows: {'; '.join(labels)}.",
        columns=("scheme", "kendall_tau", "team", "rank", "rank_before"),
        rows=[
            (scheme.name, scheme.tau, team, rank, scheme.before[team])
            for scheme in schemes
            for team, rank in scheme.ranks.items()
        ],
        chart=field_chart(
            labels,
            teams,
            [[column[team] for team in teams] for column in columns],
            partial(rank_shade, teams=len(teams)),
            ".0f",
            title="ranks",
        ),
    )
