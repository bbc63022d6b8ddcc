"""Tells a person how measuring goes on: line by line, and on a page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from flare.cli.progress import Progress
from flare.common.errors import FlareError
from flare.common.text import safe
from flare.measuring.listener import Listener
from flare.measuring.measure import Scorer
from flare.measuring.team import Job, Setup, TeamPlan
from flare.results.efficiency_csv import CaseRecord

if TYPE_CHECKING:
    from flare.cli.live_page import LivePage


class Told(Scorer):
    """Scores teams, and tells whoever measures them of each case.

    Parameters
    ----------
    job : Job
        What is measured.
    page : LivePage, optional
        Shows how it goes on.
    """

    def __init__(self, job: Job, page: LivePage | None = None) -> None:
        super().__init__(job)
        self._progress = Progress()
        self._page, self._live = page or Listener(), page

    def on_plan(self, setup: Setup, plans: Sequence[TeamPlan]) -> None:
        """Show what is to be done."""
        self._page.on_plan(setup, plans)

    def on_begin(self, team: str, case: str) -> None:
        """Show what is run next."""
        self._page.on_begin(team, case)

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Tell the outcome of a case."""
        text = f"{safe(team)} {safe(record.case)}: {record.status.value}"
        self._progress(number, total, text)
        self._page.on_run(team, record, number, total)

    def on_failure(self, team: str, error: FlareError) -> None:
        """Show what has ended the measurement of a team."""
        self._page.on_failure(team, error)

    def on_team(self, team: str) -> None:
        """Score a team, and show it."""
        self._page.on_team(team)
        super().on_team(team)

    def on_unscored(self, team: str, error: FlareError) -> None:
        """Show why a team could not be scored."""
        if self._live:
            self._live.on_unscored(team, error)


def opened_page(job: Job) -> AbstractContextManager[LivePage | None]:
    """The page that shows how it goes on, if there is to be one."""
    options = job.options
    if not options.page:
        return nullcontext()
    from flare.cli.live_page import LivePage
    from flare.cli.live_run import LiveRun

    run = LiveRun(
        *(job.results, job.archives, job.cases),
        challenge=job.challenge.name,
        is_scored=options.ground_truth is not None,
    )
    return LivePage(options.page, run)
