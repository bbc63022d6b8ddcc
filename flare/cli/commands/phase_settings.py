"""Print the settings of three phases of the platform."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.common.errors import InputError
from flare.common.options import challenge_option, option
from flare.common.schema import dump
from flare.measuring.options import Contract
from flare.platforms.grandchallenge.phase_settings import (
    external_settings_for,
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


@takes(PhaseOptions)
def command(options: PhaseOptions) -> None:
    """Print the settings of three phases."""
    given = {"--gpu": options.gpu != "0", "--contract": options.contract.is_algorithm}
    for flag, is_given in given.items():
        if is_given and not options.external:
            problem = f"{flag}: it is about what flare serve runs"
            raise InputError(problem, "Give --external, too.")
    rules, has_gpu = read_challenge(options.challenge), options.gpu != "none"
    phases = settings_for(rules)
    if options.external:
        external = external_settings_for(rules, options.contract, has_gpu=has_gpu)
        phases = {"external": external}
    _log.info("%s", json.dumps(dump(phases), indent=2))
