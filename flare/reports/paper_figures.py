"""Fills a folder with all that a paper takes: figures, numbers, tables, Methods.

Each figure is a chart of a page, as SVG and PDF in two widths, and beside it the raw
numbers that it shows, in full precision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from flare.challenge.metrics import METRICS, Metric
from flare.common.files import csv_text, write_whole
from flare.common.text import count, listing, printable
from flare.reports.charts import field_chart, spread_chart
from flare.reports.evaluation import distribution
from flare.reports.methods import evaluation_methods
from flare.reports.model import (
    ABSENT,
    NO_RESULT,
    Chart,
    Mark,
    Says,
    Table,
    metric_key,
    metric_shade,
    table,
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

MOST_ROWS = 42
"""A figure of more rows has the mean of the organs alone."""

MEAN_COLUMNS = ("cases", "missing", "mean", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """A figure, and what it is drawn from."""

    name: str
    """How its files begin."""
    caption: str
    """What it shows, and how it is read."""
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    """Whatever is drawn, in full precision."""
    chart: Chart


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
    plates = evaluation_plates(scores)
    tables = []
    for stem, grouping in stems(groupings):
        for metric in scores.metrics:
            name = f"{stem}_{metric.name}"
            plates.append(_score_group_plate(scores, grouping, metric, name))
        means = [
            ((group, str(len(numbers)), title), _means(scores, end, numbers))
            for group, numbers in grouping.groups
            for end, title in scores.rows
        ]
        rows = (
            (group, title, metric.name, *mean.numbers)
            for (group, _, title), own in means
            for metric, mean in own
        )
        heads = ("group", "organ", "metric", *MEAN_COLUMNS)
        write_whole(folder / f"{stem}.csv", csv_text(heads, rows))
        shown = (((printable(group), *more), own) for (group, *more), own in means)
        about = (
            f"by {printable(grouping.column)}: means, and their intervals by Gaffke's"
            " method, each for one group alone."
        )
        printed = _means_table(scores, ("Group", "Cases", "Organ"), shown, about)
        tables.append(latex(printed, stem))
    write_plates(plates, folder, tables, evaluation_methods(found))
    every = range(len(scores.cases))
    organs = (([title], _means(scores, end, every)) for end, title in scores.rows)
    about = f"over {count(len(every), 'case')}: means, and their intervals"
    printed = _means_table(scores, ["Organ"], organs, f"{about} by Gaffke's method.")
    write_whole(folder / "organs.tex", latex_file([latex(printed, "organs")]))


def write_plates(
    plates: Sequence[Plate], folder: Path, tables: Sequence[str] = (), methods: str = ""
) -> None:
    """Write all figures, what they show, the tables of groups, and the Methods."""
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
            captions.append(f"{plate.name}: {plate.caption}\n")
    write_whole(folder / "captions.txt", "\n".join(captions))
    if tables:
        write_whole(folder / "groups.tex", latex_file(tables))
    if methods:
        write_whole(folder / "methods.txt", f"{methods}\n")


def file_stem(text: str) -> str:
    """What a file may be called after a text, on any computer.

    Examples
    --------
    >>> file_stem("dsc_left_kidney"), file_stem("../Centre (NL)")
    ('dsc_left_kidney', 'centre_nl')
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:40].strip("_") or "x"


def stems(groupings: Sequence[Grouping]) -> Iterator[tuple[str, Grouping]]:
    """How files about a column begin; the number, from 1, keeps columns apart."""
    for number, grouping in enumerate(groupings, start=1):
        yield f"groups_{number}_{file_stem(grouping.column)}", grouping


def group_names(grouping: Grouping) -> list[str]:
    """Groups with their numbers of cases, as short as can be."""
    return [group_name(name, len(cases)) for name, cases in grouping.groups]


def group_name(name: str, cases: int) -> str:
    """A group with its number of cases."""
    return f"{printable(name)} ({cases})"


# --- One evaluation ---------------------------------------------------------------


def evaluation_plates(scores: CaseScores) -> list[Plate]:
    """How organs are spread, and all cases and organs, by each metric."""
    return [
        *(_organs_plate(scores, metric) for metric in scores.metrics),
        *(_cases_plate(scores, own) for own in scores.metrics if own.is_share),
    ]


def _organs_plate(scores: CaseScores, metric: Metric) -> Plate:
    """A dot for each case and organ."""
    return Plate(
        name=f"organs_{metric.name}",
        caption=f"{metric.title_with_unit} of each organ on"
        f" {count(len(scores.cases), 'case')}. {KEY}" + INTERVALS * metric.is_share,
        columns=("organ", "case", metric.name),
        rows=tuple(
            (title, printable(case), value)
            for end, title in scores.rows
            for case, value in zip(
                scores.cases, scores.values.get(metric.name + end, ()), strict=True
            )
        ),
        chart=distribution(scores, metric),
    )


def _cases_plate(scores: CaseScores, metric: Metric) -> Plate:
    """All cases and organs, the worst case first."""
    order = scores.worst_first
    columns = [scores.values[metric.name + end] for end, _ in scores.rows]
    titles = [title for _, title in scores.rows]
    values = [[own[number] for own in columns] for number in order]
    cases = [printable(scores.cases[number]) for number in order]
    return Plate(
        name=f"cases_{metric.name}",
        caption=f"{metric.title_with_unit} of each case and organ, the lowest DSC"
        " first; a line marks what has no result.",
        columns=("case", *titles),
        rows=tuple((case, *own) for case, own in zip(cases, values, strict=True)),
        chart=score_fields(cases, titles, values, ".2f", metric.name),
    )


def score_fields(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    form: str,
    metric: str,
) -> Chart:
    """Fields on the shades of a metric."""
    key = (*metric_key(metric), (ABSENT, NO_RESULT))
    of = partial(metric_shade, metric)
    title = METRICS[metric].title
    return field_chart(rows, columns, values, of, form, title=title, key=key)


def _score_group_plate(
    scores: CaseScores, grouping: Grouping, metric: Metric, name: str
) -> Plate:
    """A block of rows for each organ, in it a row for each group."""
    is_small = len(scores.rows) * (len(grouping.groups) + 1) <= MOST_ROWS
    names: list[str] = []
    values: list[list[float | None]] = []
    rows: list[tuple[object, ...]] = []
    blocks = []
    for end, title in scores.rows if is_small else scores.rows[:1]:
        blocks.append(len(names))
        names += [title, *group_names(grouping)]
        own, parts = scores.values[metric.name + end], grouping.groups
        values += [[], *([own[n] for n in numbers] for _, numbers in parts)]
        for group, numbers in parts:
            cases = ((printable(scores.cases[n]), own[n]) for n in numbers)
            rows += [(group, title, case, value) for case, value in cases]
    known = [[value for value in own if value is not None] for own in values]
    chart = spread_chart(
        metric.name,
        names,
        known,
        has_boxes=True,
        intervals=[Mean(metric.name, own).interval for own in known],
        title=metric.title_with_unit,
    )
    marks: list[Mark] = list(chart.rows)
    for number in blocks:
        marks[number] = Says("")
    return Plate(
        name=name,
        caption=f"{metric.title_with_unit} by {printable(grouping.column)}, with the"
        f" number of cases of each group. {KEY}" + INTERVALS * metric.is_share,
        columns=("group", "organ", "case", metric.name),
        rows=tuple(rows),
        chart=replace(chart, rows=marks),
    )


_Means = list[tuple[Metric, Mean]]


def _means(scores: CaseScores, end: str, numbers: Sequence[int]) -> _Means:
    """The mean of each metric over some cases, of the organ that ends its columns."""
    return [(own, scores.mean(own.name + end, numbers)) for own in scores.metrics]


def _means_table(
    scores: CaseScores,
    heads: Sequence[str],
    rows: Iterable[tuple[Sequence[str], _Means]],
    about: str,
) -> Table:
    """A table of means and intervals beside names."""
    titles = listing((metric.title for metric in scores.metrics), last=" and ")
    interval = "95 % interval"
    columns = ((f"{own.title_with_unit}, mean", interval) for own in scores.metrics)
    cells = (
        [
            *names,
            *(
                text
                for metric, own in means
                for text in (
                    scores.cell(metric, own.value).text,
                    own.interval_text,
                )
            ),
        ]
        for names, means in rows
    )
    heads, words = (*heads, *chain(*columns)), ("Group", "Organ", interval)
    return table(f"{titles} {about}", heads, cells, words=words)
