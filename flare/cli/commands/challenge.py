"""List, show and validate challenge files."""

from __future__ import annotations

from dataclasses import dataclass

from flare.challenge.metrics import scored
from flare.challenge.reading import (
    challenge_names,
    challenge_summary,
    challenge_text,
    read_challenge,
)
from flare.cli.command import Command, Group, takes
from flare.cli.console import say
from flare.common.options import argument
from flare.common.text import joined
from flare.results.efficiency_csv import ranked_by_others

PLACE = ("For organisers", 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedChallenge:
    """Which challenge is meant."""

    challenge: str = argument(
        "A challenge that comes with the program, or a file of your own.",
        metavar="NAME|FILE.toml",
    )


command = Group("challenge")


@command.command("list", cls=Command, help="Name all that come with the program.")
def list_challenges() -> None:
    names = challenge_names()
    width = max(map(len, names))
    for name in names:
        challenge = read_challenge(name)
        say(f"{name.ljust(width)}  {challenge.name}")


@command.add_command
@takes(NamedChallenge, "show", help="Print the file of one, to start your own from.")
def show_challenge(request: NamedChallenge) -> None:
    say(challenge_text(request.challenge).rstrip("\n"))


@command.add_command
@takes(NamedChallenge, "validate", help="Say what it means, or what is wrong.")
def validate_challenge(request: NamedChallenge) -> None:
    rules = read_challenge(request.challenge)
    foreign_metrics = ranked_by_others(rules, request.challenge)
    say(challenge_summary(rules))
    if foreign_metrics:
        say(
            f"\nNothing here makes {joined(foreign_metrics, ', ')}: give flare rank a"
            " table that has all ranked metrics."
        )
    computed = [metric.name for metric in scored(foreign_metrics)]
    if computed:
        say(f"To have {joined(computed, ', ')} computed, add it to metrics.")
    end = f"\nBut {rules.unfair_ranks}." if rules.unfair_ranks else ""
    if not rules.ranking:
        end = (
            "\nIts teams cannot be ranked, as it has no [[ranking]]: the page Challenge"
            " files explains it."
        )
    say(f"\nThis challenge can be used: --challenge {request.challenge}{end}")
