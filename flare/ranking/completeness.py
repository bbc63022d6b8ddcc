"""Says who took part besides the teams that are ranked, and who has another's results.

Nobody vanishes from a ranking: teams whose archives were refused or replaced, that are
not measured or scored yet, that have the results of another team, or that an
evaluation has warned of.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flare.common.text import listing, printable, safe
from flare.results.errors import MeasurementError, RankingError
from flare.results.ledger_csv import LEDGER_CSV, read_ledger
from flare.results.metrics_reading import Scores
from flare.results.refused_csv import Refusal
from flare.results.team_folder import PREDICTIONS

FEWEST_EQUAL = 3
"""This many values other than 0 and 1 do not agree in every digit by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Teams with the same results on all cases."""

    teams: tuple[str, ...]
    what: str
    """What is the same."""


def find_equal(scores: Mapping[str, Mapping[Any, float]]) -> tuple[Copies, ...]:
    """Teams whose scores agree too often for a coincidence.

    Parameters
    ----------
    scores : mapping
        By team: DSC and NSD, by case and metric.
    """
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for team, own in sorted(scores.items()):
        # Of zeros and ones, equal values say nothing.
        if sum(value not in (0, 1) for value in own.values()) >= FEWEST_EQUAL:
            groups[frozenset(own.items())].append(team)
    what = "the same DSC and NSD in every digit, on all cases"
    return tuple(
        Copies(teams=tuple(teams), what=what)
        for teams in groups.values()
        if len(teams) > 1
    )


def find_copies(path: Path, scores: Mapping[str, Scores]) -> tuple[Copies, ...]:
    """Teams with the same predictions, or the same scores, on all cases.

    Parameters
    ----------
    path : Path
        With a folder for each team.
    scores : mapping of str to Scores
        By team.
    """
    values = {
        team: own.values
        for team, own in scores.items()
        if len(own.failed) < len(own.cases)
    }
    digests: defaultdict[str, list[str]] = defaultdict(list)
    for teams in _equal(values):
        for team in teams:
            digests[_digest(path / team / PREDICTIONS)].append(team)
    digests.pop("", None)
    copies = [
        Copies(teams=tuple(same), what="the same predictions, byte by byte")
        for same in digests.values()
        if len(same) > 1
    ]
    known = {found.teams for found in copies}
    copies += [found for found in find_equal(values) if found.teams not in known]
    return tuple(sorted(copies, key=lambda found: (found.teams, found.what)))


def _equal(values: Mapping[str, Mapping[Any, float]]) -> list[list[str]]:
    """Teams whose values are all equal, so that their files are worth comparing."""
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for team, own in values.items():
        groups[frozenset(own.items())].append(team)
    return [teams for teams in groups.values() if len(teams) > 1]


def _digest(folder: Path) -> str:
    """SHA-256 over all predictions of a team; empty if none is kept."""
    files = (
        sorted(f for f in folder.glob("*") if f.is_file()) if folder.is_dir() else []
    )
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            own = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.name} {own}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest() if files else ""


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

    @property
    def lines(self) -> tuple[str, ...]:
        """What organisers should look at, each in a line."""
        lines = [
            f"{safe(f.team)}: {safe(f.archive)} was refused, and the team"
            + (
                " is ranked by what else it has sent"
                if f.team in self.ranked
                else " is not ranked"
            )
            + f": {printable(f.problem)}"
            for f in self.refused
        ]
        lines += [
            f"{safe(f.team)}: archive replaced on {safe(f.date)}: {printable(f.reason)}"
            for f in self.replaced
        ]
        lines += [
            f"{safe(f.team)} has no scores yet, and is not ranked ({f.measured} cases"
            " are measured): go on with flare measure --ground-truth"
            for f in self.waiting
        ]
        lines += [
            f"{listing(f.teams, last=' and ')} have {f.what}: is one a copy?"
            for f in self.copies
        ]
        lines += [f"{safe(team)}: {printable(line)}" for team, line in self.warned]
        if self.strays:
            lines.append(
                f"Ignored, as there are no results in them: {listing(self.strays)}"
            )
        return tuple(lines)

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
