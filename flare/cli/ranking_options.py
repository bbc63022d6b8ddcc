"""Options of the commands that rank teams: equal ones give equal rankings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from flare.cli.options import PATH, OneOf, Parsed, challenge_option, with_options
from flare.common.options import share, whole


def names(text: str) -> list[str]:
    """Names between commas."""
    return text.split(",")


_OPTIONS = (
    click.option(
        "--metrics",
        type=Parsed(names),
        metavar="dsc,nsd,...",
        help="Rank by these metrics of the challenge (default: all; where no team was"
        " measured, all but running time and memory).",
    ),
    click.option(
        "--ties",
        type=OneOf(["min", "average", "max"]),
        default="min",
        help="Give teams with equal values this one of their ranks (default: min).",
    ),
    click.option(
        "--missing",
        type=OneOf(["last", "worst-plus-one", "value", "refuse"]),
        help="Give a team without a result this rank (default: value, that of a failed"
        " run, where the challenge has one; else last, the number of teams).",
    ),
    click.option(
        "--gate",
        type=Parsed(share),
        metavar="DSC",
        help="Let metrics of efficiency count only on cases with at least this DSC"
        " (default: the challenge's; flare21 has none).",
    ),
    click.option(
        "--bootstrap",
        type=Parsed(whole),
        metavar="N",
        help="Draw cases anew so often to tell how sure a rank is; 0: not at all"
        " (default: 1000).",
    ),
    click.option(
        "--seed",
        type=Parsed(whole),
        metavar="N",
        help="Start the random generator of these draws here (default: always the"
        " same).",
    ),
    click.option(
        "--decisions",
        type=PATH,
        metavar="FILE.toml",
        help="Apply this file's withdrawn cases, disqualified teams, baselines and"
        " names, each of which has its reason.",
    ),
    challenge_option,
)


RANKING_OPTIONS = (
    *("metrics", "ties", "missing", "gate", "bootstrap", "seed", "decisions"),
    "challenge",
)
"""Their names, as those of the parameters."""


def ranking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `flare.reports.ranking.ranking.rank`."""
    return with_options(command, _OPTIONS)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Those that have a value; the others are left to the defaults of `rank`."""
    return {name: value for name, value in options.items() if value is not None}
