"""Writes all files of a ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from flare.common.files import csv_text, write_whole
from flare.common.json_text import indented
from flare.ranking.rank import Analysis
from flare.ranking.results_folder import Key
from flare.reports.ranking.methods import methods_text
from flare.reports.ranking.own import own_standing
from flare.reports.ranking.publication_tables import latex_text, page_text
from flare.reports.ranking.ranking_json import ranking_content
from flare.reports.ranking.rows import plain
from flare.reports.ranking.sheets import sheet_names, sheet_text
from flare.reports.ranking.terminal import analysis_text
from flare.results.csv_rows import COLUMNS, KEYS

SHEETS = "sheets"
"""Folder of the sheets."""


def write_analysis(analysis: Analysis, folder: Path) -> None:
    """Write all files of a ranking.

    Those are ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,
    ranking.tex, methods.txt, report.txt, and a sheet for each team.

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
    yield "ranking.json", indented(ranking_content(analysis))
    yield "ranking.md", page_text(analysis)
    yield "ranking.tex", latex_text(analysis)
    yield "methods.txt", methods_text(analysis)
    yield "report.txt", analysis_text(analysis)


def _in_order(column: pd.Series[float]) -> list[tuple[Key, float]]:
    """The numbers of a column by team, case and metric."""
    return sorted(zip(column.index, column.tolist(), strict=True))
