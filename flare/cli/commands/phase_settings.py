"""``flare phase-settings``: the settings of three phases of the platform."""

from __future__ import annotations

import json
import logging
import sys

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command
from flare.cli.console import VERBATIM
from flare.cli.options import challenge_option
from flare.platforms.grandchallenge.phase_external import external_settings_for
from flare.platforms.grandchallenge.phase_templates import settings_for

_log = logging.getLogger(__name__)


@click.command("phase-settings", cls=Command)
@click.option(
    "--external",
    is_flag=True,
    help="Print those of a phase that flare serve evaluates, with running time and GPU"
    " memory.",
)
@challenge_option
def command(*, external: bool, challenge: str) -> None:
    """Print the settings of three phases."""
    rules = read_challenge(challenge)
    settings = external_settings_for(rules) if external else settings_for(rules)
    _log.info("%s", json.dumps(settings, indent=2), extra=VERBATIM)
    if external:
        return
    if rules.board.decimals is None and sys.stdout.isatty():  # no part of a file
        _log.info(
            "\nThese phases are public: build their image with --decimals 4, or set"
            " [board] decimals; docs/organisers/phase-settings.md tells why."
        )
