"""Prints the means of teams: means.csv, and tables for a page and a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from flare.challenge.metrics import metric_of
from flare.common.text import count, listing
from flare.ranking.means import Mean, Means, ranking_means
from flare.ranking.rank import Analysis
from flare.ranking.robustness.uncertainty import ALPHA
from flare.reports.model import BEST, NO_RESULT, Cell, Table, name_cell, table
from flare.reports.ranking.words import counted_text, metric_title, value_text
from flare.reports.render.text import escaped_markdown, latex, latex_file, markdown
from flare.results.csv_rows import rows_text

MOST_COLUMNS = 5
"""Of a table: with more, a paper's page is too narrow."""


def mean_files(means: Means, title: str) -> Iterator[tuple[str, str]]:
    """The names and texts of means.csv, means.md and means.tex; for organisers."""
    yield "means.csv", rows_text(Mean, means.rows)
    tables = list(mean_tables(means, title))
    yield "means.md", "\n".join(mean_lines(tables))
    printed = [latex(own, name, fits=True) for name, own in tables]
    yield "means.tex", latex_file(printed)


def public_lines(analysis: Analysis, title: str) -> list[str]:
    """The means that everybody may know, by the metrics of the ranking, in Markdown."""
    means = ranking_means(analysis, has_organs=False)
    public = {
        name
        for name in analysis.rules.names
        if (metric := metric_of(name)) is None or metric.for_participants
    }
    told = replace(means, rows=tuple(r for r in means.rows if r.metric in public))
    tables = mean_tables(told, title)
    return mean_lines((name, own) for name, own in tables if name.startswith("means"))


def mean_lines(tables: Iterable[tuple[str, Table]]) -> list[str]:
    """Tables in Markdown, each below its caption."""
    return [
        line
        for _, own in tables
        for line in (escaped_markdown(own.caption), "", *markdown(own), "")
    ]


def mean_tables(means: Means, title: str) -> Iterator[tuple[str, Table]]:
    """Means, and medians, of teams by metric, and of each metric by organ.

    With their names; those of more columns than a page has room for are in parts.
    """
    columns = list(dict.fromkeys((own.metric, own.organ) for own in means.rows))
    whole = [(metric, organ) for metric, organ in columns if not organ]
    yield from _tables(means, whole, title, ())
    for metric, _ in whole:
        organs = [column for column in columns if column[0] == metric and column[1]]
        by_organ = f"{title}: {metric_title(metric)} by organ"
        yield from _tables(means, organs, by_organ, (metric,))


def _tables(
    means: Means, columns: Sequence[tuple[str, str]], title: str, names: Sequence[str]
) -> Iterator[tuple[str, Table]]:
    """The tables of some columns, a row for each team."""
    found = {(own.metric, own.organ, own.team): own for own in means.rows}
    teams = list(dict.fromkeys(own.team for own in means.rows))
    starts = range(0, len(columns), MOST_COLUMNS)
    for (kind, (text, what)), start in product(_STATISTICS.items(), starts):
        part = columns[start : start + MOST_COLUMNS]
        heads = [organ.replace("_", " ") or metric_title(name) for name, organ in part]
        rows = [
            [name_cell(team), *(_cell(found[*own, team], means, text) for own in part)]
            for team in teams
        ]
        note = _note(means, [metric for metric, _ in part], kind)
        number = [str(start // MOST_COLUMNS + 1)] if start else []
        yield (
            "_".join([kind, *names, *number]),
            table(
                f"{title}, {count(means.cases, 'case')}: {what}. {note}",
                ("Team", *heads),
                rows,
                words=("Team",),
                quiet=[n for n, team in enumerate(teams) if team in means.guests],
            ),
        )


def _mean_text(own: Mean) -> str:
    """Mean and standard deviation."""
    parts = [value_text(own.metric, x) for x in (own.mean, own.sd) if x is not None]
    return " \u00b1 ".join(parts)


def _median_text(own: Mean) -> str:
    """Median and quartiles."""
    quartiles = own.median, own.first_quartile, own.third_quartile
    texts = [value_text(own.metric, value or 0) for value in quartiles]
    return "{} ({} to {})".format(*texts)


_STATISTICS: Mapping[str, tuple[Callable[[Mean], str], str]] = {
    "means": (_mean_text, "mean \u00b1 standard deviation (n-1)"),
    "medians": (
        _median_text,
        "median (first to third quartile, by linear interpolation)",
    ),
}
"""The tables of each group of columns."""


def _cell(own: Mean, means: Means, text: Callable[[Mean], str]) -> Cell:
    """What stands in print, with the number of cases if some are left out."""
    if not own.n:
        return Cell(NO_RESULT)
    number = f" (n = {own.n})" if own.n < means.cases else ""
    is_bold = text is _mean_text and own in means.best
    return Cell(text(own) + number, css=BEST if is_bold else "")


def _note(means: Means, metrics: Sequence[str], kind: str) -> str:
    """What missing results count as, who does not compete, and what is bold."""
    missing = {own.metric for own in means.rows if own.missing}.intersection(metrics)
    counted = {name: means.counted[name] for name in metrics if name in missing}
    note = "No result is missing."
    if counted:
        note = f"A missing result {counted_text(counted)}."
    if means.guests:
        guests = listing(sorted(means.guests), last=" and ")
        note += f" Out of competition: {guests}."
    if kind == "means" and means.is_tested:
        note += (
            " Bold: the best mean of all cases, and those that one-sided Wilcoxon tests"
            f" paired by case do not tell from it ({100 * ALPHA:g} %, after Holm over"
            " all ordered pairs of teams, in each column)."
        )
    elif kind == "means":
        note += " Bold: the best mean of all cases; no test was made."
    return note
