"""Finds teams that have the results of another team."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.results.metrics_json import Scores
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
