"""Score kept predictions anew, when rules or labels changed."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command
from flare.cli.console import OutcomeError
from flare.cli.options import PATH, challenge_option, workers_option
from flare.common.text import listing, safe, shell_word
from flare.measuring.rescore import Rescored, rescore, rescored_table

PLACE = ("For organisers", 10)

_log = logging.getLogger(__name__)


@click.command("rescore", cls=Command)
@click.argument(
    "results",
    type=PATH,
    metavar="RESULTS",
    help="The folder that has one for each team, with its predictions in"
    " TEAM/predictions (of flare measure, flare download --predictions, or put there"
    " by hand).",
)
@click.option(
    "--ground-truth",
    type=PATH,
    required=True,
    metavar="DIR",
    help="The reference labels.",
)
@challenge_option
@workers_option
def command(
    *, results: Path, ground_truth: Path, challenge: str, workers: int | None
) -> None:
    """Score kept predictions anew, and keep what was measured."""
    teams = rescore(
        results,
        ground_truth,
        read_challenge(challenge),
        workers=workers,
        on_team=_tell,
    )
    _log.info("\n%s", rescored_table(teams))
    left = [found.team for found in teams if found.is_left]
    if left:
        line = (
            f"{safe(results)}: no predictions are kept of {listing(left)}. Score what"
            " was submitted: flare score TEAMS"
            f" --ground-truth {shell_word(ground_truth)}"
            f" --challenge {shell_word(challenge)} --output {shell_word(results)}."
        )
        if len(left) == len(teams):
            raise OutcomeError(line)
        _log.info("%s", line)
    errors = [(found.team, found.error) for found in teams if found.error]
    if errors:
        others = f" (and {len(errors) - 1} other teams)" if errors[1:] else ""
        raise OutcomeError(f"{safe(errors[0][0])}: not scored: {errors[0][1]}{others}")


def _tell(found: Rescored) -> None:
    """Say what became of a team."""
    if found.error:
        _log.info("%s: not scored: %s", safe(found.team), found.error)
    for line in found.zeros:
        _log.info("%s: %s", safe(found.team), line)
