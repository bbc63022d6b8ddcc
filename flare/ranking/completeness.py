"""Says who took part besides the teams that are ranked, and who has another's results.

Nobody vanishes from a ranking: teams whose archives were refused or replaced, that are
not measured or scored yet, that have the results of another team, or that an
evaluation has warned of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any

from flare.common.schema import Count, Is, Text
from flare.common.text import count, listing, printable, safe
from flare.results.archives_csv import LEDGER_CSV, Entry, Refusal
from flare.results.csv_rows import TeamName, read_table

FEWEST_EQUAL = 3
"""This many values other than 0 and 1 do not agree in every digit by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Teams that have the same results."""

    teams: Annotated[tuple[str, ...], Is(minItems=2)]
    """The teams."""
    what: Text = "the same DSC and NSD in every digit, on all cases"
    """What is the same."""


def find_copies(scores: Mapping[str, Mapping[Any, float]]) -> tuple[Copies, ...]:
    """Teams with scores that agree too often for chance.

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
    return tuple(Copies(teams=tuple(own)) for own in groups.values() if own[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """An archive that has replaced another one."""

    team: TeamName
    date: str
    """When the new one was first measured."""
    reason: str
    """Why it may replace the earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A team without scores."""

    team: TeamName
    cases_measured: Count
    """Cases that are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTeam:
    """Something that was refused."""

    team: TeamName
    file: Text
    """Name of what was refused."""
    reason: Text
    """Why it was refused."""
    is_ranked: bool
    """Whether the team is ranked by something else that it has sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollCall:
    """Who took part besides the teams that are ranked, and what is to be said of
    them.
    """  # noqa: D205  a sentence of the public schema

    refused: tuple[RefusedTeam, ...] = ()
    """Archives or predictions that were refused."""
    replaced: tuple[Replacement, ...] = ()
    """Archives that have replaced an earlier one of the team."""
    not_scored_yet: tuple[Waiting, ...] = ()
    """Teams that have sent an archive, and have no scores yet."""
    not_measured_to_the_end: tuple[str, ...] = ()
    """Teams that are ranked, though cases of theirs are still to be measured."""
    equal_results: tuple[Copies, ...] = ()
    """Teams that have the results of another team."""
    ignored: tuple[str, ...] = ()
    """Folders that hold no results."""

    @property
    def interim_text(self) -> str:
        """Why the ranking is not final yet; empty if it is."""
        waiting = {found.team for found in self.not_scored_yet}
        names = sorted({*waiting, *self.not_measured_to_the_end})
        are = "is" if len(names) == 1 else "are"
        text = (
            f"Interim ranking: {count(len(names), 'team')} {are} not measured to the"
            f" end ({listing(names)}). Go on with flare measure, and rank again."
        )
        return text if names else ""

    @property
    def lines(self) -> Iterator[str]:
        """What organisers should look at, each in a line."""
        for f in self.refused:
            rest = (
                "is ranked by what else it has sent" if f.is_ranked else "is not ranked"
            )
            told = f"{safe(f.team)}: {safe(f.file)} was refused, and the team {rest}"
            yield f"{told}: {printable(f.reason)}"
        for r in self.replaced:
            yield (
                f"{safe(r.team)}: archive replaced on {safe(r.date)}:"
                f" {printable(r.reason)}"
            )
        for w in self.not_scored_yet:
            yield (
                f"{safe(w.team)} has no scores yet, and is not ranked"
                f" ({w.cases_measured} cases are measured): go on with flare measure"
                " --ground-truth"
            )
        for c in self.equal_results:
            yield f"{listing(c.teams, last=' and ')} have {c.what}: is one a copy?"

    def shown(self, name_of: Callable[[str], str]) -> RollCall:
        """The same roll call with the names that teams are shown by."""

        def renamed(found: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(replace(own, team=name_of(own.team)) for own in found)

        return replace(
            self,
            refused=renamed(self.refused),
            replaced=renamed(self.replaced),
            not_scored_yet=renamed(self.not_scored_yet),
            not_measured_to_the_end=tuple(map(name_of, self.not_measured_to_the_end)),
            equal_results=tuple(
                replace(own, teams=tuple(map(name_of, own.teams)))
                for own in self.equal_results
            ),
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
    file = results / LEDGER_CSV
    entries = read_table(file, Entry) if lexists(file) else []
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
