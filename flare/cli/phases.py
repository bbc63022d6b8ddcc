"""The phase of the platform whose settings apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from flare.challenge.reading import read_challenge
from flare.cli.options import PATH
from flare.common.places import PHASE_SETTINGS
from flare.platforms.grandchallenge.phase import (
    Phase,
    external_settings_for,
    parse_phase,
    read_phase,
    settings_for,
)


def phase_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command be told which phase's settings apply."""
    for option in (
        click.option(
            "--phase-settings",
            type=PATH,
            metavar="FILE",
            help="Read them from this file (default: phase-settings.json beside"
            " evaluate.py; rehearse takes those of the image's challenge if that is"
            " not flare21).",
        ),
        click.option(
            "--phase",
            default="validation",
            metavar="NAME",
            help="Go by the settings of sanity, validation, test or external (default:"
            " validation).",
        ),
    ):
        function = option(function)
    return function


def default_phase(name: str) -> Phase:
    """A phase of phase-settings.json; an installed copy makes it anew."""
    if PHASE_SETTINGS and name != "external":  # the file is of the other three
        return read_phase(PHASE_SETTINGS, name)
    rules = read_challenge("flare21")
    settings = json.dumps(settings_for(rules) | external_settings_for(rules))
    return parse_phase(settings, name, source="phase-settings of flare21")
