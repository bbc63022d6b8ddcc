"""Brings together what teams have achieved: from their folders, or from one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.text import listing, safe
from flare.ranking.lookalikes import check_names
from flare.ranking.table import ResultTable
from flare.results.copies import Copies, find_equal
from flare.results.csv_rows import read_rows
from flare.results.errors import RankingError
from flare.results.results_folder import AllResults, read_teams
from flare.results.roll_call import RollCall
from flare.results.values import check_value, is_score, number

COLUMNS = ("team", "case", "metric", "value")
"""Of a long table."""


def read_results(
    path: Path,
    metrics: Sequence[str],
    trace_tolerances_mb: Mapping[str, float] | None = None,
    *,
    challenge: Challenge | str = "",
    unranked: Sequence[str] = (),
) -> ResultTable:
    """Read the results of all teams.

    Parameters
    ----------
    path : Path
        A folder with a folder for each team, or a table with the columns team, case,
        metric and value.
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
    folders: AllResults | None = None
    values: dict[tuple[str, str, str], float] = {}
    reasons: dict[tuple[str, str, str], str] = {}
    spreads: dict[tuple[str, str, str], float] = {}
    others: dict[tuple[str, str, str], float] = {}
    if path.is_dir():
        folders = read_teams(path, metrics, trace_tolerances_mb or {}, challenge)
        for own in folders.teams:
            values |= {(own.team, *key): value for key, value in own.values.items()}
            reasons |= {(own.team, *key): text for key, text in own.reasons.items()}
            spreads |= {(own.team, *key): value for key, value in own.spreads.items()}
            others |= {(own.team, *key): value for key, value in own.others.items()}
    elif path.is_file():
        seen: dict[tuple[str, str, str], str] = {}
        for where, key, value in _read_table(path, metrics, unranked):
            if key in seen:
                problem = f"{seen[key]} and {where} are both {' '.join(map(safe, key))}"
                raise RankingError(str(path), problem)
            seen[key] = where
            if value is None:
                reasons[key] = "the value is empty"
            else:
                values[key] = value
    else:
        raise RankingError(str(path), "there is no such file or folder")
    teams, cases = (sorted({key[n] for key in (*values, *reasons)}) for n in range(2))
    check_names(str(path), "team", teams)
    check_names(str(path), "case", cases)
    if not teams:
        raise RankingError(str(path), "there is no result in it")
    absent = [m for m in metrics if not any(key[2] == m for key in values)]
    if absent:
        problem = (
            f"no team has a value of {listing(absent)}; leave it out with --metrics"
        )
        raise RankingError(str(path), problem)
    return ResultTable(
        teams=tuple(teams),
        cases=tuple(cases),
        metrics=tuple(metrics),
        values=values,
        reasons=reasons,
        spreads=spreads,
        notes=folders.notes if folders else (),
        others=others,
        roll=folders.roll if folders else RollCall(copies=_copies(values)),
        origin=folders.origin if folders else None,
    )


def _copies(values: Mapping[tuple[str, str, str], float]) -> tuple[Copies, ...]:
    """Teams of a table with the same scores."""
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for (team, case, metric), value in values.items():
        if is_score(metric):
            scores.setdefault(team, {})[case, metric] = value
    return find_equal(scores)


def _read_table(
    path: Path, metrics: Sequence[str], unranked: Sequence[str]
) -> Iterator[tuple[str, tuple[str, str, str], float | None]]:
    """Read a CSV file with a row for each result."""
    for where, row in read_rows(path, COLUMNS):
        team, case, metric = (row[name].strip() for name in COLUMNS[:3])
        if metric not in metrics:
            if metric in unranked:
                continue
            known = listing([*metrics, *unranked])
            problem = f"{where}: unknown metric {safe(metric)}, not {known}"
            raise RankingError(str(path), problem)
        if not team or not case:
            raise RankingError(str(path), f"{where}: the team or the case is empty")
        value = number(row["value"], path, where)
        if value is not None:
            check_value(value, metric, path, where)
        yield where, (team, case, metric), value
