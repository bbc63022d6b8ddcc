"""``flare measure``: running teams' images case by case."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.cli.command import Command
from flare.cli.console import OutcomeError, stopping_with
from flare.cli.limits import LimitOptions, limit_options, open_limits
from flare.cli.options import (
    PATH,
    OneOf,
    Parsed,
    challenge_option,
    positive,
    seconds,
    workers_option,
)
from flare.cli.progress import MeasuringProgress
from flare.common.engine import Engine
from flare.common.errors import FlareError, InputError, StoppedError
from flare.common.text import safe
from flare.measuring.archive.reading import Archive, read_archive
from flare.measuring.container_command import Limits
from flare.measuring.errors import LoadError
from flare.measuring.host_load import choose_caches
from flare.measuring.inputs import check_cases, find_archives, find_cases
from flare.measuring.measure import measure
from flare.measuring.plan import Options
from flare.measuring.refused import write_refused
from flare.measuring.scoring import evaluate_team
from flare.measuring.summary import count_done, team_table
from flare.measuring.team_failures import Failures
from flare.measuring.weaknesses import find_weaknesses
from flare.reports.plots import check_plots, draw_traces

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is to be measured, and how."""

    archives: Path
    images: Path
    output: Path
    ground_truth: Path | None
    limits: LimitOptions
    interval: float
    repeats: int
    caches: str | None
    no_warm_up: bool
    interleave: bool
    rerun: tuple[str, ...]
    reason: str
    new_archive: str
    paper: str
    plots: bool
    challenge: str
    workers: int | None


@click.command("measure", cls=Command)
@click.argument(
    "archives",
    type=PATH,
    metavar="TEAMNAME.tar.gz|FOLDER",
    help="What a team has sent, or a folder of such files.",
)
@click.option(
    "--images",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Folder of the CTs, one for each case.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="RESULTS[/TEAMNAME]",
    help="Folder that gets a folder for each team; a measurement that is there goes"
    " on.",
)
@click.option(
    "--ground-truth",
    type=PATH,
    metavar="DIR",
    help="Also score the predictions against these reference labels.",
)
@limit_options(gpu="0")
@click.option(
    "--interval",
    type=Parsed(seconds),
    default="0.1",
    metavar="S",
    help="Sample the memory every S seconds (default: 0.1).",
)
@click.option(
    "--repeats",
    type=Parsed(positive),
    default=1,
    metavar="N",
    help="Run each case N times; the one with the median time counts (default: 1).",
)
@click.option(
    "--caches",
    type=OneOf(["cold", "warm"]),
    help="Throw files out of the memory before each run, which only root can do, or do"
    " not (default: cold as root, else warm).",
)
@click.option(
    "--no-warm-up",
    is_flag=True,
    help="With warm caches, do not throw a first run away.",
)
@click.option("--interleave", is_flag=True, help="Let teams take turns, case by case.")
@click.option(
    "--rerun",
    multiple=True,
    metavar="CASE",
    help="Run this case again, whatever came of it; needs --reason.",
)
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Say for the record why a case is run again.",
)
@click.option(
    "--new-archive",
    default="",
    metavar="REASON",
    help="Accept another archive of a team than the first, for this reason.",
)
@click.option(
    "--paper",
    default="",
    metavar="TEXT",
    help="Note the team's paper in the ledger.",
)
@click.option(
    "--plots",
    is_flag=True,
    help="Draw the memory of each case over time; needs matplotlib.",
)
@challenge_option
@workers_option
def command(**given: Any) -> None:
    """Run teams' images case by case, and score what they predict."""
    request = Request(**given)
    if request.plots:
        check_plots()
    challenge = read_challenge(request.challenge)
    if request.rerun and not request.reason.strip():
        problem = "--rerun: no reason was given"
        raise InputError(problem, "Say why, for the record: --reason TEXT.")
    cases = find_cases(request.images)
    if request.ground_truth:
        check_cases(cases, request.ground_truth)
    files = find_archives(request.archives)
    archives = [read_archive(file) for file in files]
    for archive in archives:
        for found in archive.problems:
            _log.info("%s", found)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(archive.path.name), doubt)
    results = request.output
    if len(files) == 1 and results.name == archives[0].team:
        results = results.parent
    write_refused(archives, results)
    run = _Run(request, challenge, results)
    failed = run.measure([a for a in archives if not a.problems], cases)
    for team, error in failed:
        _log.info("%s: not measured to the end: %s", team, error)
    write_refused(_not_loaded(archives, failed), results)
    line = _failure(archives, failed, run.scoring)
    if line:
        raise OutcomeError(line)


class _Run:
    """Measuring, as a person follows it."""

    def __init__(self, request: Request, challenge: Challenge, results: Path) -> None:
        self.scoring = Failures()
        self._request, self._challenge, self._results = request, challenge, results
        self._progress = MeasuringProgress()

    def measure(
        self, archives: Sequence[Archive], cases: Sequence[Any]
    ) -> tuple[tuple[str, FlareError], ...]:
        """Measure all teams; what was not measured to the end comes back."""
        if not archives:
            return ()
        engine = Engine()
        for weakness in find_weaknesses(engine.describe()):
            _log.info("Before you run images of others: %s", weakness)

        def kept() -> StoppedError:
            """What Ctrl-C has not taken away."""
            done = sum(count_done(self._results / a.team) for a in archives)
            of = len(archives) * len(cases)
            return StoppedError(
                "Measuring was interrupted",
                f"{done} of {of} cases are measured and kept; the same command goes"
                " on.",
            )

        with (
            stopping_with(kept),
            open_limits(self._request.limits) as (limits, gpu),
        ):
            return measure(
                archives,
                cases,
                self._results,
                self._challenge,
                engine=engine,
                options=_options(self._request, limits, engine),
                gpu=gpu,
                on_run=self._progress,
                on_team=self._finish,
            )

    def _finish(self, team: str) -> None:
        """Score a team, and show what came of it."""
        self._progress.clear()
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


def _options(request: Request, limits: Limits, engine: Engine) -> Options:
    """How a team is measured."""
    return Options(
        limits=limits,
        interval_s=request.interval,
        repeats=request.repeats,
        caches=choose_caches(
            request.caches, is_engine_here=engine.folder() is not None
        ),
        has_warm_up=not request.no_warm_up,
        is_interleaved=request.interleave,
        rerun=request.rerun,
        reason=request.reason,
        new_archive=request.new_archive,
        paper=request.paper,
    )


def _not_loaded(
    archives: Sequence[Archive], failed: Sequence[tuple[str, FlareError]]
) -> list[Archive]:
    """Archives that only the engine refused, with its reason."""
    return [
        replace(archive, problems=(error,))
        for archive in archives
        if not archive.problems
        for team, error in failed
        if team == archive.team and isinstance(error, LoadError)
    ]


def _failure(
    archives: Sequence[Archive],
    failed: Sequence[tuple[str, FlareError]],
    scoring: Failures,
) -> str:
    """The line of a run in which a team failed: the first one, and how many others."""
    problems: list[FlareError] = [a.problems[0] for a in archives if a.problems]
    refused = len(problems)
    problems += [error for _, error in failed]
    line = str(problems[0]) if problems else ""
    if not problems and scoring.found:
        team, error = next(iter(scoring.found.items()))
        line = f"{team}: measured, but not scored: {error}"
    others = len({*dict(failed), *scoring.found}) + refused - 1
    return f"{line} (and {others} other teams)" if line and others > 0 else line
