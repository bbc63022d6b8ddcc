"""Writes all files of a ranking, and tells it on the terminal.

The table of the ranking is one, for the terminal, Markdown and LaTeX; ranking.csv is a
contract of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

from flare.common.files import csv_text, write_whole
from flare.common.text import aligned, count, isolated, listing, printable
from flare.ranking.means import Mean, Means, ranking_means
from flare.ranking.rank import PRIZE_RULE, Analysis
from flare.ranking.ranking_json import ranking_content
from flare.ranking.results_folder import Key
from flare.ranking.sensitivity import Scheme
from flare.ranking.uncertainty import ALPHA, CONFIDENCE, Bootstrap
from flare.reports.model import BEST, NO_RESULT, Cell, Table, table
from flare.reports.ranking.words import (
    certainty_text,
    counted_text,
    draws_text,
    guests_note,
    left_out_text,
    missing_lines,
    plain,
    printed,
    recount_text,
    scheme_moves,
    too_few_text,
)
from flare.reports.render.text import (
    escaped_markdown,
    latex,
    latex_file,
    markdown,
    terminal,
)
from flare.results.csv_rows import COLUMNS, KEYS, rows_text

if TYPE_CHECKING:
    import pandas as pd

SHEETS = "sheets"
"""Folder of the sheets."""


def write_analysis(analysis: Analysis, folder: Path) -> None:
    """Write all files of a ranking.

    Those are ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,
    ranking.tex, means.csv, means.md, means.tex, methods.txt, report.txt, and a sheet
    for each team.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    # Not at the top: flare score, which writes means alone, has no need of them.
    from flare.reports.ranking.page import public_ranking
    from flare.reports.ranking.teams import own_standing, sheet_names, sheet_text

    for sheet in (folder / SHEETS).glob("*.md"):
        sheet.unlink()  # of a team that was disqualified since, perhaps
    for name, text in _texts(analysis):
        write_whole(folder / name, f"{text.rstrip()}\n")
    public = public_ranking(analysis)
    for name, standing in sheet_names(analysis.standings.standings):
        text = sheet_text(own_standing(analysis, standing, public))
        write_whole(folder / SHEETS / f"{name}.md", text)


def _texts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """The files that all teams share, each made when asked for: some are large."""
    from flare.reports.methods import methods_text

    names, standings = analysis.rules.names, analysis.standings
    columns = ["team", "rank", "score", *(f"mean_rank_{metric}" for metric in names)]
    ranking = (
        (s.team, s.rank or "", plain(s.score), *(plain(s.mean_ranks[m]) for m in names))
        for s in standings.standings
    )
    yield "ranking.csv", csv_text(columns, ranking)
    ranks = ([*key, plain(rank)] for key, rank in _in_order(standings.case_ranks))
    yield "case_ranks.csv", csv_text((*KEYS, "rank"), ranks)
    values = (
        [*key, "" if math.isnan(value) else value]
        for key, value in _in_order(analysis.table.frame["value"])
    )
    yield "values.csv", csv_text(COLUMNS, values)
    content = json.dumps(ranking_content(analysis), indent=2, allow_nan=False)
    yield "ranking.json", content
    yield "ranking.md", page_text(analysis)
    yield "ranking.tex", latex_text(analysis)
    yield from mean_files(ranking_means(analysis), _title(analysis))
    yield "methods.txt", methods_text(analysis)
    yield "report.txt", isolated(analysis_text(analysis))


def _in_order(column: pd.Series[float]) -> list[tuple[Key, float]]:
    """The numbers of a column by team, case and metric."""
    return sorted(zip(column.index, column.tolist(), strict=True))


# --- Tables for a page or a paper -------------------------------------------------


def page_text(analysis: Analysis) -> str:
    """The ranking, and the decisions that it rests on, in Markdown."""
    told = (analysis.table.roll.interim_text, left_out_text(analysis.rules.left_out))
    lines = [line for note in told if note for line in (escaped_markdown(note), "")]
    lines += markdown(_ranking_table(analysis, "mean rank: {}"))
    if note := guests_note(analysis):
        lines += ["", note.replace("Below the line: out", "Last ones: out")]
    if analysis.shows_means:
        lines += ["", *_public_lines(analysis)[:-1]]
    decisions = [f"- {escaped_markdown(line)}" for line in analysis.decisions.lines]
    return "\n".join([*lines, "", *decisions] if decisions else lines)


def latex_text(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    caption = (
        f"{_title(analysis)}: scores, and mean ranks by each metric; smaller is better."
    )
    notes = (caption, left_out_text(analysis.rules.left_out), guests_note(analysis))
    found = _ranking_table(analysis, "{}", " ".join(filter(None, notes)))
    heads = ("Rank", "Team", "Score", *found.heads[3:])
    return latex_file([latex(replace(found, heads=heads, words=("Team",)), "ranking")])


def _title(analysis: Analysis) -> str:
    """What tables are of."""
    interim = "Interim ranking" if analysis.table.roll.interim_text else "Ranking"
    return f"{interim} of {analysis.challenge.name}"


def _ranking_table(analysis: Analysis, head: str, caption: str = "") -> Table:
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
    tables = mean_tables(told, _title(analysis))
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


# --- On the terminal --------------------------------------------------------------


def analysis_text(analysis: Analysis) -> str:
    """The ranking, the rule for prizes, decisions, and how sure it is, as text."""
    note = guests_note(analysis)
    ranking = terminal(_ranking_table(analysis, "mean rank {1}")) + [note] * bool(note)
    missing = (f"Missing: {line}" for line in missing_lines(analysis))
    parts = [
        analysis.table.roll.interim_text,
        left_out_text(analysis.rules.left_out),
        "\n".join(ranking),
        "\n".join([PRIZE_RULE, *analysis.decisions.lines, *missing]),
    ]
    if analysis.flags:
        flags = (f"  {flag}" for flag in analysis.flags)
        parts.append("\n".join(["To be looked at:", *flags]))
    is_several = len(analysis.board.teams) > 1
    if is_several:
        cases = len(analysis.board.cases)
        parts += ["\n".join(recount_text(own, cases) for own in analysis.sensitivity)]
    if too_few_text(analysis):
        parts.append(certainty_text(analysis, is_organiser=True))
    elif analysis.bootstrap:
        parts.append(intervals_text(analysis.bootstrap))
    if is_several:
        parts += _pairs_text(analysis), _schemes_text(analysis.schemes)
    return "\n\n".join(filter(None, parts))


def _block(title: str, rows: Sequence[Sequence[str]], *more: str) -> str:
    """A table below its title, and lines below it."""
    return "\n".join([title, *(f"  {line}" for line in aligned(rows)), *more])


def intervals_text(found: Bootstrap) -> str:
    """The intervals of the ranks."""
    rows = [("team", f"ranks in {CONFIDENCE:.0%}", "first in")]
    for own in found.teams:
        low, high = own.interval
        share = f"{own.frequencies[0]:.1%}"
        rows.append((printable(own.team), f"{low} to {high}", share))
    return _block("Ranks when other cases are drawn:", rows, draws_text(found))


def _pairs_text(analysis: Analysis) -> str:
    """The tests of each team against the next one."""
    teams, metrics = analysis.board.teams, analysis.rules.names
    by_pair = {(test.metric, test.team, test.other): test for test in analysis.tests}
    rows = [["", *metrics]]
    for pair in pairwise(teams):
        tests = (by_pair[metric, *pair] for metric in metrics)
        cells = (
            f"{test.effect:+.2f} p={test.p_holm:.2g}{'*' * (test.p_holm <= ALPHA)}"
            for test in tests
        )
        rows.append([" > ".join(map(printable, pair)), *cells])
    family = len(teams) * (len(teams) - 1)
    title = (
        "Is each team better than the next? Effect (-1 to 1) and p of one-sided"
        " Wilcoxon tests paired by case,\n"
        f"after Holm over the {family} ordered pairs of each metric; cases without"
        " a difference are left out:"
    )
    return _block(title, rows)


def _schemes_text(schemes: Sequence[Scheme]) -> str:
    """Who moves when the teams are ranked in other ways."""
    found, still = scheme_moves(schemes)
    rows = [
        (own.name, "  - " if own.tau is None else f"{own.tau:4.2f}", listing(moves))
        for own, moves in found
    ]
    title = "Ranked in other ways (Kendall's tau with the ranking above, who moves):"
    return _block(title, rows, *([f"  {still}: nobody moves"] if still else []))
