"""Get the metrics.json of a phase's teams off the platform."""

from __future__ import annotations

import logging
import os
import uuid
from pathlib import Path

import click

from flare.cli.command import Command
from flare.cli.options import PATH, Parsed
from flare.platforms.grandchallenge.access import read_token
from flare.platforms.grandchallenge.download import download

PLACE = ("For organisers", 6)

_log = logging.getLogger(__name__)


def key(text: str) -> str:
    """A key of the platform."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a key such as 4a46b539-119b-4889-90bf-18818ffa3dd8"
        ) from None


@click.command(
    "download",
    cls=Command,
    epilog="FLARE_GC_TOKEN holds an API token of an admin of the challenge, or"
    " FLARE_GC_TOKEN_FILE names the file that holds it.",
)
@click.option(
    "--phase",
    type=Parsed(key),
    required=True,
    metavar="UUID",
    help="The phase's key, which stands in the address below Export on its board.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="RESULTS",
    help="Folder that gets a folder for each team.",
)
@click.option(
    "--predictions",
    is_flag=True,
    help="Get what was submitted, too, as RESULTS/TEAM/predictions.zip, and unpack it"
    " into RESULTS/TEAM/predictions.",
)
@click.option(
    "--api",
    default="https://grand-challenge.org/api/v1/",
    metavar="URL",
    help="Address of the platform's API (default: https://grand-challenge.org/api/v1/).",
)
def command(*, phase: str, output: Path, predictions: bool, api: str) -> None:
    """Get the results of a phase off the platform."""
    token = os.environ.get("FLARE_GC_TOKEN", "")
    token_file = os.environ.get("FLARE_GC_TOKEN_FILE", "")
    count = download(
        phase,
        output,
        token=read_token(token, token_file),
        api=api,
        has_predictions=predictions,
        on_team=lambda number, count, team, what: _log.info(
            "[%d/%d] %s: %s", number, count, team, what
        ),
    )
    _log.info("%d teams are in %s", count, output)
