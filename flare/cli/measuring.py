"""Measures teams as a person follows it: told, scored, and shown on a page."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flare.challenge.rules import Challenge
from flare.cli.console import stopping_with
from flare.cli.lanes import LaneOptions, measure_side_by_side
from flare.cli.limits import LimitOptions, limits_of, open_limits
from flare.cli.progress import Progress
from flare.common.engine import Engine
from flare.common.errors import FlareError, StoppedError
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.container_command import Limits
from flare.measuring.contract import Contract
from flare.measuring.host import Caches, choose_caches, find_weaknesses
from flare.measuring.inputs import Case
from flare.measuring.listener import Failures, Listener
from flare.measuring.measure import measure
from flare.measuring.rescore import evaluate_team
from flare.measuring.summary import count_done, team_table
from flare.measuring.team import Options, Setup, TeamPlan
from flare.reports.plots import draw_traces
from flare.results.efficiency_csv import CaseRecord

if TYPE_CHECKING:
    from flare.cli.live_page import LivePage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is to be measured, and how."""

    archives: Path
    model: Path | None
    images: Path
    output: Path
    ground_truth: Path | None
    limits: LimitOptions
    contract: Contract
    lanes: int | None
    cluster: str | None
    unlike_lanes: bool
    interval: float
    repeats: int
    caches: str | None
    no_warm_up: bool
    interleave: bool
    rerun: tuple[str, ...]
    reason: str
    new_archive: str
    unlike_host: str
    paper: str
    plots: bool
    page: Path | None
    challenge: str
    workers: int | None


class Measuring(Listener):
    """Measuring, as a person follows it.

    Parameters
    ----------
    request : Request
        What is to be measured, and how.
    challenge : Challenge
        Its rules.
    results : Path
        The folder of all teams.
    page : LivePage, optional
        Shows how it goes on.
    """

    def __init__(
        self,
        request: Request,
        challenge: Challenge,
        results: Path,
        page: LivePage | None = None,
    ) -> None:
        self._request, self._challenge, self._results = request, challenge, results
        self._progress = Progress()
        self._page = page or Listener()
        self.scoring = Failures(results, page.on_unscored if page else None)

    def measure(
        self, archives: Sequence[Archive], cases: Sequence[Case]
    ) -> tuple[tuple[str, FlareError], ...]:
        """Measure all teams; what was not measured to the end comes back."""
        if not archives:
            return ()

        def kept() -> StoppedError:
            """What Ctrl-C has not taken away."""
            done = sum(count_done(self._results / a.team) for a in archives)
            of = len(archives) * len(cases)
            return StoppedError(
                "Measuring was interrupted",
                f"{done} of {of} cases are measured and kept; the same command goes"
                " on.",
            )

        with stopping_with(kept):
            asked = _lanes(self._request)
            if asked.is_asked_for:
                return self._measure_on_lanes(archives, cases, asked)
            return self._measure_in_turn(archives, cases)

    def _measure_in_turn(
        self, archives: Sequence[Archive], cases: Sequence[Case]
    ) -> tuple[tuple[str, FlareError], ...]:
        """Measure one container at a time."""
        request = self._request
        engine = Engine()
        for weakness in find_weaknesses(engine.describe()):
            _log.info("Before you run images of others: %s", weakness)
        with open_limits(request.limits) as (limits, gpu):
            is_here = engine.is_here()
            caches = choose_caches(request.caches, is_engine_here=is_here)
            return measure(
                archives,
                cases,
                self._results,
                self._challenge,
                engine=engine,
                options=_options(request, limits, caches),
                gpu=gpu,
                listener=self,
            )

    def _measure_on_lanes(
        self,
        archives: Sequence[Archive],
        cases: Sequence[Case],
        asked: LaneOptions,
    ) -> tuple[tuple[str, FlareError], ...]:
        """Measure a container on each lane at a time."""
        request = self._request
        caches = Caches(request.caches or Caches.WARM.value)
        model = archives[0].model
        return measure_side_by_side(
            archives,
            cases,
            self._results,
            self._challenge,
            asked=asked,
            options=_options(request, limits_of(request.limits), caches),
            folders={
                "images": request.images,
                "archives": archives[0].path.parent,
                **({"model": model.path.parent} if model else {}),
                "results": self._results,
            },
            listener=self,
        )

    def on_plan(self, setup: Setup, plans: Sequence[TeamPlan]) -> None:
        """Show what is to be done."""
        self._page.on_plan(setup, plans)

    def on_begin(self, team: str, case: str) -> None:
        """Show what is run next."""
        self._page.on_begin(team, case)

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Tell what came of a case."""
        text = f"{safe(team)} {safe(record.case)}: {record.status.value}"
        self._progress(number, total, text)
        self._page.on_run(team, record, number, total)

    def on_failure(self, team: str, error: FlareError) -> None:
        """Show what has ended the measurement of a team."""
        self._page.on_failure(team, error)

    def on_team(self, team: str) -> None:
        """Score a team, and show what came of it."""
        self._page.on_team(team)
        folder, request = self._results / team, self._request
        scored = None
        with self.scoring.noted(team):
            if request.ground_truth:
                truth, workers = request.ground_truth, request.workers
                scored = evaluate_team(folder, truth, self._challenge, workers)
            if request.plots:
                draw_traces(folder)
        with self.scoring.noted(team):
            _log.info("\n%s", team_table(folder, team, scored))
        if team in self.scoring.found:
            error = self.scoring.found[team]
            _log.info("%s: measured, but not scored: %s", team, error)


def _lanes(request: Request) -> LaneOptions:
    """How many teams are measured at once, and where."""
    return LaneOptions(
        limits=request.limits,
        lanes=request.lanes,
        cluster=request.cluster,
        unlike_lanes=request.unlike_lanes,
    )


def _options(request: Request, limits: Limits, caches: Caches) -> Options:
    """How a team is measured."""
    return Options(
        limits=limits,
        interval_s=request.interval,
        repeats=request.repeats,
        caches=caches,
        has_warm_up=not request.no_warm_up,
        is_interleaved=request.interleave,
        rerun=request.rerun,
        reason=request.reason,
        new_archive=request.new_archive,
        paper=request.paper,
        unlike_host=request.unlike_host.strip(),
        contract=request.contract,
    )
