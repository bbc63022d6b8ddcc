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
    lines = []
    notes = (analysis.table.roll.interim_text, left_out_text(analysis.rules.left_out))
    for note in filter(None, notes):
        lines += [escaped_markdown(note), ""]
    lines += markdown(ranking_table(analysis, "mean rank: {}"))
    if guests := guests_note(analysis):
        lines += ["", guests.replace("Below the line: out", "Last ones: out")]
    if analysis.shows_means:
        lines += ["", *_public_lines(analysis)[:-1]]
    if analysis.decisions.lines:
        lines.append("")
        lines += [f"- {escaped_markdown(line)}" for line in analysis.decisions.lines]
    return "\n".join(lines)


def latex_text(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    title = ranking_title(analysis)
    caption = f"{title}: scores, and mean ranks by each metric; smaller is better."
    notes = (caption, left_out_text(analysis.rules.left_out), guests_note(analysis))
    ranking = ranking_table(analysis, "{}", " ".join(filter(None, notes)))
    heads = ("Rank", "Team", "Score", *ranking.heads[3:])
    ranking = replace(ranking, heads=heads, words=("Team",))
    return latex_file([latex(ranking, "ranking")])


def ranking_title(analysis: Analysis) -> str:
    """The subject of tables: the ranking of a challenge, or an interim one."""
    interim = "Interim ranking" if analysis.table.roll.interim_text else "Ranking"
    return f"{interim} of {analysis.challenge.name}"


def ranking_table(analysis: Analysis, head: str, caption: str = "") -> Table:
    """The ranking, with the mean rank by each metric, whose title stands in a head.

    The teams out of competition are last, and apart.
    """
    places, metrics = analysis.standings.standings, analysis.rules.names
    rows = []
    for place in places:
        score = f"{float(place.score):.4f}" if place.rank else ""
        mean_ranks = (f"{float(place.mean_ranks[metric]):.2f}" for metric in metrics)
        rows.append((str(place.rank or "-"), place.team, score, *mean_ranks))
    guests = [number for number, place in enumerate(places) if place.rank is None]
    titles = (head.format(printed(metric).title, metric) for metric in metrics)
    heads = ("rank", "team", "score", *titles)
    return table(caption, heads, rows, words=("team",), quiet=guests)


# --- Means of teams ---------------------------------------------------------------

MOST_COLUMNS = 5
"""With more columns than this, a paper's page is too narrow for a table."""


LEVEL = "\u2020"
"""The sign behind a mean that no test tells from the best."""

_STATISTICS = {
    "means": "mean \u00b1 standard deviation (n-1)",
    "medians": "median (first to third quartile, by linear interpolation)",
}
"""The tables of each group of columns."""


def mean_files(means: Means, title: str) -> Iterator[tuple[str, str]]:
    """The names and texts of means.csv, means.md and means.tex; for organisers."""
    yield "means.csv", rows_text(Mean, means.rows)
    tables = list(mean_tables(means, title))
    yield "means.md", "\n".join(_mean_lines(content for _, content in tables))
    yield "means.tex", latex_file([latex(content, name) for name, content in tables])


def _public_lines(analysis: Analysis) -> list[str]:
    """The means that everybody may know, by the metrics of the ranking, in Markdown."""
    means = ranking_means(analysis, has_organs=False)
    public = {name for name in analysis.rules.names if printed(name).is_told}
    rows = tuple(mean for mean in means.rows if mean.metric in public)
    tables = mean_tables(replace(means, rows=rows), ranking_title(analysis))
    return _mean_lines(content for name, content in tables if name.startswith("means"))


def _mean_lines(tables: Iterable[Table]) -> list[str]:
    """Tables in Markdown, each below its caption."""
    lines = []
    for content in tables:
        lines += [escaped_markdown(content.caption), "", *markdown(content), ""]
    return lines


def mean_tables(means: Means, title: str) -> Iterator[tuple[str, Table]]:
    """Means, and medians, of teams by metric, and of each metric by organ.

    With their names; those of more columns than a page has room for are in parts.
    """
    columns = list(dict.fromkeys((mean.metric, mean.organ) for mean in means.rows))
    whole = [(metric, organ) for metric, organ in columns if not organ]
    yield from _parts(means, whole, title, "")
    for metric, _ in whole:
        organs = [column for column in columns if column[0] == metric and column[1]]
        by_organ = f"{title}: {printed(metric).title} by organ"
        yield from _parts(means, organs, by_organ, f"_{metric}")


def _parts(
    means: Means, columns: Sequence[tuple[str, str]], title: str, name: str
) -> Iterator[tuple[str, Table]]:
    """Tables of at most `MOST_COLUMNS`: all means, then all medians."""
    for kind, start in product(_STATISTICS, range(0, len(columns), MOST_COLUMNS)):
        number = f"_{start // MOST_COLUMNS + 1}" if start else ""
        part = columns[start : start + MOST_COLUMNS]
        yield f"{kind}{name}{number}", _part(means, part, title, kind)


def _part(
    means: Means, columns: Sequence[tuple[str, str]], title: str, kind: str
) -> Table:
    """A table of means or medians, a row for each team."""
    by_place = {(mean.metric, mean.organ, mean.team): mean for mean in means.rows}
    teams = list(dict.fromkeys(mean.team for mean in means.rows))
    rows = []
    for team in teams:
        cells = (_cell(by_place[*column, team], means, kind) for column in columns)
        rows.append([team, *cells])
    heads = [organ.replace("_", " ") or printed(name).title for name, organ in columns]
    note = _note(means, [metric for metric, _ in columns], kind)
    return table(
        f"{title}, {count(means.cases, 'case')}: {_STATISTICS[kind]}. {note}",
        ("Team", *heads),
        rows,
        words=("Team",),
        quiet=[number for number, team in enumerate(teams) if team in means.guests],
    )


def _cell(mean: Mean, means: Means, kind: str) -> Cell:
    """A mean or a median, with the number of cases if some are left out."""
    if not mean.n:
        return Cell(NO_RESULT)
    metric = printed(mean.metric)
    number = f" (n = {mean.n})" if mean.n < means.cases else ""
    if kind == "medians":
        quartiles = mean.median, mean.first_quartile, mean.third_quartile
        text = "{} ({} to {})".format(*(metric.text(value or 0) for value in quartiles))
        return Cell(text + number)
    numbers = [value for value in (mean.mean, mean.sd) if value is not None]
    text = " \u00b1 ".join(map(metric.text, numbers))
    sign = LEVEL if mean in means.level else ""
    return Cell(text + number + sign, css=BEST if mean in means.best else "")


def _note(means: Means, metrics: Sequence[str], kind: str) -> str:
    """How missing results count, who does not compete, and which means are bold."""
    missing = {mean.metric for mean in means.rows if mean.missing}
    counted = {name: means.counted[name] for name in metrics if name in missing}
    note = "No result is missing."
    if counted:
        note = f"A missing result {counted_text(counted)}."
    if means.guests:
        guests = listing(sorted(means.guests), last=" and ")
        note += f" Out of competition: {guests}."
    if kind == "medians":
        return note
    if not means.is_tested:
        return f"{note} Bold: the best mean of all cases; no test was made."
    return (
        f"{note} Bold: the best mean of all cases; {LEVEL}: one-sided Wilcoxon tests"
        f" paired by case do not tell it from the best ({100 * ALPHA:g} %, after"
        " Holm over all ordered pairs of teams, in each column)."
    )
