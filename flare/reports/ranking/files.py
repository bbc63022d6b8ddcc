"""Writes all files of a ranking, and tells it on the terminal.

The table of the ranking is one, for the terminal, Markdown and LaTeX; ranking.csv is a
contract of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd

from flare.common.files import csv_text, write_whole
from flare.common.text import aligned, listing, printable
from flare.ranking.means import ranking_means
from flare.ranking.rank import PRIZE_RULE, Analysis, Standing
from flare.ranking.ranking_json import ranking_content
from flare.ranking.results_folder import Key
from flare.ranking.robustness.schemes import Scheme
from flare.ranking.robustness.uncertainty import ALPHA, CONFIDENCE, Bootstrap, PairTest
from flare.reports.methods import methods_text
from flare.reports.model import Table, name_cell, table
from flare.reports.ranking.means import mean_files, public_lines
from flare.reports.ranking.own import own_standing, sheet_names, sheet_text
from flare.reports.ranking.words import (
    SHARED_FIRST,
    certainty_text,
    guests_note,
    left_out_text,
    metric_title,
    missing_lines,
    plain,
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
from flare.results.csv_rows import COLUMNS, KEYS

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
    for sheet in (folder / SHEETS).glob("*.md"):
        sheet.unlink()  # of a team that was disqualified since, perhaps
    for name, text in _texts(analysis):
        write_whole(folder / name, f"{text.rstrip()}\n")
    for name, standing in sheet_names(analysis.standings.standings):
        text = sheet_text(own_standing(analysis, standing))
        write_whole(folder / SHEETS / f"{name}.md", text)


def _texts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """The files that all teams share, each made when asked for: some are large."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    columns = ["team", "rank", "score", *(f"mean_rank_{metric}" for metric in metrics)]
    ranking = (
        [s.team, s.rank or "", plain(s.score)]
        + [plain(s.mean_ranks[metric]) for metric in metrics]
        for s in analysis.standings.standings
    )
    yield "ranking.csv", csv_text(columns, ranking)
    case_ranks = (
        [*key, plain(rank)] for key, rank in _in_order(analysis.standings.case_ranks)
    )
    yield "case_ranks.csv", csv_text((*KEYS, "rank"), case_ranks)
    values = (
        [*key, "" if math.isnan(value) else value]
        for key, value in _in_order(analysis.table.frame["value"])
    )
    yield "values.csv", csv_text(COLUMNS, values)
    yield (
        "ranking.json",
        json.dumps(ranking_content(analysis), indent=2, allow_nan=False),
    )
    yield "ranking.md", page_text(analysis)
    yield "ranking.tex", latex_text(analysis)
    yield from mean_files(ranking_means(analysis), _title(analysis))
    yield "methods.txt", methods_text(analysis)
    yield "report.txt", analysis_text(analysis)


def _in_order(column: pd.Series[float]) -> list[tuple[Key, float]]:
    """The numbers of a column by team, case and metric."""
    return sorted(zip(column.index, column.tolist(), strict=True))


# --- Tables for a page or a paper -------------------------------------------------


def page_text(analysis: Analysis) -> str:
    """The ranking, and the decisions that it rests on, in Markdown."""
    titles = _titles(analysis)
    heads = {metric: f"mean rank: {title}" for metric, title in titles.items()}
    ranking = ranking_table(analysis.standings.standings, heads)
    notes = (analysis.table.roll.interim_text, left_out_text(analysis.rules.left_out))
    lines = [part for note in notes if note for part in (escaped_markdown(note), "")]
    lines += markdown(ranking)
    if ranking.quiet:
        note = guests_note(analysis).replace("Below the line: out", "Last ones: out")
        lines += ["", note]
    if analysis.shows_means:
        lines += ["", *public_lines(analysis, _title(analysis))[:-1]]
    if analysis.decisions.lines:
        told = (f"- {escaped_markdown(line)}" for line in analysis.decisions.lines)
        lines += ["", *told]
    return "\n".join(lines)


def latex_text(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    titles = _titles(analysis)
    caption = (
        f"{_title(analysis)}: scores, and mean ranks by each metric; smaller is better."
    )
    notes = (caption, left_out_text(analysis.rules.left_out), guests_note(analysis))
    caption = " ".join(filter(None, notes))
    found = ranking_table(analysis.standings.standings, titles, caption)
    heads = ("Rank", "Team", "Score", *titles.values())
    found = replace(found, heads=heads, words=("Team",))
    return latex_file([latex(found, "ranking")])


def _title(analysis: Analysis) -> str:
    """What tables are of."""
    interim = "Interim ranking" if analysis.table.roll.is_interim else "Ranking"
    return f"{interim} of {printable(analysis.challenge.name)}"


def ranking_table(
    places: Sequence[Standing], metrics: Mapping[str, str], caption: str = ""
) -> Table:
    """The ranking, with the mean rank by each metric.

    Parameters
    ----------
    places : sequence of Standing
        The teams, those out of competition last: they stand apart.
    metrics : mapping
        The heads of their columns.
    caption : str
        What the table shows.
    """
    rows = [
        (
            str(place.rank or "-"),
            name_cell(place.team),
            f"{float(place.score):.4f}" if place.rank else "",
            *(f"{float(place.mean_ranks[metric]):.2f}" for metric in metrics),
        )
        for place in places
    ]
    apart = [n for n, place in enumerate(places) if place.rank is None]
    heads = ("rank", "team", "score", *metrics.values())
    return table(caption, heads, rows, words=("team",), quiet=apart)


def _titles(analysis: Analysis) -> dict[str, str]:
    """The titles of the metrics."""
    return {rule.metric: metric_title(rule.metric) for rule in analysis.rules.metrics}


# --- On the terminal --------------------------------------------------------------


def analysis_text(analysis: Analysis) -> str:
    """The ranking, the rule for prizes, decisions, and how sure it is, as text."""
    roll = analysis.table.roll
    parts = [roll.interim_text] if roll.is_interim else []
    parts += [left_out_text(analysis.rules.left_out)] if analysis.rules.left_out else []
    parts += ["\n".join(_ranking_lines(analysis)), _remarks(analysis)]
    flags = [f"  {flag}" for flag in analysis.flags]
    if flags:
        parts.append("\n".join(["To be looked at:", *flags]))
    is_several = len(analysis.board.teams) > 1
    if is_several:
        parts.append(recount_text(analysis.sensitivity, len(analysis.board.cases)))
    if too_few_text(analysis):
        parts.append(certainty_text(analysis, is_organiser=True))
    elif analysis.bootstrap:
        parts.append(intervals_table(analysis.bootstrap))
    if is_several:
        parts.append(pairs_table(analysis.tests, analysis.board.teams))
        parts.append(schemes_table(analysis.schemes))
    return "\n\n".join(parts)


def _ranking_lines(analysis: Analysis) -> list[str]:
    """The ranking, and below a line the teams out of competition."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    heads = {metric: f"mean rank {metric}" for metric in metrics}
    lines = terminal(ranking_table(analysis.standings.standings, heads))
    return [*lines, *filter(None, [guests_note(analysis)])]


def _remarks(analysis: Analysis) -> str:
    """The rule for prizes, the decisions, and the results that are missing."""
    missing = (f"Missing: {line}" for line in missing_lines(analysis))
    return "\n".join([PRIZE_RULE, *analysis.decisions.lines, *missing])


def intervals_table(result: Bootstrap) -> str:
    """The intervals as text."""
    percent = f"{CONFIDENCE:.0%}"
    rows = [("team", f"ranks in {percent}", "first in")]
    rows += [
        (
            printable(interval.team),
            f"{interval.interval[0]} to {interval.interval[1]}",
            f"{interval.frequencies[0]:.1%}",
        )
        for interval in result.teams
    ]
    lines = [f"With {result.samples} draws of as many cases (seed {result.seed}):"]
    lines += [f"  {line}" for line in aligned(rows)]
    if result.has_shared_first:
        lines.append(SHARED_FIRST)
    if result.kendall_tau:
        low, median, high = result.kendall_tau
        lines.append(
            "Kendall's tau of these rankings with the one above: median"
            f" {median:.2f}, {percent} from {low:.2f} to {high:.2f}."
        )
    return "\n".join(lines)


def pairs_table(tests: Sequence[PairTest], teams: Sequence[str]) -> str:
    """The tests of each team against the next one, as text.

    Parameters
    ----------
    tests : sequence of PairTest
        All of them.
    teams : sequence of str
        In the order of the ranking.
    """
    metrics = list(dict.fromkeys(test.metric for test in tests))
    by_pair = {(test.metric, test.team, test.other): test for test in tests}
    rows = [["", *metrics]]
    for team, other in pairwise(teams):
        names = [printable(name) for name in (team, other)]
        cells = [_cell(by_pair[metric, team, other]) for metric in metrics]
        rows.append([" > ".join(names), *cells])
    family = len(teams) * (len(teams) - 1)
    return "\n".join(
        [
            "Is each team better than the next? Effect (-1 to 1) and p of one-sided"
            " Wilcoxon tests paired by case,",
            f"after Holm over the {family} ordered pairs of each metric; cases without"
            " a difference are left out:",
            *(f"  {line}" for line in aligned(rows)),
        ]
    )


def _cell(test: PairTest) -> str:
    """Effect and p of a test."""
    star = "*" if test.p_holm <= ALPHA else ""
    return f"{test.effect:+.2f} p={test.p_holm:.2g}{star}"


def schemes_table(schemes: Sequence[Scheme]) -> str:
    """Who moves when the teams are ranked in other ways, as text."""
    found, still = scheme_moves(schemes)
    rows = [
        (own.name, "  - " if own.tau is None else f"{own.tau:4.2f}", listing(moves))
        for own, moves in found
    ]
    lines = ["Ranked in other ways (Kendall's tau with the ranking above, who moves):"]
    lines += [f"  {line}" for line in aligned(rows)]
    return "\n".join([*lines, *([f"  {still}: nobody moves"] if still else [])])
