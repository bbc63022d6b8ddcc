"""Says who took part besides the teams that are ranked: nobody vanishes from a ranking.

Teams whose archives were refused or replaced, that are not measured or scored yet, that
have the results of another team, or that an evaluation has warned of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flare.results.copies import Copies
from flare.results.errors import MeasurementError, RankingError
from flare.results.ledger_csv import LEDGER_CSV, read_ledger
from flare.results.refused_csv import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """An archive that has replaced another one of the team."""

    team: str
    date: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A team that has sent an archive, and has no scores yet."""

    team: str
    measured: int
    """Cases that are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollCall:
    """Who else took part, and what is to be said of it."""

    refused: tuple[Refusal, ...] = ()
    replaced: tuple[Replacement, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    unfinished: tuple[str, ...] = ()
    """Teams that are ranked, though they are not measured to the end."""
    copies: tuple[Copies, ...] = ()
    warned: tuple[tuple[str, str], ...] = ()
    """Teams, and what the evaluation has said of them."""
    strays: tuple[str, ...] = ()
    """Folders that are no team's."""
    ranked: tuple[str, ...] = ()
    """Teams with scores."""

    @property
    def is_interim(self) -> bool:
        """Whether the ranking cannot be final yet."""
        return bool(self.waiting or self.unfinished)

    @property
    def excluded(self) -> tuple[Refusal, ...]:
        """Refusals of teams that have no other results."""
        return tuple(found for found in self.refused if found.team not in self.ranked)

    def shown(self, name_of: Callable[[str], str]) -> RollCall:
        """The same roll call with the names that teams are shown by."""
        return replace(
            self,
            refused=tuple(replace(f, team=name_of(f.team)) for f in self.refused),
            replaced=tuple(replace(f, team=name_of(f.team)) for f in self.replaced),
            waiting=tuple(replace(f, team=name_of(f.team)) for f in self.waiting),
            unfinished=tuple(map(name_of, self.unfinished)),
            copies=tuple(
                replace(f, teams=tuple(map(name_of, f.teams))) for f in self.copies
            ),
            warned=tuple((name_of(team), line) for team, line in self.warned),
            ranked=tuple(map(name_of, self.ranked)),
        )


def read_archives(
    results: Path, refused: Sequence[Refusal] = ()
) -> tuple[tuple[str, ...], tuple[Replacement, ...]]:
    """Teams whose archives were accepted, and those that have replaced another one.

    An archive that was accepted, and that the engine could not load, was refused.

    Raises
    ------
    RankingError
        If ledger.csv is there, but cannot be read.
    """
    try:
        entries = read_ledger(results / LEDGER_CSV)
    except MeasurementError as error:
        raise RankingError(str(results / LEDGER_CSV), "it cannot be read") from error
    # The earliest entry comes last, and stays.
    first = {entries[n].team: n for n in reversed(range(len(entries)))}
    replaced = [
        Replacement(team=entry.team, date=entry.date, reason=entry.reason)
        for number, entry in enumerate(entries)
        if number > first[entry.team]
    ]
    last = {entry.team: entry.archive_sha256 for entry in entries}
    not_loaded = {(found.team, found.archive_sha256) for found in refused}
    accepted = sorted(team for team, _ in last.items() - not_loaded)
    return tuple(accepted), tuple(replaced)
