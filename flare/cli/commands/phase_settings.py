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
from flare.platforms.grandchallenge.phase_templates import settings_for

_log = logging.getLogger(__name__)


@click.command("phase-settings", cls=Command)
@challenge_option
def command(*, challenge: str) -> None:
    """Print the settings of three phases."""
    rules = read_challenge(challenge)
    _log.info("%s", json.dumps(settings_for(rules), indent=2), extra=VERBATIM)
    if rules.board.decimals is None and sys.stdout.isatty():  # no part of a file
        _log.info(
            "\nThese phases are public: build their image with --decimals 4, or set"
            " [board] decimals; docs/organisers/phase-settings.md tells why."
        )
