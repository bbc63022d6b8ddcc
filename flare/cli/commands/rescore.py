"""Score kept predictions anew, when rules or labels changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.cli.console import OutcomeError
from flare.common.options import argument, challenge_option, option, workers_option
from flare.common.text import listing, safe, shell_word
from flare.measuring.rescore import rescore, rescored_table

PLACE = ("For organisers", 10)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is scored anew."""

    results: Path = argument(
        "The folder that has one for each team, with its predictions in"
        " TEAM/predictions (of flare measure, flare download --predictions, or put"
        " there by hand).",
        metavar="RESULTS",
    )
    ground_truth: Path = option("The reference labels.", metavar="DIR")
    challenge: str = challenge_option()
    workers: int | None = workers_option()


@takes(Asked)
def command(asked: Asked) -> None:
    """Score kept predictions anew, and keep what was measured."""
    teams = rescore(
        asked.results,
        asked.ground_truth,
        read_challenge(asked.challenge),
        workers=asked.workers,
    )
    for found in teams:
        if found.error:
            _log.info("%s: not scored: %s", safe(found.team), found.error)
    _log.info("\n%s", rescored_table(teams))
    left = [found.team for found in teams if found.is_left]
    if left:
        line = (
            f"{safe(asked.results)}: no predictions are kept of {listing(left)}. Score"
            " what was submitted: flare score TEAMS"
            f" --ground-truth {shell_word(asked.ground_truth)}"
            f" --challenge {shell_word(asked.challenge)}"
            f" --output {shell_word(asked.results)}."
        )
        if len(left) == len(teams):
            raise OutcomeError(line)
        _log.info("%s", line)
    errors = [(found.team, found.error) for found in teams if found.error]
    if errors:
        others = f" (and {len(errors) - 1} other teams)" if errors[1:] else ""
        raise OutcomeError(f"{safe(errors[0][0])}: not scored: {errors[0][1]}{others}")
