"""Print the settings of three phases of the platform."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass, field

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command, takes
from flare.common.errors import InputError
from flare.common.options import challenge_option, option
from flare.common.schema import dump
from flare.common.text import listing
from flare.measuring.contract import Contract
from flare.platforms.grandchallenge.phase_settings import (
    external_settings_for,
    not_ranked,
    settings_for,
)

PLACE = ("For organisers", 4)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOptions:
    """Of which phases the settings are."""

    external: bool = option(
        "Print those of a phase that flare serve evaluates, with running time and GPU"
        " memory.",
        default=False,
    )
    gpu: str = option(
        "With --external, as flare serve is told: without a GPU, no memory is ranked.",
        default="0",
        metavar="ID|none",
    )
    contract: Contract = field(default_factory=Contract)
    challenge: str = challenge_option()


@click.command("phase-settings", cls=Command)
@takes(PhaseOptions)
def command(options: PhaseOptions) -> None:
    """Print the settings of three phases."""
    external, gpu, contract = options.external, options.gpu, options.contract
    if gpu != "0" and not external:
        raise InputError(
            "--gpu: it is about what flare serve runs", "Give --external, too."
        )
    if contract.is_algorithm and not external:
        raise InputError(
            "--contract algorithm: it is about what flare serve runs",
            "Give --external, too.",
        )
    rules = read_challenge(options.challenge)
    phases = settings_for(rules)
    if external:
        phases = {
            "external": external_settings_for(rules, contract, has_gpu=gpu != "none")
        }
    _log.info("%s", json.dumps(dump(phases), indent=2))
    if not sys.stdout.isatty():  # what follows is no part of a file
        return
    if external:
        missing = not_ranked(rules, phases["external"])
        if missing:
            _log.info("\nSuch a phase cannot rank by %s.", listing(missing))
    elif rules.board.decimals is None:
        _log.info(
            "\nThese phases are public: build their image with --decimals 4, or set"
            " [board] decimals; the documentation's page Phase settings tells why."
        )
