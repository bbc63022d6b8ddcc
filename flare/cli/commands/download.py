"""Get the metrics.json of a phase's teams off the platform."""

from __future__ import annotations

from flare.cli.command import takes
from flare.cli.console import say
from flare.common.text import count
from flare.platforms.grandchallenge.download import DownloadOptions, download
from flare.platforms.grandchallenge.tokens import read_tokens

PLACE = ("For organisers", 6)


@takes(
    DownloadOptions,
    epilog="FLARE_GC_TOKEN holds an API token of an admin of the challenge, or"
    " FLARE_GC_TOKEN_FILE names the file that holds it.",
)
def command(request: DownloadOptions) -> None:
    teams = download(request, token=read_tokens()[0])
    verb = "is" if teams == 1 else "are"
    say(f"{count(teams, 'team')} {verb} in {request.output}")
