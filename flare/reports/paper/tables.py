"""Makes the tables of a ranking: its places, and the means of teams.

One table of the ranking serves the terminal, Markdown and LaTeX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from flare.challenge.metrics import Metric, lesion_notes, metric_named
from flare.common.text import count, listing
from flare.ranking.means import Mean, Means, ranking_means
from flare.ranking.rank import Analysis
from flare.reports.model import BEST, NO_RESULT, Cell, Column, Table, table_of
from flare.reports.ranking.words import (
    all_cases_text,
    counted_text,
    guests_note,
    ranking_notes,
    tests_text,
)
from flare.reports.render.text import (
    escaped_latex,
    escaped_markdown,
    latex,
    latex_file,
    lesion_lines,
    markdown,
)
from flare.results.csv_rows import rows_text
from flare.statistics import ALPHA


def page_text(analysis: Analysis) -> str:
    """The ranking, and the decisions that it rests on, in Markdown."""
    lines = []
    notes = analysis.table.roll.interim_text, *ranking_notes(analysis)
    for note in filter(None, notes):
        lines += [escaped_markdown(note), ""]
    lines += markdown(ranking_table(analysis, "{rank}: {title}"))
    if guests_text := guests_note(analysis, "Last ones"):
        lines += ["", guests_text]
    if analysis.shows_means:
        lines += ["", *_public_lines(analysis)]
        lines.pop()  # the last line is empty, even without any table
    if analysis.decisions.lines:
        lines.append("")
        lines += [f"- {escaped_markdown(line)}" for line in analysis.decisions.lines]
    return "\n".join([*lines, *lesion_lines()])


def latex_text(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    title = ranking_title(analysis)
    ranks = f"{analysis.rules.rank_word}s by each metric"
    caption = f"{title}: scores, and {ranks}; smaller is better."
    notes = caption, *ranking_notes(analysis), guests_note(analysis), *lesion_notes()
    ranking = ranking_table(analysis, "{title}", " ".join(filter(None, notes)))
    _rank, _team, _score, *metric_heads = ranking.heads
    heads = ("Rank", "Team", "Score", *metric_heads)
    ranking = replace(ranking, heads=heads, words=("Team",))
    return latex_file([latex(ranking, "ranking")])


def ranking_title(analysis: Analysis) -> str:
    """The subject of tables: the ranking of a challenge, or an interim one."""
    interim = "Interim ranking" if analysis.table.roll.interim_text else "Ranking"
    return f"{interim} of {analysis.challenge.name}"


def ranking_table(analysis: Analysis, metric_head: str, caption: str = "") -> Table:
    """The ranking, with a column for the mean rank, or the one rank, by each metric.

    The head of such a column is `metric_head`, with that word in place of ``{rank}``,
    and the metric in that of ``{title}`` or ``{name}``. The teams out of competition
    are last, and apart.
    """
    places = analysis.standings.standings
    scores = [f"{float(place.score):.4f}" if place.rank else "" for place in places]
    columns = [
        Column("rank", [place.rank or "-" for place in places]),
        Column("team", map(attrgetter("team"), places), is_text=True),
        Column("score", scores),
    ]
    for metric in analysis.rules.records:
        rank = analysis.rules.rank_word if metric.is_of_each_case else "rank"
        head = metric_head.format(rank=rank, title=metric.heading, name=metric.name)
        cells = [f"{float(place.mean_ranks[metric.name]):.2f}" for place in places]
        columns.append(Column(head, cells))
    guests = [number for number, place in enumerate(places) if place.rank is None]
    return table_of(caption, columns, quiet=guests)


# --- Means of teams ---------------------------------------------------------------

MOST_COLUMNS = 5
"""With more columns than this, a paper's page is too narrow for a table."""

LEVEL = "\u2020"
"""The sign behind a mean that is not significantly worse than the best one."""

_STATISTICS = {
    "means": "mean \u00b1 standard deviation (n-1)",
    "medians": "median (first to third quartile, by linear interpolation)",
}
"""The two tables of a group of columns: the names of their files begin with the key,
and their captions have the text."""


def mean_files(means: Means, title: str) -> Iterator[tuple[str, str]]:
    """The names and texts of means.csv, means.md and means.tex; for organisers."""
    yield "means.csv", rows_text(Mean, means.rows)
    tables = list(mean_tables(means, title))
    yield "means.md", "\n".join([*_mean_lines(tables)[:-1], *lesion_lines()])
    latex_tables = [latex(content, name) for name, content in tables]
    notes = map(escaped_latex, lesion_notes())
    yield "means.tex", latex_file([*latex_tables, *notes])


def _public_lines(analysis: Analysis) -> list[str]:
    """The means that everybody may know, by the metrics of the ranking, in Markdown."""
    means = ranking_means(analysis, has_organs=False)
    public_metrics = {
        name
        for name in analysis.rules.names
        if metric_named(name).is_told(means.fewest_cases(name))
    }
    rows = tuple(mean for mean in means.rows if mean.metric in public_metrics)
    public_means = replace(means, rows=rows)
    return _mean_lines(mean_tables(public_means, ranking_title(analysis), ["means"]))


def _mean_lines(tables: Iterable[tuple[str, Table]]) -> list[str]:
    """Tables in Markdown, each below its caption and above an empty line."""
    lines = []
    for _, content in tables:
        lines += [escaped_markdown(content.caption), "", *markdown(content), ""]
    return lines


def mean_tables(
    means: Means, title: str, kinds: Iterable[str] = tuple(_STATISTICS)
) -> Iterator[tuple[str, Table]]:
    """Tables of some kinds, by metric and by organ, each with its name.

    A table that is too wide for a page is divided.
    """
    columns = list(dict.fromkeys((mean.metric, mean.organ) for mean in means.rows))
    organ_columns = [(metric, organ) for metric, organ in columns if organ]
    metric_columns = [(metric, organ) for metric, organ in columns if not organ]
    yield from _tables_by_width(means, metric_columns, title, "", kinds)
    for metric, _ in metric_columns:
        columns = [column for column in organ_columns if column[0] == metric]
        organs_title = f"{title}: {metric_named(metric).heading} by organ"
        yield from _tables_by_width(means, columns, organs_title, f"_{metric}", kinds)


def _tables_by_width(
    means: Means,
    columns: Sequence[tuple[str, str]],
    title: str,
    name: str,
    kinds: Iterable[str],
) -> Iterator[tuple[str, Table]]:
    """Tables of at most `MOST_COLUMNS`: all of one kind, then all of the next."""
    for kind in kinds:
        for start in range(0, len(columns), MOST_COLUMNS):
            number = f"_{start // MOST_COLUMNS + 1}" if start else ""
            table_columns = columns[start : start + MOST_COLUMNS]
            content = _one_table(means, table_columns, title, kind)
            yield f"{kind}{name}{number}", content


def _one_table(
    means: Means, columns: Sequence[tuple[str, str]], title: str, kind: str
) -> Table:
    means_by_key = {(mean.metric, mean.organ, mean.team): mean for mean in means.rows}
    teams = list(dict.fromkeys(mean.team for mean in means.rows))
    shown = [Column("Team", teams, is_text=True)]
    for metric, organ in columns:
        cells = [_cell(means_by_key[metric, organ, t], means, kind) for t in teams]
        head = organ.replace("_", " ") or metric_named(metric).heading
        shown.append(Column(head, cells))
    note = _note(means, [metric for metric, _ in columns], kind)
    caption = f"{title}, {count(means.cases, 'case')}: {_STATISTICS[kind]}. {note}"
    guests = [number for number, team in enumerate(teams) if team in means.guests]
    return table_of(caption, shown, quiet=guests)


def _cell(mean: Mean, means: Means, kind: str) -> Cell:
    """A mean or a median, with the number of cases if some are left out."""
    if not mean.n:
        return Cell(NO_RESULT)
    metric = metric_named(mean.metric)
    is_whole = not metric.is_of_each_case or mean.n == means.cases
    number = "" if is_whole else f" (n = {mean.n})"
    if kind == "medians":
        return Cell(_median_text(mean, metric) + number)
    numbers = [value for value in (mean.mean, mean.sd) if value is not None]
    text = " \u00b1 ".join(map(metric.text, numbers))
    sign = LEVEL if mean in means.level else ""
    return Cell(text + number + sign, css=BEST if mean in means.best else "")


def _median_text(mean: Mean, metric: Metric) -> str:
    """A median with its quartiles; a value of answers is alone."""
    quartiles = (mean.median, mean.first_quartile, mean.third_quartile)
    median, low, high = (metric.text(value or 0) for value in quartiles)
    return f"{median} ({low} to {high})" if metric.is_of_each_case else median


def _note(means: Means, metrics: Sequence[str], kind: str) -> str:
    """How missing results count, who does not compete, and which means are bold."""
    metrics_with_gaps = {mean.metric for mean in means.rows if mean.missing}
    gap_metrics = [metric for metric in metrics if metric in metrics_with_gaps]
    counted = {metric: means.counted[metric] for metric in gap_metrics}
    note = "No result is missing."
    if counted:
        note = f"A missing result {counted_text(counted)}."
    if means.guests:
        guests = listing(sorted(means.guests), last=" and ")
        note += f" Out of competition: {guests}."
    note = " ".join(filter(None, (note, all_cases_text(metrics))))
    if kind == "medians":
        return note
    if not means.is_tested:
        return f"{note} Bold: the best mean of all cases; no test was made."
    return (
        f"{note} Bold: the best mean of all cases; {LEVEL}: {tests_text(metrics)} do"
        f" not tell it from the best ({100 * ALPHA:g} %, after"
        " Holm over all ordered pairs of teams, in each column)."
    )
