"""Puts the organisers' decisions about a ranking on record, outside its tables."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """What was decided, all of it in words."""

    def __post_init__(self) -> None:
        """Check the values."""
        for row in fields(self):
            value = getattr(self, row.name)
            expected = "a text: who reads the ranking will ask"
            check(bool(value.strip()), row.name, value, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDecision(_Decision):
    """A case that does not count."""

    case: str
    reason: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDecision(_Decision):
    """A team that is disqualified, or takes part out of competition."""

    team: str
    reason: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameDecision(_Decision):
    """The name that a team is shown by."""

    team: str
    name: str
    reason: str
    date: str


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
        guests = self.out_of_competition
        decided: list[tuple[str, CaseDecision | TeamDecision | NameDecision]] = [
            *((f"Withdrawn: case {safe(d.case)}", d) for d in self.withdrawn),
            *((f"Disqualified: {safe(d.team)}", d) for d in self.disqualified),
            *((f"Out of competition: {safe(d.team)}", d) for d in guests),
            *((f"Shown as {safe(d.name)}: {safe(d.team)}", d) for d in self.names),
        ]
        # Made safe so that they cannot break the line.
        return tuple(
            f"{what}: {printable(d.reason)} ({safe(d.date)})" for what, d in decided
        )

    @property
    def guests(self) -> frozenset[str]:
        """Teams that are out of competition, as they are shown."""
        return frozenset(self.name_of(d.team) for d in self.out_of_competition)

    def name_of(self, team: str) -> str:
        """What a team is shown as."""
        return next((d.name for d in self.names if d.team == team), team)


def read_decisions(file: Path) -> Decisions:
    """Read a TOML file of decisions.

    Raises
    ------
    RankingError
        If it breaks a rule; the message names the key and the value.
    """
    try:
        values = tomllib.loads(read_regular(file))
        return build(Decisions, _with_texts(values))
    except OSError as error:
        reason = why(error)
        raise RankingError(str(file), f"cannot be read ({reason})", _REMEDY) from error
    except (ValueError, RecursionError) as error:
        raise RankingError(str(file), safe(str(error)), _REMEDY) from error


def _with_texts(value: Any) -> Any:
    """The same with dates as texts, as they may also be written in quotes."""
    if isinstance(value, dict):
        return {key: _with_texts(own) for key, own in value.items()}
    if isinstance(value, list):
        return [_with_texts(own) for own in value]
    return value.isoformat() if isinstance(value, date) else value


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
    _check_known(file, "case", [d.case for d in decisions.withdrawn], table.cases)
    _check_known(file, "team", teams, table.teams)
    _check_known(file, "team", [d.team for d in decisions.names], table.teams)
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
