"""Run teams' images, and measure time and GPU memory."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from flare.cli.command import Command, takes
from flare.cli.console import OutcomeError, Progress, stopping_with
from flare.common.errors import FlareError, OutputError
from flare.common.files import write_whole
from flare.common.text import safe
from flare.measuring.measure import Scorer, kept, measure, read_job
from flare.measuring.options import Options
from flare.measuring.team import Job
from flare.results.efficiency_csv import CaseRecord

PLACE = ("For organisers", 7)

_log = logging.getLogger(__name__)


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


# --- Who is told how it goes on -----------------------------------------------------


class LivePage:
    """A page that is written anew after each case, and when the block ends.

    What goes wrong with it is told once, and never ends a measurement.

    Parameters
    ----------
    file : Path
        The page.
    job : Job
        What is measured.
    """

    def __init__(self, file: Path, job: Job) -> None:
        self._file, self._job = file, job
        self._has_warned = False
        self.problems: dict[str, str] = {}
        """By team: what has ended its measurement, or its scoring."""

    def __enter__(self) -> Self:
        """Write the page for the first time."""
        self.write()
        if not self._has_warned:
            _log.info("%s shows how it goes on: open it in a browser", safe(self._file))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the page for the last time."""
        ended = "" if error is None else "somebody has stopped it."
        if isinstance(error, FlareError):
            ended = str(error)
        elif isinstance(error, Exception):
            ended = f"an internal error ({type(error).__name__}); the log has it."
        self.write(ended, is_running=False)

    def write(self, ended: str = "", *, is_running: bool = True) -> None:
        """Write the page, whatever goes wrong; tell it the first time."""
        from flare.reports.measuring import measuring_page, read_progress
        from flare.reports.render.html import page_html

        job = self._job
        try:
            run = read_progress(
                job.results,
                teams=[archive.team for archive in job.runnable],
                cases=[case.name for case in job.cases],
                problems=self.problems,
                doubts=tuple((a.team, d) for a in job.archives for d in a.doubts),
                is_running=is_running,
                ended=ended,
            )
            write_whole(self._file, page_html(measuring_page(run)))
        except OutputError as error:
            self._warn(str(error))
        except Exception as error:  # noqa: BLE001  a page is no reason to fail
            self._warn(type(error).__name__, error)

    def _warn(self, why: str, error: Exception | None = None) -> None:
        """Tell something, but only once: measuring goes on for days."""
        if not self._has_warned:
            text = "The page is not up to date: %s; measuring goes on"
            _log.warning(text, why, exc_info=error)
        self._has_warned = True


class Told(Scorer):
    """Scores teams, and tells a person of each case.

    Parameters
    ----------
    job : Job
        What is measured.
    page : LivePage, optional
        Shows how it goes on.
    """

    def __init__(self, job: Job, page: LivePage | None = None) -> None:
        super().__init__(job)
        self._progress, self._page = Progress(), page

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Tell the outcome of a case."""
        text = f"{safe(team)} {safe(record.case)}: {record.status.value}"
        self._progress(number, total, text)
        self._show()

    def on_failure(self, team: str, error: FlareError) -> None:
        """Show what has ended the measurement of a team."""
        self._note(team, str(error))
        self._show()

    def on_team(self, team: str) -> None:
        """Score a team, and show it."""
        super().on_team(team)
        self._show()

    def on_unscored(self, team: str, error: FlareError) -> None:
        """Note why a team could not be scored."""
        self._note(team, f"measured, but not scored: {error}")

    def _note(self, team: str, problem: str) -> None:
        if self._page:
            self._page.problems[team] = problem

    def _show(self) -> None:
        if self._page:
            self._page.write()


def opened_page(job: Job) -> AbstractContextManager[LivePage | None]:
    """The page that shows how it goes on, if there is to be one."""
    page = job.options.page
    return LivePage(page, job) if page else nullcontext()
