"""Measure submissions as they come, and answer them."""

from __future__ import annotations

from dataclasses import dataclass

from flare.cli.command import takes
from flare.cli.commands.measure import Announcer
from flare.cli.console import say, stopping_with
from flare.common.errors import StoppedError
from flare.common.text import safe
from flare.platforms.grandchallenge.client import Client
from flare.platforms.grandchallenge.external import TOKEN, ExternalOptions, PhaseSource
from flare.platforms.grandchallenge.tokens import read_tokens
from flare.platforms.serving.journal import (
    Entry,
    Step,
    read_journal,
    status_text,
    utc_now,
)
from flare.platforms.serving.serve import ServiceOptions, serve
from flare.platforms.serving.source import DropFolder, FolderOptions, Source
from flare.reports.render import check_library

PLACE = ("For organisers", 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRequest:
    """Where submissions come from, and how they are served."""

    phase: ExternalOptions
    folder: FolderOptions
    service: ServiceOptions

    def __post_init__(self) -> None:
        """See that all is given, unless it is only asked how far the service is."""
        values = {
            "--phase or --drop-folder": self.phase.phase or self.folder.drop_folder,
            "--images": self.service.images,
            "--ground-truth": self.service.ground_truth,
        }
        missing = ", ".join(name for name, value in values.items() if not value)
        if missing and not self.service.status:
            raise ValueError(f"the following arguments are required: {missing}")

    def source(self) -> Source:
        """The place that submissions come from."""
        _, entries = read_journal(self.service.folder)
        if self.folder.drop_folder:
            turns = [entry.team for entry in entries]
            return DropFolder(self.folder.drop_folder, utc_now, turns)
        clients = [Client(self.phase.api, token) for token in read_tokens()]
        used = [entry.place.get(TOKEN, "") for entry in entries]
        return PhaseSource(str(self.phase.phase), *clients, used=used)


@takes(
    ServiceRequest,
    exclusive=("phase", "drop_folder"),
    epilog="FLARE_GC_TOKEN_FILE names the file that holds the API token of one of the"
    " phase's external evaluators, or FLARE_GC_TOKEN holds the token. Of several, one"
    " on each line, each claim is made with the one that was not used for longest.",
)
def command(request: ServiceRequest) -> None:
    service = request.service
    if service.status:
        say(status_text(service.folder, service.hours))
        return
    if service.page:
        check_library(service.page, "jinja2")
    stopped = "The service was ended", "What is done is kept; the same command goes on."
    with stopping_with(lambda: StoppedError(*stopped)):
        serve(service, request.source(), telling=Announcer, on_step=tell)


def tell(entry: Entry) -> None:
    """Tell how far a submission is, or why it has failed."""
    step = entry.step.value
    if entry.step is Step.SCORED and entry.message:
        step = f"failed: {entry.message}"
    say(f"{safe(entry.title)}: {step}")
