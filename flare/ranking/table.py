"""Brings the results of all teams into one table, from their folders or a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from flare.challenge.metrics import metric_of
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import listing, safe
from flare.ranking.completeness import Copies, RollCall, find_equal
from flare.ranking.provenance import Origin
from flare.ranking.ranks import Board
from flare.ranking.results_folder import (
    EMPTY,
    NO_ROW,
    Reason,
    TeamResults,
    has_any,
    read_teams,
)
from flare.ranking.rules import RankingRules, Values
from flare.results.csv_rows import (
    COLUMNS,
    KEYS,
    check_columns,
    check_value,
    number,
    read_rows,
)
from flare.results.efficiency_csv import VALUES, known_metrics
from flare.results.errors import RankingError
from flare.results.team_folder import check_names

Key = tuple[str, str, str]
"""A team, a case, and a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a team has achieved on a case by a metric."""

    team: str
    case: str
    metric: str
    value: float | None
    """None if it is missing."""
    reason: Reason | None = None
    """Why it is missing, if it is."""
    spread: float | None = None
    """How far repeated measurements lay apart, if that is known."""

    @property
    def key(self) -> Key:
        """What identifies it."""
        return self.team, self.case, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A result that is not there."""

    team: str
    case: str
    metric: str
    reason: str
    kind: str
    """What many cases may share of the reason."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultTable:
    """The results of all teams on all cases."""

    frame: pd.DataFrame
    """A row for every team, case and metric, by which it is indexed, in this order:
    teams and cases by their names, the ranked metrics before the others.

    Its columns are ``value``, NaN where a result is missing; ``reason`` why it is, and
    ``kind``, what many cases may share of the reason; and ``spread``, how far repeated
    measurements of the value lay apart, or those of an empty container, NaN where that
    is not known.
    """
    teams: tuple[str, ...]
    cases: tuple[str, ...]
    metrics: tuple[str, ...]
    """Those that are ranked."""
    others: tuple[str, ...]
    """Scores that are not ranked, such as those of single organs."""
    notes: tuple[str, ...] = ()
    """What is odd about where the values come from."""
    roll: RollCall = field(default_factory=RollCall)
    """Who took part, but is not ranked, or not with all results."""
    origin: Origin | None = None
    """What the results were made with; None for a table, which does not tell."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """All ranked results that are not there, in the order of the table."""
        ranked = self.frame.index.isin(self.metrics, level="metric")
        absent = self.frame[ranked & self.frame["value"].isna()]
        return tuple(
            Missing(team=team, case=case, metric=metric, reason=reason, kind=kind)
            for (team, case, metric), reason, kind in zip(
                absent.index, absent["reason"], absent["kind"], strict=True
            )
        )

    def cube(self, column: str, teams: Sequence[str], metrics: Sequence[str]) -> Values:
        """The numbers of a column, of shape (teams, cases, metrics)."""
        every: Values = self.frame[column].to_numpy()
        every = every.reshape(len(self.teams), len(self.cases), -1)
        known = [*self.metrics, *self.others]
        rows = [self.teams.index(team) for team in teams]
        columns = [known.index(metric) for metric in metrics]
        return every[rows][:, :, columns]

    def board(self, rules: RankingRules, teams: Sequence[str]) -> Board:
        """The values of some teams by the metrics of some rules, in their order."""
        return Board(
            teams=tuple(teams),
            cases=self.cases,
            values=self.cube("value", teams, rules.names),
            rules=rules,
        )

    def select(self, names: dict[str, str], cases: Sequence[str]) -> ResultTable:
        """The results of some teams, by the names they are shown by, on some cases."""
        frame = self.frame
        kept = frame.index.isin(names, level="team")
        kept &= frame.index.isin(cases, level="case")
        frame = frame[kept].rename(index=names, level="team")
        teams = tuple(sorted(names.values()))
        order = make_index(teams, cases, (*self.metrics, *self.others))
        return replace(
            self, frame=frame.reindex(order), teams=teams, cases=tuple(cases)
        )


def table_of(results: Iterable[CaseResult], metrics: Sequence[str]) -> ResultTable:
    """A table of results, of which no two have the same key.

    Parameters
    ----------
    results : iterable of CaseResult
        A result that is not among them is missing.
    metrics : sequence of str
        Those that are ranked; all others are scores that are only shown.
    """
    found = list(results)
    teams, cases = (
        tuple(sorted({result.key[n] for result in found})) for n in range(2)
    )
    others = tuple(sorted({result.metric for result in found} - set(metrics)))
    names = (teams, cases, (*metrics, *others))
    number = [{name: n for n, name in enumerate(level)} for level in names]
    shape = tuple(map(len, names))
    values, spreads = np.full(shape, np.nan), np.full(shape, np.nan)
    reasons = np.full(shape, NO_ROW.text, dtype=object)
    kinds = np.full(shape, NO_ROW.kind, dtype=object)
    for result in found:
        at = tuple(level[name] for level, name in zip(number, result.key, strict=True))
        if result.value is not None:
            values[at] = result.value
            reasons[at] = kinds[at] = ""
        elif result.reason:
            reasons[at], kinds[at] = result.reason.text, result.reason.kind
        if result.spread is not None:
            spreads[at] = result.spread
    columns = {"value": values, "reason": reasons, "kind": kinds, "spread": spreads}
    frame = pd.DataFrame(
        {
            name: pd.Series(cells.ravel(), dtype=cells.dtype)
            for name, cells in columns.items()
        }
    )
    frame.index = make_index(*names)
    return ResultTable(
        frame=frame, teams=teams, cases=cases, metrics=tuple(metrics), others=others
    )


def make_index(
    teams: Sequence[str], cases: Sequence[str], metrics: Sequence[str]
) -> pd.MultiIndex:
    """Every combination of team, case and metric; the metric varies fastest."""
    # As objects: names of files may hold bytes that are no text.
    levels = [pd.Index(level, dtype=object) for level in (teams, cases, metrics)]
    return pd.MultiIndex.from_product(levels, names=KEYS)


IN_MEMORY = Path("the DataFrame")
"""Stands in messages for the file that a table in memory does not have."""


def read_results(
    source: Path | pd.DataFrame,
    metrics: Sequence[RankedMetric],
    challenge: Challenge | str = "",
) -> ResultTable:
    """Read the results of all teams.

    Parameters
    ----------
    source : Path or DataFrame
        A folder with a folder for each team; or a table with the columns team, case,
        metric and value, as a CSV file or in memory.
    metrics : sequence of RankedMetric
        What to read. Of one with a ``trace_tolerance_mb``, instead of what
        efficiency.csv has, the area under the part of the GPU memory in
        traces/CASE.csv that is above it. A table has no traces: its areas are taken as
        such areas.
    challenge : Challenge or str
        By whose rules, or by which challenge, folders of teams should have been scored;
        an empty text for any. A table may also have its other metrics.

    Raises
    ------
    RankingError
        If something contradicts itself; the message names rows or files.
    """
    names = [rule.metric for rule in metrics]
    if isinstance(source, pd.DataFrame) or source.is_file():
        path = IN_MEMORY if isinstance(source, pd.DataFrame) else source
        others: Iterable[str] = ()
        if isinstance(challenge, Challenge):
            ranked = (rule.metric for rule in challenge.ranking)
            others = [*ranked, *known_metrics(challenge)]
        results = _results_of_rows(path, _rows(source), names, others)
        table = _checked(path, results, names)
        return replace(table, roll=RollCall(copies=_copies(results)))
    if not source.is_dir():
        raise RankingError(str(source), "there is no such file or folder")
    tolerances = {
        rule.metric: rule.trace_tolerance_mb
        for rule in metrics
        if rule.trace_tolerance_mb
    }
    folders = read_teams(source, names, tolerances, challenge)
    results = [result for team in folders.teams for result in _results_of(team)]
    table = _checked(source, results, names)
    return replace(table, notes=folders.notes, roll=folders.roll, origin=folders.origin)


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


def _results_of(found: TeamResults) -> Iterator[CaseResult]:
    """The results of a team, including those that are not ranked."""
    values = {**found.ranked, **found.others}
    for case, metric in (*values, *found.reasons):
        yield CaseResult(
            team=found.team,
            case=case,
            metric=metric,
            value=values.get((case, metric)),
            reason=found.reasons.get((case, metric)),
            spread=found.spreads.get((case, metric)),
        )


def _rows(source: Path | pd.DataFrame) -> Iterator[tuple[str, Key, str | float]]:
    """Place, key and value of each row; a NaN or a None in memory is an empty value.

    Raises
    ------
    RankingError
        If a column is not there, or a cell of a table in memory holds something else
        than a name or a number.
    """
    if not isinstance(source, pd.DataFrame):
        for where, row in read_rows(source, COLUMNS):
            team, case, metric = (row[name].strip() for name in KEYS)
            yield where, (team, case, metric), row["value"]
        return
    check_columns(IN_MEMORY, list(map(str, source.columns)), COLUMNS)
    for label, *names, value in source[list(COLUMNS)].itertuples(name=None):
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


def _results_of_rows(
    path: Path,
    rows: Iterable[tuple[str, Key, str | float]],
    metrics: Sequence[str],
    others: Iterable[str],
) -> list[CaseResult]:
    """The ranked results of rows, each of which has a place, a key and a value."""
    results: dict[Key, CaseResult] = {}
    seen: dict[Key, str] = {}
    known = dict.fromkeys([*metrics, *others])
    for where, key, cell in rows:
        team, case, metric = key
        if metric not in known:
            raise RankingError(
                str(path),
                f"{where}: unknown metric {safe(metric)}, not {listing(known)}",
            )
        if metric not in metrics:
            continue
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
    return list(results.values())


def _checked(
    path: Path, results: Sequence[CaseResult], metrics: Sequence[str]
) -> ResultTable:
    """A table of results, if each ranked metric has at least one.

    Names are looked at before there is a table: they may be no text at all.
    """
    check_names(str(path), "team", sorted({result.team for result in results}))
    check_names(str(path), "case", sorted({result.case for result in results}))
    if not results:
        raise RankingError(str(path), "there is no result in it")
    there = {result.metric for result in results if result.value is not None}
    absent = [metric for metric in metrics if metric not in there]
    if absent:
        rest = [metric for metric in metrics if metric in there]
        remedy = f"Rank by what there is: --metrics {','.join(rest)}." if rest else ""
        raise RankingError(
            str(path), f"no team has a value of {listing(absent)}", remedy
        )
    return table_of(results, metrics)


def _copies(results: Iterable[CaseResult]) -> tuple[Copies, ...]:
    """Teams of a table with the same scores."""
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for result in results:
        if metric_of(result.metric) and result.value is not None:
            own = scores.setdefault(result.team, {})
            own[result.case, result.metric] = result.value
    return find_equal(scores)
