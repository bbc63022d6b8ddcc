"""Brings the results of all teams into one table, from their folders or a file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import MetricName, metric_of
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.schema import Text
from flare.common.text import listing, safe
from flare.ranking.inspection import Copies, Origin, RollCall
from flare.ranking.ranks import Board, Values
from flare.ranking.results_folder import (
    EMPTY,
    NO_ROW,
    CaseResult,
    Key,
    read_teams,
)
from flare.ranking.rules import RankingRules
from flare.results.csv_rows import (
    COLUMNS,
    KEYS,
    Row,
    TeamName,
    check_columns,
    read_rows,
)
from flare.results.efficiency_csv import VALUES, known_metrics
from flare.results.errors import RankingError
from flare.results.team_folder import check_names

if TYPE_CHECKING:
    import pandas as pd

FEWEST_EQUAL = 3
"""This many values other than 0 and 1 do not agree in every digit by chance."""

IN_MEMORY = Path("the DataFrame")
"""Stands in messages for the file that a table in memory does not have."""


Texts = npt.NDArray[np.object_]
"""Texts of Python: names of files may hold bytes that are no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A result that is not there."""

    team: TeamName
    case: Text
    """Name of the case."""
    metric: MetricName
    """Name of the metric."""
    reason: str
    """Why it is missing."""
    kind: str
    """What many cases may share of the reason."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultTable:
    """The results of all teams on all cases."""

    teams: tuple[str, ...]
    """By their names."""
    cases: tuple[str, ...]
    """By their names."""
    metrics: tuple[str, ...]
    """Those that are ranked."""
    others: tuple[str, ...]
    """Scores that are not ranked, such as those of single organs."""
    values: Values
    """Of shape (teams, cases, metrics), the ranked metrics before the others, as all
    arrays here; NaN where a result is missing."""
    spreads: Values
    """How far repeated measurements of a value lay apart, or those of an empty
    container, NaN where that is not known."""
    reasons: Texts
    """Why a result is missing; empty where it is not."""
    kinds: Texts
    """What many cases may share of the reason."""
    notes: tuple[str, ...] = ()
    """What is odd about where the values come from."""
    roll: RollCall = field(default_factory=RollCall)
    """Who took part, but is not ranked, or not with all results."""
    warned: tuple[tuple[str, str], ...] = ()
    """Teams, and what was said of them when they were scored."""
    origin: Origin | None = None
    """What the results were made with; None for a table, which does not tell."""
    worst_distances: Mapping[str, float] = field(default_factory=dict)
    """By case: what every distance of a label map is, in mm, that could not be scored;
    only of cases of which a metrics.json tells it."""
    left_out: tuple[str, ...] = ()
    """Metrics that were asked for, and that nobody has, as no team was measured."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """All ranked results that are not there, in the order of the table."""
        absent = np.isnan(self.values[:, :, : len(self.metrics)])
        return tuple(
            Missing(
                team=self.teams[team],
                case=self.cases[case],
                metric=self.metrics[metric],
                reason=self.reasons[team, case, metric],
                kind=self.kinds[team, case, metric],
            )
            for team, case, metric in np.argwhere(absent).tolist()
        )

    @property
    def frame(self) -> pd.DataFrame:
        """A row for every team, case and metric, by which it is indexed.

        The metric varies fastest. The columns are ``value``, ``reason``, ``kind`` and
        ``spread``.
        """
        import pandas as pd  # not at the top: flare score has no need of it

        index = make_index(self.teams, self.cases, (*self.metrics, *self.others))
        columns = {
            name: pd.Series(array.ravel(), index, dtype=array.dtype)
            for name, array in self._arrays.items()
        }
        return pd.DataFrame(columns)

    @property
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "value": self.values,
            "reason": self.reasons,
            "kind": self.kinds,
            "spread": self.spreads,
        }

    def cube(
        self, column: str, teams: Sequence[str], metrics: Sequence[str]
    ) -> npt.NDArray[Any]:
        """A column of `frame`, of shape (teams, cases, metrics)."""
        places = {team: number for number, team in enumerate(self.teams)}
        known = [*self.metrics, *self.others]
        rows = [places[team] for team in teams]
        columns = [known.index(metric) for metric in metrics]
        return self._arrays[column][rows][:, :, columns]

    def distances(self, worst_mm: float | None) -> Values:
        """What a missing distance counts as on each case, in mm.

        Parameters
        ----------
        worst_mm : float, optional
            What the challenge sets; without it, what a metrics.json has for a case that
            could not be scored, or NaN where none has.
        """
        known = {} if worst_mm is not None else self.worst_distances
        default = math.nan if worst_mm is None else worst_mm
        return np.array([known.get(case, default) for case in self.cases])

    def board(self, rules: RankingRules, teams: Sequence[str]) -> Board:
        """The values of some teams by the metrics of some rules, in their order."""
        return Board(
            teams=tuple(teams),
            cases=self.cases,
            values=self.cube("value", teams, rules.names),
            rules=rules,
            spreads=self.cube("spread", teams, rules.names),
            distances=self.distances(rules.worst_distance_mm),
        )

    def select(self, names: dict[str, str], cases: Sequence[str]) -> ResultTable:
        """The results of some teams, by the names they are shown by, on some cases."""
        order = sorted(names, key=names.__getitem__)
        places = np.ix_(
            [self.teams.index(team) for team in order],
            [self.cases.index(case) for case in cases],
        )
        return replace(
            self,
            teams=tuple(names[team] for team in order),
            cases=tuple(cases),
            values=self.values[places],
            spreads=self.spreads[places],
            reasons=self.reasons[places],
            kinds=self.kinds[places],
        )


def table_of(results: Sequence[CaseResult], metrics: Sequence[str]) -> ResultTable:
    """A table of results, of which no two have the same key.

    Parameters
    ----------
    results : sequence of CaseResult
        A result that is not among them is missing.
    metrics : sequence of str
        Those that are ranked; all others are scores that are only shown.
    """
    teams = sorted({own.team for own in results})
    cases = sorted({own.case for own in results})
    others = sorted({own.metric for own in results}.difference(metrics))
    names = (teams, cases, [*metrics, *others])
    places = [{name: n for n, name in enumerate(level)} for level in names]
    shape = tuple(map(len, names))
    values, spreads = np.full((2, *shape), math.nan)
    reasons = np.full(shape, NO_ROW, dtype=object)
    kinds = reasons.copy()
    for own in results:
        place = places[0][own.team], places[1][own.case], places[2][own.metric]
        values[place] = math.nan if own.value is None else own.value
        spreads[place] = math.nan if own.spread is None else own.spread
        reasons[place], kinds[place] = own.reason, own.kind or own.reason
    return ResultTable(
        teams=tuple(teams),
        cases=tuple(cases),
        metrics=tuple(metrics),
        others=tuple(others),
        values=values,
        spreads=spreads,
        reasons=reasons,
        kinds=kinds,
    )


def make_index(
    teams: Sequence[str], cases: Sequence[str], metrics: Sequence[str]
) -> pd.MultiIndex:
    """Every combination of team, case and metric; the metric varies fastest."""
    import pandas as pd

    # As objects: names of files may hold bytes that are no text.
    levels = [pd.Index(level, dtype=object) for level in (teams, cases, metrics)]
    return pd.MultiIndex.from_product(levels, names=KEYS)


def read_results(
    source: Path | pd.DataFrame,
    metrics: Sequence[RankedMetric],
    challenge: Challenge,
    *,
    needs_all: bool = True,
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
    challenge : Challenge
        By whose rules folders of teams should have been scored. A table may also have
        its other metrics.
    needs_all : bool
        Whether running time and memory have to be there, too, where the folders tell
        that no team was measured, and other metrics are left to rank by.

    Raises
    ------
    RankingError
        If something contradicts itself, or no team has a value of a metric; the message
        names rows or files.
    """
    asked = [rule.metric for rule in metrics]
    if not isinstance(source, Path) or source.is_file():
        results = _read_rows(source, asked, challenge)
        told: dict[str, Any] = {"roll": RollCall()}
        is_measured = True
    elif source.is_dir():
        results, told, is_measured = read_teams(source, metrics, challenge)
    else:
        raise RankingError(str(source), "there is no such file or folder")
    file = str(source if isinstance(source, Path) else IN_MEMORY)
    copies = find_copies(results)
    there = {own.metric for own in results if own.value is not None}
    efficiency = tuple(metric for metric in asked if metric in VALUES)
    left_out: tuple[str, ...] = ()
    if not needs_all and not is_measured and there.isdisjoint(efficiency):
        left_out = efficiency if len(efficiency) < len(asked) else ()
        results = [own for own in results if own.metric not in left_out]
    # Before there is a table: names may be no text at all.
    check_names(file, "team", sorted({own.team for own in results}))
    check_names(file, "case", sorted({own.case for own in results}))
    if not results:
        raise RankingError(file, "there is no result in it")
    wanted = [metric for metric in asked if metric not in left_out]
    absent = [metric for metric in wanted if metric not in there]
    if absent:
        rest = [metric for metric in wanted if metric in there]
        remedy = f"Rank by what there is: --metrics {','.join(rest)}." if rest else ""
        raise RankingError(file, f"no team has a value of {listing(absent)}", remedy)
    told["roll"] = replace(told["roll"], equal_results=copies)
    return replace(table_of(results, wanted), left_out=left_out, **told)


def find_copies(results: Iterable[CaseResult]) -> tuple[Copies, ...]:
    """Teams with scores that agree too often for chance."""
    scores: defaultdict[str, set[tuple[str, str, float]]] = defaultdict(set)
    for own in results:
        if metric_of(own.metric) and own.value is not None:
            scores[own.team].add((own.case, own.metric, own.value))
    groups: defaultdict[frozenset[Any], list[str]] = defaultdict(list)
    for team, found in sorted(scores.items()):
        # Of zeros and ones, equal values say nothing.
        if sum(value not in (0, 1) for *_, value in found) >= FEWEST_EQUAL:
            groups[frozenset(found)].append(team)
    return tuple(Copies(teams=tuple(own)) for own in groups.values() if own[1:])


def _read_rows(
    source: Path | pd.DataFrame, asked: Sequence[str], challenge: Challenge
) -> list[CaseResult]:
    """The ranked results of a table, in a file or in memory."""
    ranked = (rule.metric for rule in challenge.ranking)
    known = dict.fromkeys([*asked, *ranked, *known_metrics(challenge)])
    found: dict[Key, CaseResult] = {}
    seen: dict[Key, str] = {}
    for row in _rows(source):
        team, case, metric = (row.cells[name].strip() for name in KEYS)
        key = (team, case, metric)
        if metric not in known:
            raise row.error(f"unknown metric {safe(metric)}, not {listing(known)}")
        if metric not in asked:
            continue
        if not team or not case:
            raise row.error("the team or the case is empty")
        value = row.value(metric, "value")
        if key in seen:
            both = f"{seen[key]} and {row.where} are both {' '.join(map(safe, key))}"
            raise RankingError(str(row.file), both)
        seen[key] = row.where
        found[key] = CaseResult(
            team=team,
            case=case,
            metric=metric,
            value=value,
            reason=EMPTY if value is None else "",
        )
    return list(found.values())


def _rows(source: Path | pd.DataFrame) -> Iterator[Row]:
    """The rows of a table; a NaN or a None in memory is an empty value.

    Raises
    ------
    RankingError
        If a column is not there, or a cell of a table in memory holds something else
        than a name or a number.
    """
    if isinstance(source, Path):
        yield from read_rows(source, COLUMNS)
        return
    import pandas as pd  # which is loaded already

    check_columns(IN_MEMORY, list(map(str, source.columns)), COLUMNS)
    for label, *names, value in source[list(COLUMNS)].itertuples(name=None):
        row = Row(
            IN_MEMORY, f"row {label}", dict(zip(KEYS, map(str, names), strict=True))
        )
        for name in names:
            # A case may be called by its number, but by no other thing.
            if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
                raise row.error(f"{safe(str(name))} is no name")
        if isinstance(value, str | bool | np.bool_):
            raise row.error(f"{safe(str(value))} is no number")
        cell = "" if pd.isna(value) else repr(float(value))
        yield replace(row, cells={**row.cells, "value": cell})
