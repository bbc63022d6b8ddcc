"""Writes all files of a ranking, and tells it on the terminal."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flare.challenge.metrics import LEFT_OUT, lesion_notes, lesions_by
from flare.common.files import csv_text, write_whole
from flare.common.text import aligned, isolated, listing, printable
from flare.ranking.means import ranking_means
from flare.ranking.rank import Analysis, prize_text
from flare.ranking.ranking_json import RANKING_JSON, VALUES_CSV, ranking_json
from flare.ranking.sensitivity import Scheme
from flare.ranking.uncertainty import Bootstrap, PairTest, methods_of
from flare.reports.model import BEST, Cell, Table
from flare.reports.paper.tables import (
    MOST_COLUMNS,
    latex_text,
    mean_files,
    page_text,
    ranking_table,
    ranking_title,
)
from flare.reports.ranking.organs import organ_means, organ_table
from flare.reports.ranking.words import (
    certainty_text,
    draws_text,
    guests_note,
    missing_lines,
    plain,
    ranking_notes,
    recount_text,
    scheme_moves,
    scheme_title,
    tau_text,
    tests_text,
    too_few_text,
)
from flare.reports.render.text import terminal
from flare.results.csv_rows import KEYS
from flare.statistics import ALPHA, CONFIDENCE

if TYPE_CHECKING:
    from flare.ranking.ranks import Values
    from flare.ranking.table import ResultTable

SHEETS, CASE_RANKS_CSV = "sheets", "case_ranks.csv"


def write_analysis(analysis: Analysis, folder: Path) -> None:
    """Write all files of a ranking.

    Those are ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,
    ranking.tex, means.csv, means.md, means.tex, methods.txt, report.txt, and a sheet
    for each team; no case_ranks.csv of ranks of means.
    """
    # Not at the top: flare score, which writes means alone, has no need of them.
    from flare.reports.ranking.page import public_ranking
    from flare.reports.ranking.standing import own_standing, sheet_names, sheet_text

    for sheet in (folder / SHEETS).glob("*.md"):
        sheet.unlink()  # of a team that was disqualified since, perhaps
    if analysis.rules.scheme.is_of_means:
        (folder / CASE_RANKS_CSV).unlink(missing_ok=True)  # of an earlier ranking
    with lesions_by(analysis.challenge.lesions):
        for name, text in _texts(analysis):
            write_whole(folder / name, f"{text.rstrip()}\n")
        public = public_ranking(analysis)
        for name, standing in sheet_names(analysis.standings.standings):
            text = sheet_text(own_standing(analysis, standing, public))
            write_whole(folder / SHEETS / f"{name}.md", text)


def _texts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """The files that all teams share, each made when asked for: some are large."""
    from flare.reports.paper.methods import methods_text

    yield "ranking.csv", _ranking_csv(analysis)
    table, names = analysis.table, analysis.rules.names
    if not analysis.rules.scheme.is_of_means:
        ranks = analysis.standings.case_ranks.to_numpy()
        yield CASE_RANKS_CSV, _long_csv("rank", table, names, ranks, plain)
    columns = (*table.metrics, *table.others)
    numbers = np.where(table.is_left_out, math.inf, table.values)
    values = _long_csv("value", table, columns, numbers, _cell)
    yield VALUES_CSV, values
    digest = hashlib.sha256(values.encode()).hexdigest()
    yield RANKING_JSON, ranking_json(analysis, digest)
    yield "ranking.md", page_text(analysis)
    yield "ranking.tex", latex_text(analysis)
    yield from mean_files(ranking_means(analysis), ranking_title(analysis))
    yield "methods.txt", methods_text(analysis)
    yield "report.txt", isolated(analysis_text(analysis))


def _ranking_csv(analysis: Analysis) -> str:
    metrics = analysis.rules.names
    rows = []
    for place in analysis.standings.standings:
        mean_ranks = (plain(place.mean_ranks[metric]) for metric in metrics)
        rows.append((place.team, place.rank or "", plain(place.score), *mean_ranks))
    heads = ("team", "rank", "score", *(f"mean_rank_{metric}" for metric in metrics))
    return csv_text(heads, rows)


def _long_csv(
    head: str,
    table: ResultTable,
    metrics: Sequence[str],
    numbers: Values,
    cell: Callable[[float], object],
) -> str:
    """A row for each number, by team, case and metric, as `csv_text` writes it.

    There are hundreds of thousands of rows: each name is made a cell only once.
    """
    cells = {}
    for name in (*table.teams, *table.cases, *metrics):
        cells[name] = csv_text([name], []).rstrip("\n")
    order = sorted(range(len(metrics)), key=metrics.__getitem__)
    shape = len(table.teams), len(table.cases), len(metrics)
    sorted_numbers = numbers.reshape(shape)[:, :, order].ravel().tolist()
    keys = product(table.teams, table.cases, sorted(metrics))
    lines = [csv_text((*KEYS, head), [])]
    for (team, case, metric), number in zip(keys, sorted_numbers, strict=True):
        place = f"{cells[team]},{cells[case]},{cells[metric]}"
        lines.append(f"{place},{cell(number)}\n")
    return "".join(lines)


def _cell(value: float) -> object:
    """A value, or an infinity in place of one that is left out."""
    if value == math.inf:
        return LEFT_OUT
    return "" if math.isnan(value) else value


# --- On the terminal --------------------------------------------------------------


def analysis_text(analysis: Analysis) -> str:
    """The ranking, the rule for prizes, decisions, and how sure it is, as text."""
    ranking = terminal(ranking_table(analysis, "{rank} {name}"))
    if note := guests_note(analysis):
        ranking.append(note)
    missing = (f"Missing: {line}" for line in missing_lines(analysis))
    parts = [
        analysis.table.roll.interim_text,
        *ranking_notes(analysis),
        "\n".join(ranking),
        "\n".join([prize_text(analysis.rules), *analysis.decisions.lines, *missing]),
    ]
    if analysis.flags:
        flags = (f"  {flag}" for flag in analysis.flags)
        parts.append("\n".join(["To be looked at:", *flags]))
    has_rivals = len(analysis.board.teams) > 1
    if has_rivals:
        cases = len(analysis.board.cases)
        recounts = (
            recount_text(winner, cases, analysis.rules)
            for winner in analysis.sensitivity
        )
        parts.append("\n".join(recounts))
    if too_few_text(analysis):
        parts.append(certainty_text(analysis, is_organiser=True))
    elif analysis.bootstrap:
        parts.append(intervals_text(analysis.bootstrap))
    if has_rivals:
        parts += _pairs_text(analysis), _schemes_text(analysis.schemes)
    parts += lesion_notes()
    return "\n\n".join(filter(None, parts))


def _block(title: str, rows: Sequence[Sequence[str]], *notes: str) -> str:
    return "\n".join([title, *(f"  {line}" for line in aligned(rows)), *notes])


def intervals_text(bootstrap: Bootstrap) -> str:
    """The intervals of the ranks."""
    rows = [("team", f"ranks in {CONFIDENCE:.0%}", "first in")]
    for team in bootstrap.teams:
        low, high = team.interval
        share = f"{team.frequencies[0]:.1%}"
        rows.append((printable(team.team), f"{low} to {high}", share))
    return _block("Ranks when other cases are drawn:", rows, draws_text(bootstrap))


def _pairs_text(analysis: Analysis) -> str:
    teams, metrics = analysis.board.teams, analysis.rules.names
    by_pair = {(test.metric, test.team, test.other): test for test in analysis.tests}
    rows = [["", *metrics]]
    for pair in pairwise(teams):
        tests = (by_pair[metric, *pair] for metric in metrics)
        cells = (
            f"{test.effect:+.2f} {_p_text(test)}{'*' * (test.p_holm <= ALPHA)}"
            for test in tests
        )
        rows.append([" > ".join(map(printable, pair)), *cells])
    family = len(teams) * (len(teams) - 1)
    title = (
        "Is each team better than the next? Effect (-1 to 1) and p of"
        f" {tests_text(metrics)},\n"
        f"after Holm over the {family} ordered pairs of each metric"
    )
    title += "".join(method.title for method in methods_of(analysis.rules.records))
    return _block(f"{title}:", rows)


def organs_text(analysis: Analysis) -> str:
    """The means by organ, a table for each metric and a few organs; a star is best."""
    parts: list[str] = []
    means = ranking_means(analysis, has_tests=False)
    for metric_means in organ_means(means, is_organiser=True):
        parts += _organ_blocks(organ_table(metric_means))
    return "\n\n".join(parts) or "By organ: the results have no organs."


def _organ_blocks(means: Table) -> Iterator[str]:
    """A table in parts that are narrow enough to read."""
    for start in range(1, len(means.heads), MOST_COLUMNS):
        columns = slice(start, start + MOST_COLUMNS)
        rows = []
        for row in means.rows:
            texts = (c.text + "*" * c.css.endswith(BEST) for c in row[columns])
            rows.append([Cell(row[0].text), *map(Cell, texts)])
        heads = ("team", *means.heads[columns])
        block = replace(means, heads=heads, rows=tuple(map(tuple, rows)))
        caption = means.caption.replace("bold", "*")
        yield "\n".join([f"{caption}:", *terminal(block)])


def _p_text(test: PairTest) -> str:
    """The p-value after Holm; of draws, no share is known to be 0."""
    if not test.p_holm:
        return f"p<{1 / (test.cases + test.zeros):.2g}"
    return f"p={test.p_holm:.2g}"


def _schemes_text(schemes: Sequence[Scheme]) -> str:
    moves_by_scheme, still = scheme_moves(schemes)
    rows = []
    for scheme, moves in moves_by_scheme:
        rows.append((scheme_title(scheme), tau_text(scheme), listing(moves)))
    notes = [f"  {still}: nobody moves"] if still else []
    title = "Ranked in other ways (Kendall's tau with the ranking above, who moves):"
    return _block(title, rows, *notes)
