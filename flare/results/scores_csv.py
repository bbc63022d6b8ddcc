"""Writes the scores of teams as one table in long form, which `flare rank` reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from flare.common.files import csv_text, write_whole
from flare.results.metrics_json import METRICS_JSON, read_scores

COLUMNS = ("team", "case", "metric", "value")


def write_scores(file: Path, teams: Iterable[Path]) -> None:
    """Write a row for each team, case and metric.

    A case that got the worst value, because it was missing or could not be used, has
    an empty value: it is ranked as a missing result, as from metrics.json.

    Parameters
    ----------
    file : Path
        To be written, whole or not at all.
    teams : iterable of Path
        Their folders, each with a metrics.json, in the order of the rows.

    Raises
    ------
    OutputError
        If it cannot be written.
    RankingError
        If a metrics.json cannot be read.
    """
    rows: list[tuple[str, str, str, object]] = []
    for folder in teams:
        scores = read_scores(folder / METRICS_JSON, ())
        team = folder.resolve().name
        rows += (
            (team, case, metric, "" if case in scores.failed else value)
            for (case, metric), value in scores.values.items()
        )
    write_whole(file, csv_text(COLUMNS, rows))
