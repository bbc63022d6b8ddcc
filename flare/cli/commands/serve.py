"""Measure submissions as they come, and answer them."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flare.challenge.reading import read_challenge
from flare.cli.command import Command, refuse
from flare.cli.console import stopping_with
from flare.cli.json_log import json_lines
from flare.cli.options import takes
from flare.common.engine import Limits, find_engine
from flare.common.errors import StoppedError
from flare.common.options import (
    challenge_option,
    option,
    page_file,
    seconds,
    workers_option,
)
from flare.measuring.contract import Contract
from flare.measuring.inputs import check_cases, find_cases
from flare.measuring.options import Options, RunOptions, ServedLimits
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

_SHARED = (
    *("images", "ground_truth", "output", "limits", "contract", "runs", "page"),
    *("challenge", "workers"),
)
"""Options that measuring has, too."""

NEEDED = ("images", "ground_truth")
"""What has to be given, unless it is only asked how far the service is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Where submissions come from, and how they are measured."""

    phase: str | None = option(
        "Claim submissions of this phase of grand-challenge.org, which has external"
        " evaluation.",
        default=None,
        parse=key,
        metavar="UUID",
    )
    api: str = option(
        "Address of the platform's API (default: https://grand-challenge.org/api/v1/).",
        default="https://grand-challenge.org/api/v1/",
        metavar="URL",
    )
    drop_folder: Path | None = option(
        "Take TEAMNAME.tar.gz of teams from this folder; the answers go into"
        " DIR/returned.",
        default=None,
        metavar="DIR",
    )
    images: Path = option(
        "Folder of the CTs, one for each case.", default=Path(), metavar="DIR"
    )
    ground_truth: Path | None = option(
        "Score the predictions against these reference labels.",
        default=None,
        metavar="DIR",
    )
    output: Path = option(
        "Folder that gets a folder for each team, and the service's journal.",
        metavar="RESULTS",
    )
    once: bool = option(
        "End when no submission waits, instead of looking for another one.",
        default=False,
    )
    dry_run: bool = option(
        "See that everything is ready and say what waits, but claim nothing.",
        default=False,
    )
    status: bool = option("Say how far each submission is, and end.", default=False)
    poll_s: float = option(
        "Look for submissions every S seconds (default: 60).",
        default=60.0,
        parse=seconds,
        metavar="S",
    )
    hours: float = option(
        "Answer within H hours of the claim (default: 24, as the platform wants it).",
        default=HOURS,
        parse=seconds,
        metavar="H",
    )
    limits: Limits = field(default_factory=ServedLimits)
    contract: Contract = field(default_factory=Contract)
    runs: RunOptions = field(default_factory=RunOptions)
    page: Path | None = option(
        "Show the submission that is measured on this page, which a browser reads anew"
        " by itself; needs Jinja2.",
        default=None,
        parse=page_file,
        metavar="FILE.html",
    )
    log: Path | None = option(
        "Also add the log to this file, a JSON object in each line.",
        default=None,
        metavar="FILE.jsonl",
    )
    challenge: str = challenge_option()
    workers: int | None = workers_option()

    @property
    def measuring(self) -> Options:
        """How submissions are measured."""
        return Options(
            archives=self.drop_folder or self.output,
            **{name: getattr(self, name) for name in _SHARED},
        )


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
@takes(ServeOptions)
def command(options: ServeOptions) -> None:
    """Measure submissions as they come, and answer them."""
    if options.status:
        _log.info("%s", status_text(options.output / FOLDER, options.hours))
        return
    with json_lines(options.log):
        _serve(options, _source(options))


def _source(options: ServeOptions) -> Source:
    """Where submissions come from."""
    # Here, as help and completion should not wait for it.
    from flare.platforms.grandchallenge.client import TRIES, Client
    from flare.platforms.grandchallenge.external import PhaseSource
    from flare.platforms.serving.drop_folder import DropFolder
    from flare.platforms.serving.service import utc_now

    if options.drop_folder:
        return DropFolder(options.drop_folder, utc_now)
    file = os.environ.get("FLARE_GC_TOKEN_FILE", "")
    # What we start does not need them, and so does not get them.
    tokens = read_tokens(os.environ.pop("FLARE_GC_TOKEN", ""), file)
    tries = DRY_TRIES if options.dry_run else TRIES
    calls = [Client(options.api, token, tries=tries) for token in tokens]
    return PhaseSource(str(options.phase), *calls)


def _serve(options: ServeOptions, source: Source) -> None:
    """Serve until nothing waits, if there is no time to look again, or for ever."""
    # Here, as help and completion should not wait for it.
    from flare.cli.serving import ServedWork, tell, warn_of_time, worst_of
    from flare.platforms.serving.service import Service, utc_now

    if options.page:
        from flare.reports.pages.page import check_pages

        check_pages(options.page)
    challenge = read_challenge(options.challenge)
    cases = find_cases(options.images)
    if options.ground_truth:
        check_cases(cases, options.ground_truth)
    measuring, hours = options.measuring, options.hours
    warn_of_time(measuring, len(cases), hours)
    worst = worst_of(options.limits)
    folder = options.output / FOLDER
    if options.dry_run:
        find_engine(measuring.engine).describe()
        _log.info("%s", waiting_text(source, folder))
        return
    with FolderLock(folder, "served"), stopping_with(_stopped):
        # The platform's archives have whatever name their authors liked.
        is_named = options.drop_folder is not None
        work = ServedWork(
            *(measuring, challenge, cases, worst, utc_now), is_named=is_named
        )
        service = Service(source, work, folder, hours=hours, on_moment=tell)
        service.run(None if options.once else options.poll_s)


def _stopped() -> StoppedError:
    """What whoever ends the service is told."""
    return StoppedError(
        "The service was ended", "What is done is kept; the same command goes on."
    )
