"""Make one file of what a platform needs for evaluations."""

from __future__ import annotations

from flare.cli.command import Group, takes
from flare.cli.console import say
from flare.platforms.codabench.bundle import BundleOptions, write_bundle

PLACE = ("For organisers", 13)


command = Group("bundle")


@command.add_command
@takes(BundleOptions, "codabench", help="For Codabench, whose board is public.")
def bundle_codabench(options: BundleOptions) -> None:
    for line in write_bundle(options):
        say(line)
