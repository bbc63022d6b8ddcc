"""Says what organisers can choose about a ranking."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from flare.common.options import argument, challenge_option, option, share, whole

SAMPLES = 1000
"""Of the bootstrap."""

SEED = 2021
"""Of its random generator."""


class Ties(StrEnum):
    """Which rank teams with equal values get."""

    MIN = "min"
    """The best of the places that they take together."""
    AVERAGE = "average"
    MAX = "max"


class MissingRule(StrEnum):
    """Which rank a team without a result gets."""

    LAST = "last"
    """The number of teams."""
    WORST_PLUS_ONE = "worst-plus-one"
    """The places behind the highest rank that is given, as challengeR does."""
    VALUE = "value"
    """That of the value which the challenge sets for failed runs, or of the worst
    that any team has on the case, if that is worse."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingOptions:
    """How teams are ranked; equal options give equal rankings."""

    metrics: tuple[str, ...] | None = option(
        "Rank by these metrics of the challenge (default: all; where no team was"
        " measured, all but running time and memory).",
        default=None,
        parse=lambda text: tuple(text.split(",")),
        metavar="dsc,nsd,...",
    )
    ties: Ties = option(
        "Give teams with equal values this one of their ranks (default: min).",
        default=Ties.MIN,
    )
    missing: MissingRule | None = option(
        "Give a team without a result this rank (default: value, that of a failed run,"
        " where the challenge has one; else last, the number of teams).",
        default=None,
    )
    gate: float | None = option(
        "Let metrics of efficiency count only on cases with at least this DSC"
        " (default: the challenge's; flare21 has none).",
        default=None,
        parse=share,
        metavar="DSC",
    )
    bootstrap: int = option(
        "Draw cases anew so often to tell how sure a rank is; 0: not at all"
        " (default: 1000).",
        default=SAMPLES,
        parse=whole,
        metavar="N",
    )
    seed: int = option(
        "Start the random generator of these draws here (default: always the same).",
        default=SEED,
        parse=whole,
        metavar="N",
    )
    means: bool = option(
        "Also show the means of all teams where everybody sees the ranking: in"
        " ranking.md, and on pages for participants. From the means of several"
        " submissions, volumes of the references can be worked out.",
        default=False,
    )
    decisions: Path | None = option(
        "Apply this file's withdrawn cases, disqualified teams, baselines and names,"
        " each of which has its reason.",
        default=None,
        metavar="FILE.toml",
    )
    challenge: str = challenge_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRequest:
    """What is ranked, and where the ranking is written."""

    results: Path = argument(
        "A folder with a folder for each team, or a table with the columns"
        " team,case,metric,value.",
        metavar="RESULTS",
    )
    output: Path = option(
        "Write ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,"
        " ranking.tex, report.txt, methods.txt and sheets/TEAM.md into this folder.",
        metavar="DIR",
    )
    options: RankingOptions = field(default_factory=RankingOptions)
