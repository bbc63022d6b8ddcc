"""Tells what a report is about from the names of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from flare.results.metrics_reading import is_evaluation
from flare.results.team_folder import is_team

INDEX = "index.html"
"""The page of a folder that leads to the others."""

TEAMS = "teams"
"""Folder of the pages of single teams."""

RANKING_JSON = "ranking.json"
"""What a ranking that was written is known by."""


class Kind(Enum):
    """What a report is about, in words of an error."""

    EVALUATION = "one evaluation"
    COMPARISON = "two or more evaluations"
    TEAM = "the folder of one team"
    RANKING = "the results of all teams"
    WRITTEN = "a ranking that was written"


def kind_of(sources: Sequence[Path]) -> Kind:
    """What a report of these sources is about.

    Several sources are evaluations, all of them: whoever reads them says so.
    """
    if len(sources) > 1:
        return Kind.COMPARISON
    if is_evaluation(sources[0]):
        return Kind.EVALUATION
    if is_team(sources[0]):
        return Kind.TEAM
    return Kind.WRITTEN if _is_written(sources[0]) else Kind.RANKING


def _is_written(folder: Path) -> bool:
    """Whether a folder has a ranking, and not the results as well."""
    if not (folder / RANKING_JSON).is_file():
        return False
    return not any(is_team(own) for own in folder.iterdir() if own.is_dir())
