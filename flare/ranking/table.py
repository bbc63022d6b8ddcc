"""Holds the results of all teams in one pandas table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from flare.ranking.rules import Rules
from flare.results.origins import Origin
from flare.results.roll_call import RollCall
from flare.results.team_folder import NO_ROW, Reason

Values = npt.NDArray[np.float64]

KEYS = ("team", "case", "metric")
"""What identifies a result, from the outermost to the innermost level of the table."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The values of the teams that are compared."""

    teams: tuple[str, ...]
    cases: tuple[str, ...]
    values: Values
    """Of shape (teams, cases, metrics of the rules); NaN where a result is missing."""


def board_of(table: ResultTable, rules: Rules, teams: Sequence[str]) -> Board:
    """The values of some teams, in their order."""
    metrics = [rule.metric for rule in rules.metrics]
    return Board(
        teams=tuple(teams),
        cases=table.cases,
        values=table.cube("value", teams, metrics),
    )
