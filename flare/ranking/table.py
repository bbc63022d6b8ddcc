"""Brings the results of all teams into one table, from their folders or a file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flare.challenge.metrics import LEFT_OUT, METRICS, MetricName, metric_named
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.schema import Text
from flare.common.text import listing, safe
from flare.ranking.inspection import Copies
from flare.ranking.ranks import Board, Flags, Values
from flare.ranking.results_folder import (
    NO_ROW,
    Background,
    CaseResult,
    TeamResults,
    read_teams,
)
from flare.ranking.rules import RankingRules
from flare.ranking.table_rows import IN_MEMORY, read_one_table
from flare.results.csv_rows import KEYS, TeamName
from flare.results.efficiency_csv import VALUES
from flare.results.errors import RankingError
from flare.results.team_folder import check_names

if TYPE_CHECKING:
    import pandas as pd

FEWEST_EQUAL = 3
"""This many values other than 0 and 1 do not agree in every digit by chance."""

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
class ResultTable(Background):
    """The results of all teams on all cases."""

    teams: tuple[str, ...]
    """The names of the teams, sorted."""
    cases: tuple[str, ...]
    """The names of the cases, sorted."""
    metrics: tuple[str, ...]
    """The metrics that are ranked."""
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
    """The part of the reason that many cases may share."""
    left_out: tuple[str, ...] = ()
    """Metrics that were asked for, and that nobody has, as no team was measured."""
    groups: tuple[str, ...] = ()
    """The group of each case, if teams are ranked in groups."""

    @property
    def all_cases(self) -> tuple[str, ...]:
        """The cases, also those that only answers have, such as questions."""
        cases_of_answers = (column.cases for column in self.answers.values())
        return tuple(sorted(set(self.cases).union(*cases_of_answers)))

    @property
    def missing(self) -> tuple[Missing, ...]:
        """All ranked results that are not there, in the order of the table."""
        absent = np.isnan(self.values) & ~self.is_left_out
        absent = absent[:, :, : len(self.metrics)]
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
    def is_left_out(self) -> Flags:
        """Flags of the values that a rule of the challenge leaves out."""
        return np.asarray(self.reasons == LEFT_OUT, dtype=bool)

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
        rows = _places(self.teams, teams)
        columns = _places((*self.metrics, *self.others), metrics)
        return self._arrays[column][rows][:, :, columns]

    def left_out_of(self, teams: Sequence[str], metrics: Sequence[str]) -> Flags:
        """Flags of the values that are left out, of shape (teams, cases, metrics)."""
        return np.asarray(self.cube("reason", teams, metrics) == LEFT_OUT, dtype=bool)

    def worst(self, distance_mm: float | None) -> dict[str, Values]:
        """The worst values on each case, by metrics whose records have none.

        That of a distance is the challenge's `distance_mm`. All else is what a
        metrics.json has for a case that could not be scored, or NaN where none has.
        """
        values = {}
        for name, metric in METRICS.items():
            on_cases = self.worst_values.get(name, {})
            numbers = [on_cases.get(case, math.nan) for case in self.cases]
            if distance_mm is not None and metric.unit == "mm":
                numbers = [distance_mm] * len(self.cases)
            if metric.worst is None:
                values[name] = np.array(numbers)
        return values

    def board(self, rules: RankingRules, teams: Sequence[str]) -> Board:
        """The values of some teams by the metrics of some rules, in their order."""
        ties = None
        if rules.ties_by:
            ties = self.board(replace(rules, metrics=rules.ties_by, ties_by=()), teams)
        return Board(
            teams=tuple(teams),
            cases=self.cases,
            values=self.cube("value", teams, rules.names),
            rules=rules,
            answers=self.answers,
            spreads=self.cube("spread", teams, rules.names),
            worst=self.worst(rules.worst_distance_mm),
            groups=self.groups,
            ties=ties,
            is_left_out=self.left_out_of(teams, rules.names),
        )

    def select(self, names: dict[str, str], withdrawn: Collection[str]) -> ResultTable:
        """The results of some teams, by the names they are shown by, on fewer cases.

        Values of answers are made anew of the cases that are left.
        """
        order = sorted(names, key=names.__getitem__)
        cases = tuple(case for case in self.cases if case not in withdrawn)
        places = np.ix_(_places(self.teams, order), _places(self.cases, cases))
        values = self.values[places]
        answers = {}
        for name, column in self.answers.items():
            answers[name] = column.select(names, withdrawn)
            team_values = [answers[name].value(names[team]) for team in order]
            place = (*self.metrics, *self.others).index(name)
            values[:, :, place] = np.array(team_values)[:, None]
        return replace(
            self,
            teams=tuple(names[team] for team in order),
            cases=cases,
            values=values,
            spreads=self.spreads[places],
            reasons=self.reasons[places],
            kinds=self.kinds[places],
            answers=answers,
        )


def table_of(results: Sequence[CaseResult], metrics: Sequence[str]) -> ResultTable:
    """A table of results, no two of which have the same key; absent ones are missing.

    The given metrics are ranked; all others are scores that are only shown.
    """
    teams = sorted({result.team for result in results})
    cases = sorted({result.case for result in results})
    unranked = sorted({result.metric for result in results}.difference(metrics))
    rows, columns = _numbered(teams), _numbered(cases)
    layers = _numbered([*metrics, *unranked])
    shape = len(rows), len(columns), len(layers)
    values, spreads = np.full((2, *shape), math.nan)
    reasons = np.full(shape, NO_ROW, dtype=object)
    kinds = reasons.copy()
    for result in results:
        place = rows[result.team], columns[result.case], layers[result.metric]
        values[place] = math.nan if result.value is None else result.value
        spreads[place] = math.nan if result.spread is None else result.spread
        reasons[place] = result.reason
        kinds[place] = result.kind or result.reason
    return ResultTable(
        teams=tuple(teams),
        cases=tuple(cases),
        metrics=tuple(metrics),
        others=tuple(unranked),
        values=values,
        spreads=spreads,
        reasons=reasons,
        kinds=kinds,
    )


def _numbered(names: Sequence[str]) -> dict[str, int]:
    """The place of each name in a sequence, from 0."""
    return {name: number for number, name in enumerate(names)}


def _places(names: Sequence[str], chosen: Sequence[str]) -> list[int]:
    """The places of the chosen names among all names, from 0."""
    places = _numbered(names)
    return [places[name] for name in chosen]


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
    ties_by: Sequence[RankedMetric] = (),
) -> ResultTable:
    """Read the results of all teams by some metrics, and the columns of `ties_by`.

    The source is a folder with a folder for each team; or a table of a form that
    `flare.ranking.table_rows` knows, as a CSV file or in memory, which may also have
    other metrics of the challenge. Of a metric with a ``trace_tolerance_mb``, the area
    under the part of the GPU memory in traces/CASE.csv that is above it is read in
    place of what efficiency.csv has; a table has no traces, and has such areas. With
    `needs_all`, running time and memory have to be there, too, where folders tell that
    no team was measured, and other metrics are left to rank by. A RankingError is
    raised if something contradicts itself, or no team has a value of a metric.
    """
    names = [rule.metric for rule in metrics]
    columns = {rule.metric: rule for rule in (*metrics, *ties_by)}
    teams = _read_source(source, [*columns.values()], challenge)
    file = str(source if isinstance(source, Path) else IN_MEMORY)
    results = teams.results
    copies = find_copies(results)
    present = {result.metric for result in results if result.value is not None}
    left_out: tuple[str, ...] = ()
    if not needs_all and not teams.is_measured:
        left_out = _absent_efficiency([*columns], present)
        results = [result for result in results if result.metric not in left_out]
    _check_results(file, results)
    ranked = [metric for metric in names if metric not in left_out]
    present = present.union(left_out)
    _check_present(file, ranked, [*columns], present, teams.notes)
    table = table_of(results, ranked)
    _check_left_out(file, table, challenge)
    return replace(
        table,
        left_out=left_out,
        roll=replace(teams.roll, equal_results=copies),
        origin=teams.origin,
        warned=teams.warned,
        notes=teams.notes,
        worst_values=teams.worst_values,
        answers=teams.answers,
    )


def _read_source(
    source: Path | pd.DataFrame, metrics: Sequence[RankedMetric], challenge: Challenge
) -> TeamResults:
    if not isinstance(source, Path) or source.is_file():
        names = [rule.metric for rule in metrics]
        _check_no_answers(source, names)
        return read_one_table(source, names, challenge)
    if source.is_dir():
        return read_teams(source, metrics, challenge)
    raise RankingError(str(source), "there is no such file or folder")


def _check_no_answers(source: Path | pd.DataFrame, metrics: Iterable[str]) -> None:
    """Refuse to rank a table by answers: draws are made from those in folders."""
    names = [name for name in metrics if not metric_named(name).is_of_each_case]
    if names:
        problem = f"{listing(names)} is of all cases together, which no table has"
        file = str(source if isinstance(source, Path) else IN_MEMORY)
        raise RankingError(file, problem, "Give the folder of the teams' results.")


def _check_results(file: str, results: Sequence[CaseResult]) -> None:
    """Refuse names that are no text, before there is a table; and no results at all."""
    check_names(file, "team", sorted({result.team for result in results}))
    check_names(file, "case", sorted({result.case for result in results}))
    if not results:
        remedy = "flare score writes a metrics.json into the folder of each team."
        raise RankingError(file, "there is no result in it", remedy)


def _absent_efficiency(
    metrics: Sequence[str], present: Collection[str]
) -> tuple[str, ...]:
    """Running time and memory, if no team has either, and other metrics are left."""
    efficiency = tuple(metric for metric in metrics if metric in VALUES)
    is_absent = set(present).isdisjoint(efficiency)
    return efficiency if is_absent and len(efficiency) < len(metrics) else ()


def _check_present(
    file: str,
    metrics: Sequence[str],
    columns: Sequence[str],
    present: Collection[str],
    notes: Sequence[str],
) -> None:
    """Refuse results in which no team has a value of some column, ranked or not."""
    absent = [column for column in columns if column not in present]
    possible = ",".join(metric for metric in metrics if metric in present)
    remedy = f"Rank by what there is: --metrics {possible}." if possible else ""
    if absent and set(absent).isdisjoint(metrics):
        remedy = "It orders teams that are equal, as ties_by of [scheme] says."
    if absent:
        problem = ". ".join([f"no team has a value of {listing(absent)}", *notes])
        raise RankingError(file, problem, remedy)


def _check_left_out(file: str, table: ResultTable, challenge: Challenge) -> None:
    """Refuse to rank on cases where some teams have a value, and others need none."""
    is_in = ~np.isnan(table.values) & (not challenge.scheme.is_of_means)
    is_unfair = table.is_left_out & is_in.any(axis=0)
    for team, case, metric in np.argwhere(is_unfair[:, :, : len(table.metrics)]):
        names = table.teams[team], table.cases[case], table.metrics[metric]
        problem = (
            f"{' '.join(map(safe, names))} is {LEFT_OUT}, and another team's is not"
        )
        remedy = "Ranks on each case need values of all teams there, or of none."
        raise RankingError(file, problem, remedy)


def find_copies(results: Iterable[CaseResult]) -> tuple[Copies, ...]:
    """Teams with scores that agree too often for chance."""
    scores: defaultdict[str, set[tuple[str, str, float]]] = defaultdict(set)
    for result in results:
        if _is_score_of_case(result) and result.value is not None:
            scores[result.team].add((result.case, result.metric, result.value))
    groups: defaultdict[frozenset[Any], list[str]] = defaultdict(list)
    for team, team_scores in sorted(scores.items()):
        # Equal zeros and ones say nothing.
        telling = [value for *_, value in team_scores if value not in (0, 1)]
        if len(telling) >= FEWEST_EQUAL:
            groups[frozenset(team_scores)].append(team)
    return tuple(
        Copies(teams=tuple(teams)) for teams in groups.values() if len(teams) > 1
    )


def _is_score_of_case(result: CaseResult) -> bool:
    """Whether a result is of a label map, and not of all answers together."""
    metric = metric_named(result.metric)
    return metric.is_scored and metric.is_of_each_case
