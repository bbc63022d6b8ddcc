"""Says who took part besides the teams that are ranked: nobody vanishes from a ranking.

Teams whose archives were refused or replaced, that are not measured or scored yet, that
have the results of another team, or that an evaluation has warned of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flare.common.text import listing, printable, safe
from flare.results.copies import Copies
from flare.results.errors import MeasurementError, RankingError
from flare.results.ledger_csv import LEDGER_CSV, read_ledger
from flare.results.refused_csv import Refusal

TOLD = re.compile(r"\bscores? 0\b|\bno organs?\b")
"""Warnings of metrics.json that explain why a team scores nothing."""


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
        """Whether the ranking cannot be the last one."""
        return bool(self.waiting or self.unfinished)

    @property
    def excluded(self) -> tuple[Refusal, ...]:
        """Refusals of teams that have no other results."""
        return tuple(found for found in self.refused if found.team not in self.ranked)

    @property
    def interim_text(self) -> str:
        """Why it cannot; empty if it can."""
        if not self.is_interim:
            return ""
        names = sorted({*(found.team for found in self.waiting), *self.unfinished})
        are = "is" if len(names) == 1 else "are"
        count = "1 team" if len(names) == 1 else f"{len(names)} teams"
        return (
            f"Interim ranking: {count} {are} not measured to the end"
            f" ({listing(names)}). Go on with flare measure, and rank again."
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """What organisers should look at, each in a line."""
        lines = [
            f"{safe(f.team)}: {safe(f.file)} was refused, and the team"
            + (
                " is ranked by what else it has sent"
                if f.team in self.ranked
                else " is not ranked"
            )
            + f": {printable(f.reason)}"
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

    @property
    def content(self) -> dict[str, Any]:
        """For ranking.json."""
        return {
            "refused": [
                {
                    "team": printable(f.team),
                    "file": printable(f.file),
                    "reason": printable(f.reason),
                    "is_ranked": f.team in self.ranked,
                }
                for f in self.refused
            ],
            "replaced": [
                {
                    "team": printable(f.team),
                    "date": printable(f.date),
                    "reason": printable(f.reason),
                }
                for f in self.replaced
            ],
            "not_scored_yet": [
                {"team": printable(f.team), "cases_measured": f.measured}
                for f in self.waiting
            ],
            "not_measured_to_the_end": [printable(team) for team in self.unfinished],
            "equal_results": [
                {"teams": [printable(team) for team in f.teams], "what": f.what}
                for f in self.copies
            ],
            "ignored": [printable(name) for name in self.strays],
        }

    def shown(self, name_of: Callable[[str], str]) -> RollCall:
        """The same with other names of teams."""
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
    replaced = [
        Replacement(team=entry.team, date=entry.date, reason=entry.reason)
        for number, entry in enumerate(entries)
        if entry.team in {before.team for before in entries[:number]}
    ]
    last = {entry.team: entry.archive_sha256 for entry in entries}
    not_loaded = {found.archive_sha256 for found in refused}
    accepted = sorted(team for team, sha256 in last.items() if sha256 not in not_loaded)
    return tuple(accepted), tuple(replaced)
