"""Run teams' images, and measure time and GPU memory."""

from __future__ import annotations

import logging
from typing import Any, Self

from flare.cli.command import takes
from flare.cli.console import OutcomeError, Progress, stopping_with
from flare.common.errors import FlareError, OutputError
from flare.common.files import write_whole
from flare.common.text import safe
from flare.measuring.measure import Scorer, interruption, measure, read_job
from flare.measuring.options import MeasureOptions
from flare.measuring.team import Job
from flare.reports.render import check_library
from flare.results.efficiency_csv import CaseRecord

PLACE = ("For organisers", 7)

_log = logging.getLogger(__name__)


@takes(MeasureOptions)
def command(options: MeasureOptions) -> None:
    if options.page:
        check_library(options.page, "jinja2")
    job = read_job(options)
    with Announcer(job) as announcer, stopping_with(lambda: interruption(job)):
        problem = measure(job, announcer)
    if problem:
        raise OutcomeError(problem)


class Announcer(Scorer):
    """Scores teams, tells a person of each case, and keeps the page of `--page`.

    The page is written anew after each case, and when the block ends. What goes wrong
    with it is told once, and never ends a measurement.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._progress, self._has_warned = Progress(), False
        self._failed: dict[str, FlareError] = {}

    def __enter__(self) -> Self:
        """Write the page for the first time."""
        page = self.job.options.page
        self._show()
        if page and not self._has_warned:
            _log.info("%s shows how it goes on: open it in a browser", safe(page))
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Write the page for the last time."""
        ended = "" if error is None else "somebody has stopped it."
        if isinstance(error, FlareError):
            ended = str(error)
        elif isinstance(error, Exception):
            ended = f"an internal error ({type(error).__name__}); the log has it."
        self._show(ended, is_running=False)

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Tell the outcome of a case."""
        text = f"{safe(team)} {safe(record.case)}: {record.status.value}"
        self._progress(number, total, text)
        self._show()

    def on_failure(self, team: str, error: FlareError) -> None:
        """Show what has ended the measurement of a team."""
        self._failed[team] = error
        self._show()

    def on_team(self, team: str) -> None:
        """Score a team, and show it."""
        super().on_team(team)
        self._show()

    def _problems(self) -> dict[str, str]:
        problems = {team: str(error) for team, error in self._failed.items()}
        for team, error in self.unscored.items():
            problems[team] = f"measured, but not scored: {error}"
        return problems

    def _doubts(self) -> tuple[tuple[str, str], ...]:
        """Pair the name of each team with each doubt about its archive."""
        doubts = []
        for archive in self.job.archives:
            doubts += [(archive.team, doubt) for doubt in archive.doubts]
        return tuple(doubts)

    def _show(self, ended: str = "", *, is_running: bool = True) -> None:
        """Write the page, whatever goes wrong; tell it the first time."""
        job, page = self.job, self.job.options.page
        if not page:
            return
        from flare.reports.measuring import measuring_page, read_progress
        from flare.reports.render.html import page_html

        try:
            run = read_progress(
                job.results,
                teams=[archive.team for archive in job.runnable],
                cases=[case.case for case in job.cases],
                problems=self._problems(),
                doubts=self._doubts(),
                is_running=is_running,
                ended=ended,
            )
            write_whole(page, page_html(measuring_page(run)))
        except Exception as error:  # noqa: BLE001  a page is no reason to fail
            if not self._has_warned:
                is_odd = not isinstance(error, OutputError)
                why = type(error).__name__ if is_odd else str(error)
                text = "The page is not up to date: %s; measuring goes on"
                _log.warning(text, why, exc_info=error if is_odd else None)
            self._has_warned = True
