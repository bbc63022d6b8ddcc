"""Print the settings of three phases of the platform."""

from __future__ import annotations

import json
import logging
import sys

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command
from flare.cli.console import VERBATIM
from flare.cli.contract_options import contract_options
from flare.cli.options import challenge_option
from flare.common.errors import InputError
from flare.common.text import listing
from flare.measuring.contract import Contract
from flare.platforms.grandchallenge.phase_settings import (
    external_settings_for,
    not_ranked,
    settings_for,
)

PLACE = ("For organisers", 4)

_log = logging.getLogger(__name__)


@click.command("phase-settings", cls=Command)
@click.option(
    "--external",
    is_flag=True,
    help="Print those of a phase that flare serve evaluates, with running time and GPU"
    " memory.",
)
@click.option(
    "--gpu",
    default="0",
    metavar="ID|none",
    help="With --external, as flare serve is told: without a GPU, no memory is ranked.",
)
@contract_options
@challenge_option
def command(*, external: bool, gpu: str, contract: Contract, challenge: str) -> None:
    """Print the settings of three phases."""
    if gpu != "0" and not external:
        raise InputError(
            "--gpu: it is about what flare serve runs", "Give --external, too."
        )
    if contract.is_algorithm and not external:
        raise InputError(
            "--contract algorithm: it is about what flare serve runs",
            "Give --external, too.",
        )
    rules = read_challenge(challenge)
    settings = settings_for(rules)
    if external:
        settings = external_settings_for(rules, contract, has_gpu=gpu != "none")
    _log.info("%s", json.dumps(settings, indent=2), extra=VERBATIM)
    if external:
        missing = not_ranked(rules, settings["external"])
        if missing and sys.stdout.isatty():  # no part of a file
            _log.info("\nSuch a phase cannot rank by %s.", listing(missing))
        return
    if rules.board.decimals is None and sys.stdout.isatty():  # no part of a file
        _log.info(
            "\nThese phases are public: build their image with --decimals 4, or set"
            " [board] decimals; the documentation's page Phase settings tells why."
        )
