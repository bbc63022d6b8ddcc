"""Print the settings of three phases of the platform."""

from __future__ import annotations

import json
from dataclasses import dataclass

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.cli.console import say
from flare.common.errors import InputError
from flare.common.options import challenge_option, option
from flare.common.schema import dump
from flare.platforms.grandchallenge.phase_settings import (
    external_settings_for,
    settings_for,
)

PLACE = ("For organisers", 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsOptions:
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
    challenge: str = challenge_option()


@takes(SettingsOptions)
def command(options: SettingsOptions) -> None:
    if options.gpu != "0" and not options.external:
        problem = "--gpu: it is about what flare serve runs"
        raise InputError(problem, "Give --external, too.")
    rules, has_gpu = read_challenge(options.challenge), options.gpu != "none"
    phases = settings_for(rules)
    if options.external:
        phases = {"external": external_settings_for(rules, has_gpu=has_gpu)}
    say(json.dumps(dump(phases), indent=2))
