"""Brings together what teams have achieved: from their folders, or from one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from flare.challenge.rules import Challenge
from flare.common.text import listing, safe
from flare.ranking.table import KEYS, CaseResult, Key, ResultTable, table_of
from flare.results.copies import Copies, find_equal
from flare.results.csv_rows import check_columns, read_rows
from flare.results.efficiency_csv import VALUES
from flare.results.errors import RankingError
from flare.results.lookalikes import check_names
from flare.results.results_folder import AllResults, has_any, read_teams
from flare.results.roll_call import RollCall
from flare.results.team_folder import EMPTY, TeamResults
from flare.results.values import check_value, is_score, number

COLUMNS = (*KEYS, "value")
"""Of a long table."""

IN_MEMORY = Path("the DataFrame")
"""Stands in messages for the file that a table in memory does not have."""


def read_results(
    source: Path | pd.DataFrame,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float] | None = None,
    *,
    challenge: Challenge | str = "",
    unranked: Sequence[str] = (),
) -> ResultTable:
    """Read the results of all teams.

    Parameters
    ----------
    source : Path or DataFrame
        A folder with a folder for each team; or a table with the columns team, case,
        metric and value, as a CSV file or in memory.
    metrics : sequence of str
        The metrics to read, such as ``dsc`` and ``runtime_s``.
    trace_tolerances_mb : mapping of str to float, optional
        By metric: instead of what efficiency.csv has, take the area under the part of
        the GPU memory in traces/CASE.csv that is above so many MB. A table has no
        traces; its areas have to be such ones.
    challenge : Challenge or str
        By whose rules, or by which challenge, folders of teams should have been scored;
        an empty text for any.
    unranked : sequence of str
        Other metrics that a table may have.

    Raises
    ------
    RankingError
        If something contradicts itself; the message names rows or files.
    """
    if isinstance(source, pd.DataFrame):
        return _from_table(IN_MEMORY, _frame_rows(source), metrics, unranked)
    if source.is_file():
        return _from_table(source, _file_rows(source), metrics, unranked)
    if not source.is_dir():
        raise RankingError(str(source), "there is no such file or folder")
    folders = read_teams(source, metrics, trace_tolerances_mb or {}, challenge)
    return _from_folders(source, folders, metrics)


def unmeasured(source: Path | pd.DataFrame, challenge: Challenge) -> tuple[str, ...]:
    """The metrics of a challenge that no folder has, because no team was measured.

    A table is taken as it is: there, a metric that nobody has is an error. So it is
    where some team was measured, and where nothing would be left to rank by.

    Raises
    ------
    RankingError
        If a metrics.json cannot be read.
    """
    if isinstance(source, pd.DataFrame) or not source.is_dir():
        return ()
    known = [rule.metric for rule in challenge.ranking]
    found = tuple(metric for metric in known if metric in VALUES)
    if not found or len(found) == len(known) or has_any(source, found):
        return ()
    return found


def _from_folders(
    path: Path, folders: AllResults, metrics: Sequence[str]
) -> ResultTable:
    """A table of what the folders of all teams hold."""
    results = [result for team in folders.teams for result in _results_of(team)]
    table = _checked(path, results, metrics)
    return replace(table, notes=folders.notes, roll=folders.roll, origin=folders.origin)


def _results_of(found: TeamResults) -> Iterator[CaseResult]:
    """The results of a team, including those that are not ranked."""
    for (case, metric), value in {**found.ranked, **found.others}.items():
        yield CaseResult(
            team=found.team,
            case=case,
            metric=metric,
            value=value,
            spread=found.spreads.get((case, metric)),
        )
    for (case, metric), reason in found.reasons.items():
        yield CaseResult(
            team=found.team,
            case=case,
            metric=metric,
            value=None,
            reason=reason,
            spread=found.spreads.get((case, metric)),
        )


def _from_table(
    path: Path,
    rows: Iterable[tuple[str, Key, str | float]],
    metrics: Sequence[str],
    unranked: Sequence[str],
) -> ResultTable:
    """A table of rows, each of which has a place, a key and a value."""
    results: dict[Key, CaseResult] = {}
    seen: dict[Key, str] = {}
    for where, key, cell in rows:
        team, case, metric = key
        if metric not in metrics:
            if metric in unranked:
                continue
            known = listing(dict.fromkeys([*metrics, *unranked]))
            raise RankingError(
                str(path), f"{where}: unknown metric {safe(metric)}, not {known}"
            )
        if not team or not case:
            raise RankingError(str(path), f"{where}: the team or the case is empty")
        value = number(cell, path, where) if isinstance(cell, str) else cell
        if value is not None:
            check_value(value, metric, path, where)
        if key in seen:
            raise RankingError(
                str(path),
                f"{seen[key]} and {where} are both {' '.join(map(safe, key))}",
            )
        seen[key] = where
        reason = EMPTY if value is None else None
        results[key] = CaseResult(
            team=team, case=case, metric=metric, value=value, reason=reason
        )
    table = _checked(path, results.values(), metrics)
    return replace(table, roll=RollCall(copies=_copies(results.values())))


def _checked(
    path: Path, results: Iterable[CaseResult], metrics: Sequence[str]
) -> ResultTable:
    """A table of results, if each ranked metric has at least one.

    Names are looked at before there is a table: they may be no text at all.
    """
    found = list(results)
    check_names(str(path), "team", sorted({result.team for result in found}))
    check_names(str(path), "case", sorted({result.case for result in found}))
    if not found:
        raise RankingError(str(path), "there is no result in it")
    there = {result.metric for result in found if result.value is not None}
    absent = [metric for metric in metrics if metric not in there]
    if absent:
        problem = f"no team has a value of {listing(absent)}"
        rest = [metric for metric in metrics if metric in there]
        raise RankingError(
            str(path),
            problem,
            f"Rank by what there is: --metrics {','.join(rest)}." if rest else "",
        )
    return table_of(found, metrics)


def _copies(results: Iterable[CaseResult]) -> tuple[Copies, ...]:
    """Teams of a table with the same scores."""
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for result in results:
        if is_score(result.metric) and result.value is not None:
            own = scores.setdefault(result.team, {})
            own[result.case, result.metric] = result.value
    return find_equal(scores)


def _file_rows(path: Path) -> Iterator[tuple[str, Key, str]]:
    """The rows of a CSV file with a row for each result."""
    for where, row in read_rows(path, COLUMNS):
        team, case, metric = (row[name].strip() for name in KEYS)
        yield where, (team, case, metric), row["value"]


def _frame_rows(frame: pd.DataFrame) -> Iterator[tuple[str, Key, str | float]]:
    """The rows of a table in memory; a NaN or a None is an empty value.

    Raises
    ------
    RankingError
        If a column is not there, or a cell holds something else than a name or number.
    """
    check_columns(IN_MEMORY, list(map(str, frame.columns)), COLUMNS)
    for label, *names, value in frame[list(COLUMNS)].itertuples(name=None):
        where = f"row {label}"
        for name in names:
            # A case may be called by its number, but by no other thing.
            if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
                raise RankingError(
                    str(IN_MEMORY), f"{where}: {safe(str(name))} is no name"
                )
        team, case, metric = (str(name).strip() for name in names)
        if isinstance(value, str | bool | np.bool_):
            raise RankingError(
                str(IN_MEMORY), f"{where}: {safe(str(value))} is no number"
            )
        yield where, (team, case, metric), "" if pd.isna(value) else float(value)
