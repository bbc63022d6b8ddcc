"""Holds the results of all teams in one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flare.ranking.rules import Rules
from flare.results.origins import Origin
from flare.results.roll_call import RollCall

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The values of the teams that are compared."""

    teams: tuple[str, ...]
    cases: tuple[str, ...]
    values: Values
    """Of shape (teams, cases, metrics of the rules); NaN where a result is missing."""


def board_of(table: ResultTable, rules: Rules, teams: Sequence[str]) -> Board:
    """The values of some teams, in their order."""
    values = [
        [
            [table.values.get((team, case, rule.metric), math.nan) for rule in metrics]
            for case in table.cases
        ]
        for metrics in [rules.metrics]
        for team in teams
    ]
    return Board(
        teams=tuple(teams),
        cases=table.cases,
        values=np.array(values, dtype=np.float64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A result that is not there."""

    team: str
    case: str
    metric: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """The results of all teams in all cases, by some metrics."""

    teams: tuple[str, ...]
    """In the order of their names."""
    cases: tuple[str, ...]
    """In the order of their names."""
    metrics: tuple[str, ...]
    values: Mapping[tuple[str, str, str], float]
    """By team, case and metric; finite; what is missing is not there."""
    reasons: Mapping[tuple[str, str, str], str]
    """Why a result is missing, where that is known."""
    spreads: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """How far repeated measurements of a value lay apart, or those of an empty
    container, where that is known."""
    notes: tuple[str, ...] = ()
    """What is odd about where the values come from."""
    others: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """Scores that are not ranked, such as those of single organs."""
    roll: RollCall = field(default_factory=RollCall)
    """Who took part, but is not ranked, or not as it should be."""
    origin: Origin | None = None
    """What the results were made by; None for a table, which does not tell."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """All results that are not there, in the order of teams, cases, metrics."""
        return tuple(
            Missing(
                team=team,
                case=case,
                metric=metric,
                reason=self.reasons.get((team, case, metric), "there is no row"),
            )
            for team in self.teams
            for case in self.cases
            for metric in self.metrics
            if (team, case, metric) not in self.values
        )
