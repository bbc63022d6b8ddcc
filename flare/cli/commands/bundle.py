"""Make what a platform needs to evaluate submissions, as one file to upload."""

from __future__ import annotations

import click

from flare.cli.command import Group, takes
from flare.cli.console import say
from flare.common.text import safe
from flare.platforms.codabench.bundle import BundleOptions, write_bundle

PLACE = ("For organisers", 13)

BY_HAND = """By hand, in the bundle or in the site's editor:
- terms.md: your terms;
- logo.png: your logo;
- competition.yaml: the dates of the phase, and how often people may submit;
- who may take part, whom they can ask, and the queue, if you have one of your own."""


@click.group("bundle", cls=Group)
def command() -> None:
    """Make what a platform needs to evaluate submissions, as one file to upload."""


@command.add_command
@takes(BundleOptions, "codabench", help="For Codabench, whose board is public.")
def bundle_codabench(options: BundleOptions) -> None:
    bundle = write_bundle(options)
    size = f"{bundle.program_bytes / 1e6:.0f} MB"
    say(f"{bundle.references}\n\nWrote {safe(bundle.file)}.")
    say(f"Its scoring program, {size}, is fetched for each submission.")
    if bundle.is_plain:
        say(
            "It has no compiled kernel, and counts by NumPy, more slowly. To have one:"
            " run this on Linux with gcc, or install ziglang."
        )
    say(f"\n{BY_HAND}")
