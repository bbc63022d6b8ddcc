"""Puts the organisers' decisions about a ranking on record, outside its tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from flare.common.files import read_regular
from flare.common.schema import build, check
from flare.common.text import listing, nearest, printable, safe, why
from flare.ranking.table import ResultTable
from flare.results.errors import RankingError
from flare.results.team_folder import check_names, plain_name

_REMEDY = "The documentation's page The final ranking shows such a file."


def _check_text(key: str, value: str) -> None:
    check(bool(value.strip()), key, value, "a text: who reads the ranking will ask")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDecision:
    """A case that does not count."""

    case: str
    reason: str
    date: str

    def __post_init__(self) -> None:
        """Check the values."""
        for key in ("case", "reason", "date"):
            _check_text(key, getattr(self, key))

    def __str__(self) -> str:
        """One line."""
        return f"Withdrawn: case {safe(self.case)}: {_because(self)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDecision:
    """A team that is disqualified, or takes part out of competition."""

    team: str
    reason: str
    date: str

    def __post_init__(self) -> None:
        """Check the values."""
        for key in ("team", "reason", "date"):
            _check_text(key, getattr(self, key))


@dataclass(frozen=True, slots=True, kw_only=True)
class NameDecision:
    """The name that a team is shown by."""

    team: str
    name: str
    reason: str
    date: str

    def __post_init__(self) -> None:
        """Check the values."""
        for key in ("team", "name", "reason", "date"):
            _check_text(key, getattr(self, key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Everything that was decided."""

    withdrawn: tuple[CaseDecision, ...] = ()
    disqualified: tuple[TeamDecision, ...] = ()
    out_of_competition: tuple[TeamDecision, ...] = ()
    """Such as baselines: they are shown, and change no other team's rank."""
    names: tuple[NameDecision, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Each decision in a line, for printing with the ranking."""
        teams = [("Disqualified", d) for d in self.disqualified]
        teams += [("Out of competition", d) for d in self.out_of_competition]
        return (
            *map(str, self.withdrawn),
            *(f"{kind}: {safe(d.team)}: {_because(d)}" for kind, d in teams),
            *(
                f"Shown as {safe(d.name)}: {safe(d.team)}: {_because(d)}"
                for d in self.names
            ),
        )

    @property
    def guests(self) -> frozenset[str]:
        """Teams that are out of competition, as they are shown."""
        return frozenset(self.name_of(d.team) for d in self.out_of_competition)

    def name_of(self, team: str) -> str:
        """What a team is shown as."""
        return next((d.name for d in self.names if d.team == team), team)


def _because(decision: CaseDecision | TeamDecision | NameDecision) -> str:
    """Reason and date, made safe so that they cannot break the line."""
    return f"{printable(decision.reason)} ({safe(decision.date)})"


def read_decisions(file: Path) -> Decisions:
    """Read a TOML file of decisions.

    Raises
    ------
    RankingError
        If it breaks a rule; the message names the key and the value.
    """
    try:
        values = tomllib.loads(read_regular(file))
        return build(Decisions, _with_dates(values))
    except OSError as error:
        reason = why(error)
        raise RankingError(str(file), f"cannot be read ({reason})", _REMEDY) from error
    except (ValueError, RecursionError) as error:
        raise RankingError(str(file), safe(str(error)), _REMEDY) from error


def _with_dates(values: dict[str, Any]) -> dict[str, Any]:
    """Decisions whose dates are texts, as they may also be written in quotes."""
    return {
        kind: [
            {
                key: value.isoformat() if isinstance(value, date) else value
                for key, value in decision.items()
            }
            if isinstance(decision, dict)
            else decision
            for decision in found
        ]
        if isinstance(found, list)
        else found
        for kind, found in values.items()
    }


def apply_decisions(
    table: ResultTable, decisions: Decisions, file: str = "decisions"
) -> ResultTable:
    """Take out withdrawn cases and disqualified teams, and rename teams as decided.

    Raises
    ------
    RankingError
        If a decision is about a case or team that is not there, two decisions are about
        the same, or nothing is left.
    """
    teams = [d.team for d in (*decisions.disqualified, *decisions.out_of_competition)]
    for what, decided, known in (
        ("case", [d.case for d in decisions.withdrawn], table.cases),
        ("team", teams, table.teams),
        ("team", [d.team for d in decisions.names], table.teams),
    ):
        _check_known(file, what, decided, known)
    out = {d.team for d in decisions.disqualified}
    withdrawn = {d.case for d in decisions.withdrawn}
    left = tuple(team for team in table.teams if team not in out)
    cases = tuple(case for case in table.cases if case not in withdrawn)
    shown = {team: decisions.name_of(team) for team in left}
    if not cases or not set(shown.values()) - decisions.guests:
        raise RankingError(file, "no case, or no team, is left", _REMEDY)
    if len(set(map(plain_name, shown.values()))) < len(shown):
        raise RankingError(file, "two teams are shown by one name", _REMEDY)
    check_names(file, "team", list(shown.values()))
    selected = table.select(shown, cases)
    there = selected.frame["value"].groupby(level="metric").count()
    absent = [metric for metric in table.metrics if not there[metric]]
    if absent:
        raise RankingError(file, f"no value of {listing(absent)} is left", _REMEDY)
    return replace(selected, roll=table.roll.shown(decisions.name_of))


def _check_known(
    file: str, what: str, decided: Iterable[str], known: Iterable[str]
) -> None:
    """Refuse decisions about something that is not there, or was already decided."""
    seen: set[str] = set()
    for name in decided:
        if name not in known:
            raise RankingError(
                file, f"there is no {what} {safe(name)}{nearest(name, known)}", _REMEDY
            )
        if name in seen:
            raise RankingError(
                file, f"two decisions are about {what} {safe(name)}", _REMEDY
            )
        seen.add(name)
