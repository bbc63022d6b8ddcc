"""Write the demonstration set, which is synthetic."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.cli.command import Command
from flare.cli.options import PATH, Parsed
from flare.evaluation.demonstration import SEED, write_demonstration

PLACE = ("For developers", 1)

_log = logging.getLogger(__name__)


def integer(text: str) -> int:
    """A whole number, which may be below 0."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


@click.command("demonstration", cls=Command)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Write references, predictions and images into this folder.",
)
@click.option(
    "--seed",
    type=Parsed(integer),
    default=SEED,
    metavar="N",
    help="Start the random generator here (default: that of the bundled set).",
)
def command(*, output: Path, seed: int) -> None:
    """Write the demonstration set."""
    for file in write_demonstration(output, seed=seed):
        _log.info("Wrote %s", file)
