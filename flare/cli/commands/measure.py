"""Run teams' images, and measure time and GPU memory."""

from __future__ import annotations

import click

from flare.cli.command import Command
from flare.cli.console import OutcomeError, stopping_with
from flare.cli.measuring import Told, opened_page
from flare.cli.options import takes
from flare.measuring.measure import kept, measure, read_job
from flare.measuring.options import Options

PLACE = ("For organisers", 7)


@click.command("measure", cls=Command)
@takes(Options)
def command(options: Options) -> None:
    """Run teams' images case by case, and score what they predict."""
    if options.page:
        # Here, as help and completion should not wait for it.
        from flare.reports.render.html import check_pages

        check_pages(options.page)
    job = read_job(options)
    with opened_page(job) as page, stopping_with(lambda: kept(job)):
        outcome = measure(job, Told(job, page))
    if outcome.line:
        raise OutcomeError(outcome.line)
