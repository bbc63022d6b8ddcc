"""Fills a folder with all that a paper takes: figures, numbers, tables, Methods.

Each figure is a chart of a page, as SVG and PDF in two widths, and beside it the raw
numbers that it shows, in full precision. Groups of cases have numbers and tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from flare.challenge.metrics import Metric
from flare.common.files import csv_text, write_whole
from flare.common.text import count, isolated, printable
from flare.ranking.sensitivity import Scheme
from flare.reports.charts import field_chart, rank_shade
from flare.reports.evaluation import distribution, group_chart
from flare.reports.model import (
    ABSENT,
    NO_RESULT,
    Chart,
    Page,
    Table,
    metric_key,
    metric_shade,
)
from flare.reports.paper.methods import methods_text
from flare.reports.paper.scoring import evaluation_methods
from flare.reports.paper.tables import latex_text
from flare.reports.ranking.cost import Tradeoff, cost_chart
from flare.reports.ranking.organisers import (
    case_chart,
    hardest_first,
    schemes_chart,
    tests_chart,
    values_chart,
)
from flare.reports.ranking.page import GroupRanks, PublicRanking, draws_chart
from flare.reports.ranking.values import MetricValues, WholeRanking
from flare.reports.ranking.words import tests_text
from flare.reports.render.paper import figure_file, paper_figure
from flare.reports.render.style import WIDTHS_MM, drawing_style
from flare.reports.render.text import latex, latex_file
from flare.reports.scores import CaseScores, scores_of
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile

KEY = (
    "Dots are cases; above them, boxes are their middle half, lines their medians,"
    " diamonds their means."
)
INTERVALS = " Thick lines behind these are 95 % intervals of the means (bootstrap)."

MEAN_COLUMNS = ("cases", "missing", "mean", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """A figure, and the numbers that it is drawn from."""

    name: str
    """How its files begin."""
    caption: str
    """Its subject, and how it is read."""
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    """The numbers that are drawn, in full precision."""
    chart: Chart


def write_plates(plates: Sequence[Plate], folder: Path) -> None:
    """Write figures, the numbers behind them, and their captions."""
    captions, names = [], []
    for plate in plates:
        names += [*plate.chart.labels, *plate.chart.columns]
    with drawing_style(names):
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
    """A name for a file after a text, which any computer takes.

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
    file: EvaluationFile, folder: Path, groupings: Sequence[Grouping] = ()
) -> None:
    """Write the figures of one evaluation, organs.tex, groups.tex and methods.txt."""
    scores = scores_of(file)
    write_plates([*evaluation_plates(scores)], folder)
    texts = {"methods.txt": f"{evaluation_methods(file)}\n"}
    organs, groups = {}, {}
    for metric in scores.metrics:
        organs[f"organs_{metric.name}"] = distribution(scores, metric)
    for stem, grouping in zip(_stems(groupings), groupings, strict=True):
        texts[f"{stem}.csv"] = _group_numbers(scores, grouping)
        for metric in scores.metrics:
            groups[f"{stem}_{metric.name}"] = group_chart(scores, grouping, metric)
    if organ_tables := _tables(organs):
        texts["organs.tex"] = latex_file(organ_tables)
    if group_tables := _tables(groups):
        texts["groups.tex"] = latex_file(group_tables)
    for name, text in texts.items():
        write_whole(folder / name, text)


def _group_numbers(scores: CaseScores, grouping: Grouping) -> str:
    """The mean of each group by organ and metric, as CSV."""
    rows = []
    for group, numbers in grouping.groups:
        for suffix, organ in scores.rows:
            for metric in scores.metrics:
                mean = scores.mean(metric.name + suffix, numbers)
                rows.append((group, organ, metric.name, *mean.numbers))
    return csv_text(("group", "organ", "metric", *MEAN_COLUMNS), rows)


def _tables(charts: Mapping[str, Chart]) -> list[str]:
    """The tables of charts in LaTeX, each with the name of its chart as its label."""
    return [latex(chart.table, name) for name, chart in charts.items() if chart.table]


def evaluation_plates(scores: CaseScores) -> Iterator[Plate]:
    """How organs are spread, and all cases and organs, by each metric."""
    for metric in scores.metrics:
        yield _organs_plate(scores, metric)
    for metric in scores.metrics:
        if metric.is_share:
            yield _cases_plate(scores, metric)


def _organs_plate(scores: CaseScores, metric: Metric) -> Plate:
    rows = []
    for suffix, organ in scores.rows_of(metric):
        values = scores.values.get(metric.name + suffix, ())
        for case, value in zip(scores.cases, values, strict=True):
            rows.append((organ, case, value))
    return Plate(
        name=f"organs_{metric.name}",
        caption=f"{metric.heading} of each organ on"
        f" {count(len(scores.cases), 'case')}. {KEY}{INTERVALS * metric.is_share}",
        columns=("organ", "case", metric.name),
        rows=rows,
        chart=distribution(scores, metric),
    )


def _cases_plate(scores: CaseScores, metric: Metric) -> Plate:
    suffixes, organs = zip(*scores.rows_of(metric), strict=True)
    columns = [scores.values[metric.name + suffix] for suffix in suffixes]
    cases, fields = [], []
    for number in scores.worst_first:
        cases.append(scores.cases[number])
        fields.append([column[number] for column in columns])
    return Plate(
        name=f"cases_{metric.name}",
        caption=f"{metric.heading} of each case and organ, the {scores.worst_end}"
        " first; a line marks what has no result.",
        columns=("case", *organs),
        rows=[(case, *values) for case, values in zip(cases, fields, strict=True)],
        chart=field_chart(
            cases,
            organs,
            fields,
            partial(metric_shade, metric),
            ".2f",
            title=metric.title,
            key=(*metric_key(metric), (ABSENT, NO_RESULT)),
        ),
    )


# --- A ranking --------------------------------------------------------------------


def write_ranking_figures(ranking: WholeRanking, page: Page, folder: Path) -> None:
    """Write the figures of a ranking, ranking.tex, groups.tex and methods.txt.

    The ranking is as organisers may know it; their page has the tables of groups.
    """
    analysis, public = ranking.analysis, ranking.public
    plates = [_mean_ranks_plate(public)]
    if public.draws:
        plates.append(_draws_plate(public))
    plates += map(_cost_plate, public.tradeoffs)
    for values in ranking.metrics:
        plates += _metric_plates(values)
    if len(public.teams) > 1:
        plates.append(_schemes_plate(analysis.schemes))
    write_plates(plates, folder)
    texts = {
        "methods.txt": f"{methods_text(analysis)}\n",
        "ranking.tex": latex_text(analysis),
    }
    texts |= dict(_group_texts(ranking))
    if group_tables := _group_tables(page):
        texts["groups.tex"] = latex_file(group_tables)
    for name, text in texts.items():
        write_whole(folder / name, text)


def _group_texts(ranking: WholeRanking) -> Iterator[tuple[str, str]]:
    """The names and texts of the tables of groups; no group has a value of answers."""
    groupings, groups = ranking.groupings, ranking.public.groups
    columns = zip(_stems(groupings), groupings, groups, strict=True)
    for stem, grouping, group_ranks in columns:
        yield f"{stem}_ranks.csv", _group_ranks(ranking.public, group_ranks)
        for values in ranking.of_each_case:
            name = f"{stem}_{file_stem(values.metric.name)}.csv"
            yield name, _group_means(values, grouping)


def _group_tables(page: Page) -> list[str]:
    (groups,) = (section for section in page.sections if section.id == "groups")
    tables = [part for part in groups.parts if isinstance(part, Table)]
    return [latex(part, f"groups_{n}") for n, part in enumerate(tables, start=1)]


def _group_ranks(public: PublicRanking, group_ranks: GroupRanks) -> str:
    rank_of_all = {place.team: place.rank for place in public.places}
    groups = [*zip(group_ranks.groups, group_ranks.ranks, strict=True)]
    rows = []
    for number, team in enumerate(public.teams):
        for (group, cases), ranks in groups:
            rows.append((team, group, cases, ranks[number], rank_of_all[team]))
    return csv_text(("team", "group", "cases", "rank", "rank_of_all_cases"), rows)


def _group_means(values: MetricValues, grouping: Grouping) -> str:
    """The mean of each team in each group, as CSV; only scores have intervals."""
    columns = len(MEAN_COLUMNS) if values.metric.is_share else 3
    rows = []
    for number, team in enumerate(values.teams):
        for group, cases in grouping.groups:
            mean, missing = values.mean_and_missing(number, cases)
            _, _, *numbers = mean.numbers[:columns]
            rows.append((team, group, len(cases), missing, *numbers))
    return csv_text(("team", "group", *MEAN_COLUMNS[:columns]), rows)


def _mean_ranks_plate(public: PublicRanking) -> Plate:
    metrics = [metric.name for metric in public.metrics]
    labels, fields, rows = [], [], []
    for place in public.places:
        mean_ranks = [float(place.mean_ranks[name]) for name in metrics]
        score = float(place.score) if place.rank else None
        labels.append(f"{place.rank or '-'} {place.team}")
        fields.append(mean_ranks)
        rows.append((place.team, place.rank, score, *mean_ranks))
    return Plate(
        name="mean_ranks",
        caption=f"{public.rank_word.capitalize()} of each team by each metric over"
        f" {count(public.cases, 'case')}; lower and lighter is better.",
        columns=("team", "rank", "score", *metrics),
        rows=rows,
        chart=field_chart(
            labels,
            [metric.heading for metric in public.metrics],
            fields,
            partial(rank_shade, teams=len(public.teams)),
            ".2f",
            title="ranks",
        ),
    )


def _draws_plate(public: PublicRanking) -> Plate:
    ranks = range(1, len(public.draws) + 1)
    return Plate(
        name="ranks_over_draws",
        caption="Ranks when other cases are drawn: the area of a blob is the share of"
        " the draws with that rank, a line spans the ranks of 95 % of the draws."
        f" {public.draws_note}",
        columns=("team", "lowest", "highest", *(f"rank_{rank}" for rank in ranks)),
        rows=[(draw.team, *draw.interval, *draw.frequencies) for draw in public.draws],
        chart=draws_chart(public.draws, public.draws_note),
    )


def _cost_plate(tradeoff: Tradeoff) -> Plate:
    name, front = tradeoff.metric.name, tradeoff.front
    rows = []
    for team in tradeoff.teams:
        is_front = "yes" if team in front else "no"
        rows.append((team.team, team.rank, team.dsc, team.cost, is_front))
    chart = cost_chart(tradeoff)
    return Plate(
        name=f"dsc_against_{file_stem(name)}",
        caption=f"{tradeoff.title}: means of each team over"
        f" {count(tradeoff.cases, 'case')}; numbers are ranks. {chart.note} It is"
        " filled: no other team is as good in both, and better in one.",
        columns=("team", "rank", "dsc", name, "front"),
        rows=rows,
        chart=chart,
    )


def _metric_plates(values: MetricValues) -> Iterator[Plate]:
    """The values of all teams by a metric, which cases are hard, and the tests."""
    if values.metric.is_of_each_case:
        yield _values_plate(values)
    if values.has_hard_cases:
        yield _hard_cases_plate(values)
    if values.effects:
        yield _tests_plate(values)


def _values_plate(values: MetricValues) -> Plate:
    metric = values.metric
    note = " On a logarithmic axis." if metric.is_running_time else ""
    counts = f" In boxes and means, {values.counted_text}." * bool(values.counted_text)
    rows = []
    for team, row in zip(values.teams, values.rows, strict=True):
        for case, value in zip(values.cases, row, strict=True):
            rows.append((team, case, value))
    return Plate(
        name=f"values_{file_stem(metric.name)}",
        caption=f"{metric.heading} of each team on each case with a result, in the"
        f" order of the ranking.{note} {KEY}{counts}",
        columns=("team", "case", metric.name),
        rows=rows,
        chart=replace(values_chart(values), labels=tuple(values.teams)),
    )


def _hard_cases_plate(values: MetricValues) -> Plate:
    rows = []
    for number in hardest_first(values.rows):
        rows.append((values.cases[number], *(row[number] for row in values.rows)))
    return Plate(
        name=f"cases_{file_stem(values.metric.name)}",
        caption=f"{values.metric.heading} of each team and case, the hardest case"
        f" first, from {rows[0][0]} to {rows[-1][0]}; a line marks what has no result.",
        columns=("case", *values.teams),
        rows=rows,
        chart=case_chart(values),
    )


def _tests_plate(values: MetricValues) -> Plate:
    rows = []
    for pair in product(values.teams, values.teams):
        if pair in values.effects:
            effect, is_significant = values.effects[pair]
            rows.append((*pair, effect, "yes" if is_significant else "no"))
    return Plate(
        name=f"tests_{file_stem(values.metric.name)}",
        caption=f"{values.metric.heading}: a square is where the team of the row is"
        " significantly better than the team of the column, which has the number of"
        " its row: the teams in the order of their ranks by this metric alone"
        f" ({tests_text([values.metric.name])}, 5 %, after Holm); the"
        " larger and darker, the larger the effect (rank-biserial correlation)."
        " Behind a row: the teams that it is better than, and that are better than it.",
        columns=("team", "other", "effect", "significant"),
        rows=rows,
        chart=tests_chart(values),
    )


def _schemes_plate(schemes: Sequence[Scheme]) -> Plate:
    rows: list[tuple[object, ...]] = []
    for scheme in schemes:
        for team, rank in scheme.ranks.items():
            rows.append((scheme.name, scheme.tau, team, rank, scheme.before[team]))
    return Plate(
        name="other_schemes",
        caption="The places that teams gain (blue) and lose (orange) in other ways of"
        " ranking, each of which changes one thing; columns are places in the ranking."
        " Behind a row: Kendall's tau with the ranking. What moves nobody is left out;"
        " the numbers have all, also the rankings without one of the teams.",
        columns=("scheme", "kendall_tau", "team", "rank", "rank_before"),
        rows=rows,
        chart=schemes_chart(schemes),
    )
