"""Chooses what is drawn of the traces of the teams that are ranked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from flare.ranking.rank import Analysis
from flare.reports.pages.curves import memory_figures
from flare.reports.pages.parts import MANY_ROWS, Figure
from flare.reports.pages.team_in_field import TeamInField
from flare.results.traces_csv import BUCKETS, read_curve, traced_cases

MEMORY = "max_gpu_memory_mb"

OWN_CURVES = 3
"""So many cases of a team are drawn beside a ranking: reading all traces of all teams
would take minutes. The page of a team's folder has all of them."""


def trace_folders(source: Path, analysis: Analysis) -> dict[str, Path]:
    """The folders of the teams that have traces, by the names they are shown by."""
    if not source.is_dir():
        return {}
    folders = {
        analysis.decisions.name_of(folder.name): folder
        for folder in sorted(source.iterdir())
        if folder.is_dir()
    }
    known = analysis.table.teams
    return {
        team: folder
        for team, folder in folders.items()
        if team in known and traced_cases(folder)
    }


def one_case(analysis: Analysis, folders: Mapping[str, Path]) -> list[Figure]:
    """Memory over time of all teams on one case: that with the most GPU memory.

    Where memory is not ranked, it is the first case with a trace.
    """
    traced = {team: set(traced_cases(folder)) for team, folder in folders.items()}
    known = [
        case
        for case in analysis.table.cases
        if any(case in cases for cases in traced.values())
    ]
    if not known:
        return []
    case = max(known, key=lambda own: _memory(analysis, own))
    buckets = BUCKETS if len(traced) <= MANY_ROWS else BUCKETS // 2
    curves = [
        (standing.team, read_curve(folders[standing.team], case, buckets))
        for standing in analysis.standings.standings
        if case in traced.get(standing.team, ())
    ]
    return memory_figures(curves, "team", f"on {case}")


def _memory(analysis: Analysis, case: str) -> float:
    """The most GPU memory of any team on a case; 0 where that is not known."""
    board = analysis.board
    metrics = [rule.metric for rule in analysis.rules.metrics]
    if MEMORY not in metrics:
        return 0.0
    column = board.values[:, board.cases.index(case), metrics.index(MEMORY)]
    return float(np.nan_to_num(column).max())


def own_curves(folder: Path | None, page: TeamInField) -> list[Figure]:
    """Memory over time of a team, on the cases where it needs most."""
    if folder is None:
        return []
    known = set(traced_cases(folder))
    memory = next((own.values for own in page.metrics if own.metric == MEMORY), None)
    order = [
        (-(memory[n] or 0.0) if memory else 0.0, case)
        for n, case in enumerate(page.cases)
        if case in known
    ]
    cases = [case for _, case in sorted(order)[:OWN_CURVES]]
    curves = [(case, read_curve(folder, case)) for case in cases]
    return memory_figures(curves, "case", "over time")
