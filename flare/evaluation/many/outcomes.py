"""Says what became of the teams of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flare.results.metrics_json import METRICS_JSON

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTeam:
    """What became of a team."""

    team: str
    cases: int = 0
    """Of one that was refused: those whose voxels were looked at."""
    scored: int = 0
    """So many of its cases were scored now; the others were scored before."""
    dsc: float | None = None
    """Mean; None if it was refused."""
    nsd: float | None = None
    """Mean; None if it was refused."""
    zeros: tuple[str, ...] = ()
    """Why cases score little or nothing."""
    refusal: str = ""
    """Why it was refused, with what its author can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTeams:
    """What became of all teams, in the order of their names."""

    output: Path
    teams: tuple[ScoredTeam, ...]

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each team and case, and a column for each metric."""
        import pandas as pd

        from flare.results.metrics_reading import read_metrics

        frames = {
            found.team: read_metrics(self.output / found.team / METRICS_JSON)
            for found in self.teams
            if not found.refusal
        }
        if not frames:
            return pd.DataFrame()
        return pd.concat(frames, names=["team"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has come."""

    teams: int
    """Of which nothing is left to do."""
    all_teams: int
    scored: int
    """Cases scored now."""
    kept: int
    """Cases of which the outcome was known."""
    left: int
    """Cases still to be scored; those of teams not looked at are taken to be as many
    as of the others."""
