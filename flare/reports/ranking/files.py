"""Writes all files of a ranking."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from flare.common.files import csv_text, write_whole
from flare.ranking.rank import Analysis
from flare.ranking.reading import COLUMNS
from flare.reports.ranking.methods import methods_text
from flare.reports.ranking.own import own_standing
from flare.reports.ranking.publication_tables import latex_text, page_text
from flare.reports.ranking.ranking_json import ranking_content
from flare.reports.ranking.rows import plain
from flare.reports.ranking.sheets import sheet_names, sheet_text
from flare.reports.ranking.terminal import analysis_text

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
    metrics = [rule.metric for rule in analysis.rules.metrics]
    ranking = [
        [s.team, s.rank or "", plain(s.score)]
        + [plain(s.mean_ranks[metric]) for metric in metrics]
        for s in analysis.standings.standings
    ]
    columns = ["team", "rank", "score", *(f"mean_rank_{metric}" for metric in metrics)]
    case_ranks = [
        [team, case, metric, plain(rank)]
        for (team, case, metric), rank in sorted(analysis.standings.case_ranks.items())
    ]
    for sheet in (folder / SHEETS).glob("*.md"):
        sheet.unlink()  # of a team that was disqualified since, perhaps
    for name, text in (
        ("ranking.csv", csv_text(columns, ranking)),
        ("case_ranks.csv", csv_text(["team", "case", "metric", "rank"], case_ranks)),
        ("values.csv", csv_text(COLUMNS, _values(analysis))),
        (
            "ranking.json",
            json.dumps(ranking_content(analysis), indent=2, allow_nan=False),
        ),
        ("ranking.md", page_text(analysis)),
        ("ranking.tex", latex_text(analysis)),
        ("methods.txt", methods_text(analysis)),
        ("report.txt", analysis_text(analysis)),
    ):
        write_whole(folder / name, f"{text.rstrip()}\n")
    for name, standing in sheet_names(analysis.standings.standings):
        text = sheet_text(own_standing(analysis, standing))
        write_whole(folder / SHEETS / f"{name}.md", text)


def _values(analysis: Analysis) -> list[list[Any]]:
    """A row for each value, also of single organs; what is missing is empty."""
    values = analysis.table.frame["value"]
    return [
        [*key, "" if math.isnan(value) else value]
        for key, value in sorted(zip(values.index, values.tolist(), strict=True))
    ]
