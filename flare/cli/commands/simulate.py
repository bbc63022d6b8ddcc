"""Make up results, to try out a ranking on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.cli.console import say
from flare.common.options import challenge_option, option, positive, whole
from flare.common.text import count
from flare.ranking.simulation import SEED, write_simulation

PLACE = ("For organisers", 12)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationRequest:
    """What is made up."""

    output: Path = option(
        "Write a folder for each team into this folder.", metavar="DIR"
    )
    teams: int = option(
        "Make up N teams; one that crashes, one that returns empty masks and one"
        " without a GPU are among them (default: 11).",
        default=11,
        parse=positive,
        metavar="N",
    )
    cases: int = option(
        "Make up N cases (default: 100).", default=100, parse=positive, metavar="N"
    )
    seed: int = option(
        "Start the random generator here (default: always the same).",
        default=SEED,
        parse=whole,
        metavar="N",
    )
    challenge: str = challenge_option()


@takes(SimulationRequest)
def command(request: SimulationRequest) -> None:
    written = write_simulation(
        read_challenge(request.challenge),
        request.output,
        teams=request.teams,
        cases=request.cases,
        seed=request.seed,
    )
    teams, cases = count(len(written), "team"), count(request.cases, "case")
    say(f"Wrote {teams} with {cases} to {request.output}")
