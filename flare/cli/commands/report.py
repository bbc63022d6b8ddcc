"""``flare report``: a page of results, for a browser."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.cli.command import Command
from flare.cli.options import PATH, HtmlFile, OneOf
from flare.common.text import safe

_log = logging.getLogger(__name__)


@click.command("report", cls=Command)
@click.argument(
    "source",
    type=PATH,
    metavar="SOURCE",
    help="The metrics.json of an evaluation.",
)
@click.option(
    "--output",
    type=HtmlFile(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE.html",
    help="Write the page, which needs no other file, into this one.",
)
@click.option(
    "--audience",
    type=OneOf(["organiser", "participant"]),
    default="participant",
    help="Show what these people may know: a participant gets scores of three decimals,"
    " from which nothing can be found out about the references (default: participant).",
)
def command(*, source: Path, output: Path, audience: str) -> None:
    """Make a page of results."""
    # Here, as help and completion should not wait for it.
    from flare.reports.pages.page import check_pages

    check_pages(output)
    from flare.reports.pages.report import write_report

    write_report(source, output, is_organiser=audience == "organiser")
    _log.info("Wrote %s: open it in a browser", safe(output))
