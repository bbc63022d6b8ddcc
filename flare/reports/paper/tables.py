"""Makes the tables of a ranking: its places, and the means of teams.

The table of the ranking is one, for the terminal, Markdown and LaTeX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from flare.common.text import count, listing
from flare.ranking.means import Mean, Means, ranking_means
from flare.ranking.rank import Analysis
from flare.ranking.uncertainty import ALPHA
from flare.reports.model import BEST, NO_RESULT, Cell, Table, table
from flare.reports.ranking.words import (
    counted_text,
    guests_note,
    left_out_text,
    printed,
)
from flare.reports.render.text import (
    escaped_markdown,
    latex,
    latex_file,
    markdown,
)
from flare.results.csv_rows import rows_text


def page_text(analysis: Analysis) -> str:
    """The ranking, and the decisions that it rests on, in Markdown."""
    told = (analysis.table.roll.interim_text, left_out_text(analysis.rules.left_out))
    lines = [line for note in told if note for line in (escaped_markdown(note), "")]
    lines += markdown(ranking_table(analysis, "mean rank: {}"))
    if note := guests_note(analysis):
        lines += ["", note.replace("Below the line: out", "Last ones: out")]
    if analysis.shows_means:
        lines += ["", *_public_lines(analysis)[:-1]]
    decisions = [f"- {escaped_markdown(line)}" for line in analysis.decisions.lines]
    return "\n".join([*lines, "", *decisions] if decisions else lines)


def latex_text(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    title = ranking_title(analysis)
    caption = f"{title}: scores, and mean ranks by each metric; smaller is better."
    notes = (caption, left_out_text(analysis.rules.left_out), guests_note(analysis))
    found = ranking_table(analysis, "{}", " ".join(filter(None, notes)))
    heads = ("Rank", "Team", "Score", *found.heads[3:])
    return latex_file([latex(replace(found, heads=heads, words=("Team",)), "ranking")])


def ranking_title(analysis: Analysis) -> str:
    """What tables are of."""
    interim = "Interim ranking" if analysis.table.roll.interim_text else "Ranking"
    return f"{interim} of {analysis.challenge.name}"


def ranking_table(analysis: Analysis, head: str, caption: str = "") -> Table:
    """The ranking, with the mean rank by each metric, whose title stands in a head.

    The teams out of competition are last, and apart.
    """
    places, names = analysis.standings.standings, analysis.rules.names
    rows = [
        (
            str(place.rank or "-"),
            place.team,
            f"{float(place.score):.4f}" if place.rank else "",
            *(f"{float(place.mean_ranks[metric]):.2f}" for metric in names),
        )
        for place in places
    ]
    apart = [n for n, place in enumerate(places) if place.rank is None]
    titles = (head.format(printed(metric).title, metric) for metric in names)
    heads = ("rank", "team", "score", *titles)
    return table(caption, heads, rows, words=("team",), quiet=apart)


# --- Means of teams ---------------------------------------------------------------

MOST_COLUMNS = 5
"""Of a table: with more, a paper's page is too narrow."""


LEVEL = "\u2020"
"""Stands behind a mean that no test tells from the best."""


def mean_files(means: Means, title: str) -> Iterator[tuple[str, str]]:
    """The names and texts of means.csv, means.md and means.tex; for organisers."""
    yield "means.csv", rows_text(Mean, means.rows)
    tables = list(mean_tables(means, title))
    yield "means.md", "\n".join(_mean_lines(tables))
    yield "means.tex", latex_file([latex(own, name) for name, own in tables])


def _public_lines(analysis: Analysis) -> list[str]:
    """The means that everybody may know, by the metrics of the ranking, in Markdown."""
    means = ranking_means(analysis, has_organs=False)
    public = {name for name in analysis.rules.names if printed(name).is_told}
    told = replace(means, rows=tuple(r for r in means.rows if r.metric in public))
    tables = mean_tables(told, ranking_title(analysis))
    return _mean_lines((name, own) for name, own in tables if name.startswith("means"))


def _mean_lines(tables: Iterable[tuple[str, Table]]) -> list[str]:
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
    yield from _parts(means, whole, title, "")
    for metric, _ in whole:
        organs = [column for column in columns if column[0] == metric and column[1]]
        by_organ = f"{title}: {printed(metric).title} by organ"
        yield from _parts(means, organs, by_organ, f"_{metric}")


def _parts(
    means: Means, columns: Sequence[tuple[str, str]], title: str, name: str
) -> Iterator[tuple[str, Table]]:
    """The tables of some columns, a row for each team."""
    found = {(own.metric, own.organ, own.team): own for own in means.rows}
    teams = list(dict.fromkeys(own.team for own in means.rows))
    starts = range(0, len(columns), MOST_COLUMNS)
    for kind, start in product(_STATISTICS, starts):
        part = columns[start : start + MOST_COLUMNS]
        heads = [organ.replace("_", " ") or printed(m).title for m, organ in part]
        rows = [
            [team, *(_cell(found[*own, team], means, kind) for own in part)]
            for team in teams
        ]
        what = f"{_STATISTICS[kind]}. {_note(means, [m for m, _ in part], kind)}"
        yield (
            f"{kind}{name}{f'_{start // MOST_COLUMNS + 1}' if start else ''}",
            table(
                f"{title}, {count(means.cases, 'case')}: {what}",
                ("Team", *heads),
                rows,
                words=("Team",),
                quiet=[n for n, team in enumerate(teams) if team in means.guests],
            ),
        )


_STATISTICS = {
    "means": "mean \u00b1 standard deviation (n-1)",
    "medians": "median (first to third quartile, by linear interpolation)",
}
"""The tables of each group of columns."""


def _cell(own: Mean, means: Means, kind: str) -> Cell:
    """What stands in print, with the number of cases if some are left out."""
    if not own.n:
        return Cell(NO_RESULT)
    metric = printed(own.metric)
    if kind == "means":
        known = [value for value in (own.mean, own.sd) if value is not None]
        text = " \u00b1 ".join(map(metric.text, known))
    else:
        quartiles = own.median, own.first_quartile, own.third_quartile
        text = "{} ({} to {})".format(*(metric.text(value or 0) for value in quartiles))
    number = f" (n = {own.n})" if own.n < means.cases else ""
    if kind != "means":
        return Cell(text + number)
    sign = LEVEL if own in means.level else ""
    return Cell(text + number + sign, css=BEST if own in means.best else "")


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
            f" Bold: the best mean of all cases; {LEVEL}: one-sided Wilcoxon tests"
            f" paired by case do not tell it from the best ({100 * ALPHA:g} %, after"
            " Holm over all ordered pairs of teams, in each column)."
        )
    elif kind == "means":
        note += " Bold: the best mean of all cases; no test was made."
    return note
