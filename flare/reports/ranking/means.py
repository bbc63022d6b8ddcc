"""Prints the means of teams: means.csv, and tables for a page and a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from flare.common.text import count, listing
from flare.ranking.means import Mean, Means
from flare.ranking.robustness.uncertainty import ALPHA
from flare.reports.model import BEST, NO_RESULT, Cell, Table, name_cell, table
from flare.reports.ranking.words import counted_text, metric_title, value_text
from flare.reports.render.text import escaped_markdown, latex, latex_file, markdown
from flare.results.csv_rows import rows_text


def mean_files(means: Means, title: str) -> Iterator[tuple[str, str]]:
    """The names and texts of means.csv, means.md and means.tex; for organisers."""
    yield "means.csv", rows_text(Mean, means.rows)
    tables = dict(mean_tables(means, title))
    parts = [
        "\n".join(
            [escaped_markdown(own.caption), "", *markdown(replace(own, quiet=()))]
        )
        for own in tables.values()
    ]
    yield "means.md", "\n\n".join(parts)
    yield "means.tex", latex_file([latex(own, name) for name, own in tables.items()])


def mean_tables(means: Means, title: str) -> Iterator[tuple[str, Table]]:
    """Means, and medians, of teams by metric, and of each metric by organ."""
    found = {(own.metric, own.organ, own.team): own for own in means.rows}
    columns = dict.fromkeys((metric, organ) for metric, organ, _ in found)
    groups: dict[str, list[tuple[str, str]]] = {"": []}
    for (
        column
    ) in columns:  # the mean over organs in the first one, the others by metric
        groups.setdefault(column[0] if column[1] else "", []).append(column)
    teams = list(dict.fromkeys(team for _, _, team in found))
    for metric, own in groups.items():
        heads = [organ.replace("_", " ") or metric_title(name) for name, organ in own]
        of = f"{metric_title(metric)} by organ" if metric else "All metrics"
        for kind, (text, what) in _STATISTICS.items():
            rows = [
                [
                    name_cell(team),
                    *(_mean_cell(found[*key, team], means, text) for key in own),
                ]
                for team in teams
            ]
            yield (
                "_".join(filter(None, (kind, metric))),
                table(
                    f"{title}, {count(means.cases, 'case')}. {of}: {what}."
                    f" {_means_note(means, [metric for metric, _ in own], kind)}",
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
    "means": (_mean_text, "mean \u00b1 standard deviation (n - 1)"),
    "medians": (
        _median_text,
        "median (first to third quartile, by linear interpolation)",
    ),
}
"""The tables of each group of columns."""


def _mean_cell(own: Mean, means: Means, text: Callable[[Mean], str]) -> Cell:
    """What stands in print, with the number of cases if some are left out."""
    if not own.n:
        return Cell(NO_RESULT)
    number = f" (n = {own.n})" if own.n < means.cases else ""
    is_bold = text is _mean_text and own in means.best
    return Cell(text(own) + number, css=BEST if is_bold else "")


def _means_note(means: Means, metrics: Sequence[str], kind: str) -> str:
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
            " Bold: the best mean, and those that one-sided Wilcoxon tests paired by"
            f" case do not tell from it ({100 * ALPHA:g} %, after Holm over all ordered"
            " pairs of teams, in each column)."
        )
    elif kind == "means":
        note += " Bold: the best mean; no test was made."
    return note
