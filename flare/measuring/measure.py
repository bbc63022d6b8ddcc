"""Measures teams: runs their images case by case, one team after the other or in turn.

What is made on the way, and in which module::

    Setup      plan       what is the same for all teams
    TeamPlan   plan       what is left to do of a team, whose folder is locked
    OpenTeam   team       a team whose image is loaded
    Trial      trial      a case that was run once
    CaseRecord record     the row of a case in efficiency.csv
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from flare.challenge.rules import Challenge
from flare.common.engine import Engine
from flare.common.errors import FlareError
from flare.common.text import listing, nearest, safe
from flare.measuring.archive.reading import Archive
from flare.measuring.inputs import Case
from flare.measuring.listener import Failures, Listener
from flare.measuring.sampling.nvml import NvmlSource
from flare.measuring.team import (
    OpenTeam,
    Options,
    Setup,
    TeamPlan,
    opened_team,
    planned_team,
)
from flare.results.efficiency_csv import CaseRecord
from flare.results.errors import MeasurementError

_log = logging.getLogger(__name__)


def measure(
    archives: Sequence[Archive],
    cases: Sequence[Case],
    results: Path,
    challenge: Challenge,
    *,
    engine: Engine,
    options: Options,
    gpu: NvmlSource | None = None,
    listener: Listener | None = None,
) -> tuple[tuple[str, FlareError], ...]:
    """Run the images of some teams on all cases, and keep what was measured.

    Only cases without a result, with an engine error, or in `options.rerun` are run.

    Parameters
    ----------
    archives : sequence of Archive
        That have no problems.
    cases : sequence of Case
        What they are run on.
    results : Path
        A folder for each team is made in it.
    challenge : Challenge
        Its rules decide what a wrong output is, and what the maximum of memory is.
    engine : Engine
        What they run in.
    options : Options
        How they are measured.
    gpu : NvmlSource, optional
        The GPU of ``options.limits``.
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
    check_options(archives, cases, options)
    setup = Setup(
        results=results,
        cases=tuple(cases),
        challenge=challenge,
        engine=engine,
        described=engine.describe(),
        images_sha256=digest_of(cases),
        options=options,
        gpu=gpu,
    )
    listener = listener or Listener()
    with Teams(setup, archives, listener) as teams:
        _measure_all(teams, listener)
    return tuple(teams.failures.found.items())


def check_options(
    archives: Sequence[Archive], cases: Sequence[Case], options: Options
) -> None:
    """See that what is asked for can be done.

    Raises
    ------
    MeasurementError
        If it cannot.
    """
    unknown = sorted(set(options.rerun) - {case.name for case in cases})
    if unknown:
        near = nearest(unknown[0], [case.name for case in cases])
        raise MeasurementError(
            listing(unknown),
            f"there is no such case to run again{near}",
            "Check --rerun.",
        )
    about_one = (options.new_archive, options.paper, options.rerun)
    if len(archives) > 1 and any(about_one):
        raise MeasurementError(
            "--new-archive, --paper, --rerun",
            "they are about one team, but several archives were given",
            "Measure it alone.",
        )


def digest_of(cases: Sequence[Case]) -> str:
    """SHA-256 over the names and contents of all images."""
    digest = hashlib.sha256()
    for case in cases:
        with case.image.path.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{case.name} {checksum}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


# --- Teams ------------------------------------------------------------------------


class Teams:
    """The teams of a measurement: planned, opened when their turn comes, and closed.

    What goes wrong with one of them is noted, and ends its measurement alone.

    Parameters
    ----------
    setup : Setup
        Of the measurement.
    archives : sequence of Archive
        Of the teams.
    listener : Listener
        Told of what goes wrong.
    """

    def __init__(
        self, setup: Setup, archives: Sequence[Archive], listener: Listener
    ) -> None:
        self.setup, self._archives = setup, archives
        self.failures = Failures(setup.results, listener.on_failure)
        self.plans: list[TeamPlan] = []
        self._open: dict[str, OpenTeam] = {}
        self._held: dict[str, ExitStack] = {}
        self._all = ExitStack()

    def __enter__(self) -> Self:
        """Lock the teams' folders, and see what is left to do of each."""
        try:
            for archive in self._archives:
                self._plan(archive)
        except BaseException:
            self._all.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close all that is still planned or open, the latest first."""
        self._all.close()

    def _plan(self, archive: Archive) -> None:
        """Lock a team's folder, and see what is left to do."""
        held = self._held[archive.team] = ExitStack()
        self._all.callback(self.close, archive.team)
        with self.failures.noted(archive.team):
            self.plans.append(held.enter_context(planned_team(self.setup, archive)))

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
    total = tell_plan(teams.setup, teams.plans, listener)
    for plan in teams.plans:
        if not plan.todo:
            listener.on_team(plan.team)
    failed = teams.failures.found
    is_interleaved = teams.setup.options.is_interleaved
    order = _order(teams.plans, is_interleaved=is_interleaved)
    for done, (plan, case) in enumerate(order, start=1):
        if plan.team in failed:
            continue
        listener.on_begin(plan.team, case.name)
        record = teams.run(plan, case)
        is_last = case is plan.todo[-1]
        if is_last or not record:
            teams.close(plan.team)
        if record:
            listener.on_run(plan.team, record, done, total)
        if is_last and plan.team not in failed:
            listener.on_team(plan.team)


def tell_plan(setup: Setup, plans: Sequence[TeamPlan], listener: Listener) -> int:
    """Tell what is to be done; so many cases are to be run."""
    listener.on_plan(setup, plans)
    total = sum(len(plan.todo) for plan in plans)
    before = len(setup.cases) * len(plans) - total
    if before:
        going_on = ", going on" if total else ""
        _log.info("%d of %d cases are done%s", before, before + total, going_on)
    return total


def _order(
    plans: Sequence[TeamPlan], *, is_interleaved: bool
) -> Iterator[tuple[TeamPlan, Case]]:
    """What is run, one after the other: team by team, or one case of each in turn."""
    if is_interleaved:
        rounds = max((len(plan.todo) for plan in plans), default=0)
        for n in range(rounds):
            for plan in plans:
                if n < len(plan.todo):
                    yield plan, plan.todo[n]
    else:
        for plan in plans:
            for case in plan.todo:
                yield plan, case
