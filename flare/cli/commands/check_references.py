"""Read a challenge file and all reference labels."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command
from flare.cli.options import PATH, challenge_option
from flare.common.places import BUNDLED_GROUND_TRUTH
from flare.evaluation.references import check_references, references_table

PLACE = ("For organisers", 2)

_log = logging.getLogger(__name__)


@click.command("check-references", cls=Command, exclusive=("folder", "ground_truth"))
@click.argument(
    "folder",
    type=PATH,
    required=False,
    metavar="DIR",
    help="Folder of the reference labels (default: the bundled ones).",
)
@click.option(
    "--ground-truth",
    type=PATH,
    metavar="DIR",
    help="The same, by the name that it has in other commands.",
)
@challenge_option
def command(*, folder: Path | None, ground_truth: Path | None, challenge: str) -> None:
    """Read a challenge file and all reference labels."""
    rules = read_challenge(challenge)
    found = check_references(folder or ground_truth or BUNDLED_GROUND_TRUTH, rules)
    _log.info("%s: %d reference label maps can be used", rules.name, found.count)
    _log.info("%s", references_table(found, rules))
