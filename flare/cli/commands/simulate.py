"""``flare simulate``: results that are made up, to try out a ranking on."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command
from flare.cli.options import PATH, Parsed, challenge_option, positive, whole
from flare.common.text import count
from flare.ranking.simulation import SEED, write_simulation

_log = logging.getLogger(__name__)


@click.command("simulate", cls=Command)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Write a folder for each team into this folder.",
)
@click.option(
    "--teams",
    type=Parsed(positive),
    default=11,
    metavar="N",
    help="Make up N teams; one that crashes, one that returns empty masks and one"
    " without a GPU are among them (default: 11).",
)
@click.option(
    "--cases",
    type=Parsed(positive),
    default=100,
    metavar="N",
    help="Make up N cases (default: 100).",
)
@click.option(
    "--seed",
    type=Parsed(whole),
    default=SEED,
    metavar="N",
    help="Start the random generator here (default: always the same).",
)
@challenge_option
def command(*, output: Path, teams: int, cases: int, seed: int, challenge: str) -> None:
    """Make up the results of a challenge."""
    written = write_simulation(
        read_challenge(challenge), output, teams=teams, cases=cases, seed=seed
    )
    counts = count(len(written), "team"), count(cases, "case")
    _log.info("Wrote %s with %s to %s", *counts, output)
