"""Measures teams: runs their images case by case, one team after the other or in turn.

What is made on the way, and in which module::

    Job        team       what is to be measured, as it was read
    Setup      team       what is the same for all teams
    TeamPlan   team       what is left to do of a team, whose folder is locked
    OpenTeam   team       a team whose image is loaded
    Trial      trial      a case that was run once
    CaseRecord record     the row of a case in efficiency.csv
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Self

from flare.challenge.reading import read_challenge
from flare.common.engine import Engine
from flare.common.errors import FlareError, InputError, StoppedError
from flare.common.text import safe
from flare.measuring.archive.model import model_beside
from flare.measuring.archive.reading import Archive, read_archive, team_of
from flare.measuring.container import Conditions, opened_limits
from flare.measuring.host import choose_caches, find_weaknesses
from flare.measuring.inputs import (
    Case,
    check_cases,
    digest_of,
    find_archives,
    find_cases,
)
from flare.measuring.lanes.dispatch import measure_on_lanes
from flare.measuring.options import Options
from flare.measuring.rescore import evaluate_team
from flare.measuring.summary import (
    Failures,
    Listener,
    cases_to_run,
    count_done,
    team_table,
    write_refused,
)
from flare.measuring.team import (
    Job,
    OpenTeam,
    Setup,
    TeamPlan,
    check_job,
    opened_team,
    planned_team,
)
from flare.results.efficiency_csv import CaseRecord

_log = logging.getLogger(__name__)


# --- Before: what is to be measured -----------------------------------------------


def read_job(options: Options) -> Job:
    """Read all that options name; an archive that cannot be read stops no other one.

    Raises
    ------
    FlareError
        If there is nothing to measure, or images and references do not agree.
    """
    challenge = read_challenge(options.challenge)
    cases = find_cases(options.images, challenge)
    if options.ground_truth:
        check_cases(cases, options.ground_truth, challenge)
    files = find_archives(options.archives)
    if options.model and len(files) > 1:
        raise InputError(
            "--model: it is of one team, but several archives were given",
            "Call each TEAMNAME.model.tar.gz, beside its archive.",
        )
    results = options.output
    if len(files) == 1 and results.name == team_of(files[0]):
        results = results.parent
    archives: list[Archive] = []
    unread = Failures(results, lambda _, error: _log.info("%s", error))
    for file in files:
        with unread.noted(team_of(file)):
            archives.append(_read(file, options))
    for archive in archives:
        for found in archive.problems:
            _log.info("%s", found)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(archive.path.name), doubt)
    return Job(
        options=options,
        challenge=challenge,
        results=results,
        cases=cases,
        archives=tuple(archives),
        unread=tuple(unread.found.items()),
    )


def _read(file: Path, options: Options) -> Archive:
    if file.is_file():
        megabytes = file.stat().st_size / 1e6
        size = f"{megabytes:.1f} MB" if megabytes < 1e3 else f"{megabytes / 1e3:.1f} GB"
        _log.info("reading %s (%s)", safe(file.name), size)
    model = options.model or model_beside(file)
    return read_archive(file, contract=options.contract, model=model)


# --- The whole --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What could not be done of a measurement."""

    refused: tuple[Archive, ...]
    """Archives with problems."""
    failed: tuple[tuple[str, FlareError], ...]
    """Teams that were not measured to the end, and why."""
    unscored: tuple[tuple[str, FlareError], ...]
    """Teams that were measured, and not scored."""

    @property
    def line(self) -> str:
        """The first problem, and how many other teams have one; empty if none has."""
        problems: list[FlareError] = [a.problems[0] for a in self.refused]
        problems += [error for _, error in self.failed]
        line = str(problems[0]) if problems else ""
        if not problems and self.unscored:
            team, error = self.unscored[0]
            line = f"{team}: measured, but not scored: {error}"
        teams = {*dict(self.failed), *dict(self.unscored)}
        others = len(teams) + len(self.refused) - 1
        return f"{line} (and {others} other teams)" if line and others > 0 else line


class Scorer(Listener):
    """Scores each team that is measured to the end, and says what was measured of it.

    Parameters
    ----------
    job : Job
        What is measured; without reference labels, nothing is scored.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.unscored = Failures(job.results, self.on_unscored)

    def on_team(self, team: str) -> None:
        """Score a team."""
        options, folder, scored = self.job.options, self.job.results / team, None
        with self.unscored.noted(team):
            if options.ground_truth:
                scored = evaluate_team(
                    *(folder, options.ground_truth, self.job.challenge),
                    workers=options.workers,
                )
        with self.unscored.noted(team):
            _log.info("\n%s", team_table(folder, team, scored))
        if team in self.unscored.found:
            error = self.unscored.found[team]
            _log.info("%s: measured, but not scored: %s", team, error)

    def on_unscored(self, team: str, error: FlareError) -> None:
        """Hear of a team that could not be scored."""


def measure(job: Job, scorer: Scorer) -> Outcome:
    """Measure and score teams, and note in refused.csv whose image cannot be run.

    Parameters
    ----------
    job : Job
        What is measured.
    scorer : Scorer
        Told what happens; it scores teams.
    """
    write_refused(job.archives, job.results)
    failed = measure_teams(job, scorer)
    for team, error in failed:
        _log.info("%s: not measured to the end: %s", team, error)
    failed = (*job.unread, *failed)
    unscored = tuple(scorer.unscored.found.items())
    write_refused(job.archives, job.results, (*failed, *unscored))
    refused = tuple(archive for archive in job.archives if archive.problems)
    return Outcome(refused=refused, failed=failed, unscored=unscored)


def kept(job: Job) -> StoppedError:
    """The message of a measurement that was stopped: nothing of it is lost."""
    done = sum(count_done(job.results / a.team) for a in job.runnable)
    of = len(job.runnable) * len(job.cases)
    return StoppedError(
        "Measuring was interrupted",
        f"{done} of {of} cases are measured and kept; the same command goes on.",
    )


def measure_teams(
    job: Job, listener: Listener | None = None
) -> tuple[tuple[str, FlareError], ...]:
    """Run the images of all teams on all cases, and keep what was measured.

    Only cases without a result, with an engine error, or in `options.rerun` are run.

    Parameters
    ----------
    job : Job
        What is measured, and how.
    listener : Listener, optional
        Told what happens.

    Returns
    -------
    tuple of tuple of str and FlareError
        Teams whose measurement could not begin or go on, and why; what was measured
        of them is kept.

    Raises
    ------
    HostError
        If no team can be measured.
    """
    if not job.runnable:
        return ()
    check_job(job)
    listener = listener or Listener()
    if job.options.is_side_by_side:
        return measure_on_lanes(job, listener)
    options, engine = job.options, Engine()
    described = engine.describe()
    for weakness in find_weaknesses(described):
        _log.info("Before you run images of others: %s", weakness)
    is_here = engine.folder() is not None
    with opened_limits(options.limits) as (limits, gpu):
        setup = Setup(
            job=job,
            engine=engine,
            described=described,
            conditions=Conditions(
                limits=limits,
                contract=options.contract,
                interval_s=options.runs.interval_s,
                caches=choose_caches(options.runs.caches, is_engine_here=is_here),
                gpu=gpu,
            ),
            images_sha256=digest_of(job.cases),
        )
        with Teams(setup, listener) as teams:
            _measure_all(teams, listener)
    return tuple(teams.failures.found.items())


# --- Teams ------------------------------------------------------------------------


class Teams:
    """The teams of a measurement: planned, opened when their turn comes, and closed.

    What goes wrong with one of them is noted, and ends its measurement alone.

    Parameters
    ----------
    setup : Setup
        Of the measurement.
    listener : Listener
        Told of what goes wrong.
    """

    def __init__(self, setup: Setup, listener: Listener) -> None:
        self.setup = setup
        self.failures = Failures(setup.job.results, listener.on_failure)
        self.plans: list[TeamPlan] = []
        self._open: dict[str, OpenTeam] = {}
        self._held: dict[str, ExitStack] = {}
        self._all = ExitStack()

    def __enter__(self) -> Self:
        """Lock the teams' folders, and see what is left to do of each."""
        try:
            for archive in self.setup.job.runnable:
                held = self._held[archive.team] = ExitStack()
                self._all.callback(self.close, archive.team)
                with self.failures.noted(archive.team):
                    plan = held.enter_context(planned_team(self.setup, archive))
                    self.plans.append(plan)
        except BaseException:
            self._all.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close all that is still planned or open, the latest first."""
        self._all.close()

    def run(self, plan: TeamPlan, case: Case) -> CaseRecord | None:
        """Run a case of a team; None if that has ended its measurement."""
        with self.failures.noted(plan.team):
            if plan.team not in self._open:
                held = self._held[plan.team]
                _log.info("loading the image of %s", safe(plan.team))
                self._open[plan.team] = held.enter_context(opened_team(plan))
            return self._open[plan.team].run(case)
        return None

    def close(self, team: str) -> None:
        """Remove a team's image, and unlock its folder; nothing if that was done."""
        with self.failures.noted(team):
            self._held[team].close()


def _measure_all(teams: Teams, listener: Listener) -> None:
    """Run all that is left to do, and close each team with its last case."""
    total = cases_to_run(teams.plans)
    for plan in teams.plans:
        if not plan.todo:
            listener.on_team(plan.team)
    failed = teams.failures.found
    order = _order(teams.plans, in_turns=teams.setup.job.options.interleave)
    for done, (plan, case) in enumerate(order, start=1):
        if plan.team in failed:
            continue
        record = teams.run(plan, case)
        is_last = case is plan.todo[-1]
        if is_last or not record:
            teams.close(plan.team)
        if record:
            listener.on_run(plan.team, record, done, total)
        if is_last and plan.team not in failed:
            listener.on_team(plan.team)


def _order(
    plans: Sequence[TeamPlan], *, in_turns: bool
) -> Iterator[tuple[TeamPlan, Case]]:
    """What is run, one after the other: team by team, or one case of each in turn."""
    rows = [[(plan, case) for case in plan.todo] for plan in plans]
    for row in zip_longest(*rows) if in_turns else rows:
        yield from filter(None, row)
