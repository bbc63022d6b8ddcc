"""Measure submissions as they come, and answer them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command, refuse
from flare.cli.console import stopping_with
from flare.cli.contract_options import contract_options
from flare.cli.json_log import json_lines
from flare.cli.limits import limit_options
from flare.cli.measuring import Request
from flare.cli.options import PATH, PageFile, Parsed, challenge_option, workers_option
from flare.cli.run_options import run_options
from flare.common.engine import Engine
from flare.common.errors import StoppedError
from flare.common.options import seconds
from flare.measuring.inputs import check_cases, find_cases
from flare.platforms.grandchallenge.access import key, read_tokens
from flare.platforms.serving.journal import HOURS, status_text, waiting_text
from flare.results.lock import FolderLock

if TYPE_CHECKING:
    from flare.platforms.serving.source import Source

PLACE = ("For organisers", 8)

_log = logging.getLogger(__name__)

FOLDER = ".serve"
"""In RESULTS: the journal, and archives that were downloaded."""

DRY_TRIES = 2
"""So often a dry run tries to reach the platform."""

OWN = (
    *("phase", "api", "drop_folder", "once", "dry_run", "status", "poll", "hours"),
    "log",
)
"""Options that are no measuring's."""

NEEDED = ("images", "ground_truth")
"""What has to be given, unless it is only asked how far the service is."""


class _ServeCommand(Command):
    """A command that needs less where it is only asked how far it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; what a service needs has to be there."""
        rest = super().parse_args(ctx, args)
        given = {name for name, value in ctx.params.items() if value is not None}
        missing = [
            f"--{name.replace('_', '-')}" for name in NEEDED if name not in given
        ]
        if not given & {"phase", "drop_folder"}:
            missing = ["--phase or --drop-folder", *missing]
        if missing and not ctx.params.get("status") and not ctx.resilient_parsing:
            words = ", ".join(missing)
            refuse(ctx, f"the following arguments are required: {words}")
        return rest


@click.command(
    "serve",
    cls=_ServeCommand,
    exclusive=("phase", "drop_folder"),
    epilog="FLARE_GC_TOKEN_FILE names the file that holds the API token of one of the"
    " phase's external evaluators, or FLARE_GC_TOKEN holds the token. Of several, one"
    " on each line, the next one is used where the platform lets a user claim only"
    " once.",
)
@click.option(
    "--phase",
    type=Parsed(key),
    metavar="UUID",
    help="Claim submissions of this phase of grand-challenge.org, which has external"
    " evaluation.",
)
@click.option(
    "--api",
    default="https://grand-challenge.org/api/v1/",
    metavar="URL",
    help="Address of the platform's API (default: https://grand-challenge.org/api/v1/).",
)
@click.option(
    "--drop-folder",
    type=PATH,
    metavar="DIR",
    help="Take TEAMNAME.tar.gz of teams from this folder; the answers go into"
    " DIR/returned.",
)
@click.option(
    "--images",
    type=PATH,
    metavar="DIR",
    help="Folder of the CTs, one for each case.",
)
@click.option(
    "--ground-truth",
    type=PATH,
    metavar="DIR",
    help="Score the predictions against these reference labels.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="RESULTS",
    help="Folder that gets a folder for each team, and the service's journal.",
)
@click.option(
    "--once",
    is_flag=True,
    help="End when no submission waits, instead of looking for another one.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="See that everything is ready and say what waits, but claim nothing.",
)
@click.option("--status", is_flag=True, help="Say how far each submission is, and end.")
@click.option(
    "--poll",
    type=Parsed(seconds),
    default="60",
    metavar="S",
    help="Look for submissions every S seconds (default: 60).",
)
@click.option(
    "--hours",
    type=Parsed(seconds),
    default=str(HOURS),
    metavar="H",
    help="Answer within H hours of the claim (default: 24, as the platform wants it).",
)
@limit_options(gpu="0")
@contract_options
@run_options
@click.option(
    "--page",
    type=PageFile(path_type=Path, readable=False),
    metavar="FILE.html",
    help="Show the submission that is measured on this page, which a browser reads anew"
    " by itself; needs Jinja2.",
)
@click.option(
    "--log",
    type=PATH,
    metavar="FILE.jsonl",
    help="Also add the log to this file, a JSON object in each line.",
)
@challenge_option
@workers_option
def command(**given: Any) -> None:
    """Measure submissions as they come, and answer them."""
    own = {name: given.pop(name) for name in OWN}
    hours = own["hours"]
    if own["status"]:
        _log.info("%s", status_text(given["output"] / FOLDER, hours))
        return
    poll_s = None if own["once"] else own["poll"]
    request = Request(
        archives=own["drop_folder"] or given["output"],
        model=None,
        interleave=False,
        rerun=(),
        reason="",
        new_archive="",
        unlike_host="",
        paper="",
        lanes=None,
        cluster=None,
        unlike_lanes=False,
        plots=False,
        **given,
    )
    with json_lines(own["log"]):
        source = _source(own)
        _serve(request, source, hours, is_dry=own["dry_run"], poll_s=poll_s)


def _source(own: Mapping[str, Any]) -> Source:
    """Where submissions come from."""
    # Here, as help and completion should not wait for it.
    from flare.platforms.grandchallenge.client import TRIES, Client
    from flare.platforms.grandchallenge.external import PhaseSource
    from flare.platforms.serving.drop_folder import DropFolder
    from flare.platforms.serving.service import utc_now

    if own["drop_folder"]:
        return DropFolder(own["drop_folder"], utc_now)
    file = os.environ.get("FLARE_GC_TOKEN_FILE", "")
    # What we start does not need them, and so does not get them.
    tokens = read_tokens(os.environ.pop("FLARE_GC_TOKEN", ""), file)
    tries = DRY_TRIES if own["dry_run"] else TRIES
    calls = [Client(own["api"], token, tries=tries) for token in tokens]
    return PhaseSource(str(own["phase"]), *calls)


def _serve(
    request: Request,
    source: Source,
    hours: float,
    *,
    is_dry: bool,
    poll_s: float | None,
) -> None:
    """Serve until nothing waits, if there is no time to look again, or for ever."""
    # Here, as help and completion should not wait for it.
    from flare.cli.serving import ServedWork, tell, warn_of_time, worst_of
    from flare.platforms.serving.service import Service, utc_now

    if request.page:
        from flare.reports.pages.page import check_pages

        check_pages(request.page)
    challenge = read_challenge(request.challenge)
    cases = find_cases(request.images)
    if request.ground_truth:
        check_cases(cases, request.ground_truth)
    warn_of_time(request, len(cases), hours)
    worst = worst_of(request.limits)
    folder = request.output / FOLDER
    if is_dry:
        Engine().describe()
        _log.info("%s", waiting_text(source, folder))
        return
    with FolderLock(folder, "served"), stopping_with(_stopped):
        # The platform's archives have whatever name their authors liked.
        is_named = request.archives != request.output
        work = ServedWork(request, challenge, cases, worst, utc_now, is_named=is_named)
        service = Service(source, work, folder, hours=hours, on_moment=tell)
        service.run(poll_s)


def _stopped() -> StoppedError:
    """What whoever ends the service is told."""
    return StoppedError(
        "The service was ended", "What is done is kept; the same command goes on."
    )
