"""Reads the results of all teams from one table, in each form that people have.

Long: a row for each team, case and metric. Wide: a row for each team and case, and a
column for each metric. Or of one metric, as challengeR has them, whose teams are in the
column algorithm, and whose metric the ranking names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, filterfalse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flare.challenge.metrics import LEFT_OUT
from flare.challenge.rules import Challenge
from flare.common.text import listing, safe
from flare.ranking.results_folder import EMPTY, CaseResult, Key, TeamResults
from flare.results.csv_rows import COLUMNS, Row, check_columns, read_rows, spelt_as
from flare.results.errors import RankingError

if TYPE_CHECKING:
    import pandas as pd

IN_MEMORY = Path("the DataFrame")
"""Stands in messages for the file that a table in memory does not have."""

TEAM, CASE, METRIC, VALUE = COLUMNS
TASK = "task"
"""A column of challengeR: each task has a ranking of its own."""

TEAM_NAMES = (TEAM, "algorithm", "alg_name")
"""The team, and what challengeR calls it."""

_SPELLINGS = (*COLUMNS, *TEAM_NAMES, TASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """The columns of a table that are read."""

    names: tuple[str, ...]
    """The columns with names: of the team and the case, and the metric or the task."""
    metrics: Mapping[str, str]
    """The metric of each column with values; empty where each row names it."""
    ignored: tuple[str, ...] = ()
    """The other columns of a wide table."""

    def entries(self, row: Row) -> Iterator[tuple[Key, str]]:
        """Each result of a row, with the column of its value."""
        team, case, *_ = (row.cells[name].strip() for name in self.names)
        metric_of_row = row.cells.get(METRIC, "").strip().lower()
        for column, metric in self.metrics.items():
            yield (team, case, metric or metric_of_row), column


def find_form(
    file: Path, columns: Sequence[str], allowed: Collection[str], ranked: Sequence[str]
) -> TableForm:
    """Tell by the names of its columns which form a table has.

    With a column ``metric``, it is long; else, with a column ``value``, it is of the
    only metric that is ranked; else it is wide. A RankingError is raised if a column is
    not there or there twice, or if it is not clear which metric a value is of.
    """
    team = next((name for name in TEAM_NAMES if name in columns), TEAM)
    metrics = {name: name.lower() for name in columns if name.lower() in allowed}
    if METRIC in columns:
        check_columns(file, columns, (team, CASE, METRIC, VALUE))
        return TableForm(names=(team, CASE, METRIC), metrics={VALUE: ""})
    if VALUE in columns:
        check_columns(file, columns, (team, CASE, VALUE))
        _check_metric(file, metrics, ranked)
        task = (TASK,) if TASK in columns else ()
        return TableForm(names=(team, CASE, *task), metrics={VALUE: ranked[0]})
    absent = ranked[:1] if set(ranked).isdisjoint(metrics.values()) else ()
    check_columns(file, columns, (team, CASE, *absent))
    check_columns(file, list(metrics.values()), ())
    used = {"", team, CASE, *metrics}
    ignored = tuple(filterfalse(used.__contains__, columns))
    return TableForm(names=(team, CASE), metrics=metrics, ignored=ignored)


def _check_metric(file: Path, metrics: Collection[str], ranked: Sequence[str]) -> None:
    """Refuse a table of values whose metric is not clear."""
    if metrics:
        problem = f"it has a column {VALUE} beside {listing(metrics)}, and no {METRIC}"
        remedy = f"Give {VALUE} the name of its metric, or take it out."
        raise RankingError(str(file), problem, remedy)
    if len(ranked) > 1:
        problem = f"it has no column {METRIC}, and {listing(ranked)} are ranked"
        remedy = f"Say what its values are, such as --metrics {ranked[0]}."
        raise RankingError(str(file), problem, remedy)


def read_one_table(
    source: Path | pd.DataFrame, metrics: Sequence[str], challenge: Challenge
) -> TeamResults:
    """The ranked results of a table, in a file or in memory.

    A RankingError is raised if two contradict each other, or something is no result.
    """
    ranked = (rule.metric for rule in challenge.ranking)
    allowed = dict.fromkeys([*metrics, *ranked, *challenge.columns])
    form, rows = _open(source, allowed, metrics)
    unranked = allowed.keys() - set(metrics)
    results: dict[Key, CaseResult] = {}
    places: dict[Key, str] = {}
    for row in rows:
        for key, column in form.entries(row):
            if key[-1] in unranked:
                continue
            result = _result(row, key, column, allowed)
            if key in places:
                name = " ".join(map(safe, key))
                problem = f"{places[key]} and {row.where} are both {name}"
                raise RankingError(str(row.file), problem)
            places[key] = row.where
            results[key] = result
    note = f"Ignored columns, as no metric is called so: {listing(form.ignored)}"
    notes = (note,) if form.ignored else ()
    return TeamResults(results=list(results.values()), is_measured=True, notes=notes)


def _result(row: Row, key: Key, column: str, allowed: Collection[str]) -> CaseResult:
    """The result of a row in a column; a RankingError if it is none."""
    team, case, metric = key
    if metric not in allowed:
        raise row.error(f"unknown metric {safe(metric)}, not {listing(allowed)}")
    if not team or not case:
        raise row.error("the team or the case is empty")
    if row.is_left_out(column):
        return CaseResult(team, case, metric, value=None, reason=LEFT_OUT)
    value = row.value(metric, column)
    reason = EMPTY if value is None else ""
    return CaseResult(team, case, metric, value=value, reason=reason)


def _open(
    source: Path | pd.DataFrame, allowed: Collection[str], ranked: Sequence[str]
) -> tuple[TableForm, Iterator[Row]]:
    if not isinstance(source, Path):
        names = spelt_as(list(map(str, source.columns)), _SPELLINGS)
        form = find_form(IN_MEMORY, names, allowed, ranked)
        rows = _rows_in_memory(source.set_axis(names, axis=1), form)
    else:
        rows = read_rows(source, (), optional=_SPELLINGS)
        first = next(rows, None)
        if not first:
            raise RankingError(str(source), "there is no result in it")
        form = find_form(source, list(first.cells), allowed, ranked)
        rows = chain([first], rows)
    return form, _of_one_task(rows) if TASK in form.names else rows


def _of_one_task(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of a table; a RankingError is raised at one of a second task."""
    tasks: dict[str, None] = {}
    for row in rows:
        tasks[row.text(TASK)] = None
        if len(tasks) > 1:
            raise row.error(
                f"another task, {listing(tasks)}: rank a table of each by itself"
            )
        yield row


def _rows_in_memory(frame: pd.DataFrame, form: TableForm) -> Iterator[Row]:
    """The rows of a table in memory; a NaN or a None is an empty value.

    A RankingError is raised if a cell holds something else than a name or a number.
    """
    import pandas as pd  # which is loaded already

    columns = list(form.metrics)
    for label, *cells in frame[[*form.names, *columns]].itertuples(name=None):
        texts = map(str, cells)
        row = Row(IN_MEMORY, f"row {label}", dict(zip(form.names, texts, strict=False)))
        for name in cells[: len(form.names)]:
            # A case may be called by its number, but by no other thing.
            if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
                raise row.error(f"{safe(str(name))} is no name")
        values = dict(row.cells)
        for column, value in zip(columns, cells[len(form.names) :], strict=True):
            if isinstance(value, str) and value == LEFT_OUT:
                values[column] = LEFT_OUT
                continue
            if isinstance(value, str | bool | np.bool_):
                raise row.error(f"{safe(str(value))} is no number")
            values[column] = "" if pd.isna(value) else repr(float(value))
        yield replace(row, cells=values)
